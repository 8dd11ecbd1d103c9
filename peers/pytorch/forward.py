# SPDX-License-Identifier: Apache-2.0
"""A network in use as a user of PyTorch would write it: evaluated, eagerly or compiled."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch
from torch import nn

from peers.protocol import Configuration, alive
from peers.pytorch.networks import fill, network_of
from peers.rows import Prepared
from peers.tasks import Task, data_of
from peers.verification import Mismatch

_PRODUCTS = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d, nn.RNNBase, nn.MultiheadAttention)
_OF_SUMS, _OF_BF16 = 1e-5, 2.0**-8
_MOST_FLOPS = 5e10  # of the reference
_MOST_PASSES, _FEWEST_PASSES, _LONG_PASS_NS = 10_000, 20, 5_000_000
_QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "max": 1.0}


class Forward:
    """A network, and one batch on its device; `rows` are its first ones, if not all."""

    def __init__(
        self,
        task: Task,
        configuration: Configuration,
        dtype: torch.dtype = torch.float32,
        rows: int | None = None,
    ) -> None:
        self.device = torch.device("cuda" if configuration["device"] == "cuda" else "cpu")
        is_bf16 = configuration["precision"] == "bf16"
        network = network_of(task.network).to(dtype)
        fill(network, trains=False)
        network.eval().to(device=self.device, dtype=torch.bfloat16 if is_bf16 else dtype)
        self.parameters = sum(parameter.numel() for parameter in network.parameters())
        self.products = sum(isinstance(module, _PRODUCTS) for module in network.modules())
        inputs, _ = data_of(task)
        by_time = inputs.dtype == np.int64  # tokens [time, rows]
        inputs = inputs[:, :rows] if by_time else inputs[:rows]
        self._x = torch.from_numpy(np.ascontiguousarray(inputs)).to(self.device)
        if not by_time:
            self._x = self._x.to(dtype)
        self._network: Any = network
        if configuration.get("compiler") == "inductor":
            self._network = torch.compile(network, dynamic=False)
        self._is_narrowed = is_bf16 and not by_time
        self._outputs = torch.empty(0)

    def restart(self) -> None:
        """Nothing changes."""

    def run(self) -> None:
        """One pass: returns when it is done."""
        with torch.inference_mode():
            x = self._x.to(torch.bfloat16) if self._is_narrowed else self._x
            self._outputs = self._network(x)
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def outputs(self) -> np.ndarray:
        """Of the last pass, in float64."""
        return self._outputs.detach().double().cpu().numpy()


def forward_row(configuration: Configuration, counted: dict[str, Any] | None) -> Prepared:
    """Makes, first runs and verifies a pass; Mismatch where it computes something else."""
    if counted is None:
        raise ValueError("nothing is known of its network")
    task = Task.of("Forward", counted)
    start = time.perf_counter()
    made = Forward(task, configuration)
    made.run()
    first_call_seconds = time.perf_counter() - start
    if made.parameters != task.params:
        raise Mismatch(f"it has {made.parameters} parameters, and bench's has {task.params}")
    rows = max(1, min(task.batch, int(_MOST_FLOPS / task.flops * task.batch)))
    alive("verifying it")
    plain = {"device": "cpu", "execution": "eager", "precision": "f32"}
    reference = Forward(task, plain, torch.float64, rows)
    reference.run()
    expected = reference.outputs()
    unit = _OF_SUMS + (4 * _OF_BF16 if configuration["precision"] == "bf16" else 0)
    tolerance = unit * math.sqrt(max(1, made.products))
    by_place = rows_first(task, expected)

    def error() -> float:
        got = rows_first(task, made.outputs())[:rows]
        size = max(float(np.linalg.norm(by_place)), 1e-30)
        found = float(np.linalg.norm(got - by_place)) / size
        if not found <= tolerance:
            raise Mismatch(
                f"the outputs differ from float64 by {found:.3g} of their norm, and the tolerance "
                f"is {tolerance:.3g}"
            )
        return found

    all_entries = made.outputs().size
    facts: dict[str, Any] = {
        "verification": {
            "reference": "PyTorch in float64",
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


def latencies(work: Forward, seconds: float) -> dict[str, float]:
    """What single passes take, each timed by itself, as bench has them (docs/method/forward.md)."""
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
    found = {
        f"latency_{key}_seconds": taken[math.ceil(share * passes) - 1] / 1e9
        for key, share in _QUANTILES.items()
        if (1 - share) * passes >= 1 or share == 1
    }
    start = clock()
    for _ in range(999):
        clock()
    return {**found, "latency_passes": passes, "clock_seconds": (clock() - start) / 1e12}
