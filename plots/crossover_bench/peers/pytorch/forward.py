# SPDX-License-Identifier: Apache-2.0
"""A network in use as a user of PyTorch would write it: evaluated, eagerly or compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from crossover_bench.peers.forward import Passes, inputs_of
from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.pytorch.devices import of_row, waits_for
from crossover_bench.peers.pytorch.networks import fill, network_of
from crossover_bench.peers.tasks import Task

_PRODUCTS = (nn.Linear, nn.Conv2d, nn.ConvTranspose2d, nn.RNNBase, nn.MultiheadAttention)


class Forward(Passes):
    """A network, and one batch on its device; `rows` are its first ones, if not all."""

    def __init__(
        self,
        task: Task,
        configuration: Configuration,
        dtype: torch.dtype = torch.float32,
        rows: int | None = None,
    ) -> None:
        self.device = of_row(configuration)
        self._wait = waits_for(self.device)
        is_bf16 = configuration["precision"] == "bf16"
        network = network_of(task.network).to(dtype)
        fill(network, trains=False)
        network.eval().to(device=self.device, dtype=torch.bfloat16 if is_bf16 else dtype)
        self.parameters = sum(parameter.numel() for parameter in network.parameters())
        self.products = sum(isinstance(module, _PRODUCTS) for module in network.modules())
        inputs = inputs_of(task, rows)
        by_time = inputs.dtype == np.int64
        self.x = torch.from_numpy(np.ascontiguousarray(inputs)).to(self.device)
        if not by_time:
            self.x = self.x.to(dtype)
        self.network: Any = network
        if configuration.get("compiler") == "inductor":
            self.network = torch.compile(network, dynamic=False)
        self._is_narrowed = is_bf16 and not by_time
        self._outputs = torch.empty(0)

    def run(self) -> None:
        with torch.inference_mode():
            x = self.x.to(torch.bfloat16) if self._is_narrowed else self.x
            self._outputs = self.network(x)
        self._wait()

    def outputs(self) -> np.ndarray:
        return self._outputs.detach().double().cpu().numpy()


def exact_outputs(task: Task, rows: int) -> np.ndarray:
    """Of the first so many rows, computed in float64."""
    plain = {"device": "cpu", "execution": "eager", "precision": "f32"}
    reference = Forward(task, plain, torch.float64, rows)
    reference.run()
    return reference.outputs()
