# SPDX-License-Identifier: Apache-2.0
"""The bootstrap of medians, and the band of predictions; docs/method/intervals.md says why, and how
well the bootstrap's intervals cover.

scipy.stats.bootstrap gives the same intervals, which a test holds, but resamples each row anew for
each comparison it is in, and has no place for a crossover beyond the measured sizes.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crossover_bench.curves.curves import Curve
from crossover_bench.files.rows import Instances, median_of
from crossover_bench.files.samples import FEW, by_instance, days

REPLICATES = 2000
CONFIDENCE = 0.95
FEWEST_SAMPLES = 5  # with fewer too little is known about the noise: no interval, no winner
ONE_INSTANCE = Instances()
LEVEL = 0.9  # that a band is made for, where there are networks enough
_SEED = 20_190_000
_VALUE, _CHOICE, _DAY = 0, 1, 2  # names the random numbers of each purpose
_Samples = tuple[np.ndarray, Instances]


@lru_cache(maxsize=4096)
def _middle_ranks(count: int, stream: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Places, in the sorted samples, of the two middle ones of each resample of `count`.

    Drawing with replacement takes sample floor(count * U), U uniform, so the m-th smallest of a
    resample is floor(count * U_m) with U_m the m-th smallest of `count` uniform numbers, which is
    Beta(m, count + 1 - m) distributed; the next one lies a Beta(1, count - m) part of the rest
    above it (David and Nagaraja, Order Statistics, 2003, chapter 2). Nothing is approximated, and
    `count` numbers need not be drawn and sorted for each replicate.
    """
    generator = np.random.default_rng([_SEED, count, *stream])
    middle = (count + 1) // 2
    lower = generator.beta(middle, count + 1 - middle, REPLICATES)
    low = np.floor(count * lower).astype(np.int32)
    if count % 2:
        return low, low
    upper = lower + (1 - lower) * generator.beta(1, count - middle, REPLICATES)
    return low, np.floor(count * upper).astype(np.int32)


@lru_cache(maxsize=256)
def _scales(freedom: float) -> np.ndarray | float:
    """What a standard deviation that is known with so many degrees of freedom may be in truth, as a
    share of what it was measured to be: times a normal number, one of Student's t distribution."""
    if math.isinf(freedom):
        return 1.0
    generator = np.random.default_rng([_SEED + 2, round(1000 * freedom)])
    return (freedom / generator.chisquare(freedom, REPLICATES)) ** 0.5


@lru_cache(maxsize=1024)
def _deviates(count: int, stream: tuple[int, ...]) -> np.ndarray:
    """Medians of `count` numbers of the standard normal distribution, REPLICATES of them."""
    generator = np.random.default_rng([_SEED + 1, count, *stream])
    return np.median(generator.standard_normal((REPLICATES, count)), axis=1)


def units(samples: np.ndarray, instances: Instances) -> np.ndarray:
    """What can be drawn with replacement: the median of each instance, as instances vary among
    themselves by all that varies; the samples where there are few instances."""
    groups = by_instance(samples, instances.of)
    return np.array([median_of(group) for group in groups]) if len(groups) >= FEW else samples


def resampled_medians(
    samples: np.ndarray, *stream: int, instances: Instances = ONE_INSTANCE
) -> np.ndarray:
    """REPLICATES of what the median of `samples` could have been, had one measured again.

    They are the medians of resamples of units(); where there are few instances, what lies between
    them is added (T. Kalibera and R. Jones, Rigorous benchmarking in reasonable time, ISMM 2013).
    In a replicate that is too much or too little for all rows alike, as one figure is for all.
    `stream` (whole numbers from 0) names the random numbers: the same give the same replicates,
    different ones independent replicates.
    """
    ordered = np.sort(units(samples, instances))
    low, high = _middle_ranks(len(ordered), stream)
    medians = (ordered[low] + ordered[high]) / 2
    count = len(set(instances.of)) or 1
    if count >= FEW or not instances.spread:
        return medians
    apart = instances.spread * _scales(instances.freedom)
    return medians * np.exp(apart * _deviates(count, stream))


def interval(replicates: np.ndarray) -> tuple[float, float]:
    """The 95 % percentile interval of `replicates`, which may hold infinities."""
    ordered = np.sort(replicates)
    outside = (1 - CONFIDENCE) / 2
    count = len(ordered)
    return float(ordered[int(outside * count)]), float(ordered[-1 - int(outside * count)])


