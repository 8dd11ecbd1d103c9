# SPDX-License-Identifier: Apache-2.0
"""Columns beside a crossover: what the pairs say of it, and what following it loses."""

from dataclasses import replace

from plots.core.crossover import Regret
from plots.core.paired import pairs_words
from plots.core.tables.cells import number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, marks
from plots.file.rows import Refinement

# From the last sure win of the first side to the first sure win of the second.
PAIRS = (
    Column("pairs_low", "from", numeric=True, group="pairs"),
    Column("pairs_high", "to", numeric=True, group="pairs"),
    Column("pairs", "pairs say", for_programs=True),
)
# Shares of the time, or of what else is compared, that following the crossover loses.
LOST = (
    Column("regret", "lost", numeric=True),
    Column("largest_regret", "lost at most", numeric=True, for_programs=True),
)
DISAGREES = "Bootstrap and pairs contradict each other: measure again on an idle machine."


def pairs_cells(
    pairs: Refinement | None, sides: tuple[str, str], contradicts: bool, flags: dict[str, int]
) -> tuple[Cell, ...]:
    """The cells of PAIRS: where the second side begins to win for good, marked where that
    contradicts the bootstrap."""
    if pairs is None:
        return NOTHING, NOTHING, NOTHING
    words = pairs_words(pairs, sides)
    last = pairs.intervals[-1] if pairs.intervals else None
    low, high = (last.low, last.high) if last and last.below == "first" else (None, None)
    marked = marks([DISAGREES] if contradicts else [], flags)
    return (
        replace(number_cell(low), marks=marked),
        replace(number_cell(high), marks=marked),
        text_cell(words),
    )


def lost_cells(lost: Regret | None) -> tuple[Cell, ...]:
    """The cells of LOST."""
    if lost is None:
        return NOTHING, NOTHING
    return _share(lost.mean), _share(lost.largest)


def _share(part: float) -> Cell:
    return Cell(f"{100 * part:.1f} %", part)
