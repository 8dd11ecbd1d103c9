# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay: as a table, and on the page."""

from collections.abc import Sequence
from dataclasses import replace

from plots.core.crossover import Comparison
from plots.core.crossover_words import instances_words
from plots.core.page.section import Block, Context, Section
from plots.core.paired import LOST, pairs_fields
from plots.core.tables.cells import (
    crossover_fields,
    file_fields,
    table_of,
    text_cell,
    text_field,
)
from plots.core.tables.table import Column, Table
from plots.features.threads.analysis import more_threads, threads_sentence
from plots.file.rows import File

_FIRST = ("crossover", "low", "high", "pairs_low", "pairs_high", "regret")
_NOTES = (
    "The interval is a bootstrap of the repetitions. Pairs are repetitions of both sides in turn, "
    "at sizes between those of the sweep: the interval of the pairs runs from the last sure win of "
    "one side to the first sure win of the other. Lost: the share of the time that following "
    "the size costs, on average over the sizes measured. docs/method/refinement.md defines each.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has epochs on several thread counts."""
    found = [(file, more_threads(file)) for file in files[: context.detailed]]
    found = [(file, own) for file, own in found if own]
    if not found:
        return None
    return Section(
        title="CPU threads",
        anchor="threads",
        lead="From which size of the network more threads pay.",
        blocks=tuple(
            Block(
                machine=file.machine.id,
                points=tuple(threads_sentence(file, one) for one in own),
                tables=(threads_table([(file, own)]).led_by(*_FIRST),),
            )
            for file, own in found
        ),
        notes=_NOTES,
    )


def threads_table(found: Sequence[tuple[File, Sequence[Comparison]]]) -> Table:
    """One line for each comparison: the size from which more threads win, with the bootstrap's
    interval, that of the pairs, and the share of the time that following it loses."""
    ladders = dict.fromkeys(one.networks for _, own in found for one in own)
    notes: dict[str, int] = {}
    which = list(file_fields(found))
    if any(one.model for _, own in found for one in own):
        which.append(text_field("networks", "networks", lambda of: of[1].networks))
    fields = (
        *which,
        (Column("batch", "batch", True), lambda of: text_cell(of[1].batch or None)),
        text_field("precision", "precision", lambda of: of[1].precision or None),
        text_field("fewest", "threads", lambda of: of[1].sides[0]),
        text_field("most", "against", lambda of: of[1].sides[1]),
        *crossover_fields("more pay from", lambda of: of[1]),
        *pairs_fields(notes, with_spacing=True),
        *LOST,
    )
    title = "From which size more CPU threads pay, in epochs"
    title += f" of {next(iter(ladders))}" if len(ladders) == 1 else ""
    title += f", on {found[0][0].machine.id}" if len(found) == 1 else ""
    table = table_of(title, [(file, one) for file, own in found for one in own], fields)
    # Intervals depend on instances, which may be another file's.
    instances = (instances_words(file, {one.family for one in own}) for file, own in found)
    return replace(table, notes=tuple(dict.fromkeys(filter(None, [*notes, *instances]))))
