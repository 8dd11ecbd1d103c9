# SPDX-License-Identifier: Apache-2.0
"""The loop that a user of PyTorch writes, on a device, with the clock read between its parts: the
loader, `.to(device)`, and the step until its loss was read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from itertools import cycle, islice, repeat
from time import perf_counter
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader

from crossover_bench.in_hand.copies import Given, needs_closure
from crossover_bench.in_hand.kept import AskError
from crossover_bench.words.text import listed, printable

_READY, _READY_BYTES = 8, 1 << 28  # batches that lie on the device at once, unless they are large


# ---- what the loader gives


@dataclass(frozen=True)
class Batches:
    """Where batches come from: a new iterator for each epoch, which has so many `steps` (None where
    nobody knows before). Of a `single` batch each step has that. `held` may hold random numbers."""

    epoch: Callable[[], Iterator[Any]]
    steps: int | None
    ahead: int = 0  # batches that workers make before they are asked for
    single: bool = False
    held: tuple[Any, ...] = ()

    @staticmethod
    def of(loader: Any) -> Batches:
        """AskError where no epoch can be begun anew."""
        if is_batch(loader):
            batch = as_tensors(loader)
            return Batches(lambda: repeat(batch), None, single=True)
        if isinstance(loader, DataLoader):
            # Its workers may be in the middle of an epoch of the user's.
            twin = copy(loader)
            twin._iterator = None
            ahead = loader.num_workers * (loader.prefetch_factor or 0)
            parts = (loader, loader.sampler, loader.batch_sampler, loader.dataset)
            return Batches(lambda: iter(twin), _length(loader), ahead, held=parts)
        if isinstance(loader, Iterator):
            raise AskError(
                "the loader is an iterator, which a measurement would use up; give what makes it: "
                "a DataLoader, a list of batches, or a function that returns an iterator"
            )
        if isinstance(loader, Iterable):
            return Batches(lambda: iter(loader), _length(loader), held=(loader,))
        if callable(loader):
            return Batches(lambda: iter(loader()), None, held=(loader,))
        raise AskError(
            f"the loader is of type {type(loader).__name__}; give a DataLoader, a list of batches, "
            "a function that returns an iterator of them, or one batch as a tuple (inputs, "
            "targets) or as a dictionary"
        )

    def first(self) -> Any:
        """A batch; AskError where there is none."""
        for batch in self.epoch():
            return batch
        raise AskError("the loader gives no batch")


def _length(loader: Any) -> int | None:
    try:
        return len(loader)
    except TypeError:  # of a stream nobody knows it
        return None


def is_batch(loader: Any) -> bool:
    """Whether it is one batch: (inputs, targets), or a dictionary."""
    return isinstance(loader, Mapping) or (isinstance(loader, tuple) and len(loader) == 2)


def as_tensors(value: Any) -> Any:
    """A batch with tensors in the place of NumPy's arrays."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    if isinstance(value, Mapping):
        return {key: as_tensors(each) for key, each in value.items()}
    return type(value)(map(as_tensors, value)) if type(value) in (tuple, list) else value


def parted(batch: Any, has_loss: bool) -> tuple[Any, Any]:
    """What the module reads, and what the loss compares its outputs with. The last of several parts
    is the target; where there is one part, or a dictionary, that is all of the batch."""
    if isinstance(batch, (tuple, list)) and batch:
        if len(batch) == 1:
            return batch[0], batch[0]
        if has_loss:
            return (batch[0] if len(batch) == 2 else tuple(batch[:-1])), batch[-1]
        return tuple(batch), None
    return batch, batch


def moved(value: Any, device: torch.device) -> Any:
    """As `.to(device)` of each part does it."""
    if callable(getattr(value, "to", None)):
        return value.to(device)
    if isinstance(value, Mapping):
        return {key: moved(each, device) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(moved(each, device) for each in value))
    if isinstance(value, (tuple, list)):
        return type(value)(moved(each, device) for each in value)
    return value


