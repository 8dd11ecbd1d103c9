# SPDX-License-Identifier: Apache-2.0
"""A framework's row from its configuration to its repetitions: prepared, verified, then timed."""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Protocol

from crossover_bench.peers.protocol import Answer, Configuration, going_on
from crossover_bench.peers.tasks import Task, Unsupported
from crossover_bench.peers.verification import Mismatch, References, verified

_WARM_UP_SECONDS = 0.05  # of a GPU, whose clocks fall while it is idle; on the CPU the most
_MOST_UNVERIFIED, _ENOUGH_UNVERIFIED_SECONDS = 9, 1.0
_TRIAL = 10  # times as many iterations at most, from one trial to the next
_MOST_ITERATIONS = 1_000_000_000
_FIRST_LOSS = {"Epoch": "loss_first_epoch", "Minibatch": "loss_first_step"}


class Work(Protocol):
    """What is timed."""

    def restart(self) -> None:
        """Before each repetition, untimed."""

    def run(self) -> None:
        """One iteration: returns when it is done."""


@dataclass
class Prepared:
    """`facts` are what a result file says of the row; `once` what stands in its first repetition.
    `check` raises Mismatch behind a repetition where its results are wrong, and may set `counters`;
    `begin` comes before each."""

    work: Work
    is_on_gpu: bool
    check: Callable[[], None]
    facts: dict[str, Any]
    once: dict[str, float] = field(default_factory=dict)
    begin: Callable[[], None] = lambda: None
    iterations: int = 0
    iteration_seconds: float = 0.0
    counters: dict[str, float] = field(default_factory=dict)  # of the last repetition


def compiling(configuration: Configuration, doing: str) -> AbstractContextManager[None]:
    """Says that, again and again, if a compiler works at the row."""
    is_compiled = configuration.get("compiler", "none") != "none"
    return going_on(doing) if is_compiled else nullcontext()


def first_run(
    make: Callable[[Task, Configuration], Any], task: Task, configuration: Configuration
) -> tuple[Any, float]:
    """What is timed, and the seconds until its first iteration is done."""
    start = time.perf_counter()
    with compiling(configuration, "compiling it"):
        made = make(task, configuration)
        made.restart()
        made.run()
    return made, time.perf_counter() - start


def training_row(
    make: Callable[[Task, Configuration], Any],
    configuration: Configuration,
    counted: dict[str, Any] | None,
    references: References,
) -> Prepared:
    """Makes, first runs and verifies a training, of which `counted` is what bench tells of its
    network. Mismatch where it computes something else, ValueError where it can't be had."""
    family = configuration["family"]
    task = Task.of(family, counted, int(configuration.get("copies", "1")))
    training, first_call_seconds = first_run(make, task, configuration)
    try:
        # What is verified may be compiled for a batch of its own, or without what it draws.
        with compiling(configuration, "verifying it"):
            checked, loss = verified(training, configuration, references)
    except Mismatch as mismatch:
        mismatch.seconds = _unverified_seconds(training)
        raise
    facts = {
        "verification": checked,
        "label": task.label,
        "params": training.count_parameters() // task.copies,
        "batch": task.batch,
        "flops": task.flops,
        _FIRST_LOSS[family]: loss,
    }
    if facts["params"] != task.params:
        raise Mismatch(f"it has {facts['params']} parameters, and bench's has {task.params}")
    if family == "Epoch":
        facts |= {"rows": task.rows, "steps": task.steps}

    def check() -> None:
        if not training.losses_are_finite():
            raise Mismatch("a loss is not finite after the timed steps: the training diverges")
        if not training.parameters_are_finite():
            raise Mismatch("parameters are not finite after the timed steps")

    is_on_gpu = configuration["device"] == "cuda"
    once = {"first_call_seconds": first_call_seconds}
    return Prepared(training, is_on_gpu, check, facts, once)


def repetition(prepared: Prepared, min_time_seconds: float) -> dict[str, Any]:
    """One repetition of `min_time_seconds` or one iteration at least; its times are those of an
    iteration in milliseconds. Mismatch where its results are wrong."""
    prepared.begin()
    _warm_up(prepared, min_time_seconds)
    if prepared.iterations == 0:
        prepared.iterations = _iterations(prepared, min_time_seconds)
    prepared.work.restart()
    wall, processor = _timed(prepared.work, prepared.iterations)
    prepared.iteration_seconds = wall / prepared.iterations
    prepared.check()
    return {
        "real_time": wall / prepared.iterations * 1e3,
        "cpu_time": processor / prepared.iterations * 1e3,
        "time_unit": "ms",
        "iterations": prepared.iterations,
        **prepared.counters,
    }


