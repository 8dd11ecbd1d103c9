# SPDX-License-Identifier: Apache-2.0
"""A row from its configuration to its repetitions: prepared, verified, then timed."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, Protocol

import torch

from peers.pytorch.counterparts import TRAINING, Configuration
from peers.pytorch.operations import Copy, Product
from peers.pytorch.training import Training
from peers.pytorch.verification import Mismatch, References, verified
from peers.tasks import Task

_WARM_UP_SECONDS = 0.05  # of a GPU, whose clocks fall while it is idle; on the CPU the most
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
    `check` raises Mismatch behind a repetition where its results are wrong."""

    work: Work
    threads: int
    is_on_gpu: bool
    check: Callable[[], None]
    facts: dict[str, Any]
    once: dict[str, float] = field(default_factory=dict)
    iterations: int = 0
    iteration_seconds: float = 0.0


def prepare(
    configuration: Configuration,
    counted: dict[str, Any] | None,
    references: References,
    device_start_seconds: float,
) -> Prepared:
    """Makes and verifies a row; `counted` is what bench tells of its network. Mismatch
    where it computes something else, ValueError where it can't be had."""
    is_on_gpu = configuration["device"] == "cuda"
    threads = int(configuration.get("cpu_threads", torch.get_num_threads()))
    torch.set_num_threads(threads)
    family = configuration["family"]
    if family in TRAINING:
        if counted is None:
            raise ValueError("nothing is known of its network")
        prepared = _training(configuration, Task.of(family, counted), threads, references)
        prepared.once["first_call_seconds"] += device_start_seconds if is_on_gpu else 0
    else:
        work: Product | Copy
        if family == "Gemm":
            work = Product(configuration)
        else:
            work = Copy(configuration, _copied_bytes(configuration, counted))
        checked = work.verify()
        facts = {"verification": checked, **work.facts}
        prepared = Prepared(work, threads, is_on_gpu, work.check, facts)
    if "cpu_threads" in configuration:
        prepared.facts["cpu_threads"] = threads
    return prepared


def _copied_bytes(configuration: Configuration, counted: dict[str, Any] | None) -> int:
    if "bytes" in configuration:
        return int(configuration["bytes"])
    if counted is None:
        raise ValueError("nothing is known of its network")
    return int(counted["step"]["bytes_to_device"])


def _training(
    configuration: Configuration, task: Task, threads: int, references: References
) -> Prepared:
    family = configuration["family"]
    start = time.perf_counter()
    training = Training(task, configuration)
    training.restart()
    training.run()
    first_call_seconds = time.perf_counter() - start
    checked, loss = verified(training, configuration, references)
    facts = {
        "verification": checked,
        "label": task.label,
        "params": sum(parameter.numel() for parameter in training.network.parameters()),
        "batch": task.batch,
        "flops": task.flops,
        _FIRST_LOSS[family]: loss,
    }
    if facts["params"] != task.params:
        raise Mismatch(f"it has {facts['params']} parameters, and bench's has {task.params}")
    if family == "Epoch":
        facts |= {"rows": task.rows, "steps": task.steps}

    def check() -> None:
        if not all(bool(torch.isfinite(loss)) for loss in training.losses):
            raise Mismatch("a loss is not finite after the timed steps: the training diverges")
        if not all(bool(torch.isfinite(p).all()) for p in training.network.parameters()):
            raise Mismatch("parameters are not finite after the timed steps")

    is_on_gpu = configuration["device"] == "cuda"
    return Prepared(
        training, threads, is_on_gpu, check, facts, {"first_call_seconds": first_call_seconds}
    )


def repetition(prepared: Prepared, min_time_seconds: float) -> dict[str, Any]:
    """One repetition of `min_time_seconds` or one iteration at least; its times are those of an
    iteration in milliseconds. Mismatch where its results are wrong."""
    torch.set_num_threads(prepared.threads)
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
    }


def _timed(work: Work, iterations: int) -> tuple[float, float]:
    """Seconds by the wall clock and of this thread."""
    run = work.run
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
