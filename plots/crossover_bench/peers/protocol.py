# SPDX-License-Identifier: Apache-2.0
"""The worker's end of the protocol by which bench asks whatever computes: docs/protocol.md."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TextIO

Answer = dict[str, Any]
Configuration = dict[str, str]


class Requests(Protocol):
    """What a worker answers. A row that can't be had, now or later, is answered with {"outcome":
    "failed" or "skipped", "error_message": a sentence}."""

    def describe(self) -> Answer: ...
    def rows(self, configuration: Configuration, *, shape: Sequence[int] = ()) -> Answer: ...
    def prepare(
        self,
        row: str,
        configuration: Configuration,
        counted: dict[str, Any] | None = None,
        iterations: int = 0,
    ) -> Answer: ...
    def repeat(self, row: str, min_time_seconds: float, after_another: bool) -> Answer: ...
    def release(self, row: str) -> Answer: ...


_NAMES = ("describe", "rows", "prepare", "repeat", "release")
_PAUSE_SECONDS = 0.5
_MOST_SECONDS = 1200.0  # that a worker's word is taken for work that says nothing by itself

_writing = threading.Lock()


class _Asked:
    """Who waits for this worker's answers, if somebody does."""

    answers: TextIO | None = None
    told = 0.0  # when it said what it is at, by time.monotonic()


def alive(doing: str) -> None:
    """Says what this worker is at, if half a second has passed: long work goes on. Not for timed
    loops."""
    now = time.monotonic()
    if _Asked.answers is not None and now - _Asked.told >= _PAUSE_SECONDS:
        _Asked.told = now
        _write(_Asked.answers, {"doing": doing})


@contextmanager
def going_on(doing: str) -> Iterator[None]:
    """Says what this worker is at, again and again, while something works that can't: a compiler,
    whose silence is no fault. Not for timed loops."""
    done, end = threading.Event(), time.monotonic() + _MOST_SECONDS

    def say() -> None:
        while not done.wait(_PAUSE_SECONDS) and time.monotonic() < end:
            alive(doing)

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _write(to: TextIO, line: Answer) -> None:
    with _writing:
        to.write(json.dumps(line) + "\n")
        to.flush()


def serve(requests: Requests) -> None:
    """Answers standard input until it ends. Whatever else prints, prints to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that asks
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        _Asked.answers = answers
        for line in sys.stdin:
            asked = json.loads(line)
            name = asked.pop("do")
            if name not in _NAMES:
                raise ValueError(f"no request is called {name!r}")
            _write(answers, getattr(requests, name)(**asked))
