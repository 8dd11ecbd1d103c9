# SPDX-License-Identifier: Apache-2.0
"""Two commands: who wins a step at which n, and after how many steps a start-up is repaid.

A command with k steps takes start + k * step. Repetition i of few and of many steps are a pair,
whose difference is the time of the steps between; docs/howto/two-programs.md says more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plots.core import statistics
from plots.file.rows import File, Refinement, Side

SIDES: tuple[Side, Side] = ("first", "second")
_SEED = 20_260_000

Kind = Literal["at once", "after", "until", "never", "open", "hidden", "unmeasured"]


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 where the interval lies on one side of 0, else 0."""
        return 1 if self.low > 0 else -1 if self.high < 0 else 0


@dataclass(frozen=True, slots=True)
class Repaid:
    """After how many `steps` the second command has repaid its start-up: `after` so many.

    `at once`: it starts sooner, and its step is faster. `until`: it starts sooner and its step is
    slower, so that it is ahead for the first `steps`. `never`: both are worse. `open`: not decided.
    `hidden`: a step is no longer than the noise of a run. `unmeasured`: for this `reason`.
    """

    kind: Kind
    steps: Measured | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Size:
    """What is known at `n`, of each side: seconds of a `step` and of its `start`-up. `winner` is
    whose step is surely shorter."""

    n: int
    repaid: Repaid
    repetitions: int = 0
    step: tuple[Measured, Measured] | None = None
    start: tuple[Measured, Measured] | None = None
    winner: Side | None = None


@dataclass(frozen=True, slots=True)
class Two:
    """All that a file says of two commands."""

    sizes: tuple[Size, ...]
    refinement: Refinement | None

    def at(self, n: int) -> Size | None:
        return next((size for size in self.sizes if size.n == n), None)


def two(file: File) -> Two | None:
    """None where `file` has no commands."""
    if not file.commands:
        return None
    refined = [one for one in file.refinements if one.kind == "command"]
    refinement = refined[-1] if refined else None
    paired = {
        int(size.parameters): size.winner for one in refined for size in one.sizes if size.winner
    }
    numbers = sorted({int(row.configuration["size"]) for row in file.commands})
    few, many = sorted(file.two["steps"])
    sizes = tuple(_size(file, n, (few, many), paired.get(n)) for n in numbers)
    return Two(sizes, refinement)


def _size(file: File, n: int, steps: tuple[int, int], paired: Side | None) -> Size:
    by_what = {
        (row.configuration["program"], row.configuration["step_count"]): row
        for row in file.commands
        if row.configuration["size"] == str(n)
    }
    rows = [by_what.get((side, str(count))) for side in SIDES for count in steps]
    for row in rows:
        if row is not None and row.failure is not None:
            return Size(n, Repaid("unmeasured", reason=row.failure.message))
    samples = [row.samples for row in rows if row is not None]
    count = min(map(len, samples)) if len(samples) == len(rows) else 0
    if count < statistics.FEWEST_SAMPLES:
        needed = f"{count} repetitions, and {statistics.FEWEST_SAMPLES} are needed"
        return Size(n, Repaid("unmeasured", reason=needed))
    return size_of(n, np.array([one[:count] for one in samples]), steps, paired)


def size_of(
    n: int, seconds: np.ndarray, steps: tuple[int, int], paired: Side | None = None
) -> Size:
    """From the `seconds` of the first command with few and many `steps`, and of the second, a line
    each. `paired` is who surely won the pairs of a refinement here."""
    few, many = steps
    count = seconds.shape[1]
    # Repetitions are resampled whole, since what disturbs one run may disturb its neighbours.
    chosen = np.random.default_rng([_SEED, count]).integers(
        count, size=(statistics.REPLICATES, count)
    )
    drawn = []
    points = []
    for less, more in (seconds[:2], seconds[2:]):
        step = (more - less) / (many - few)
        for one in (step, less - few * step):
            points.append(float(np.median(one)))
            drawn.append(np.median(one[chosen], axis=1))
    step, other_step = (_measured(points[at], drawn[at]) for at in (0, 2))
    start, other_start = (_measured(points[at], drawn[at]) for at in (1, 3))
    gain = _measured(points[0] - points[2], drawn[0] - drawn[2])
    debt = _measured(points[3] - points[1], drawn[3] - drawn[1])
    winner: Side | None = paired or {1: SIDES[1], -1: SIDES[0], 0: None}[gain.sign]
    repaid = Repaid("hidden")
    if min(step.low, other_step.low) > 0:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = (drawn[3] - drawn[1]) / (drawn[0] - drawn[2])
        repaid = _repaid(gain, debt, ratios)
    return Size(n, repaid, count, (step, other_step), (start, other_start), winner)


def _repaid(gain: Measured, debt: Measured, ratios: np.ndarray) -> Repaid:
    """`gain`: what a step of the second takes less, `debt`: what its start-up takes more."""
    if gain.sign == 0:
        return Repaid("open")
    steps = _measured(debt.value / gain.value, ratios)
    if gain.sign > 0:
        return Repaid("at once") if debt.sign < 0 else Repaid("after", _from_zero(steps))
    if debt.sign == 0:
        return Repaid("open")
    return Repaid("never") if debt.sign > 0 else Repaid("until", _from_zero(steps))


def _from_zero(steps: Measured) -> Measured:
    return Measured(*(max(0.0, end) for end in (steps.value, steps.low, steps.high)))


def _measured(value: float, replicates: np.ndarray) -> Measured:
    low, high = statistics.interval(np.nan_to_num(replicates, nan=math.inf))
    return Measured(value, min(low, value), max(high, value))
