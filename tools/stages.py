# SPDX-License-Identifier: Apache-2.0
"""Stages of ./test, side by side: each a process of its own with a log, a time and a verdict."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tools.console import LOGS, ROOT, Stopped, stop
from tools.passed import in_ci

# What a stage's process ends with where it cannot run here, as in other test tools.
SKIPPED = 77
# Every stage uses all cores by itself; a second one fills them where the first has a single long
# compilation or test left.
_AT_ONCE = 2
_HEARTBEAT_SECONDS = 15.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Stage:
    """A line of the summary. `needs`: stages that must have passed; after those not run at all."""

    name: str
    description: str
    run: Callable[[], bool]
    needs: tuple[str, ...] = ()


@dataclass
class Result:
    """How a stage ended; processor_seconds are those of all its processes."""

    verdict: str
    wall_seconds: float = 0.0
    processor_seconds: float = 0.0

    def line(self, name: str) -> str:
        times = f"{self.wall_seconds:7.1f} s {self.processor_seconds:9.1f} s"
        return f"{name:<12}{times}  {self.verdict}"


HEAD = f"{'stage':<12}{'wall':>7}   {'processor':>9}"


class _Running:
    def __init__(self, stage: Stage, command: Sequence[str | Path]) -> None:
        self.stage = stage
        self.start = time.monotonic()
        self.log = LOGS / f"stage-{stage.name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = self.log.open("w", encoding="utf-8")
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=self._file,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def last_line(self) -> str:
        with self.log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 400))
            lines = file.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def result(self) -> Result | None:
        """None as long as it runs."""
        pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
        if pid == 0:
            return None
        self._file.close()
        code = self.process.returncode = os.waitstatus_to_exitcode(status)
        verdict = "passed" if code == 0 else "skipped" if code == SKIPPED else "FAILED"
        if verdict == "skipped" and in_ci():
            verdict = "FAILED"  # continuous integration must not pass by leaving things out
        seconds = time.monotonic() - self.start
        return Result(verdict, seconds, usage.ru_utime + usage.ru_stime)


def _ready(stage: Stage, waiting: Sequence[Stage], running: Sequence[_Running]) -> bool:
    unfinished = {other.name for other in waiting} | {other.stage.name for other in running}
    return not unfinished & set(stage.needs)


def _tell_end(one: _Running, result: Result) -> None:
    text = one.log.read_text(encoding="utf-8", errors="replace").rstrip()
    seconds = f"{result.wall_seconds:.1f} s"
    print(f"\n== {one.stage.name}: {one.stage.description}\n{text}", flush=True)
    print(f"== {one.stage.name}: {result.verdict} after {seconds}", flush=True)


def run_all(
    stages: Sequence[Stage], command: Callable[[Stage], Sequence[str | Path]]
) -> dict[str, Result]:
    """Run `command` of each stage, two at a time, in the order given where their needs allow it.

    Prints a stage's output when it has ended, and now and then what the running ones do.
    """
    waiting, running = list(stages), list[_Running]()
    results: dict[str, Result] = {}
    start = last_heartbeat = time.monotonic()
    try:
        while waiting or running:
            for stage in [stage for stage in waiting if _ready(stage, waiting, running)]:
                failed = [name for name in stage.needs if results[name].verdict != "passed"]
                if failed:
                    waiting.remove(stage)
                    print(f"\n== {stage.name}: not run: {failed[0]} did not pass", flush=True)
                    results[stage.name] = Result("FAILED")
                elif len(running) < _AT_ONCE:
                    waiting.remove(stage)
                    running.append(_Running(stage, command(stage)))
            for one in list(running):
                result = one.result()
                if result is not None:
                    running.remove(one)
                    results[one.stage.name] = result
                    _tell_end(one, result)
            if time.monotonic() - last_heartbeat >= _HEARTBEAT_SECONDS:
                last_heartbeat = time.monotonic()
                for one in running:
                    seconds = f"{last_heartbeat - start:.0f} s"
                    print(f"  {seconds} {one.stage.name}: {one.last_line()[:90]}", file=sys.stderr)
            time.sleep(_POLL_SECONDS)
    except Stopped:
        for one in running:
            stop(one.process)
        raise
    return {stage.name: results[stage.name] for stage in stages}
