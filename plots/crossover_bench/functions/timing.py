# SPDX-License-Identifier: Apache-2.0
"""Times calls of a side at one size: the first one apart, then samples. A sample is the median of
batches, each of as many calls as a clock can measure, all waited for; what comes to the device and
back is timed beside it."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise, repeat
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from crossover_bench.functions.equal import difference
from crossover_bench.functions.kinds import (
    PLAIN,
    Wait,
    arrays,
    is_flat,
    leaves,
    library_of,
    mapped,
    on_host,
    wait_for,
)
from crossover_bench.functions.side import Ready

_SAMPLE_SECONDS = 2e-3
_BATCH_SECONDS = 2e-5  # many steps of a clock, and so short that few are interrupted
_MOST_BATCHES = 100
_FEW_BATCHES = 3  # of calls that other programs may well interrupt, so that a median leaves it out
_MOST_CALLS = 100_000  # in a batch
_MIDDLING_SECONDS = 1e-2  # calls below are measured several times a sample
_LONG_SECONDS = 0.1  # a call that needs no other before it to find its caches as they will be
_MOST_BYTES = 2**27  # of copies of an input that lie ready at once
_LITTLE_BYTES = 64  # of an input that does not tell its size
_COPYING_SECONDS = 0.05  # that such copies may take in a sample
_MOST_QUEUED = 64  # calls back to back
_TRIES = 5  # of a wait that may return too early


def timed(
    function: Callable[..., Any], wait: Wait | None, batches: Sequence[Iterable[Any]]
) -> list[float]:
    """Seconds of each of `batches`, which have the arguments of each call. Python's cyclic garbage
    collector is off meanwhile."""
    clock = time.perf_counter
    ends = [0.0] * (len(batches) + 1)
    with _without_collector():
        if wait is None:
            ends[0] = clock()
            for place, calls in enumerate(batches, 1):
                for arguments in calls:
                    function(*arguments)
                ends[place] = clock()
        else:
            ends[0] = clock()
            for place, calls in enumerate(batches, 1):
                for arguments in calls:
                    wait(function(*arguments))
                ends[place] = clock()
    return [end - start for start, end in pairwise(ends)]


@contextmanager
def _without_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Sample(NamedTuple):
    """Seconds of a call, of bringing its input and of fetching its result; these two are 0 where
    the data lie on the CPU."""

    call: float
    brought: float = 0.0
    fetched: float = 0.0


@dataclass(slots=True)
class Prepared:
    """A side at one size that has run once, which took `first` seconds: what waits for it, and how
    many `calls` make a batch, how many `batches` a sample.

    `queued` are seconds of a call of several back to back, which are waited for at the end.

    `changes` says that a call changes its input, so that each gets a fresh copy outside the clock.
    `usual` are seconds of a call, as far as they are known; `cost` those of a sample with all that
    is done for it.
    """

    side: Ready
    original: Any
    wait: Wait | None
    first: float
    changes: bool
    calls: int = 1
    batches: int = 1
    usual: float = math.inf
    cost: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    queued: list[float] = field(default_factory=list)

    def sample(self) -> None:
        """Measures once more: brings the input, calls, fetches the result."""
        start = time.perf_counter()
        arguments = self.side.arguments(self.original)
        brought = time.perf_counter() - start
        with _without_collector():
            began = time.perf_counter()
            result = self._call(arguments)
            call = time.perf_counter() - began
        began = time.perf_counter()
        if self.side.on_device:
            mapped(arguments if result is None else result, on_host)
        fetched = time.perf_counter() - began
        del result
        if self.usual < _LONG_SECONDS:
            call = self._timed(arguments)
        copies = (brought, fetched) if self.side.on_device else (0.0, 0.0)
        self.samples.append(Sample(call, *copies))
        self.cost = time.perf_counter() - start

    def calibrate(self) -> None:
        """Finds how many calls make a sample, and measures the first one. A first call that took
        long need not be a long one: it may have compiled."""
        if self.first >= _LONG_SECONDS:
            self.sample()
            self.usual = self.samples[0].call
            if self.usual >= _LONG_SECONDS:
                return
            self.samples.clear()
        start = time.perf_counter()
        arguments = self.side.arguments(self.original)
        most = self._most(time.perf_counter() - start)
        self._call(arguments)
        self.batches = min(_FEW_BATCHES, most)
        while True:
            self.usual = self._timed(arguments)
            if self.usual * self.calls >= _BATCH_SECONDS / 2 or self.calls >= most:
                break
            wanted = _BATCH_SECONDS / max(self.usual, 1e-9)
            self.calls = min(most, math.ceil(min(wanted, 10 * self.calls)))
        fewest = _FEW_BATCHES if self.usual < _MIDDLING_SECONDS else 1
        wanted = math.ceil(_SAMPLE_SECONDS / max(self.usual * self.calls, 1e-9))
        self.batches = max(1, min(max(wanted, fewest), _MOST_BATCHES, most // self.calls))
        self.sample()

    @property
    def in_queue(self) -> int:
        """How many calls queue() makes: so many that results as large as the input have room."""
        fitting = int(_MOST_BYTES / self._bytes())
        return max(_FEW_BATCHES, min(_MOST_QUEUED, self.calls * self.batches, fitting))

    def queue(self) -> bool:
        """Measures calls back to back once more; False where that fails, as many results may not
        fit: then there is no such figure. Results are kept until all are done: a library may
        compute those that nothing depends on in any order."""
        try:
            self.queued.append(self._seconds_in_queue(self.in_queue))
        except Exception:  # the caller's code may raise anything
            self.queued.clear()
            return False
        return True

    def _seconds_in_queue(self, count: int) -> float:
        calls = [self.side.arguments(self.original) for _ in range(count if self.changes else 1)]
        calls *= count // len(calls)
        function, wait = self.side.function, self.wait
        results: list[Any] = [None] * count
        with _without_collector():
            start = time.perf_counter()
            for place, arguments in enumerate(calls):
                results[place] = function(*arguments)
            if self.side.given.wait:  # of one result
                for result in results:
                    self.side.given.wait(result)
            elif wait is not None:
                wait(results)
            seconds = time.perf_counter() - start
        return seconds / count

    def returns_early(self) -> float:
        """By how many seconds a call returns before its work is done; 0 where it does not, or where
        nothing can tell. What is known of the result's kind waits twice, or else it is read twice:
        the first time takes longer only where work was left. The median of tries says, as what
        interrupts one lets the work end meanwhile."""
        late = []
        arguments = self.side.arguments(self.original)
        known = wait_for(self._call(arguments), arguments)

        def check(result: Any) -> None:
            if known is not None:
                known(result)
            for array in arrays(result):
                if not library_of(array):
                    on_host(array)

        for _ in range(_TRIES):
            arguments = self.side.arguments(self.original)
            start = time.perf_counter()
            result = self._call(arguments)
            call = time.perf_counter() - start
            left = []
            for _ in range(2):
                start = time.perf_counter()
                check(result)
                left.append(time.perf_counter() - start)
            is_late = left[0] - left[1] > call / 2 and left[0] > 3 * left[1]
            late.append(left[0] - left[1] if is_late else 0.0)
        return median(late)

    def _most(self, copying: float) -> int:
        """Calls that can be in a batch: of a side that changes its input as many as there may be
        copies, of which one takes `copying` seconds."""
        if not self.changes:
            return _MOST_CALLS
        fitting = min(_MOST_BYTES / self._bytes(), _COPYING_SECONDS / max(copying, 1e-9))
        return max(1, min(_MOST_CALLS, int(fitting)))

    def _bytes(self) -> int:
        """The size of the input, at least 1."""
        sizes = (getattr(leaf, "nbytes", None) for leaf in leaves(self.original))
        return max(1, sum(_LITTLE_BYTES if known is None else known for known in sizes))

    def _timed(self, arguments: tuple[Any, ...]) -> float:
        """Seconds of a call, the median of the batches."""
        batches: list[Iterable[Any]] = [repeat(arguments, self.calls) for _ in range(self.batches)]
        if self.changes:
            batches = [
                [self.side.arguments(self.original) for _ in range(self.calls)] for _ in batches
            ]
        return median(timed(self.side.function, self.wait, batches)) / self.calls

    def _call(self, arguments: tuple[Any, ...]) -> Any:
        result = self.side.function(*arguments)
        if self.wait is not None:
            self.wait(result)
        return result


def first_call(side: Ready, original: Any) -> tuple[Prepared, Any, tuple[Any, ...]]:
    """`side` after its first call with a copy of `original`; what it gave, and what it was given.
    A function that gives None has computed in its input, which stands for its result then."""
    arguments = side.arguments(original)
    start = time.perf_counter()
    result = side.function(*arguments)
    wait = side.waiter(result, arguments)
    if wait is not None:
        wait(result)
    seconds = time.perf_counter() - start
    prepared = Prepared(side, original, wait, seconds, _is_changed(original, arguments))
    return prepared, arguments if result is None else result, arguments


def _is_changed(original: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a call has changed the arguments that were copies of `original`."""
    given = original if type(original) is tuple else (original,)
    for before, after in zip(leaves(given), leaves(arguments), strict=False):
        if isinstance(before, PLAIN) or is_flat(before):
            if before is not after and before != after:
                return True
            continue
        left, right = on_host(before), on_host(after)
        if isinstance(left, np.ndarray) and isinstance(right, np.ndarray):
            left = left.astype(right.dtype, copy=False)  # a library may hold it in another
        if difference(left, right, 0.0):
            return True
    return False