def tensors_of(value: Any) -> Iterator[torch.Tensor]:
    """All in a batch."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, tuple, list)):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from tensors_of(each)


def rows_of(batch: Any) -> int:
    """Of its first tensor, whose first dimension they are; 0 where it has none."""
    for tensor in tensors_of(batch):
        return int(tensor.shape[0]) if tensor.ndim else 1
    return 0


def bytes_of(batch: Any) -> int:
    return sum(tensor.nbytes for tensor in tensors_of(batch))


# ---- a step


@dataclass(slots=True)
class Step:
    """Seconds of the parts of a step, and its rows."""

    data: float
    copy: float
    rest: float
    rows: int

    @property
    def seconds(self) -> float:
        return self.data + self.copy + self.rest


class Loop:
    """Copies of what the user gave that are trained on a device."""

    def __init__(self, given: Given, loader: Any, device: torch.device) -> None:
        self.device, self._loader, self.batches = device, loader, Batches.of(loader)
        mine = given.copied(device)
        self.model, self._loss, self.optimizer = mine.model, mine.loss, mine.optimizer
        self.has_loss = mine.loss is not None
        self._call = calls(self.model)
        self._with_closure = needs_closure(self.optimizer)
        self._drawn: Iterator[Any] | None = None
        self._place, self._rows = 0, 0  # in the epoch, and the rows of its first batch
        self._ready: list[tuple[Any, Any]] = []
        self.last_loss = 0.0

    def take(self, count: int) -> list[Step]:
        """So many steps, without the last of an epoch where that has fewer rows."""
        taken: list[Step] = []
        while len(taken) < count:
            start = perf_counter()
            if is_new := self._drawn is None:
                self._drawn, self._place = self.batches.epoch(), 0
            try:
                batch = next(self._drawn)
            except StopIteration:
                if is_new:
                    raise AskError("the loader gives no batch") from None
                self._drawn = None
                if self.batches.steps is None and taken and taken[-1].rows < self._rows:
                    taken.pop()
                continue
            loaded = perf_counter()
            x, y = (moved(part, self.device) for part in parted(batch, self.has_loss))
            copied = perf_counter()
            self.last_loss = self.step(x, y).item()
            end = perf_counter()
            rows, self._place = rows_of(batch), self._place + 1
            self._rows = rows if self._place == 1 else self._rows
            if rows >= self._rows or self._place != self.batches.steps:
                taken.append(Step(loaded - start, copied - loaded, end - copied, rows))
        return taken

    def step(self, x: Any, y: Any) -> torch.Tensor:
        """Its loss, on the device."""
        # Of an autocast around all steps; the user's is around each, and begins without any.
        torch.clear_autocast_cache()
        if self._with_closure:
            return self._closed_step(x, y)
        self.optimizer.zero_grad()
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss

    def _closed_step(self, x: Any, y: Any) -> torch.Tensor:
        losses = []

        def closure() -> torch.Tensor:
            self.optimizer.zero_grad()
            loss = self.loss(x, y)
            loss.backward()
            losses.append(loss)
            return loss

        self.optimizer.step(closure)
        return losses[0]

    def loss(self, x: Any, y: Any) -> torch.Tensor:
        return self.loss_of(self.outputs(x), y)

    def outputs(self, x: Any) -> Any:
        """What the module gives."""
        return self._call(x)

    def loss_of(self, given: Any, y: Any) -> torch.Tensor:
        return _loss_in(given) if self._loss is None else self._loss(given, y)

    def compile(self) -> None:
        """From now on the module is called through torch.compile."""
        self._call = calls(self.model, torch.compile(self.model))

    def close(self) -> None:
        """Ends the loader's workers, and the batches that lie ready."""
        self._drawn = None
        self._ready = []

    def lay_ready(self) -> None:
        """Some batches of an epoch, on the device."""
        size = 0
        # Of an iterator of its own: workers that go on serve one.
        for batch in islice(Batches.of(self._loader).epoch(), 1 if self.batches.single else _READY):
            size += bytes_of(batch)
            if self._ready and (size > _READY_BYTES or rows_of(batch) < rows_of(self._ready[0])):
                break
            x, y = parted(batch, self.has_loss)
            self._ready.append((moved(x, self.device), moved(y, self.device)))
        if not self._ready:
            raise AskError("the loader gives no batch")

    def take_ready(self, count: int) -> float:
        """Seconds of a step, of so many whose last loss alone is read."""
        loss: torch.Tensor | None = None
        start = perf_counter()
        for x, y in islice(cycle(self._ready), count):
            loss = self.step(x, y)
        if loss is not None:
            loss.item()
        return (perf_counter() - start) / count


def _loss_in(given: Any) -> torch.Tensor:
    """What a module gives that computes its own loss: alone, first of several, or as `loss`."""
    loss = given.get("loss") if isinstance(given, Mapping) else getattr(given, "loss", given)
    loss = loss[0] if isinstance(loss, (tuple, list)) and loss else loss
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        raise AskError("the module gives no loss, a tensor of one number; say it by loss=")
    return loss.squeeze()


def calls(model: nn.Module, through: Any = None) -> Callable[[Any], Any]:
    """How the module, or what calls it, is called with what it reads: a dictionary as named
    arguments and several parts as several, where its forward takes them so; else all as one."""
    through = model if through is None else through
    try:
        signature = inspect.signature(model.forward)
    except (TypeError, ValueError):
        return through

    forms: list[str] = []  # of the first call, and of all

    def called(x: Any) -> Any:
        if not forms:
            forms.append(_form(signature, x))
        if forms[0] == "named":
            return through(**x)
        return through(*x) if forms[0] == "several" else through(x)

    return called


def takes_several(model: nn.Module, x: Any) -> bool:
    """Whether the module is called with the parts of x as several."""
    return _form(inspect.signature(model.forward), x) == "several"


def unnamed_words(model: nn.Module, batch: Any) -> str:
    """What helps where a batch is a dictionary that the module's forward does not take by names, a
    clause; empty where it is none."""
    if not isinstance(batch, Mapping) or len(batch) < 2:
        return ""
    if _form(inspect.signature(model.forward), batch) == "named":
        return ""
    names = [printable(repr(key), 40) for key in batch]
    parts = ", ".join(f"b[{name}]" for name in names[:2])
    return (
        f"; its forward does not take {listed(names[:4])} by name, so it got the whole dictionary: "
        "say by the loader what the module and the loss read, such as "
        f"lambda: (({parts}) for b in loader)"
    )


def _form(signature: inspect.Signature, x: Any) -> str:
    is_named = isinstance(x, Mapping) and all(isinstance(key, str) for key in x)
    try:
        if is_named:
            signature.bind(**x)
            return "named"
        if isinstance(x, (tuple, list)):
            signature.bind(*x)
            return "several"
    except TypeError:
        pass
    return "one"
