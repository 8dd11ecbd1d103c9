# SPDX-License-Identifier: Apache-2.0
"""How far a measurement is, and how long it takes still."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

from crossover_bench.functions.progress import teller
from crossover_bench.words.text import printable

_EVERY_SECONDS = 0.5


class Progress:
    """Says what is done and how many of the `seconds` are left, twice a second at most, to whoever
    watches: nothing where the output is a file."""

    def __init__(self, what: str, seconds: float) -> None:
        self._what, self._seconds = printable(what, 30), seconds
        self._start, self._next, self._is_shown = perf_counter(), 0.0, False
        self._tell = teller(None)

    def say(self, doing: str) -> None:
        """What is done now."""
        gone = perf_counter() - self._start
        if gone < self._next:
            return
        self._next = gone + _EVERY_SECONDS
        left = max(0, round(self._seconds - gone))
        self._is_shown = True
        self._tell(f"{self._what}: {printable(doing, 40)}, {left} s left")

    def end(self) -> None:
        """Leaves an empty line."""
        if self._is_shown:
            self._tell("")


@contextmanager
def progress(what: str, seconds: float) -> Iterator[Progress]:
    """Its line is gone behind the body."""
    shown = Progress(what, seconds)
    try:
        yield shown
    finally:
        shown.end()
