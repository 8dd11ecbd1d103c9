# SPDX-License-Identifier: Apache-2.0
"""Samples of new processes, so that an interval holds what lies between processes: each one runs
one side."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from crossover_bench.functions.kinds import RefusedError
from crossover_bench.functions.measure import Measurement, Taken
from crossover_bench.functions.side import Device, Side, ready
from crossover_bench.functions.timing import Sample, first_call
from crossover_bench.spawned import EndedError, NotSentError, call, pickled

INSTANCES = 5  # of each side: as many as tell what lies between them
_PASSES = 3  # of each process


@dataclass(frozen=True, slots=True)
class Task:
    """What a process does. `counts` has for each size how many calls make a batch, and how many
    batches a sample, and about how many seconds a call takes."""

    name: str
    side: Side
    device: Device
    make: Callable[[int], Any]
    counts: Mapping[int, tuple[int, int, float]]


Seen = dict[int, tuple[list[Sample], list[float]]]  # of a process: its samples, and those queued


def _pickled(name: str, value: object) -> bytes:
    try:
        return pickled(value)
    except NotSentError as error:
        raise RefusedError(f"isolated=True sends {name} to other processes, and {error}") from error


def check(make: Callable[[int], Any], sides: Mapping[str, Side]) -> None:
    """Raises RefusedError where a side can't be sent to another process."""
    _pickled("make", make)
    for name, side in sides.items():
        _pickled(name, side.function)
        _pickled(f"to= of {name}", side.to)
        _pickled(f"wait= of {name}", side.wait)


def sample(measured: Measurement, sides: Mapping[str, Side]) -> Taken:
    """What INSTANCES processes of each side measure in drawn order, as far as the budget of
    `measured` reaches."""
    sizes = dict(sorted(measured.prepared.items()))
    samples: dict[str, dict[int, list[tuple[int, Sample]]]] = {name: {} for name in sides}
    queued: dict[str, dict[int, list[tuple[int, float]]]] = {name: {} for name in sides}
    places = range(len(sides))
    ordered = [
        (number, place)
        for number in range(INSTANCES)
        for place in measured.order.sample(places, len(places))
    ]
    longest = 0.0
    for done, (number, place) in enumerate(ordered):
        of_side = measured.sides[place]
        measured.tell(f"process {done + 1} of {len(ordered)}, of {of_side.name}")
        if longest > measured.left and done >= 2 * len(sides):
            measured.remarks[
                f"{done} of {len(ordered)} processes ran, as more do not fit into "
                f"{measured.seconds:g} s; seconds= gives more."
            ] = None
            break
        counts = {
            size: (pair[place].calls, pair[place].batches, pair[place].usual)
            for size, pair in sizes.items()
        }
        start = time.monotonic()
        task = Task(of_side.name, sides[of_side.name], of_side.device, measured.make, counts)
        for size, (timed, in_queue) in _in_new_process(task, measured).items():
            known = samples[of_side.name].setdefault(size, [])
            known += [(number, each) for each in timed]
            behind = queued[of_side.name].setdefault(size, [])
            behind += [(number, each) for each in in_queue]
        longest = max(longest, time.monotonic() - start)
    return Taken(samples, queued)


def _in_new_process(task: Task, measured: Measurement) -> Seen:
    try:
        seen: Seen = call(run, _pickled(task.name, task))
    except EndedError as ended:
        measured.remarks[f"A process of {task.name} ended with {ended}."] = None
        return {}
    return seen


def run(task: Task) -> Seen:
    """What this process measures: passes over the sizes after a first call at each, then calls back
    to back where they are waited for."""
    side, prepared = ready(task.name, task.side, task.device), {}
    for size, counts in task.counts.items():
        each, _, _ = first_call(side, task.make(size))
        each.calls, each.batches, each.usual = counts
        prepared[size] = each
    for _ in range(_PASSES):
        for each in prepared.values():
            each.sample()
    for each in prepared.values():
        if each.wait is not None and not each.queue():
            break
    return {size: (each.samples, each.queued) for size, each in prepared.items()}
