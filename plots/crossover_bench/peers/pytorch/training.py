# SPDX-License-Identifier: Apache-2.0
"""Training as a user of PyTorch would write it: eagerly, compiled, or as a CUDA graph of a step."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss
from torch.utils._pytree import tree_leaves, tree_map

from crossover_bench.peers import verification
from crossover_bench.peers.protocol import Configuration, alive
from crossover_bench.peers.pytorch.devices import of_row, waits_for
from crossover_bench.peers.pytorch.layers import Dropout
from crossover_bench.peers.pytorch.networks import fill, network_of
from crossover_bench.peers.tasks import Task, Unsupported, data_of

Step = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
_LOSSES = {"cross_entropy": cross_entropy, "mse": mse_loss, "bce": binary_cross_entropy_with_logits}


class Training:
    """A network, its optimizer and its batches on a device; `dtype` is of parameters and inputs.

    What a loop would make on the way is made here: batches, compiled code and graphs for each
    batch size, and, once run() has run, the optimizer's state. `share` are the rows of each batch
    that it trains on: all of them, unless it is one of several ranks.
    """

    share = slice(None)
    vectors = 1  # dimensions of a parameter that is one

    def __init__(
        self, task: Task, configuration: Configuration, dtype: torch.dtype = torch.float32
    ) -> None:
        self.task = task
        self.device = of_row(configuration)
        self.wait = waits_for(self.device)
        self._autocast = configuration["precision"] == "bf16"
        layout = configuration.get("layout", "default")
        self._layout = torch.channels_last if layout == "channels-last" else torch.preserve_format
        is_graph = configuration["execution"] == "graph"
        self._overwrites = configuration.get("zero") != "keep"
        if task.network["loss"] not in _LOSSES:
            raise Unsupported(f"PyTorch's side has no loss {task.network['loss']!r}")
        self._loss = _LOSSES[task.network["loss"]]
        self.network = self._made(dtype)
        self._start = [parameter.detach().clone() for parameter in self.network.parameters()]
        self._dropouts = [m for m in self.network.modules() if isinstance(m, Dropout)]
        self.called: nn.Module = self.network  # what a step calls
        self.batches = self._batches(dtype)
        self.optimizer = optimizer_of(self.network, task, capturable=is_graph, vectors=self.vectors)
        self.losses: list[torch.Tensor] = []
        self._forward = self._plain_forward
        if configuration.get("compiler") == "inductor":
            self._forward = torch.compile(self._plain_forward, dynamic=False)
        self._step: Step = self._eager_step
        if is_graph:
            if self._dropouts:
                raise Unsupported("a CUDA graph takes no masks, so dropout can't be verified in it")
            self._step = Graphs(self._eager_step, self.optimizer, self.batches)

    def _made(self, dtype: torch.dtype) -> nn.Module:
        """The network, at its start."""
        network = network_of(self.task.network).to(dtype)
        fill(network)
        return network.to(device=self.device, memory_format=self._layout)

    def _batches(self, dtype: torch.dtype) -> list[tuple[torch.Tensor, torch.Tensor]]:
        return self._batches_of(self.share, dtype)

    def _batches_of(
        self, share: slice, dtype: torch.dtype
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        inputs, labels = (torch.from_numpy(array) for array in data_of(self.task))
        by_time = inputs.dtype == torch.int64  # tokens [time, rows]
        if not by_time:
            inputs = inputs.to(dtype)
        classifies = labels.dtype == torch.int64
        if not classifies:
            labels = labels.to(dtype)
        places = "labels" in self.task.network  # [places, rows]
        pairs = zip(
            inputs.split(self.task.batch, dim=int(by_time)),
            labels.split(self.task.batch, dim=int(places)),
            strict=True,
        )
        return [
            (
                x.contiguous().to(device=self.device, memory_format=self._layout),
                (y.flatten() if classifies else y.contiguous()).to(self.device),
            )
            for x, y in (
                (x[:, share] if by_time else x[share], y[:, share] if places else y[share])
                for x, y in pairs
            )
        ]

    def restart(self) -> None:
        """Parameters at their start, the optimizer's state at zero."""
        with torch.no_grad():
            for parameter, start in zip(self.network.parameters(), self._start, strict=True):
                parameter.copy_(start)
            for state in self.optimizer.state.values():
                for value in state.values():
                    if isinstance(value, torch.Tensor):
                        value.zero_()

    def begin_as(self, copy: int) -> None:
        """From now on it starts as that copy, counted from 0."""
        fill(self.network, copy=copy)
        self._start = [parameter.detach().clone() for parameter in self.network.parameters()]

    def start_off(self, by: float, seed: int) -> None:
        """From now on each parameter starts off by up to so much of itself, at random."""
        random = torch.Generator().manual_seed(seed)
        for start in self._start:
            places = torch.rand(start.shape, generator=random, dtype=start.dtype)
            start.mul_(1 + by * (2 * places.to(start.device) - 1))

    def run(self) -> None:
        """One iteration, whose losses are kept on the device: returns when it is done."""
        step = self._step
        losses = []
        for x, y in self.batches:
            losses.append(step(x, y))
        self.losses = losses
        self.wait()

    def run_steps(self, count: int) -> list[float]:
        """So many steps from the start, with the reference's dropout; returns their losses, in each
        step those of all copies."""
        self.restart()
        losses = []
        for step in range(count):
            x, y = self.batches[step % len(self.batches)]
            self._take_masks(step, rows_of(x))
            losses += self._step(x, y).reshape(-1).tolist()
            alive("verifying it")
        for dropout in self._dropouts:
            dropout.mask = None
        return losses

    def loss(self) -> float:
        """Of the first batch at the start, without its gradients."""
        self.restart()
        x, y = self.batches[0]
        self._take_masks(0, rows_of(x))
        with torch.no_grad():
            loss = float(self._plain_forward(x, y))
        for dropout in self._dropouts:
            dropout.mask = None
        return loss

    def parameters(self) -> list[np.ndarray]:
        return [p.detach().double().cpu().numpy() for p in self.network.parameters()]

    def count_parameters(self) -> int:
        return sum(parameter.numel() for parameter in self.network.parameters())

    def losses_are_finite(self) -> bool:
        return all(bool(torch.isfinite(loss).all()) for loss in self.losses)

    def parameters_are_finite(self) -> bool:
        return all(bool(torch.isfinite(p).all()) for p in self.network.parameters())

    def _take_masks(self, step: int, rows: int) -> None:
        """Those of the reference in a step, from 0."""
        for dropout in self._dropouts:
            dropout.take_mask(step + 1, rows, self.device)

    def _plain_forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if self._autocast:
            with torch.autocast(self.device.type, dtype=torch.bfloat16):
                return self._loss(self.called(x), y)
        return self._loss(self.called(x), y)

    def _eager_step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.optimizer.zero_grad(set_to_none=self._overwrites)
        loss = self._forward(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class References(verification.References):
    """Made with so many threads, as trainings of `kind`."""

    def __init__(self, threads: int, kind: type[Training] = Training, **changes: str) -> None:
        plain = {"device": "cpu", "execution": "eager", "precision": "f32", **changes}
        super().__init__("PyTorch in float64", lambda task: kind(task, plain, torch.float64))
        self._threads = threads

    def of(self, task: Task) -> verification.Trajectory:
        threads = torch.get_num_threads()
        torch.set_num_threads(self._threads)
        try:
            return super().of(task)
        finally:
            torch.set_num_threads(threads)


# Before settle(): which of a GPU's libraries torch lets compute in TF32, by their names in files.
_TF32 = {"cudnn": torch.backends.cudnn, "matmul": torch.backends.cuda.matmul}
_ALLOWED = {name: library.allow_tf32 for name, library in _TF32.items()}


def settle() -> bool:
    """Makes this process compute as bench does: without TF32, and with denormal numbers as zero,
    where it can; returns whether it can. Before any other thread of OpenMP is made: those inherit
    it."""
    allow_tf32(as_torch=False)
    return torch.set_flush_denormal(True)


def allow_tf32(as_torch: bool) -> None:
    """From now on, where torch does by default, or nowhere."""
    for name, library in _TF32.items():
        library.allow_tf32 = as_torch and _ALLOWED[name]


def where_tf32() -> list[str]:
    """The libraries that may compute in it now."""
    return [name for name, library in _TF32.items() if library.allow_tf32]


def cached_graphs() -> int:
    """How many graphs inductor's cache on disk had so far. Nothing is imported, as that is part of
    a first call."""
    utilities = sys.modules.get("torch._dynamo.utils")
    return utilities.counters["inductor"]["fxgraph_cache_hit"] if utilities else 0


def rows_of(x: torch.Tensor) -> int:
    """Of inputs."""
    return x.shape[1 if x.dtype == torch.int64 else 0]  # tokens are [time, rows]


def optimizer_of(
    network: nn.Module, task: Task, capturable: bool, vectors: int = 1
) -> torch.optim.Optimizer:
    """Only parameters of more dimensions than `vectors` decay."""
    stated, trained = task.optimizer, [p for p in network.parameters() if p.requires_grad]
    if stated.kind == "sgd":
        return torch.optim.SGD(trained, lr=stated.learning_rate)
    if stated.kind == "momentum":
        return torch.optim.SGD(trained, lr=stated.learning_rate, momentum=0.9)
    if stated.kind == "adam":
        return torch.optim.Adam(trained, lr=stated.learning_rate, capturable=capturable)
    matrices = [p for p in trained if p.ndim > vectors]
    others = [p for p in trained if p.ndim <= vectors]
    groups = [
        {"params": matrices, "weight_decay": stated.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=stated.learning_rate, capturable=capturable)


class Graphs:
    """A CUDA graph of a step for each batch size, with one of `batches` copied to where it reads;
    these are tensors, or what holds them."""

    def __init__(
        self,
        step: Step,
        optimizer: torch.optim.Optimizer,
        batches: list[tuple[torch.Tensor, torch.Tensor]],
    ) -> None:
        made: dict[Any, tuple[torch.cuda.CUDAGraph, torch.Tensor, list[torch.Tensor]]] = {}
        self._of: dict[int, tuple[torch.cuda.CUDAGraph, list[Any], torch.Tensor]] = {}
        for batch in batches:
            read = tree_leaves(batch)
            shapes = tuple(tensor.shape for tensor in read)
            if shapes not in made:
                fixed = tree_map(torch.clone, batch)  # where the graph reads
                made[shapes] = (*self._graph(step, optimizer, *fixed), tree_leaves(fixed))
            graph, loss, places = made[shapes]
            self._of[id(batch[0])] = graph, list(zip(places, read, strict=True)), loss

    def __call__(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        del y
        graph, copies, loss = self._of[id(x)]
        for place, value in copies:
            place.copy_(value)
        graph.replay()
        return loss.clone()

    @staticmethod
    def _graph(
        step: Step, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor
    ) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                step(x, y)
        torch.cuda.current_stream().wait_stream(stream)
        optimizer.zero_grad(set_to_none=True)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            loss = step(x, y)
        return graph, loss
