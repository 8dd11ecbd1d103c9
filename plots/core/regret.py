# SPDX-License-Identifier: Apache-2.0
"""What following a crossover costs: the time that is lost where the rule takes the slower side.

docs/method/refinement.md, "Regret", says what it means.
"""

import math
from dataclasses import dataclass

import numpy as np

from plots.core.crossover import Crossover, Curve
from plots.core.replicates import log_medians


@dataclass(frozen=True, slots=True)
class Regret:
    """Shares of the time that the rule takes, from 0 to 1: on average over the sizes measured, each
    counting the same, and at the size `at` where it is largest."""

    mean: float
    largest: float
    at: float


def regret(crossover: Crossover, below: Curve, above: Curve) -> Regret | None:
    """What is lost by taking `below` before the size of `crossover` and `above` from it on.

    None where the answer gives no rule: where it is ambiguous, or has no size from which on `above`
    wins although it wins somewhere.
    """
    start = _start(crossover)
    if start is None:
        return None
    sizes, first, second = np.intersect1d(below.sizes, above.sizes, return_indices=True)
    one, other = np.exp(log_medians(below)[first]), np.exp(log_medians(above)[second])
    taken = np.where(sizes >= start, other, one)
    lost = 1.0 - np.minimum(one, other) / taken
    worst = int(np.argmax(lost))
    return Regret(float(np.mean(lost)), float(lost[worst]), float(sizes[worst]))


def _start(crossover: Crossover) -> float | None:
    if crossover.kind == "always":
        return 0.0
    return math.inf if crossover.kind == "never" else crossover.size
