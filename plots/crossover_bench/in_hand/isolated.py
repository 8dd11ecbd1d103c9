# SPDX-License-Identifier: Apache-2.0
"""The loop in new processes, so that an interval holds what lies between processes: each gets the
user's objects by pickling, and the settings of the user's process."""

from __future__ import annotations

import pickle
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.data import DataLoader

from crossover_bench.functions.isolated import INSTANCES
from crossover_bench.in_hand.copies import Given
from crossover_bench.in_hand.kept import settings
from crossover_bench.in_hand.loop import Loop
from crossover_bench.in_hand.turns import Say, Side, measure
from crossover_bench.spawned import EndedError, call, pickled

_LEAST_SECONDS = 0.5  # that a process measures, however long it took to start


@dataclass(frozen=True)
class _Task:
    """What a process measures, under these `settings` of the user's process: a value each, nothing
    where this PyTorch has none."""

    given: Given
    loader: Any
    devices: tuple[str, ...]
    settings: tuple[tuple[Any, ...], ...]
    compiles: bool


def sent(given: Given, loader: Any, places: Sequence[torch.device], compiles: bool) -> bytes:
    """What every process gets. Raises NotSentError where that can't be pickled."""
    if isinstance(loader, DataLoader):
        loader = copy(loader)
        loader._iterator = None  # with its workers
    now: list[tuple[Any, ...]] = []
    for read, _ in settings():
        try:
            now.append((read(),))
        except (AttributeError, RuntimeError, TypeError):  # what this PyTorch has not
            now.append(())
    copied = given.copied(torch.device("cpu"))
    return pickled(_Task(copied, loader, tuple(map(str, places)), tuple(now), compiles))


def measured(task: bytes, sides: Sequence[Side], seconds: float, say: Say) -> tuple[str, ...]:
    """Fills `sides` in, by INSTANCES processes one after the other, in about so many seconds.
    Returns sentences on what was in the way. Ctrl-C leaves what is known by then."""
    end, ended = time.monotonic() + seconds, []
    for number in range(INSTANCES):
        say(f"process {number + 1} of {INSTANCES}")
        share = (end - time.monotonic()) / (INSTANCES - number)
        try:
            told: list[Side] = call(run, pickled((task, time.time() + share)))
        except EndedError as error:
            ended.append(f"A new process ended with {error}.")
            continue
        for side, other in zip(sides, told, strict=True):
            side.add(other, number)
        if all(side.problem for side in sides):
            break
    if not any(side.turns or side.problem for side in sides):
        sides[0].problem = ended[0]
    return tuple(dict.fromkeys(ended))


def run(given: tuple[bytes, float]) -> list[Side]:
    """In a process of its own: what it knows of each device at that time."""
    packed, end = given
    task: _Task = pickle.loads(packed)
    for (_, put), known in zip(settings(), task.settings, strict=True):
        for value in known:
            with suppress(RuntimeError):  # of PyTorch's two names for TF32, only one may be set
                put(value)
    sides = [Side(torch.device(device)) for device in task.devices]

    def make(device: torch.device) -> Loop:
        return Loop(task.given, task.loader, device)

    seconds = max(_LEAST_SECONDS, end - time.time())
    measure(sides, make, seconds, lambda _: None, compiles=task.compiles)
    for side in sides:
        side.error = None  # whose frames can't be sent
    return sides
