# SPDX-License-Identifier: Apache-2.0
"""Measures sides over sizes within a budget: each size is checked, then all are sampled in passes
of drawn order, then sizes are added where the faster side changes."""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from crossover_bench.functions.equal import difference
from crossover_bench.functions.kinds import RefusedError, mapped, on_host
from crossover_bench.functions.progress import Tell
from crossover_bench.functions.side import Ready, given_on_device, misplaced, unknown
from crossover_bench.functions.timing import Prepared, Sample, first_call
from crossover_bench.words import units
from crossover_bench.words.text import printable

FEWEST = 5  # samples of a size: with fewer there is no interval (curves/statistics.py)
PASSES = 15
_ROUNDS = 4  # of sizes that are added, two a round at each place
_NEAR = 1.05  # sizes that are nearer than this factor tell nothing new
_TELLING_SECONDS = 0.05  # of a size in a pass: below, what grows with n is hidden by what does not
_STEEPEST = 4.0  # power of n that the time of a larger size is expected to grow with
_FOR_RANGE = 0.6  # of the budget: the rest is for sizes between


@dataclass(frozen=True, slots=True)
class Check:
    """What "equal" means: a `tolerance` as difference() has it, or the caller's own function of two
    results on the host."""

    tolerance: float | None = None
    equal: Callable[[Any, Any], object] | None = None

    def fault(self, first: Any, second: Any) -> str:
        """In what `second` differs, a clause; empty where it does not."""
        if self.equal is None:
            return difference(first, second, self.tolerance)
        pair = (mapped(result, on_host) for result in (first, second))
        return "" if self.equal(*pair) else "equal= says so"


@dataclass(frozen=True, slots=True)
class Taken:
    """What was measured of each side, by its name, at each size: samples, and seconds of a call of
    several back to back, each with the number of its process."""

    samples: Mapping[str, Mapping[int, Sequence[tuple[int, Sample]]]]
    queued: Mapping[str, Mapping[int, Sequence[tuple[int, float]]]]


