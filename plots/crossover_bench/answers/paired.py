# SPDX-License-Identifier: Apache-2.0
"""What a file's pairs say of a crossover, whether the bootstrap agrees, and the columns of that and
of what following the crossover loses.

docs/method/runs.md gives both methods.
"""

import math
from dataclasses import replace
from itertools import pairwise

from crossover_bench.curves.crossover import Comparison, Crossover, regret
from crossover_bench.curves.curves import BEST
from crossover_bench.files.rows import File, PairedInterval, Refinement
from crossover_bench.show.tables.cells import Field, number_cell, text_cell
from crossover_bench.show.tables.table import NOTHING, Cell, Column, marks
from crossover_bench.words import units

_MOST = 3  # intervals that are said in words
DISAGREES = "Bootstrap and pairs contradict each other: measure again on an idle machine."


def pairs_of(file: File, comparison: Comparison) -> Refinement | None:
    """The pairs of `file` whose sides computed what is compared; pairs of any thread count stand
    for the best of all."""
    for pairs in reversed(file.refinements):  # a resumed run adds one
        sides = ((pairs.first, comparison.cpu), (pairs.second, comparison.gpu))
        if all(
            {**comparison.common, **curve.configuration}.get(key) in (value, BEST)
            for way, curve in sides
            for key, value in {**pairs.common, **way}.items()
        ):
            return pairs
    return None


def pairs_sentence(file: File, comparison: Comparison, article: str = "") -> list[str]:
    """What the pairs of `file` say of `comparison`, in a sentence; none where it has none."""
    pairs = pairs_of(file, comparison)
    if not pairs:
        return []
    is_other = disagree(comparison.crossover, pairs)
    begin = "Paired measurements contradict that:" if is_other else "In paired measurements,"
    first, second = comparison.sides
    return [f"{begin} {pairs_words(pairs, (article + first, article + second))}."]


def pairs_words(pairs: Refinement, sides: tuple[str, str]) -> str:
    """Where the pairs see a change, in words: "2 threads won reliably from between 806 and
    919 parameters"."""
    unit = "n = {}" if pairs.kind in ("command", "function") else "{} parameters"
    clauses = [_interval_words(interval, sides, unit) for interval in pairs.intervals[:_MOST]]
    if len(pairs.intervals) > _MOST:
        clauses.append(f"{len(pairs.intervals) - _MOST} more changes")
    if not clauses:
        clauses = ["the winner did not change"]
    return "; ".join(clauses) + ("" if pairs.complete else " (unfinished)")


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


def disagree(crossover: Crossover, pairs: Refinement) -> bool:
    """Whether the bootstrap's answer and that of the pairs cannot both be right.

    Both speak of the size from which on the second side wins. They disagree where their intervals
    are apart, or where one is sure of such a size and the other is sure that there is none. An
    ambiguous answer disagrees with nothing.
    """
    if crossover.kind == "ambiguous":
        return False
    last = pairs.intervals[-1] if pairs.intervals else None
    is_sure = last is not None and last.low is not None and last.high is not None
    if crossover.size is None:  # one side wins at the largest sizes, for sure
        wins_last = "second" if crossover.kind == "always" else "first"
        return last is not None and is_sure and last.below == wins_last
    if last is None:
        return pairs.complete
    if last.below == "second":
        return is_sure
    low, high = crossover.low or 0.0, crossover.high or math.inf
    return (last.high or math.inf) < low or high < (last.low or 0.0)


def spacing(pairs: Refinement) -> float | None:
    """The largest ratio of neighbouring sizes of the ladder, between which two changes are not
    seen. None where there is one size at most."""
    sizes = [size for size, _ in pairs.ladder]
    return max((b / a for a, b in pairwise(sizes)), default=None)


def pairs_fields(notes: dict[str, int], with_spacing: bool = False) -> tuple[Field, ...]:
    """The columns of what a file's pairs say of its comparison, in lines of both: where the second
    side begins to win for good, from the last sure win of the first side to its own first, marked
    where that contradicts the bootstrap. `with_spacing`: a note says between which sizes they
    look."""

    def end(of: tuple[File, Comparison], name: str) -> Cell:
        pairs = pairs_of(*of)
        if pairs is None:
            return NOTHING
        last = pairs.intervals[-1] if pairs.intervals else None
        size = getattr(last, name) if last and last.below == "first" else None
        marked = marks([DISAGREES] if disagree(of[1].crossover, pairs) else [], notes)
        return replace(number_cell(size), marks=marked)

    def words(of: tuple[File, Comparison]) -> Cell:
        pairs = pairs_of(*of)
        if pairs and with_spacing and (ratio := spacing(pairs)):
            note = (
                "Pairs look between neighbouring sizes of the sweep, which differ by a factor of "
                f"up to {units.significant(ratio, 2)}; two changes between the same two are not "
                "seen."
            )
            marks([note], notes)
        return text_cell(pairs_words(pairs, of[1].sides) if pairs else None)

    return (
        (Column("pairs_low", "from", True, "pairs"), lambda of: end(of, "low")),
        (Column("pairs_high", "to", True, "pairs"), lambda of: end(of, "high")),
        (Column("pairs", "pairs say", for_programs=True), words),
    )


def _lost(of: tuple[File, Comparison], name: str) -> Cell:
    comparison = of[1]
    lost = regret(comparison.crossover, comparison.cpu, comparison.gpu)
    share = getattr(lost, name, None)
    return NOTHING if share is None else Cell(f"{100 * share:.1f} %", share)


# Shares of the time, or of what else is compared, that following the crossover loses.
LOST: tuple[Field, ...] = (
    (Column("regret", "lost", True), lambda of: _lost(of, "mean")),
    (Column("largest_regret", "lost at most", True, "", True), lambda of: _lost(of, "largest")),
)
