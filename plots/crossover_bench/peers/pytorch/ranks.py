# SPDX-License-Identifier: Apache-2.0
"""Several ranks as a user of PyTorch would have them: DistributedDataParallel, on the CPU over
gloo, on GPUs over NCCL, where rank r has the r-th GPU that PyTorch sees. It has never run on GPUs.

This process is rank 0; the others are its children, and follow what they are told through pipes.
Nothing is told inside a timed loop.
"""

from __future__ import annotations

import gc
import os
import socket
from collections.abc import Iterator
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from crossover_bench.peers.protocol import Configuration, alive
from crossover_bench.peers.pytorch.training import Training, rows_of, settle
from crossover_bench.peers.tasks import Task, Unsupported


class Share(Training):
    """The part of one rank."""

    def __init__(self, task: Task, configuration: Configuration) -> None:
        self.share = slice(distributed.get_rank(), None, distributed.get_world_size())
        super().__init__(task, configuration)
        bucket = int(configuration.get("bucket", 25 << 20))
        self.called = DistributedDataParallel(self.network, bucket_cap_mb=bucket / 2**20)

    def _take_masks(self, step: int, rows: int) -> None:
        ranks = distributed.get_world_size()
        super()._take_masks(step * ranks + distributed.get_rank(), rows)


class SharesInTurn(Training):
    """What ranks must come to: one process that trains the shares of each batch one after another,
    since statistics and masks are those of a share."""

    def __init__(self, task: Task, configuration: Configuration, dtype: torch.dtype) -> None:
        self.ranks = int(configuration["ranks"])
        super().__init__(task, configuration, dtype)
        shares = (
            self._batches_of(slice(rank, None, self.ranks), dtype) for rank in range(self.ranks)
        )
        self._shares = list(zip(*shares, strict=True))  # of each batch

    def run_steps(self, steps: int) -> list[float]:
        self.restart()
        losses = []
        for step in range(steps):
            self.optimizer.zero_grad()
            loss = self._loss_of(step)
            loss.backward()
            self.optimizer.step()
            losses.append(float(loss.detach()))
            alive("verifying it")
        return losses

    def loss(self) -> float:
        self.restart()
        with torch.no_grad():
            return float(self._loss_of(0))

    def _loss_of(self, step: int) -> torch.Tensor:
        """Of a batch: the mean of its shares' by their rows."""
        shares = self._shares[step % len(self._shares)]
        losses = []
        for rank, (x, y) in enumerate(shares):
            self._take_masks(step * self.ranks + rank, rows_of(x))
            losses.append(self._forward(x, y) * len(y))
        return torch.stack(losses).sum() / sum(len(y) for _, y in shares)


class SharedTraining:
    """A training of the whole batch by all ranks. As Training, with which it shares what is not
    here: of parameters all ranks have the same."""

    def __init__(self, task: Task, configuration: Configuration) -> None:
        self.task = task
        ranks = int(configuration["ranks"])
        if task.batch % ranks or task.rows % task.batch % ranks:
            raise Unsupported(
                "DistributedDataParallel averages gradients over ranks, which is wrong where their "
                "shares of a batch differ; take a batch that the ranks divide"
            )
        self._others = _others(configuration["device"], ranks)
        self._number = next(_NUMBERS)
        self._expected = 0
        self._tell("make", task, configuration)
        self._share = Share(task, configuration)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._share, name)

    def __del__(self) -> None:
        if "_share" in self.__dict__:
            self._tell("drop")

    def restart(self) -> None:
        self._tell("restart")
        self._share.restart()

    def expect(self, passes: int) -> None:
        """So many calls of run() follow, and nothing else."""
        self._tell("run", passes)
        self._expected = passes

    def run(self) -> None:
        if self._expected:
            self._expected -= 1
        else:
            self._tell("run", 1)
        self._share.run()

    def run_steps(self, steps: int) -> list[float]:
        self._tell("run_steps", steps)
        losses = self._share.run_steps(steps)
        return np.mean([losses, *self._answers()], axis=0).tolist()

    def loss(self) -> float:
        self._tell("loss")
        loss = self._share.loss()
        return float(np.mean([loss, *self._answers()]))

    def _tell(self, what: str, *arguments: Any) -> None:
        for other in self._others:
            other.send((self._number, what, arguments))

    def _answers(self) -> Iterator[Any]:
        return (other.recv() for other in self._others)


_NUMBERS = count()
_STARTED: dict[tuple[str, int], list[Connection]] = {}


def backend_of(device: str, ranks: int) -> str:
    """What sums over so many ranks on that device; Unsupported where nothing can."""
    if device == "cpu":
        return "gloo"
    gpus = torch.cuda.device_count()
    if gpus < ranks:
        raise Unsupported(
            f"there are more ranks than GPUs: each of {ranks} ranks needs one of its own, and "
            f"PyTorch sees {gpus}; start as many ranks as there are GPUs"
        )
    if not distributed.is_nccl_available():
        raise Unsupported(
            "this PyTorch has no NCCL, which sums over GPUs; install a build of it with CUDA"
        )
    return "nccl"


def _others(device: str, ranks: int) -> list[Connection]:
    """Pipes to the other ranks on that device, started when they are first asked for."""
    backend = backend_of(device, ranks)
    if _STARTED and (device, ranks) not in _STARTED:
        raise ValueError("one process has one number of ranks, on one device")
    if not _STARTED:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        context, pipes = get_context("spawn"), []
        for rank in range(1, ranks):
            ours, theirs = context.Pipe()
            context.Process(
                target=_follow, args=(theirs, backend, address, rank, ranks), daemon=True
            ).start()
            pipes.append(ours)
        _join(backend, address, 0, ranks)
        _STARTED[device, ranks] = pipes
    return _STARTED[device, ranks]


def _join(backend: str, address: str, rank: int, ranks: int) -> None:
    if backend == "nccl":
        torch.cuda.set_device(rank)  # the one that "cuda" means in this process
    distributed.init_process_group(backend, init_method=address, rank=rank, world_size=ranks)


def _follow(pipe: Connection, backend: str, address: str, rank: int, ranks: int) -> None:
    """What the other ranks do until rank 0 ends."""
    os.dup2(2, 1)  # standard output is rank 0's, for answers
    settle()
    _join(backend, address, rank, ranks)
    shares: dict[int, Share] = {}
    while True:
        try:
            number, what, arguments = pipe.recv()
        except EOFError:
            return
        if what == "make":
            task, configuration = arguments
            if "cpu_threads" in configuration:
                torch.set_num_threads(int(configuration["cpu_threads"]))
            shares[number] = Share(task, configuration)
        elif what == "drop":
            del shares[number]
            gc.collect()
            torch.cuda.empty_cache()
        elif what == "run":
            for _ in range(arguments[0]):
                shares[number].run()
        elif what == "restart":
            shares[number].restart()
        else:
            pipe.send(getattr(shares[number], what)(*arguments))
