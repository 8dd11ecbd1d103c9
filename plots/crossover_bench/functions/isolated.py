# SPDX-License-Identifier: Apache-2.0
"""Samples of new processes, so that an interval holds what lies between processes: each one runs
one side. They are started anew and never forked, as a device's library does not survive a fork."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from crossover_bench.functions.kinds import RefusedError
from crossover_bench.functions.measure import Measurement
from crossover_bench.functions.side import Device, Ready, Side, ready
from crossover_bench.functions.timing import Sample, first_call
from crossover_bench.words.text import printable

INSTANCES = 5  # of each side: as many as tell what lies between them
_PASSES = 3  # of each process
_START = (
    "import pickle, sys; path, task = pickle.load(sys.stdin.buffer); sys.path[:] = path; "
    "from crossover_bench.functions.isolated import serve; serve(task)"
)


@dataclass(frozen=True, slots=True)
class Task:
    """What a process does. `counts` has for each size how many calls make a batch, and how many
    batches a sample, and about how many seconds a call takes."""

    name: str
    side: Side
    device: Device
    make: Callable[[int], Any]
    counts: Mapping[int, tuple[int, int, float]]


Samples = dict[int, list[Sample]]


def pickled(name: str, value: object) -> bytes:
    """`value` for another process; raises RefusedError where that can't be."""
    remedy = "define it in a module of its own"
    if find_spec("cloudpickle"):
        dumps = import_module("cloudpickle").dumps
    else:
        dumps, remedy = pickle.dumps, f"install cloudpickle, or {remedy}"
        if getattr(value, "__module__", "") == "__main__":
            raise RefusedError(
                f"isolated=True sends {name} to other processes, which do not know what is "
                f"defined in __main__: {remedy}"
            )
    try:
        return bytes(dumps(value))
    except Exception as error:  # pickling may raise anything
        reason = printable(f"{type(error).__name__}: {error}", 160)
        raise RefusedError(
            f"isolated=True sends {name} to other processes, and it can't be pickled ({reason}): "
            f"{remedy}"
        ) from error


def check(make: Callable[[int], Any], sides: Mapping[str, Side]) -> None:
    """Raises RefusedError where a side can't be sent to another process."""
    pickled("make", make)
    for name, side in sides.items():
        pickled(name, side.function)
        pickled(f"to= of {name}", side.to)
        pickled(f"wait= of {name}", side.wait)


def sample(
    measured: Measurement, sides: Mapping[str, Side]
) -> dict[str, dict[int, list[tuple[int, Sample]]]]:
    """For each side and size its samples with the number of their process: from INSTANCES processes
    of each side in drawn order, as far as the budget of `measured` reaches."""
    sizes = dict(sorted(measured.prepared.items()))
    by_name: dict[str, dict[int, list[tuple[int, Sample]]]] = {name: {} for name in sides}
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
        for size, samples in _in_new_process(task, measured).items():
            known = by_name[of_side.name].setdefault(size, [])
            known += [(number, each) for each in samples]
        longest = max(longest, time.monotonic() - start)
    return by_name


def _in_new_process(task: Task, measured: Measurement) -> Samples:
    sent = pickle.dumps((sys.path, pickled(task.name, task)))
    done = subprocess.run(
        [sys.executable, "-P", "-c", _START], input=sent, capture_output=True, check=False
    )
    try:
        samples: Samples = pickle.loads(done.stdout)
    except Exception:  # what it wrote is no pickle: it ended before
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        measured.remarks[
            f"A process of {task.name} ended with exit code {done.returncode} and without "
            f"times; it said: {printable(last, 160)}."
        ] = None
        return {}
    return samples


def serve(sent: bytes) -> None:
    """Does a task in this process, and writes the samples to standard output, which what the task
    prints does not reach."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    task: Task = pickle.loads(sent)
    samples = run(task, ready(task.name, task.side, task.device))
    with answer:
        pickle.dump(samples, answer)


def run(task: Task, side: Ready) -> Samples:
    """The samples of a process: passes over the sizes after a first call at each."""
    prepared = {}
    for size, counts in task.counts.items():
        each, _, _ = first_call(side, task.make(size))
        each.calls, each.batches, each.usual = counts
        prepared[size] = each
    for _ in range(_PASSES):
        for each in prepared.values():
            each.sample()
    return {size: each.samples for size, each in prepared.items()}
