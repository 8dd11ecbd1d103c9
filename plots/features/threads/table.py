# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay, as a table."""

from collections.abc import Sequence

from plots import units
from plots.core.crossover import Comparison, regret
from plots.core.crossover_words import instances_words
from plots.core.paired import LOST, PAIRS, lost_cells, pairs_cells, pairs_of, spacing
from plots.core.tables.cells import kind_cell, number_cell, text_cell
from plots.core.tables.table import Cell, Column, Table
from plots.file.rows import File

_WHICH = (Column("machine", "machine"), Column("file", "file"))
_NETWORKS = (Column("networks", "networks"),)
_COLUMNS = (
    Column("batch", "batch", numeric=True),
    Column("precision", "precision"),
    Column("fewest", "threads"),
    Column("most", "against"),
    Column("kind", "answer"),
    Column("crossover", "more pay from", numeric=True),
    Column("low", "from", numeric=True, group="95 %"),
    Column("high", "to", numeric=True, group="95 %"),
    *PAIRS,
    *LOST,
)


def threads_table(found: Sequence[tuple[File, Sequence[Comparison]]]) -> Table:
    """One line for each comparison: the size from which more threads win, with the bootstrap's
    interval, that of the pairs, and the share of the time that following it loses."""
    several = len(found) > 1
    ladders = dict.fromkeys(one.networks for _, own in found for one in own)
    others = any(one.model for _, own in found for one in own)
    lines: list[tuple[Cell, ...]] = []
    notes: dict[str, int] = {}
    for file, own in found:
        which = (
            (text_cell(file.machine.id), Cell(file.path.stem, file.path.name)) if several else ()
        )
        lines += [
            (*which, *((text_cell(one.networks),) if others else ()), *_line(file, one, notes))
            for one in own
        ]
    for file, own in found:  # intervals depend on it, and it may be another file's
        if words := instances_words(file, {one.family for one in own}):
            notes.setdefault(words, len(notes) + 1)
    title = "From which size more CPU threads pay, in epochs"
    title += f" of {next(iter(ladders))}" if len(ladders) == 1 else ""
    if not several and found:
        title += f", on {found[0][0].machine.id}"
    return Table(
        title,
        (*(_WHICH if several else ()), *(_NETWORKS if others else ()), *_COLUMNS),
        tuple(lines),
        tuple(notes),
    )


def _line(file: File, one: Comparison, notes: dict[str, int]) -> tuple[Cell, ...]:
    crossover, (fewest, most) = one.crossover, one.sides
    cells = (
        text_cell(one.batch or None),
        text_cell(one.precision or None),
        text_cell(fewest),
        text_cell(most),
        kind_cell(crossover.kind),
        number_cell(crossover.size),
        number_cell(crossover.low),
        number_cell(crossover.high),
        *pairs_cells(file, one, notes),
        *lost_cells(regret(crossover, one.cpu, one.gpu)),
    )
    pairs = pairs_of(file, one.common, one.cpu, one.gpu)
    if pairs and (ratio := spacing(pairs)):
        notes.setdefault(
            "Pairs look between neighbouring sizes of the sweep, which differ by a factor of up to "
            f"{units.significant(ratio, 2)}; two changes between the same two are not seen.",
            len(notes) + 1,
        )
    return cells
