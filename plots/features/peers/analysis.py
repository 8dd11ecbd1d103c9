# SPDX-License-Identifier: Apache-2.0
"""How long another framework takes for the same work, pair by pair of repetitions.

docs/method/peers.md says how the pairs come about, and what their interval covers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import comb

import numpy as np

from plots.core import statistics
from plots.core.bounds import bounds
from plots.core.crossover import Comparison, comparisons
from plots.core.headline import foremost
from plots.core.work import difference
from plots.file.axes import OWN, Items
from plots.file.rows import Bound, File, Instances, Row, median_of
from plots.file.samples import FEW

_ALIKE = ("device", "precision", "ranks", "cpu_threads", "memory", "mode", "loss")


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of bench's and one of a peer's that do the same work on the same device.

    `ratio` is the median over the pairs of repetitions of their time over ours; [`low`, `high`]
    its 95 % interval, None where there are too few pairs, or none (`in_turn` is False). `most` is
    what the ratio would be at the row's bound, None where the file has no ceilings for it.
    """

    ours: Row
    theirs: Row
    ratio: float
    low: float | None
    high: float | None
    in_turn: bool
    most: float | None


def pairs(file: File, every: bool = False) -> list[Pair]:
    """The fastest of ours against the fastest of each framework for each work, device and number of
    threads, in the order of the file; with `every`, against each of its rows."""
    found = []
    bound_of = bounds(file)
    of_ours, of_theirs = _by_work(file.own_rows), _by_work(file.peers)
    for own, others in ((of_ours[key], of_theirs[key]) for key in of_ours if key in of_theirs):
        ours = min(own, key=seconds)
        same = [row for row in others if not difference(ours, row)]
        fastest: dict[str, Row] = {}
        for row in sorted(same, key=seconds):
            fastest.setdefault(row.program, row)
        for theirs in same if every else fastest.values():
            found.append(_pair(ours, theirs, bound_of.get(ours.index)))
    return found


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
    repeated = Instances(_pairs_of_instances(len(ratios), *sides))
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


def _pairs_of_instances(count: int, *sides: Instances) -> tuple[int, ...]:
    """Which pair of instances ran each of `count` pairs of repetitions."""
    ran = list(zip(*(side.of or (0,) * count for side in sides), strict=True))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(ran))}
    return tuple(numbers[pair] for pair in ran)


def programs_of(file: File) -> list[str]:
    """The frameworks that have rows in the file, in its order."""
    return list(dict.fromkeys(row.program for row in file.peers))


def crossovers_of(file: File) -> dict[str, Comparison]:
    """From which size the GPU wins: by our two curves (OWN), and by those of each framework."""
    found = {OWN: foremost(comparisons(file))}
    for program in programs_of(file):
        own = tuple(row for row in file.peers if row.program == program and row.copies == 1)
        found[program] = foremost(comparisons(replace(file, rows=own, refinements=())))
    return {program: one for program, one in found.items() if one}


def _by_work(rows: Sequence[Row]) -> dict[Items, list[Row]]:
    groups: dict[Items, list[Row]] = {}
    for row in rows:
        if row.failure is None and row.device:
            alike = ((name, row.configuration.get(name, "")) for name in _ALIKE)
            key = (*row.axes.what(row.configuration), *alike)
            groups.setdefault(key, []).append(row)
    return groups


def _pair(ours: Row, theirs: Row, bound: Bound | None) -> Pair:
    most = None
    if bound is not None and bound.seconds:
        most = seconds(theirs) / (bound.seconds / ours.count)
    if len(ours.samples) != len(theirs.samples):
        return Pair(ours, theirs, seconds(theirs) / seconds(ours), None, None, False, most)
    ratios = theirs.samples / theirs.count / (ours.samples / ours.count)
    low, high = ratio_interval(ratios, theirs.instances, ours.instances) or (None, None)
    return Pair(ours, theirs, median_of(ratios), low, high, True, most)
