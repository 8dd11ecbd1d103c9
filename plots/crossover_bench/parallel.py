# SPDX-License-Identifier: Apache-2.0
"""map() over several processes, for work that takes longer than handing it over."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST_PROCESSES = 4  # each holds a copy of what it works on


class Map(Protocol):
    """What map() does with one iterable, but at once: the results in the order of the items."""

    def __call__(
        self, function: Callable[[Item], Result], items: Iterable[Item]
    ) -> list[Result]: ...


def in_process(function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
    """The Map that starts no process."""
    return [function(item) for item in items]


def _ignore_ctrl_c() -> None:
    # A terminal sends it to every process; the one that started the others answers for all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class Pool:
    """A context whose `map` is a Map over one process per core, started when first needed.

    Functions and items must be what pickle can carry. Where processes cannot be started, or one
    is killed, the work is done in this process. An exception that leaves the context, Ctrl-C's
    included, ends the processes without waiting for their work.
    """

    def __init__(self, processes: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
        self._processes = processes if processes is not None else min(cores, MOST_PROCESSES)
        self._executor: ProcessPoolExecutor | None = None
        self._others: set[BaseProcess] = set()

    def __enter__(self) -> Pool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None and self._executor is not None:
            for process in set(multiprocessing.active_children()) - self._others:
                process.terminate()
        self._close()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> list[Result]:
        """[function(item) for item in items]; the first exception of `function` is raised."""
        work = list(items)
        if self._processes < 2 or len(work) < 2:
            return in_process(function, work)
        try:
            if self._executor is None:
                self._others = set(multiprocessing.active_children())
                self._executor = ProcessPoolExecutor(self._processes, initializer=_ignore_ctrl_c)
            return list(self._executor.map(function, work))
        except (BrokenProcessPool, OSError, ImportError, NotImplementedError):
            # No shared memory, no more processes, or one was killed.
            self._close()
            self._processes = 1
            return in_process(function, work)

    def _close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(cancel_futures=True)
            self._executor = None
