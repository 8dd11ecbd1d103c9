# SPDX-License-Identifier: Apache-2.0
"""From which size more CPU threads pay, as a table."""

from __future__ import annotations

from collections.abc import Sequence

from plots import units
from plots.analysis.paired import spacing
from plots.analysis.threads import MoreThreads
from plots.rows import File
from plots.tables.crossover import DISAGREES, share
from plots.tables.table import NOTHING, Cell, Column, Table

_COLUMNS = (
    Column("batch", "batch", numeric=True),
    Column("precision", "precision"),
    Column("fewest", "threads"),
    Column("most", "against"),
    Column("kind", "answer"),
    Column("crossover", "more pay from", numeric=True),
    Column("low", "from", numeric=True, group="95 %"),
    Column("high", "to", numeric=True, group="95 %"),
    Column("pairs", "pairs say"),
    Column("regret", "time lost", numeric=True),
    Column("largest_regret", "at most", numeric=True),
)
_WHICH = (Column("machine", "machine"), Column("file", "file"))


def threads_table(found: Sequence[tuple[File, Sequence[MoreThreads]]]) -> Table:
    """One line for each comparison: the size from which more threads win, with the bootstrap's
    interval, what the pairs say, and the share of the time that following it loses."""
    several = len(found) > 1
    lines, notes = [], {}
    for file, own in found:
        which = (
            (Cell(file.machine.id, file.machine.id), Cell(file.path.stem, file.path.name))
            if several
            else ()
        )
        for one in own:
            lines.append((*which, *_line(one, notes)))
    title = "From which size more CPU threads pay, in epochs of disc networks"
    if not several and found:
        title += f", on {found[0][0].machine.id}"
    return Table(title, (*(_WHICH if several else ()), *_COLUMNS), tuple(lines), tuple(notes))


def _line(one: MoreThreads, notes: dict[str, int]) -> tuple[Cell, ...]:
    crossover, (fewest, most) = one.crossover, one.sides
    marks = (notes.setdefault(DISAGREES, len(notes) + 1),) if one.disagrees else ()
    pairs = Cell(one.pairs_say, one.pairs_say, marks=marks) if one.pairs else NOTHING
    if one.pairs and (ratio := spacing(one.pairs)):
        text = (
            f"Pairs look between neighbouring sizes of the sweep, which differ by a factor of up "
            f"to {units.significant(ratio, 2)}; two changes between the same two are not seen."
        )
        notes.setdefault(text, len(notes) + 1)
    return (
        _text(one.common.get("batch")),
        _text(one.common.get("precision")),
        _text(fewest),
        _text(most),
        Cell("once" if crossover.kind == "once" else crossover.words, crossover.kind),
        _size(crossover.size),
        _size(crossover.low),
        _size(crossover.high),
        pairs,
        share(one.regret.mean) if one.regret else NOTHING,
        share(one.regret.largest) if one.regret else NOTHING,
    )


def _text(text: str | None) -> Cell:
    return NOTHING if text is None else Cell(text, text)


def _size(size: float | None) -> Cell:
    return NOTHING if size is None else Cell(units.significant(size), size)
