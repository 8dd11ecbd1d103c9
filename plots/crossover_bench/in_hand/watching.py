# SPDX-License-Identifier: Apache-2.0
"""crossover_bench.watch: what a training loop that is there already spends its steps on."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from time import perf_counter
from typing import Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.profiler import ProfilerActivity, profile

from crossover_bench.show.tables.formats import wrapped
from crossover_bench.words import units
from crossover_bench.words.text import counted, listed

_FIRST = 3  # steps that begin: of libraries, plans and workers
_LOADER = "enumerate(DataLoader)"  # as PyTorch names the event
_MUCH = 0.3  # a share of a step that is worth a sentence
_LEAST_STEPS, _MOST_STEPS = 1, 1000
Span = tuple[float, float]


@dataclass(slots=True)
class Watched:
    """What was seen of so many `steps`, which took `step_seconds` each before the profiler watched
    them, and with it `overhead` more, a share. Of a step a share is spent in the loader (`data`),
    by the `device`, and by Python and all else on the `host`."""

    steps: int = 0
    step_seconds: float = 0.0
    overhead: float = 0.0
    data: float = 0.0
    device: float = 0.0
    host: float = 0.0
    on_gpu: bool = False
    has_loader: bool = False
    problem: str = ""

    @property
    def why(self) -> tuple[str, ...]:
        """What would change it, a sentence each."""
        return tuple(_changes(self))

    def __repr__(self) -> str:
        lines = [self.problem] if self.problem else [_lead(self), *self.why]
        return "\n".join(wrapped(line, "  ", "  " if at else "") for at, line in enumerate(lines))


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _lead(seen: Watched) -> str:
    parts = [f"{_percent(seen.data)} waits for the loader"] if seen.has_loader else []
    computes = "the GPU computes" if seen.on_gpu else "is PyTorch's operations"
    parts += [f"{_percent(seen.device)} {computes}", f"{_percent(seen.host)} is Python's"]
    return (
        f"A step takes {units.seconds(seen.step_seconds, 2)}: {listed(parts)} "
        f"({counted(seen.steps, 'step')}; the profiler made them "
        f"{_percent(max(0.0, seen.overhead))} longer)."
    )


def _changes(seen: Watched) -> Iterator[str]:
    if seen.problem:
        return
    if not seen.has_loader:
        yield "No DataLoader was seen: what another loader takes is among Python's."
    if seen.data >= _MUCH:
        yield (
            f"The loader holds it up: more workers (num_workers=), or batches that lie ready, take "
            f"up to {_percent(seen.data)} off a step; a faster device takes nothing of that off."
        )
    if seen.on_gpu and seen.host >= _MUCH:
        yield (
            "The GPU waits for Python: larger batches, torch.compile or a graph of a step take up "
            f"to {_percent(seen.host)} off a step; a faster GPU takes nothing of that off."
        )
    if seen.device >= _MUCH:
        if seen.on_gpu:
            yield f"A faster GPU shortens {_percent(seen.device)} of a step at most."
        else:
            yield (
                f"A GPU shortens {_percent(seen.device)} of a step at most; crossover_bench.ask("
                "model, loader, loss=…, optimizer=…) says by how much."
            )


@contextmanager
def watch(steps: int = 10) -> Iterator[Watched]:
    """Watches the training loop in the body: so many steps of an optimizer without and so many with
    PyTorch's profiler, behind the first few, and prints what it saw as soon as that is known. The
    body runs as it would; what is known is in what the `with` gives."""
    if not (isinstance(steps, int) and _LEAST_STEPS <= steps <= _MOST_STEPS):
        raise ValueError(f"steps={steps!r} is no number from {_LEAST_STEPS} to {_MOST_STEPS}")
    watcher = _Watcher(steps)
    handle = register_optimizer_step_post_hook(watcher.stepped)
    try:
        yield watcher.seen
    finally:
        handle.remove()
        watcher.end()


@dataclass(slots=True)
class _Watcher:
    """Counts the steps of the first optimizer that makes one."""

    wanted: int
    seen: Watched = field(default_factory=Watched)
    optimizer: int = 0
    kind: str = "cpu"  # of its device
    count: int = 0
    last: float = 0.0
    plain: list[float] = field(default_factory=list)
    watched: list[float] = field(default_factory=list)
    profiler: Any = None
    is_done: bool = False

    def stepped(self, optimizer: Any, *_: Any) -> None:
        """Behind each step of any optimizer."""
        now = perf_counter()
        if not self.optimizer:
            self.optimizer = id(optimizer)
            of = (p.device.type for group in optimizer.param_groups for p in group["params"])
            self.kind = next(of, self.kind)
        if self.is_done or id(optimizer) != self.optimizer:
            return
        self.count += 1
        if self.profiler is not None:
            self.watched.append(now - self.last)
        elif self.count > _FIRST:
            self.plain.append(now - self.last)
        if len(self.watched) == self.wanted:
            self.end()
        elif self.profiler is None and len(self.plain) == self.wanted:
            self._start()
        self.last = perf_counter()

    def _start(self) -> None:
        activity = getattr(ProfilerActivity, self.kind.upper(), None)
        if activity is None:
            self.is_done = True
            self.seen.problem = (
                f"Nothing was watched: PyTorch's profiler sees no work of {self.kind}; "
                "crossover_bench.ask(model, loader, loss=…, optimizer=…) measures it."
            )
            self._print()
            return
        self.profiler = profile(activities={ProfilerActivity.CPU, activity})
        try:
            self.profiler.start()
        except RuntimeError as error:
            self.profiler, self.is_done = None, True
            self.seen.problem = f"Nothing was watched: {' '.join(str(error).split())[:200]}"
            self._print()

    def end(self) -> None:
        """Once: what is known is told."""
        if self.is_done:
            return
        self.is_done = True
        if self.profiler is not None:
            self.profiler.stop()
        if not self.watched:
            needed = _FIRST + self.wanted + 1
            self.seen.problem = (
                f"Nothing was watched: the loop made {counted(self.count, 'step')} of an "
                f"optimizer, and {needed} are needed; watch(steps=) asks for fewer."
            )
        else:
            read(self.seen, self.profiler.events(), self.plain, self.watched)
        self.profiler = None
        self._print()

    def _print(self) -> None:
        print(self.seen, file=sys.stderr, flush=True)


def read(
    seen: Watched, events: Iterable[Any], plain: Sequence[float], watched: Sequence[float]
) -> None:
    """Fills in what the profiler's `events` say; the others are seconds of steps."""
    data: list[Span] = []
    operations: list[Span] = []
    kernels: list[Span] = []
    for event in events:
        span = event.time_range.start, event.time_range.end
        if event.device_type != torch.autograd.DeviceType.CPU:
            kernels.append(span)
        elif event.name.startswith(_LOADER):
            data.append(span)
        elif event.name.startswith("aten::"):
            operations.append(span)
    whole = 1e6 * sum(watched)  # events are in µs
    waiting, busy = (data, kernels) if kernels else (operations, data)
    # Where both overlap, a GPU computes, and on a CPU the loader collates.
    second = _length([*waiting, *busy]) - _length(busy)
    first = _length(busy)
    seen.on_gpu, seen.has_loader = bool(kernels), bool(data)
    seen.data, seen.device = (
        min(1.0, part / whole) for part in ((second, first) if kernels else (first, second))
    )
    seen.host = max(0.0, 1 - seen.data - seen.device)
    seen.steps = len(watched)
    seen.step_seconds = median(plain)
    seen.overhead = median(watched) / seen.step_seconds - 1


def _length(spans: list[Span]) -> float:
    """Of their union."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
