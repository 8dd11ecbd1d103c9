# SPDX-License-Identifier: Apache-2.0
"""How often data must stay on a device for it to win: with a copy once every k runs, one run takes
run + copy / k on average, and the GPU wins from the k on for which that is below the CPU's time.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from crossover_bench.curves import statistics
from crossover_bench.curves.crossover_words import sized
from crossover_bench.curves.curves import Curve
from crossover_bench.curves.problem import Answer
from crossover_bench.curves.statistics import estimate, fewest_samples
from crossover_bench.words import units
from crossover_bench.words.text import listed

_MOST = 4  # sizes that a sentence lists


@dataclass(frozen=True, slots=True)
class Kept:
    """At `size` the GPU wins where a copy serves `runs` runs or more, with the 95 % interval `low`
    to `high`: 1 where each run may copy, infinite where the GPU loses however long its data stays.
    """

    size: float
    runs: float
    low: float
    high: float


def kept(stay: Answer, copied: Answer) -> list[Kept]:
    """What holds at each size that all three have: the best of the CPU's ways, the best of the
    GPU's with `stay`ing data, and with data that is `copied` in each run. Sizes of too few
    repetitions are left out."""
    curves = (stay.first.cpu, stay.first.gpu, copied.first.gpu)
    sizes = set.intersection(*(set(curve.sizes.tolist()) for curve in curves))
    return [
        _kept(size, curves)
        for size in sorted(sizes)
        if min(fewest_samples(curve.at(size)) for curve in curves) >= statistics.FEWEST_SAMPLES
    ]


def _kept(size: float, curves: tuple[Curve, Curve, Curve]) -> Kept:
    of_size = [estimate(curve.at(size), side) for side, curve in enumerate(curves)]
    cpu, run, each = (np.exp(of.replicates[:, 0]) for of in of_size)
    low, high = statistics.interval(_runs(cpu, run, each))
    (middle,) = _runs(*(np.exp(of.logs) for of in of_size))
    return Kept(size, float(middle), min(low, float(middle)), max(high, float(middle)))


def _runs(cpu: np.ndarray, run: np.ndarray, each: np.ndarray) -> np.ndarray:
    """The fewest whole runs k with run + (each - run) / k < cpu."""
    copy, gain = np.maximum(each - run, 0.0), cpu - run
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gain > 0, np.floor(copy / gain) + 1, math.inf)


def kept_words(stay: Answer, copied: Answer) -> str:
    """That in a sentence; empty where nothing is known, or where copies change nothing."""
    known = kept(stay, copied)
    if all(of.runs == 1 for of in known) or all(math.isinf(of.runs) for of in known):
        return ""
    return f"For the GPU to win, {'; '.join(_clauses(known, stay.problem.measure))}."


def _clauses(known: list[Kept], measure: str) -> Iterator[str]:
    between = [of for of in known if 1 < of.runs < math.inf]
    for place, of in enumerate(between[:_MOST]):
        runs, low = units.count(of.runs), units.count(of.low)
        reach = f"at least {low}" if math.isinf(of.high) else f"{low} to {units.count(of.high)}"
        first = f"a copy has to serve {runs} runs or more" if place == 0 else runs
        yield f"{first} ({reach}) at {sized(units.count(of.size), measure)}"
    if len(between) > _MOST:
        yield f"{len(between) - _MOST} more sizes are in the table"
    each = [of.size for of in known if of.runs == 1]
    if each and all(of.runs == 1 for of in known if of.size >= each[0]):
        yield f"each run may copy from {sized(units.count(each[0]), measure)}"
    elif each:
        yield f"each run may copy at {sized(listed([units.count(of) for of in each]), measure)}"