def _unverified_seconds(work: Work) -> float:
    """Of an iteration whose results are wrong, in the median of a few."""
    work.restart()
    work.run()
    taken: list[float] = []
    while len(taken) < _MOST_UNVERIFIED and sum(taken) < _ENOUGH_UNVERIFIED_SECONDS:
        taken.append(_timed(work, 1)[0])
    return statistics.median(taken)


def _timed(work: Work, iterations: int) -> tuple[float, float]:
    """Seconds by the wall clock and of this thread."""
    run = work.run
    if expect := getattr(work, "expect", None):
        expect(iterations)
    gc.collect()
    gc.disable()
    try:
        processor = time.thread_time_ns()
        start = time.perf_counter_ns()
        for _ in repeat(None, iterations):
            run()
        wall = time.perf_counter_ns() - start
        processor = time.thread_time_ns() - processor
    finally:
        gc.enable()
    return wall / 1e9, processor / 1e9


def _warm_up(prepared: Prepared, min_time_seconds: float) -> None:
    """bench had its turn: caches hold its data, and a GPU's clocks may have fallen."""
    if not prepared.is_on_gpu:
        if prepared.iteration_seconds < _WARM_UP_SECONDS:
            prepared.work.run()
        return
    end = time.perf_counter() + min(_WARM_UP_SECONDS, 2 * min_time_seconds)
    prepared.work.run()
    while time.perf_counter() < end:
        prepared.work.run()


def _iterations(prepared: Prepared, min_time_seconds: float) -> int:
    """As Google Benchmark finds it: longer trials until one is long enough."""
    iterations = 1
    while True:
        prepared.work.restart()
        seconds, _ = _timed(prepared.work, iterations)
        if seconds >= min_time_seconds or iterations >= _MOST_ITERATIONS:
            return iterations
        wanted = iterations * 1.4 * min_time_seconds / max(seconds, 1e-9)
        grown = min(wanted, iterations * _TRIAL) if seconds < 0.1 * min_time_seconds else wanted
        iterations = min(max(math.ceil(grown), iterations + 1), _MOST_ITERATIONS)


class Served:
    """The rows of one process, as requests ask for them: what is the framework's own is made()."""

    out_of_memory: tuple[type[Exception], ...] = (MemoryError,)
    out_of_memory_words: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._rows: dict[str, Prepared] = {}

    def made(self, configuration: Configuration, counted: dict[str, Any] | None) -> Prepared:
        """A row, verified."""
        raise NotImplementedError

    def freed(self, is_last: bool) -> None:
        """When a row is released; `is_last`: none is left."""

    def prepare(
        self,
        row: str,
        configuration: Configuration,
        counted: dict[str, Any] | None = None,
        iterations: int = 0,
    ) -> Answer:
        """Makes and verifies a row: its facts, or how it ended."""
        try:
            made = self.made(configuration, counted)
            made.iterations = iterations
        except Exception as error:
            return self._ended(row, error)
        self._rows[row] = made
        return {"facts": made.facts, "once": made.once}

    def repeat(self, row: str, min_time_seconds: float, after_another: bool = True) -> Answer:
        """One repetition: its times, or how it ended."""
        del after_another  # it warms up always
        try:
            return {"times": repetition(self._rows[row], min_time_seconds)}
        except Exception as error:
            return self._ended(row, error)

    def release(self, row: str) -> Answer:
        """Frees what the row holds."""
        self._rows.pop(row, None)
        self.freed(not self._rows)
        return {}

    def _ended(self, row: str, error: Exception) -> Answer:
        self.release(row)
        reason = " ".join(str(error).split())[:400] or type(error).__name__
        if isinstance(error, self.out_of_memory) or any(
            words in reason for words in self.out_of_memory_words
        ):
            return {"outcome": "skipped", "error_message": f"out of memory: {reason}"}
        if isinstance(error, Unsupported):
            return {"outcome": "skipped", "error_message": reason}
        if isinstance(error, Mismatch):
            answer: Answer = {"outcome": "failed", "error_message": reason}
            if error.seconds is not None:
                answer["not_verified"] = {"seconds": error.seconds}
            return answer
        return {"outcome": "failed", "error_message": f"{type(error).__name__}: {reason}"}