@dataclass(slots=True)
class Measurement:
    """`sides` over sizes: what is known is in `prepared`, by size, and stays when it is stopped.

    `failures` has for each side's name, or make's, and size why there are no times. `last` is the
    largest size that fits into the budget, where some do not. `remarks` are sentences on what is
    doubtful. `order` draws the order of sizes and sides.
    """

    sides: Sequence[Ready]
    make: Callable[[int], Any]
    check: Check
    seconds: float
    tell: Tell
    order: random.Random = field(default_factory=random.Random)
    kept: float = 0.0
    prepared: dict[int, list[Prepared]] = field(default_factory=dict)
    failures: dict[tuple[str, int], str] = field(default_factory=dict)
    last: int | None = None
    remarks: dict[str, None] = field(default_factory=dict)
    _unknown: set[str] = field(default_factory=set)  # sides that give what no library is known of
    _costs: dict[int, float] = field(default_factory=dict)  # seconds of a size in a pass
    _started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds of the budget that are left."""
        return self.seconds - self.kept - (time.monotonic() - self._started)

    @property
    def taken(self) -> Taken:
        """What this process has measured."""
        sizes = dict(sorted(self.prepared.items()))
        places = {side.name: place for place, side in enumerate(self.sides)}
        return Taken(
            {
                name: {n: [(0, each) for each in pair[place].samples] for n, pair in sizes.items()}
                for name, place in places.items()
            },
            {
                name: {n: [(0, each) for each in pair[place].queued] for n, pair in sizes.items()}
                for name, place in places.items()
            },
        )

    def measure(self, sizes: Sequence[int], between: bool) -> None:
        """Measures `sizes`, in ascending order, and where `between` sizes that the answer needs."""
        self._scout_all(sizes)
        reserve = (1 - _FOR_RANGE) * (self.seconds - self.kept) if between else 0.0
        self._passes(sorted(self.prepared), PASSES, reserve)
        for _ in range(_ROUNDS if between else 0):
            added = self._between()
            while added and self._expected([of[0] for of in added]) * (FEWEST + 3) > self.left:
                added.pop()
            ends = [size for pair in added for size in pair[1:]]
            new = [size for size, *_ in added]
            if not new:
                break
            for size in new:
                self._scout(size)
            self._passes(sorted({*new, *ends} & self.prepared.keys()), PASSES, 0.0, new)
        fewest = min((len(pair[0].samples) for pair in self.prepared.values()), default=PASSES)
        self._passes(sorted(self.prepared), PASSES - fewest, 0.0)
        self._queue()

    def _queue(self) -> None:
        """Measures calls back to back of the sides that are waited for, FEWEST times at each size,
        as far as the budget reaches."""
        waited = [
            [ready for ready in pair if ready.wait is not None] for pair in self.prepared.values()
        ]
        for sides in waited:
            if FEWEST * sum(ready.usual * ready.in_queue for ready in sides) > self.left:
                return
            self.tell("calls back to back")
            for ready in sides * FEWEST:
                if not ready.queue():
                    return

    # ---- each size, first

    def _scout_all(self, sizes: Sequence[int]) -> None:
        for place, size in enumerate(sizes):
            spent = sum(self._costs.values())
            expected = self._expected([size])
            # Until a size is ready for passes it takes as long as three.
            if place > 1 and FEWEST * (spent + expected) + 3 * expected > self.left:
                self.last = sizes[place - 1]
                return
            if not self._scout(size):
                return

    def _scout(self, size: int) -> bool:
        """Runs each side once at `size`, compares results, and measures once. False where that
        fails, which at the first size is raised."""
        self.tell(f"n = {size:,}: are results equal?")
        prepared: list[Prepared] = []
        first: Any = None
        name = "make"
        try:
            original = self.make(size)
            self._refuse(given_on_device(original))
            for side in self.sides:
                name = side.name
                ready, result, arguments = first_call(side, original)
                self._refuse(misplaced(side, result, arguments))
                self._note_unknown(ready, result, arguments)
                if prepared:
                    self._compare(size, side.name, first, result)
                else:
                    first = result
                del result, arguments
                prepared.append(ready)
            del first
            for ready in self.order.sample(prepared, len(prepared)):
                name = ready.side.name
                if not self.prepared:
                    self._refuse(self._early(ready))
                ready.calibrate()
        except RefusedError:
            raise
        except Exception as error:  # the caller's code may raise anything
            if not self.prepared:
                message = f"{name} failed at n = {size:,} with {_reason(error)}"
                raise RefusedError(message) from error
            self.failures[name, size] = _reason(error)
            return False
        self.prepared[size] = prepared
        self._costs[size] = sum(ready.cost for ready in prepared)
        return True

    @staticmethod
    def _refuse(reason: str) -> None:
        if reason:
            raise RefusedError(reason)

    def _compare(self, size: int, name: str, first: Any, second: Any) -> None:
        if fault := self.check.fault(first, second):
            raise RefusedError(
                f"The results of {self.sides[0].name} and {name} are not equal at n = {size:,}: "
                f"{fault}"
            )

    def _note_unknown(self, ready: Prepared, result: Any, arguments: tuple[Any, ...]) -> None:
        kind = unknown(ready.side, result)
        if kind:
            self._unknown.add(ready.side.name)
            self.remarks[
                f"{ready.side.name} gives {kind}, of no library that is known: nothing waited for "
                "its work; Side(…, wait=…) would."
            ] = None

    def _early(self, ready: Prepared) -> str:
        """A sentence where a side returns before its work is done; a remark where that is only
        likely."""
        side = ready.side
        if not (side.on_device or side.given.wait or side.name in self._unknown):
            return ""
        late = ready.returns_early()
        if not late:
            return ""
        phrase = f"{side.name} returns {units.seconds(late)} before its work is done"
        if side.given.wait:
            return f"{phrase}: its wait= does not wait for it"
        self.remarks[f"It seems that {phrase}; Side(…, wait=…) says what waits for it."] = None
        return ""

    def _expected(self, sizes: Sequence[int]) -> float:
        """Seconds of a pass over `sizes`, from those of the sizes that have run."""
        known = sorted(self._costs.items())
        if not known:
            return 0.0
        total = 0.0
        for size in sizes:
            nearest, cost = min(known, key=lambda pair: abs(math.log(pair[0] / size)))
            power = 1.0
            if size > nearest and cost > _TELLING_SECONDS and len(known) > 1:
                (less, before), (more, after) = known[-2:]
                power = math.log(max(after, 1e-9) / max(before, 1e-9)) / math.log(more / less)
            total += cost * (size / nearest) ** min(max(power, 0.0), _STEEPEST)
        return total

    # ---- passes

    def _passes(
        self, sizes: list[int], count: int, reserve: float, between: Collection[int] = ()
    ) -> None:
        """Samples `sizes` `count` times, until `reserve` seconds of the budget are left; FEWEST
        times in any case, if need be without those `between` others, and then the largest."""
        for number in range(count if sizes else 0):
            fewest = min(len(self.prepared[size][0].samples) for size in sizes)
            cost = sum(self._costs[size] for size in sizes)
            while len(sizes) > 2 and (FEWEST - fewest) * cost > self.left:
                dropped = next((size for size in reversed(sizes) if size in between), sizes[-1])
                cost -= self._costs[dropped]
                sizes.remove(dropped)
                del self.prepared[dropped]
                if dropped not in between:
                    self.last = sizes[-1]
                fewest = min(len(self.prepared[size][0].samples) for size in sizes)
            if fewest >= FEWEST and self.left - cost < reserve:
                return
            for size in self.order.sample(sizes, len(sizes)):
                self.tell(
                    f"n = {size:,}, pass {number + 1} of {count}, "
                    f"{max(self.left, 0):.0f} s of {self.seconds:.0f} left"
                )
                if not self._turn(size):
                    sizes.remove(size)
            if len(sizes) < 2:
                return

    def _turn(self, size: int) -> bool:
        """Samples all sides at `size`, in drawn order; False where one failed: the size is out."""
        pair = self.prepared[size]
        for ready in self.order.sample(pair, len(pair)):
            try:
                ready.sample()
            except Exception as error:  # the caller's code may raise anything
                self.failures[ready.side.name, size] = _reason(error)
                del self.prepared[size]
                return False
        return True

    # ---- sizes between

    def _between(self) -> list[tuple[int, int, int]]:
        """Sizes to be added, each with its neighbours, the most useful first: where the faster
        group changes last, and where the faster of the first group and of each other side does."""
        first, others = split(self.sides)
        rivals = [others, *([other] for other in others if len(others) > 1)]
        pairs = [*pairwise(sorted(self.prepared))]
        places: dict[tuple[int, int], None] = {}
        for rival in rivals:
            changes = [
                pair for pair in pairs if len({self._wins(size, first, rival) for size in pair}) > 1
            ]
            places |= dict.fromkeys(changes[-1:])
        return [
            (size, low, high)
            for low, high in places
            for size in dict.fromkeys(round(low * (high / low) ** (third / 3)) for third in (1, 2))
            if low * _NEAR < size < high / _NEAR
        ]

    def _wins(self, size: int, first: Sequence[Ready], second: Sequence[Ready]) -> bool:
        """Whether the fastest side of `first` is faster than that of `second`."""
        medians = {ready.side.name: median_call(ready) for ready in self.prepared[size]}
        best = [min(medians[side.name] for side in group) for group in (first, second)]
        return best[0] <= best[1]


def _reason(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {error}", 200)


def median_call(ready: Prepared) -> float:
    """Seconds of a call."""
    return statistics.median(sample.call for sample in ready.samples)


def split(sides: Sequence[Ready]) -> tuple[list[Ready], list[Ready]]:
    """The sides on the CPU and those on a device; where all are of one kind, the first and the
    others."""
    kinds = {side.on_device for side in sides}
    if len(kinds) == 1:
        return [*sides[:1]], [*sides[1:]]
    return [side for side in sides if not side.on_device], [s for s in sides if s.on_device]
