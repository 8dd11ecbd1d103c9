# SPDX-License-Identifier: Apache-2.0
"""How far off a prediction may be where all that is not known varies at once, and independently.

Each draw is a card: how fast it computes beside what it should, how long its launches and its waits
take. The same draws serve all networks, so that a card that is slow in one draw is slow for all.

The draws are the points of a lattice, which fill the space more evenly than random ones would
(N. M. Korobov, 1959; I. H. Sloan and S. Joe, Lattice Methods for Multiple Integration, 1994), and
which answers/advise/ask.js can make, too.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Protocol

import numpy as np

from crossover_bench.answers.predict.model import LAUNCH_SPREAD, Demand, Stack, our_launches
from crossover_bench.answers.predict.ways import LONGEST, Band, Estimate, Floor

DRAWS = 2039  # a prime
# Of lattices of this size the one with the least worst-case error (P2, each dimension weighted with
# a tenth, so that few at a time count most).
GENERATOR = 758
# What varies, a dimension each; "operation" and host parts only where there are such.
DIMENSIONS = (
    *("device", "arithmetic", "memory", "inner", "node", "launch"),
    *("host 0", "host 1", "host 2", "operation", "intercept"),
    *("latency", "bandwidth", "sums", "overlap", "loss"),  # of several cards
    *("ours", "persistent"),  # of our programs: launches, times published ones; one kernel's share
    *("theirs", "precision"),  # of PyTorch's steps on a CPU, and of the matrix units' precisions
    "here",  # of a network that this CPU did not train
    "clock",  # of a laptop's card
    "maker",  # of a card that is none of NVIDIA's
)


@dataclass(frozen=True, slots=True)
class Times:
    """Predicted seconds of an iteration: the median, and the band that holds 90 % of draws."""

    low: float
    seconds: float
    high: float


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of the time that a card computes: of all that a network computes on it, and beside
    that of its arithmetic alone and of its memory traffic alone; and of the matrix units, by
    `precision`, how far a network's whole error is from what it is without them."""

    whole: Estimate
    arithmetic: Estimate
    memory: Estimate
    precision: Mapping[str, Estimate] = field(default_factory=dict)

    def half_width(
        self, arithmetic: float, memory: float, whole: float = 1.0, precision: str = "f32"
    ) -> float:
        """Half the width of the band of a time of which these shares are arithmetic and traffic."""
        shares = [(self.whole, whole), (self.arithmetic, arithmetic), (self.memory, memory)]
        shares += [(self.precision[precision], whole)] if precision in self.precision else []
        return math.hypot(*(share * error.half_width for error, share in shares))

    def whole_draws(self, precision: str) -> np.ndarray:
        """Of all that a network computes in a precision."""
        whole = around(self.whole, "device")
        more = self.precision.get(precision)
        return whole if more is None else whole * around(more, "precision")


class Fitted(Protocol):
    """What is known of cards' work: a Fit."""

    @property
    def parameters(self) -> np.ndarray: ...

    @property
    def errors(self) -> Errors: ...


@cache
def _uniform(name: str) -> np.ndarray:
    """In one dimension the points are the middles of DRAWS equal parts, in an order of its own."""
    step = pow(GENERATOR, DIMENSIONS.index(name), DRAWS)
    return (np.arange(DRAWS) * step % DRAWS + 0.5) / DRAWS


@cache
def _tails(name: str, freedom: int) -> np.ndarray:
    """Student's t with so many degrees of freedom."""
    from scipy.special import stdtrit  # noqa: PLC0415 (takes long to load)

    return stdtrit(freedom, _uniform(name))


def within(band: Band, name: str) -> np.ndarray:
    """Draws of the band: as many in each order of magnitude; of a band from 0, in each part."""
    share = _uniform(name)
    if not band.low:
        return band.high * share
    return band.low * (band.high / band.low) ** share


def around(estimate: Estimate, name: str) -> np.ndarray:
    """Draws of what is estimated."""
    return estimate.middle * np.exp(estimate.spread * _tails(name, estimate.count - 1))


def device_seconds(
    asked: Demand,
    fit: Fitted,
    precision: str,
    floor: Floor,
    launch: Band | None,
) -> np.ndarray:
    """Draws of the seconds in which a step is on the device, or waits for the next launch; `launch`
    is None for a program that is not ours."""
    parameters, errors = fit.parameters, fit.errors
    stack = Stack([asked])
    whole = errors.whole_draws(precision)[:, None]
    arithmetic = around(errors.arithmetic, "arithmetic")[:, None]
    arithmetic = arithmetic / within(asked.clock, "clock")[:, None]
    memory = around(errors.memory, "memory")[:, None]
    work = arithmetic * stack.arithmetic(parameters)[0] + memory * stack.traffic(parameters)[0]
    step = around(floor.inner, "inner")[:, None] * np.minimum(asked.inner, LONGEST)
    least = within(floor.node, "node")[:, None] + step
    if launch is not None:
        least = np.maximum(least, within(launch, "launch")[:, None])
        spread = within(Band(math.exp(-LAUNCH_SPREAD), math.exp(LAUNCH_SPREAD)), "ours")
        ours = 1.0 if asked.is_of_one_row else our_launches(parameters)
        least = ours * spread[:, None] * least
    return (asked.count * np.maximum(least, whole * work)).sum(axis=1)


def within_factor(half_width: float) -> np.ndarray:
    """Draws of a factor around 1, of which 90 % are at most so far from it, as a logarithm."""
    from scipy.special import ndtri  # noqa: PLC0415 (takes long to load)

    deviates = ndtri(_uniform("device"))
    return np.exp(half_width * deviates / np.quantile(deviates, 0.95))


def whole_seconds(step: np.ndarray, steps: float, beside: Sequence[Band]) -> np.ndarray:
    """Draws of the seconds of so many such steps, and of the host's parts beside them."""
    total = step * steps
    for place, band in enumerate(beside):
        total = total + within(band, f"host {place}")
    return total


def slower(error: Estimate) -> np.ndarray:
    """Draws of a factor of 1 or more, by which what nobody models makes several cards slower."""
    return np.exp(error.spread * np.abs(_tails("loss", error.count - 1)))


def ends(draws: np.ndarray) -> Times:
    """Their median, and the band that holds 90 % of them."""
    return Times(*np.quantile(draws, (0.05, 0.5, 0.95)).tolist())
