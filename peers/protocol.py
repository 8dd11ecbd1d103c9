# SPDX-License-Identifier: Apache-2.0
"""Requests to a peer's process and its answers: a line of JSON each way.

A request is an object: `do` names it, the rest are its arguments.

    {"do": "describe"}                                        what a result file records
    {"do": "prepare", "row", "configuration", "counted"}      {"facts", "once"}, or how it ended
    {"do": "repeat", "row", "min_time_seconds"}               {"times"}, or how it ended
    {"do": "release", "row"}                                  {}

How a row ended: {"outcome": "failed" or "skipped", "error_message": a sentence}.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TextIO

Answer = dict[str, Any]


class Requests(Protocol):
    """What a peer's process answers; docs/method/peers.md."""

    def describe(self) -> Answer: ...
    def prepare(
        self, row: str, configuration: dict[str, str], counted: dict[str, Any] | None
    ) -> Answer: ...
    def repeat(self, row: str, min_time_seconds: float) -> Answer: ...
    def release(self, row: str) -> Answer: ...


_NAMES = ("describe", "prepare", "repeat", "release")


class PeerEnded(Exception):  # noqa: N818 - what happened
    """The peer's process is no more; says what it said last."""


def serve(requests: Requests, lines: TextIO, answers: TextIO) -> None:
    """Answers until the lines end."""
    for line in lines:
        asked = json.loads(line)
        name = asked.pop("do")
        if name not in _NAMES:
            raise ValueError(f"no request is called {name!r}")
        answers.write(json.dumps(getattr(requests, name)(**asked)) + "\n")
        answers.flush()


class Peer:
    """A peer's process, seen from outside; PeerEnded where it is gone."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            env={**os.environ, **environment},
        )

    def _ask(self, **request: Any) -> Answer:
        to, answers = self._process.stdin, self._process.stdout
        assert to is not None and answers is not None
        try:
            to.write(json.dumps(request) + "\n")
            to.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self._process.wait()
            raise PeerEnded(f"the peer's process ended with exit code {code}")
        answer: Answer = json.loads(line)
        return answer

    def describe(self) -> Answer:
        return self._ask(do="describe")

    def prepare(
        self, row: str, configuration: dict[str, str], counted: dict[str, Any] | None
    ) -> Answer:
        return self._ask(do="prepare", row=row, configuration=configuration, counted=counted)

    def repeat(self, row: str, min_time_seconds: float) -> Answer:
        return self._ask(do="repeat", row=row, min_time_seconds=min_time_seconds)

    def release(self, row: str) -> Answer:
        return self._ask(do="release", row=row)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """Ends the process; one that does not end is killed."""
        if self._process.stdin is not None:
            with suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
