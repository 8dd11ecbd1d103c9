# SPDX-License-Identifier: Apache-2.0
"""The worker's end of the protocol by which bench asks whatever computes: docs/protocol.md."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any, Protocol

Answer = dict[str, Any]
Configuration = dict[str, str]


class Requests(Protocol):
    """What a worker answers. A row that can't be had, now or later, is answered with {"outcome":
    "failed" or "skipped", "error_message": a sentence}."""

    def describe(self) -> Answer: ...
    def rows(self, configuration: Configuration) -> Answer: ...
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


def serve(requests: Requests) -> None:
    """Answers standard input until it ends. Whatever else prints, prints to standard error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that asks
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            asked = json.loads(line)
            name = asked.pop("do")
            if name not in _NAMES:
                raise ValueError(f"no request is called {name!r}")
            answers.write(json.dumps(getattr(requests, name)(**asked)) + "\n")
            answers.flush()
