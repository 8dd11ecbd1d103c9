# SPDX-License-Identifier: Apache-2.0
"""The training loop as a tutorial of PyTorch writes it: a shuffled DataLoader, a copy of each batch
to the device, and the loss read in each step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import torch
from torch.utils.data import DataLoader, TensorDataset, default_collate

from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.pytorch.training import Training
from crossover_bench.peers.tasks import Task, data_of
from crossover_bench.peers.verification import Mismatch

Batch = tuple[torch.Tensor, torch.Tensor]
_SEED = 1
# A loader of single steps begins anew behind so many, unless their inputs take more memory.
_STEPS, _MOST_BYTES = 10, 1 << 28


class Usual(Training):
    """As Training, whose step it takes. An iteration has as many steps as Training's, on batches of
    the same rows in random orders."""

    def __init__(self, task: Task, configuration: Configuration) -> None:
        super().__init__(task, configuration)
        data = self._dataset()
        self._times = 1  # that the loader has each row
        if configuration.get("family") == "Minibatch":
            size = sum(tensor.nbytes for tensor in data.tensors)
            self._times = max(1, min(_STEPS, _MOST_BYTES // size))
            data = TensorDataset(*(torch.cat([tensor] * self._times) for tensor in data.tensors))
        # Without the places of rows a batch is as default_collate makes it, which is the default.
        collate = self._by_place if self._is_by_place else None
        self._loader = DataLoader(data, task.batch, shuffle=True, collate_fn=collate)
        self.taken: list[float] = []
        self._drawn = self._for_ever()

    def _dataset(self) -> TensorDataset:
        """Row by row, on the host."""
        inputs, labels = (torch.from_numpy(array) for array in data_of(self.task))
        self._reads_tokens = inputs.dtype == torch.int64  # [time, rows]
        self._has_places = "labels" in self.task.network  # [places, rows]
        x = inputs.T.contiguous() if self._reads_tokens else inputs.float()
        y = labels.T.contiguous() if self._has_places else labels
        return TensorDataset(x, y if y.dtype == torch.int64 else y.float())

    @property
    def _is_by_place(self) -> bool:
        return self._reads_tokens or self._has_places

    def _by_place(self, rows: list[Batch]) -> Batch:
        """A batch in the shape in which the network reads it: times first, labels flat."""
        x, y = default_collate(rows)
        return (
            x.T.contiguous() if self._reads_tokens else x,
            y.T.flatten() if self._has_places else y,
        )

    def _for_ever(self) -> Iterator[Batch]:
        while True:
            yield from self._loader

    def restart(self) -> None:
        """Also of the orders."""
        super().restart()
        torch.manual_seed(_SEED)
        self._drawn = self._for_ever()

    def run(self) -> None:
        device, step, losses = self.device, self._step, []
        for x, y in islice(self._drawn, self.task.steps):
            losses.append(step(x.to(device), y.to(device)).item())
        self.taken = losses
        self.wait()

    def losses_are_finite(self) -> bool:
        return all(map(math.isfinite, self.taken))

    def check_loader(self) -> None:
        """Mismatch unless each row of the batches that lie ready comes once in an epoch of the
        loader, with its own label."""
        ready, loaded = self._counted(self.batches), self._counted(self._loader)
        if loaded != Counter({row: self._times * count for row, count in ready.items()}):
            raise Mismatch("an epoch of its loader does not have each row of the data once")

    def _counted(self, batches: Iterable[Batch]) -> Counter[int]:
        """How often there is each row, by its bytes."""
        counted: Counter[int] = Counter()
        for x, y in batches:
            inputs = (x.T if self._reads_tokens else x).cpu()
            labels = (y.view(-1, len(inputs)).T if self._has_places else y).cpu()
            counted.update(
                hash(b"".join(part.contiguous().numpy().tobytes() for part in row))
                for row in zip(inputs, labels, strict=True)
            )
        return counted
