# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay: the crossover that every machine has. In a sentence, as a
table, and on the page.

As curves/crossover.py, with the fewest threads in the place of the CPU and the most in that
of the GPU; docs/method/runs.md gives the rules.
"""

from collections.abc import Sequence
from itertools import chain

from crossover_bench.answers.paired import LOST, pairs_fields, pairs_sentence
from crossover_bench.curves.crossover import EQUAL_WITHIN, Comparison, find_crossover
from crossover_bench.curves.crossover_words import faster, instances_words
from crossover_bench.curves.curves import thread_pairs
from crossover_bench.files.ladders import networks_of_any
from crossover_bench.files.rows import File
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import crossover_fields, table_of, text_cell, text_field
from crossover_bench.show.tables.table import Column, Table
from crossover_bench.words.text import printable

_NAME = 60
_FIRST = ("crossover", "low", "high", "pairs_low", "pairs_high", "regret")
_NOTES = (
    "The interval is a bootstrap of the repetitions. Pairs are repetitions of both sides in turn, "
    "at sizes between those of the sweep: the interval of the pairs runs from the last sure win of "
    "one side to the first sure win of the other. Lost: the share of the time that following "
    "the size costs, on average over the sizes measured. docs/method/runs.md defines each.",
)


def more_threads(file: File) -> list[Comparison]:
    """A comparison for each batch size, precision and so on of the epochs of `file` that have
    several thread counts, in the file's order."""
    compared = []
    programs = {row.index: row.runs_as for row in file.rows}
    for common, fewest, most in thread_pairs(file):
        by_size = dict(zip(fewest.sizes.tolist(), fewest.rows, strict=True))
        same = tuple(
            size
            for size, row in zip(most.sizes.tolist(), most.rows, strict=True)
            if size in by_size and programs[row] == programs[by_size[size]]
        )
        few, many = (
            curve.axes["cpu_threads"].word(curve.configuration["cpu_threads"])
            for curve in (fewest, most)
        )
        crossover = find_crossover(
            fewest, most, sides=(few, many), equal_within=EQUAL_WITHIN, same=same
        )
        compared.append(Comparison(common, "parameters", fewest, most, crossover))
    return compared


def threads_sentence(file: File, comparison: Comparison) -> str:
    """The answer in a sentence, with what the file's pairs say."""
    claim = faster(comparison.crossover, printable(comparison.networks, _NAME))
    answer = f"At batch {printable(comparison.batch or '?', _NAME)}, {claim}."
    return " ".join([answer, *pairs_sentence(file, comparison)])


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has epochs on several thread counts."""
    blocks = [
        Block(
            machine=file.machine.id,
            points=tuple(threads_sentence(file, comparison) for comparison in compared),
            tables=(threads_table(file, compared).led_by(*_FIRST),),
        )
        for file in files[: context.detailed]
        if (compared := more_threads(file))
    ]
    if not blocks:
        return None
    return Section(
        title="CPU threads",
        anchor="threads",
        lead="From which size of the network more threads pay.",
        blocks=tuple(blocks),
        notes=_NOTES,
    )


def lacking(file: File) -> str:
    """Why there is no section on `file`, and what gives one."""
    networks = printable(networks_of_any(file.ladders))
    return (
        f"no epochs of two {networks} on several thread counts; {RUN} --family=Epoch "
        "--threads=1,2 gives them"
    )


def threads_table(file: File, compared: Sequence[Comparison]) -> Table:
    """One line for each comparison: the size from which more threads win, with the bootstrap's
    interval, that of the pairs, and the share of the time that following it loses."""
    ladders = {comparison.networks for comparison in compared}
    notes: dict[str, int] = {}
    networks = text_field("networks", "networks", lambda of: of[1].networks)
    fields = (
        *([networks] if any(comparison.model for comparison in compared) else []),
        (Column("batch", "batch", True), lambda of: text_cell(of[1].batch or None)),
        text_field("precision", "precision", lambda of: of[1].precision or None),
        text_field("fewest", "threads", lambda of: of[1].sides[0]),
        text_field("most", "against", lambda of: of[1].sides[1]),
        *crossover_fields("more pay from", lambda of: of[1]),
        *pairs_fields(notes, with_spacing=True),
        *LOST,
    )
    title = "From which size more CPU threads pay, in epochs"
    title += f" of {ladders.pop()}" if len(ladders) == 1 else ""
    instances = instances_words(file, {comparison.family for comparison in compared})
    return table_of(
        f"{title}, on {file.machine.id}",
        [(file, comparison) for comparison in compared],
        fields,
        chain(notes, filter(None, [instances])),
    )
