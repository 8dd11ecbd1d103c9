# SPDX-License-Identifier: Apache-2.0
"""A network in use as a user of JAX would write it: one jitted function of parameters and batch."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from crossover_bench.peers.forward import Passes, inputs_of
from crossover_bench.peers.jax.networks import Array, network_of, start_of
from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.tasks import Task

_PRODUCTS = ("linear", "conv2d", "conv_transpose2d")


class Forward(Passes):
    """A network, and one batch on its device; `rows` are its first ones, if not all."""

    def __init__(
        self,
        task: Task,
        configuration: Configuration,
        dtype: Any = np.float32,
        rows: int | None = None,
    ) -> None:
        device = jax.devices("gpu" if configuration["device"] == "cuda" else "cpu")[0]
        network = network_of(task.network, trains=False)
        starts = start_of(network)
        self.parameters = sum(values.size for values in starts)
        self._parameters = [jax.device_put(values.astype(dtype), device) for values in starts]
        self.products = sum(
            layer["type"] in _PRODUCTS and not {"tied", "shared"} & layer.keys()
            for layer in task.network["layers"]
        )
        inputs = inputs_of(task, rows)
        inputs = inputs.astype(np.int32 if inputs.dtype == np.int64 else dtype)
        self._x = jax.device_put(inputs, device)
        self._call = jax.jit(network.outputs)
        self._outputs: Array | None = None

    def run(self) -> None:
        self._outputs = self._call(self._parameters, self._x).block_until_ready()

    def outputs(self) -> np.ndarray:
        return np.asarray(self._outputs).astype(np.float64)


def exact_outputs(task: Task, rows: int) -> np.ndarray:
    """Of the first so many rows, computed in float64."""
    with jax.enable_x64(True):
        reference = Forward(task, {"device": "cpu"}, np.float64, rows)
        reference.run()
        return reference.outputs()
