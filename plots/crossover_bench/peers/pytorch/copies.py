# SPDX-License-Identifier: Apache-2.0
"""Several copies of a network that train at once on the same rows, as a user of PyTorch would have
them: torch.vmap over parameters that lie one behind the other (torch.func.functional_call)."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad_and_value
from torch.utils._pytree import tree_map

from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.pytorch.networks import fill
from crossover_bench.peers.pytorch.training import Training
from crossover_bench.peers.tasks import Task, Unsupported

Named = dict[str, torch.Tensor]


class Copies(Training):
    """As Training; each parameter has one more dimension, the first, and so has a step's loss.

    Each way has the form that was the faster one for it, with 1 to 64 copies on the CPU. Eagerly
    that is autograd's gradient of the sum of the copies' losses, which is each copy's own: only the
    forward pass is within torch.vmap. Compiled it is torch.vmap(grad_and_value(...)): one graph.
    """

    vectors = 2

    def __init__(self, task: Task, configuration: Configuration) -> None:
        self._is_compiled = configuration.get("compiler") == "inductor"
        of_one = grad_and_value(self._loss_of_one) if self._is_compiled else self._loss_of_one
        self._of_each = torch.vmap(of_one, in_dims=(0, 0, None, None))
        super().__init__(task, configuration)
        if self._is_compiled:
            self._step = self._compiled_step

    def _made(self, dtype: torch.dtype) -> nn.Module:
        """All parameters. As torch.func.stack_module_state stacks them, but that needs a class that
        all copies have, and of a network that is no chain each has its own."""
        network, copies = super()._made(dtype), self.task.copies
        starts = []
        for copy in range(copies):
            fill(network, copy=copy)
            starts.append([parameter.detach().clone() for parameter in network.parameters()])
        stacked = nn.ParameterList(map(torch.stack, zip(*starts, strict=True)))
        self._parameters: Named = {}
        self._buffers = {name: torch.stack([b] * copies) for name, b in network.named_buffers()}
        for (name, of_one), values in zip(network.named_parameters(), stacked, strict=True):
            values.requires_grad_(of_one.requires_grad)
            (self._parameters if of_one.requires_grad else self._buffers)[name] = values
        self._of_a_copy = network.to("meta")
        return stacked

    def _batches(self, dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
        batches = super()._batches(dtype)
        given = self._parameters, self._buffers, *batches[0]
        try:  # with nothing to compute
            self._of_each(*tree_map(partial(torch.empty_like, device="meta"), given))
        except RuntimeError as error:
            reason = str(error).partition(". ")[0].removesuffix(".")
            raise Unsupported(f"torch.vmap does not take this network: {reason}") from error
        return batches

    def _loss_of_one(
        self, parameters: Named, buffers: Named, x: torch.Tensor, y: torch.Tensor
    ) -> torch.Tensor:
        return self._loss(functional_call(self._of_a_copy, (parameters, buffers), (x,)), y)

    def _plain_forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:
        """Losses; compiled, gradients and losses."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._autocast):
            return self._of_each(self._parameters, self._buffers, x, y)

    def _eager_step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=self._overwrites)
        losses = self._forward(x, y)
        losses.sum().backward()
        self.optimizer.step()
        return losses.detach()

    def _compiled_step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=self._overwrites)
        with torch.no_grad():
            gradients, losses = self._forward(x, y)
            for name, parameter in self._parameters.items():
                before, gradient = parameter.grad, gradients[name]
                parameter.grad = gradient if before is None else before.add_(gradient)
        self.optimizer.step()
        return losses

    def parameters(self) -> list[np.ndarray]:
        stacked = super().parameters()
        return [values[copy] for copy in range(self.task.copies) for values in stacked]
