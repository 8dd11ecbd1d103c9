# SPDX-License-Identifier: Apache-2.0
"""What a file's pairs say of a crossover, beside what the bootstrap says, whether both agree, and
the columns of that and of what following the crossover loses.

docs/method/refinement.md gives both methods.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from plots import units
from plots.core.crossover import Comparison, Crossover, Regret
from plots.core.curves import BEST, Curve
from plots.core.tables.cells import number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, marks
from plots.file.rows import File, PairedInterval, Refinement

_MOST = 3  # intervals that are said in words
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


def pairs_of(
    file: File, common: Mapping[str, str], first: Curve, second: Curve
) -> Refinement | None:
    """The pairs of `file` in which `first` and `second` computed what is `common` to both; those of
    one thread count stand for the best of all."""
    for one in reversed(file.refinements):  # a resumed run adds one
        sides = ((one.first, first), (one.second, second))
        if all(
            {**common, **curve.configuration}.get(key) in (value, BEST)
            for way, curve in sides
            for key, value in {**one.common, **way}.items()
        ):
            return one
    return None


def pairs_sentence(file: File, one: Comparison, article: str = "") -> list[str]:
    """What the pairs of `file` say of `one`, in a sentence; none where it has none."""
    pairs = pairs_of(file, one.common, one.cpu, one.gpu)
    if not pairs:
        return []
    is_other = disagree(one.crossover, pairs)
    begin = "Paired measurements contradict that:" if is_other else "In paired measurements,"
    first, second = one.sides
    return [f"{begin} {pairs_words(pairs, (article + first, article + second))}."]


def pairs_words(one: Refinement, sides: tuple[str, str]) -> str:
    """Where the pairs see a change, in words: "2 threads won reliably from between 806 and
    919 parameters"."""
    unit = "n = {}" if one.kind == "command" else "{} parameters"
    said = [_interval_words(interval, sides, unit) for interval in one.intervals[:_MOST]]
    if len(one.intervals) > _MOST:
        said.append(f"{len(one.intervals) - _MOST} more changes")
    if not said:
        said = ["the winner did not change"]
    return "; ".join(said) + ("" if one.complete else " (unfinished)")


def _interval_words(interval: PairedInterval, sides: tuple[str, str], unit: str) -> str:
    below, above = sides if interval.below == "first" else sides[::-1]
    low, high = interval.low, interval.high
    if low is not None and high is not None:
        between = unit.format(f"{units.count(low)} and {units.count(high)}")
        return f"{above} won reliably from between {between}"
    if high is not None:
        size = unit.format(units.count(high))
        return f"{above} first won reliably at {size}, {below} at no smaller size"
    if low is not None:
        size = unit.format(units.count(low))
        return f"{below} last won reliably at {size}, {above} at no larger size"
    return "no side won reliably where the winner seemed to change"


def disagree(crossover: Crossover, one: Refinement) -> bool:
    """Whether the bootstrap's answer and that of the pairs cannot both be right.

    Both speak of the size from which on the second side wins: their intervals are apart, or one is
    sure of such a size where the other is sure that there is none. An answer that is ambiguous
    disagrees with nothing.
    """
    if crossover.kind == "ambiguous":
        return False
    last = one.intervals[-1] if one.intervals else None
    is_sure = last is not None and last.low is not None and last.high is not None
    if crossover.size is None:  # one side wins at the largest sizes, for sure
        wins_last = "second" if crossover.kind == "always" else "first"
        return last is not None and is_sure and last.below == wins_last
    if last is None:
        return one.complete
    if last.below == "second":
        return is_sure
    low, high = crossover.low or 0.0, crossover.high or math.inf
    return (last.high or math.inf) < low or high < (last.low or 0.0)


def spacing(one: Refinement) -> float | None:
    """The largest ratio of neighbouring sizes of the ladder: changes that come in twos between two
    of them are not seen. None where there is one size at most."""
    sizes = [size for size, _ in one.ladder]
    return max((b / a for a, b in pairwise(sizes)), default=None)


def pairs_cells(file: File, one: Comparison, flags: dict[str, int]) -> tuple[Cell, ...]:
    """The cells of PAIRS: where the second side begins to win for good, marked where that
    contradicts the bootstrap."""
    pairs = pairs_of(file, one.common, one.cpu, one.gpu)
    if pairs is None:
        return NOTHING, NOTHING, NOTHING
    last = pairs.intervals[-1] if pairs.intervals else None
    low, high = (last.low, last.high) if last and last.below == "first" else (None, None)
    marked = marks([DISAGREES] if disagree(one.crossover, pairs) else [], flags)
    return (
        replace(number_cell(low), marks=marked),
        replace(number_cell(high), marks=marked),
        text_cell(pairs_words(pairs, one.sides)),
    )


def lost_cells(lost: Regret | None) -> tuple[Cell, ...]:
    """The cells of LOST."""
    if lost is None:
        return NOTHING, NOTHING
    return _share(lost.mean), _share(lost.largest)


def _share(part: float) -> Cell:
    return Cell(f"{100 * part:.1f} %", part)
