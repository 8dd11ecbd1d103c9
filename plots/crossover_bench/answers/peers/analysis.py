# SPDX-License-Identifier: Apache-2.0
"""Ours beside another framework, pair by pair of repetitions: which rows do the same work, the
ratio of their times, and its interval.

docs/method/peers.md says how the pairs come about, and what their interval covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb

import numpy as np

from crossover_bench.counts.bounds import bounds
from crossover_bench.curves import statistics
from crossover_bench.curves.network import difference
from crossover_bench.files.axes import Items
from crossover_bench.files.rows import Bound, File, Instances, Row, median_of
from crossover_bench.files.samples import FEW

SCRIPT = "script"  # of a training loop that loads its batches, which bench's rows do not
_ALIKE = ("device", "precision", "ranks", "cpu_threads", "memory", "mode", "loss", SCRIPT)


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of bench's and one of a peer's that do the same work on the same device.

    `ratio` is the median over the pairs of repetitions of their time over ours, None where one of
    the rows failed; [`low`, `high`] its 95 % interval, None where there are too few pairs, or none
    (`in_turn` is False). `most` is what the ratio would be at the row's bound, None where the file
    has no ceilings for it.
    """

    ours: Row
    theirs: Row
    ratio: float | None
    low: float | None
    high: float | None
    in_turn: bool
    most: float | None

    @property
    def rank(self) -> int:
        """Its place in a table: what is lost first, then what failed here, what is won, and what
        failed there."""
        if self.ratio is None:
            return 1 if self.ours.failure else 3
        return 2 if self.ratio >= 1 else 0

    @property
    def example(self) -> Row:
        """The row that counts what both do."""
        return self.theirs if self.ours.failure else self.ours


def pairs(file: File, every: bool = False) -> list[Pair]:
    """The fastest of ours against the fastest of each framework for each work, device and number of
    threads, in the order of the file; with `every`, against each of its rows."""
    matched: list[Pair] = []
    bound_of, of_theirs = bounds(file), _by_work(file.peers)
    for key, rows in _by_work(file.own_rows).items():
        ours = min(rows, key=seconds)
        same = [row for row in of_theirs.get(key, ()) if not difference(ours, row)]
        fastest: dict[str, Row] = {}
        for row in sorted(same, key=seconds):
            fastest.setdefault(row.program, row)
        others = same if every else fastest.values()
        matched += (pair_of(ours, theirs, bound_of.get(ours.index)) for theirs in others)
    return matched


def failed_pairs(file: File) -> list[Pair]:
    """The work of which one side has a result and every row of the other failed: the one row, and
    of the other the first."""
    of_ours, of_theirs = _by_work(file.own_rows), _by_work(file.peers)
    wrong_ours, wrong_theirs = _by_work(file.own_rows, True), _by_work(file.peers, True)
    sides = []
    for key, failed in wrong_ours.items():
        if key not in of_ours:
            for program in dict.fromkeys(row.program for row in of_theirs.get(key, ())):
                same = [row for row in of_theirs[key] if row.program == program]
                sides.append((failed[0], min(same, key=seconds)))
    for key, failed in wrong_theirs.items():
        there = {row.program for row in of_theirs.get(key, ())}
        first = {row.program: row for row in reversed(failed) if row.program not in there}
        if key in of_ours:
            sides += [(min(of_ours[key], key=seconds), row) for row in first.values()]
    return [Pair(ours, theirs, None, None, None, False, None) for ours, theirs in sides]


def seconds(row: Row) -> float:
    """The median time of what the row is about: an epoch, a step, one product, one copy."""
    return row.median / row.count


def order_statistics(count: int) -> int | None:
    """The k for which the k-th smallest and k-th largest of `count` are an interval of at least
    95 % for their median, whatever the distribution; None where even the extremes are not."""
    k, outside = 0, 0.0
    while True:
        outside += 2 * comb(count, k) / 2**count
        if outside > 1 - statistics.CONFIDENCE:
            return k or None
        k += 1


def ratio_interval(ratios: np.ndarray, *sides: Instances) -> tuple[float, float] | None:
    """The 95 % interval of the median of `ratios`, those of pairs of repetitions, which instances
    of the two `sides` ran; None where there are too few.

    With instances enough on both sides it is of order statistics over the pairs of instances. Where
    a side has few, its share of what lies between instances is added, as in a crossover.
    """
    # Which pair of instances ran each pair of repetitions.
    ran = list(zip(*(side.of or (0,) * len(ratios) for side in sides), strict=True))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(ran))}
    repeated = Instances(tuple(numbers[pair] for pair in ran))
    units = np.sort(statistics.units(ratios, repeated))
    k = order_statistics(len(units))
    if k is None:
        return None
    if not any(side.spread and len(set(side.of)) < FEW for side in sides):
        return float(units[k - 1]), float(units[-k])
    # A side's factor is 1 where it has instances enough: the pairs of instances vary by it.
    replicates = statistics.resampled_medians(ratios, len(sides), instances=repeated)
    for place, side in enumerate(sides):
        replicates = replicates * statistics.resampled_medians(
            np.ones(len(ratios)), place, instances=side
        )
    return statistics.interval(replicates)


def programs_of(file: File) -> list[str]:
    """The frameworks that have rows in the file, in its order."""
    return list(dict.fromkeys(row.program for row in file.peers))


def _by_work(rows: Sequence[Row], failed: bool = False) -> dict[Items, list[Row]]:
    """Those with a result, or those that `failed`, by what they compute and where."""
    groups: dict[Items, list[Row]] = {}
    for row in rows:
        counts = row.failure.outcome == "failed" if failed and row.failure else not row.failure
        if counts and failed == bool(row.failure) and row.device:
            alike = ((name, row.configuration.get(name, "")) for name in _ALIKE)
            key = (*row.axes.what(row.configuration), *alike)
            groups.setdefault(key, []).append(row)
    return groups


def pair_of(ours: Row, theirs: Row, bound: Bound | None) -> Pair:
    """The two, which have a result, and the bound of ours where it is known."""
    most = None
    if bound is not None and bound.seconds:
        most = seconds(theirs) / (bound.seconds / ours.count)
    if len(ours.samples) != len(theirs.samples):
        return Pair(ours, theirs, seconds(theirs) / seconds(ours), None, None, False, most)
    ratios = theirs.samples / theirs.count / (ours.samples / ours.count)
    low, high = ratio_interval(ratios, theirs.instances, ours.instances) or (None, None)
    return Pair(ours, theirs, median_of(ratios), low, high, True, most)
