# SPDX-License-Identifier: Apache-2.0
"""Samples with two peaks: a machine in two states, of which the median shows one alone.

docs/method/intervals.md has the rule, docs/evidence/crossover.md how often it is wrong.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from crossover_bench.curves.statistics import units as drawn
from crossover_bench.files.rows import Row
from crossover_bench.files.samples import FEW

FEWEST = 7  # of fewer samples, two peaks are found in half of the cases at most
FACTOR = 1.1  # by which the peaks are apart at least; less is of no matter to whoever compares
# Samples, and the separation() that 5 % of as many from a uniform distribution exceed: of all with
# one peak it is the flattest (J. A. Hartigan and P. M. Hartigan, The dip test of unimodality,
# Annals of Statistics 13, 1985). tests/test_peaks.py simulates it.
_THRESHOLDS = {
    7: 15.4,
    8: 12.6,
    9: 10.5,
    10: 9.6,
    12: 8.2,
    14: 7.3,
    17: 6.5,
    20: 6.1,
    27: 5.4,
    45: 4.6,
    72: 4.2,
    97: 3.9,
    200: 3.6,
}


@dataclass(frozen=True, slots=True)
class Peaks:
    """Medians of the faster and of the slower samples, in seconds, and how many there are."""

    low: float
    high: float
    lows: int
    highs: int


def separation(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """How far each line of `values`, which are sorted, falls into two groups of at least a quarter
    of it: the sum of squares between the groups over that within, where it is largest; and how many
    are in the first group there."""
    count = values.shape[1]
    fewest = math.ceil(count / 4)
    sizes = np.arange(fewest, count - fewest + 1)
    centred = values - values.mean(axis=1, keepdims=True)
    sums = np.cumsum(centred, axis=1)[:, sizes - 1]
    between = sums**2 * (1 / sizes + 1 / (count - sizes))
    best = between.argmax(axis=1)
    largest = between[np.arange(len(values)), best]
    within = np.maximum((centred**2).sum(axis=1) - largest, np.finfo(float).tiny)
    return largest / within, sizes[best]


def threshold(count: int) -> float:
    """The separation() that `count` samples, FEWEST at least, of one peak seldom reach."""
    return _THRESHOLDS[max(known for known in _THRESHOLDS if known <= count)]


@lru_cache(maxsize=4096)
def _peaks(samples: tuple[float, ...]) -> Peaks | None:
    if len(samples) < FEWEST or samples[0] <= 0:
        return None
    ((distance,), (size,)) = separation(np.log([samples]))
    low, high = (float(np.median(part)) for part in (samples[:size], samples[size:]))
    if distance <= threshold(len(samples)) or high < FACTOR * low:
        return None
    return Peaks(low, high, int(size), len(samples) - int(size))


def peaks(row: Row) -> Peaks | None:
    """The two peaks of the repetitions of `row`, of which each has a quarter at least; None where
    one peak could give them, or they are too few.

    Of many instances it is their medians that count. A few instances differ whatever the machine
    does, so nothing is said of them.
    """
    if 1 < len(set(row.instances.of)) < FEW:
        return None
    return _peaks(tuple(np.sort(drawn(row.samples, row.instances)).tolist()))


def peaks_words(row: Row) -> str:
    """The peaks() of `row` in a sentence; empty where there are none."""
    two = peaks(row)
    if two is None:
        return ""
    show = row.quantity.show
    what = "instances of the program" if row.instances.of else "repetitions"
    return (
        f"Two peaks: {two.lows} of {two.lows + two.highs} {what} take about "
        f"{show(two.low)}, {two.highs} about {show(two.high)}, and the median shows one of "
        "them alone."
    )


def doubts(row: Row) -> Iterable[str]:
    """What casts doubt on the time of `row`: its flags, and two peaks."""
    yield from row.warnings
    if words := peaks_words(row):
        yield words
