# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay: as a table, and on the page."""

from collections.abc import Sequence
from itertools import chain

from plots.core.crossover import Comparison
from plots.core.crossover_words import instances_words
from plots.core.page.section import Block, Context, Section
from plots.core.paired import LOST, pairs_fields
from plots.core.tables.cells import crossover_fields, table_of, text_cell, text_field
from plots.core.tables.table import Column, Table
from plots.features.threads.analysis import more_threads, threads_sentence
from plots.file.ladders import networks_of_any
from plots.file.rows import File
from plots.text import printable

_FIRST = ("crossover", "low", "high", "pairs_low", "pairs_high", "regret")
_NOTES = (
    "The interval is a bootstrap of the repetitions. Pairs are repetitions of both sides in turn, "
    "at sizes between those of the sweep: the interval of the pairs runs from the last sure win of "
    "one side to the first sure win of the other. Lost: the share of the time that following "
    "the size costs, on average over the sizes measured. docs/method/refinement.md defines each.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has epochs on several thread counts."""
    blocks = [
        Block(
            machine=file.machine.id,
            points=tuple(threads_sentence(file, one) for one in found),
            tables=(threads_table(file, found).led_by(*_FIRST),),
        )
        for file in files[: context.detailed]
        if (found := more_threads(file))
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
        f"no epochs of two {networks} on several thread counts; ./run --family=Epoch "
        "--threads=1,2 gives them"
    )


def threads_table(file: File, found: Sequence[Comparison]) -> Table:
    """One line for each comparison: the size from which more threads win, with the bootstrap's
    interval, that of the pairs, and the share of the time that following it loses."""
    ladders = list(dict.fromkeys(one.networks for one in found))
    notes: dict[str, int] = {}
    networks = text_field("networks", "networks", lambda of: of[1].networks)
    fields = (
        *([networks] if any(one.model for one in found) else []),
        (Column("batch", "batch", True), lambda of: text_cell(of[1].batch or None)),
        text_field("precision", "precision", lambda of: of[1].precision or None),
        text_field("fewest", "threads", lambda of: of[1].sides[0]),
        text_field("most", "against", lambda of: of[1].sides[1]),
        *crossover_fields("more pay from", lambda of: of[1]),
        *pairs_fields(notes, with_spacing=True),
        *LOST,
    )
    title = "From which size more CPU threads pay, in epochs"
    title += f" of {ladders[0]}" if len(ladders) == 1 else ""
    instances = instances_words(file, {one.family for one in found})
    return table_of(
        f"{title}, on {file.machine.id}",
        [(file, one) for one in found],
        fields,
        chain(notes, filter(None, [instances])),
    )
