# SPDX-License-Identifier: Apache-2.0
"""A network in use: its passes verified, and each timed by itself, whatever framework computes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from crossover_bench.peers.protocol import Configuration, alive
from crossover_bench.peers.rows import Prepared, compiling, first_run
from crossover_bench.peers.tasks import Task, data_of
from crossover_bench.peers.verification import Mismatch

_OF_SUMS, _OF_BF16 = 1e-5, 2.0**-8
_MOST_FLOPS = 5e10  # of the reference
_MOST_PASSES, _FEWEST_PASSES, _LONG_PASS_NS = 10_000, 20, 5_000_000
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


class Passes:
    """A network, and one batch on its device; an iteration is one pass. Of the `products` each
    rounds anew."""

    parameters: int
    products: int

    def restart(self) -> None:
        """Nothing changes."""

    def run(self) -> None:
        """One pass: returns when it is done."""
        raise NotImplementedError

    def outputs(self) -> np.ndarray:
        """Of the last pass, in float64."""
        raise NotImplementedError


def copies(ours: Configuration) -> bool:
    """Whether a row of bench's is of passes that get their batch from the host."""
    return ours["family"] == "Forward" and ours.get("data", "resident") != "resident"


def inputs_of(task: Task, rows: int | None) -> np.ndarray:
    """Of the first rows, or of all: float64 [rows, ...], or tokens int64 [places, rows]."""
    inputs, _ = data_of(task)
    return inputs[:, :rows] if inputs.dtype == np.int64 else inputs[:rows]


def forward_row(
    make: Callable[[Task, Configuration], Passes],
    exact_outputs: Callable[[Task, int], np.ndarray],
    framework: str,
    configuration: Configuration,
    counted: dict[str, Any] | None,
) -> Prepared:
    """Makes, first runs and verifies a pass; Mismatch where it computes something else.
    `exact_outputs`: those of the first so many rows, by the framework in float64."""
    task = Task.of("Forward", counted)
    made, first_call_seconds = first_run(make, task, configuration)
    if made.parameters != task.params:
        raise Mismatch(f"it has {made.parameters} parameters, and bench's has {task.params}")
    rows = max(1, min(task.batch, int(_MOST_FLOPS / task.flops * task.batch)))
    alive("verifying it")
    with compiling(configuration, "verifying it"):
        expected = exact_outputs(task, rows)
    unit = _OF_SUMS + (4 * _OF_BF16 if configuration["precision"] == "bf16" else 0)
    tolerance = unit * math.sqrt(max(1, made.products))
    by_place = rows_first(task, expected)

    def error() -> float:
        got = rows_first(task, made.outputs())[:rows]
        size = max(float(np.linalg.norm(by_place)), 1e-30)
        difference = float(np.linalg.norm(got - by_place)) / size
        if not difference <= tolerance:
            raise Mismatch(
                f"the outputs differ from float64 by {difference:.3g} of their norm, and the "
                f"tolerance is {tolerance:.3g}"
            )
        return difference

    all_entries = made.outputs().size
    facts: dict[str, Any] = {
        "verification": {
            "reference": f"{framework} in float64",
            "entries": expected.size,
            "entries_of": all_entries,
            "tolerance": tolerance,
            "relative_error": error(),
        },
        "params": task.params,
        "batch": task.batch,
        "flops": task.flops,
    }
    prepared = Prepared(
        *(made, configuration["device"] == "cuda", lambda: None, facts),
        once={"first_call_seconds": first_call_seconds},
    )

    def check() -> None:
        prepared.counters = latencies(made, prepared.iterations * prepared.iteration_seconds)
        error()

    prepared.check = check
    return prepared


def rows_first(task: Task, outputs: np.ndarray) -> np.ndarray:
    """[rows, ...] of outputs, which of places are [places x rows, classes]."""
    if "labels" not in task.network:
        return outputs
    places = math.prod(task.network["labels"])
    return outputs.reshape(places, -1, outputs.shape[-1]).swapaxes(0, 1)


def latencies(work: Passes, seconds: float) -> dict[str, float]:
    """What single passes take, each timed by itself, as bench has them (docs/method/timed.md)."""
    run, clock = work.run, time.perf_counter_ns
    begin = clock()
    run()
    if clock() - begin > _LONG_PASS_NS:
        return {}
    taken = np.zeros(_MOST_PASSES, dtype=np.int64)
    end, passes, now = begin + int(seconds * 1e9), 0, begin
    while passes < _MOST_PASSES and (now < end or passes < _FEWEST_PASSES):
        begin = clock()
        run()
        now = clock()
        taken[passes] = now - begin
        passes += 1
    taken = np.sort(taken[:passes])
    quantiles = {
        f"latency_{key}_seconds": taken[math.ceil(share * passes) - 1] / 1e9
        for key, share in _QUANTILES.items()
        if (1 - share) * passes >= 1 or share == 1
    }
    start = clock()
    for _ in range(999):
        clock()
    return {**quantiles, "latency_passes": passes, "clock_seconds": (clock() - start) / 1e12}