def conformal(residuals: Sequence[float]) -> tuple[float, float]:
    """The residual that LEVEL of networks like these stay below, and the level that it has.

    Of n residuals the k-th smallest covers k / (n + 1) of exchangeable new ones (Vovk et al.,
    Algorithmic Learning in a Random World, 2005); the largest is the best that n can do.
    """
    ordered = sorted(residuals)
    count = len(ordered)
    rank = min(math.ceil(LEVEL * (count + 1)), count)
    return ordered[rank - 1], rank / (count + 1)


def spread(count: int, most: int) -> list[int]:
    """`most` of the numbers below `count`, evenly spread, its ends among them; all of few."""
    if count <= most:
        return list(range(count))
    return sorted({round(place * (count - 1) / (most - 1)) for place in range(most)})


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Natural logarithms of the seconds of a curve, or of other values: smaller is better, so those
    that are better when larger have the sign changed.

    `logs` has one a size; `replicates` one line a replicate, one column a size: what this run says.
    `again` is what the same command would say on another day.
    """

    logs: np.ndarray
    replicates: np.ndarray
    again: np.ndarray


@lru_cache(maxsize=64)  # each curve is in many comparisons
def estimate(curve: Curve, side: int) -> Estimate:
    """The times of `curve`, and of the best of several thread counts without the favour of choice.

    `side` is 0 for a CPU, 1 for a GPU, so that the two are independent.
    """
    sign = curve.quantity.cost(1)
    sizes = [
        _estimate_at(candidates, sign, side, place)
        for place, candidates in enumerate(_candidates(curve))
    ]
    replicates = np.stack([drawn for _, drawn in sizes], axis=1)
    moved = [_of_days(known[0], side, place) for place, known in enumerate(_instances(curve))]
    return Estimate(
        logs=np.array([log for log, _ in sizes]),
        replicates=replicates,
        again=_twice(replicates + np.stack(moved, axis=1)),
    )


def _twice(replicates: np.ndarray) -> np.ndarray:
    """`replicates` of a difference of two such runs: 2 ** 0.5 times as far from their middle."""
    middle = np.median(replicates, axis=0)
    return middle + 2**0.5 * (replicates - middle)


def _of_days(instances: Instances, side: int, place: int) -> np.ndarray:
    """What a day adds to the logarithms of a row's times, the same in all its instances."""
    beyond = (days() ** 2 - 1) ** 0.5 * instances.spread * _scales(instances.freedom)
    return beyond * _deviates(1, (_DAY, side, place))


def _estimate_at(
    candidates: Sequence[_Samples], sign: float, side: int, place: int
) -> tuple[float, np.ndarray]:
    """The logarithm, times `sign`, of the best of the medians of `candidates`, and its replicates.

    The best of several noisy medians is too good: it was chosen for its noise as well. So
    each replicate chooses by one resample and takes the time from another, and the estimate is the
    mean of the candidates' medians, weighted by how often each is chosen (C. D'Eramo, M. Restelli
    and A. Nuara, Estimating maximum expected value through Gaussian approximation, ICML 2016).
    """
    medians = sign * np.log([median_of(samples) for samples, _ in candidates])
    values = sign * _resampled(candidates, side, place, _VALUE)
    if len(candidates) == 1:
        return float(medians[0]), values[0]
    chosen = np.argmin(sign * _resampled(candidates, side, place, _CHOICE), axis=0)
    shares = np.bincount(chosen, minlength=len(candidates)) / len(chosen)
    return float(shares @ medians), np.take_along_axis(values, chosen[None, :], axis=0)[0]


def _resampled(candidates: Sequence[_Samples], side: int, place: int, purpose: int) -> np.ndarray:
    return np.log(
        [
            resampled_medians(samples, purpose, side, place, number, instances=instances)
            for number, (samples, instances) in enumerate(candidates)
        ]
    )


def log_medians(curve: Curve) -> np.ndarray:
    """Logarithms of the medians of `curve`, one a size; of the best of several thread counts the
    best."""
    return np.log([median_of(samples) for samples in curve.samples])


def fewest_samples(curve: Curve, place: int = 0) -> int:
    """The smallest number, at a size of `curve`, of what is resampled: of repetitions, or of
    instances where there are enough."""
    return min(len(units(samples, instances)) for samples, instances in _candidates(curve)[place])


def _candidates(curve: Curve) -> list[tuple[_Samples, ...]]:
    of_sizes = curve.candidates or [(samples,) for samples in curve.samples]
    return [
        tuple(zip(*each, strict=True)) for each in zip(of_sizes, _instances(curve), strict=True)
    ]


def _instances(curve: Curve) -> Sequence[tuple[Instances, ...]]:
    """Those of the candidates at each size."""
    of_sizes = curve.candidates or [(samples,) for samples in curve.samples]
    return curve.instances or [(ONE_INSTANCE,) * len(each) for each in of_sizes]
