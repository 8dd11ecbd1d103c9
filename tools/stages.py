# SPDX-License-Identifier: Apache-2.0
"""Stages of ./test, side by side: each a process of its own with a log, a time and a verdict."""

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.console import HEARTBEAT_SECONDS, LOGS, ROOT, Stopped, say, stop
from tools.passed import in_ci

# What a stage's process ends with where it cannot run here, as in other test tools.
SKIPPED = 77
# Every stage uses all cores by itself; a second one fills them where the first has a single long
# compilation or test left.
_AT_ONCE = 2


@dataclass(frozen=True)
class Stage:
    """A line of the summary. `needs`: stages that must have passed; after those not run at all."""

    name: str
    description: str
    run: Callable[[Any], bool]
    needs: tuple[str, ...] = ()

    def output(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace").rstrip()

    @property
    def log(self) -> Path:
        return LOGS / f"stage-{self.name}.log"


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


def _result_of(process: "subprocess.Popen[bytes]", start: float) -> Result | None:
    """None while it runs."""
    pid, status, usage = os.wait4(process.pid, os.WNOHANG)
    if pid == 0:
        return None
    code = process.returncode = os.waitstatus_to_exitcode(status)
    verdict = "passed" if code == 0 else "skipped" if code == SKIPPED else "FAILED"
    if verdict == "skipped" and in_ci():
        verdict = "FAILED"  # continuous integration must not pass by leaving things out
    return Result(verdict, time.monotonic() - start, usage.ru_utime + usage.ru_stime)


def run_all(
    stages: Sequence[Stage], command: Callable[[Stage], Sequence[str | Path]]
) -> dict[str, Result]:
    """Run `command` of each stage, two at a time, in the order given where their needs allow it.

    Prints a stage's output when it has ended, and now and then what the running ones do.
    """
    waiting = list(stages)
    running: dict[Stage, tuple[subprocess.Popen[bytes], float]] = {}
    results: dict[str, Result] = {}
    begin = told = time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)

    def start(stage: Stage) -> None:
        with stage.log.open("wb") as log:
            process = subprocess.Popen(
                command(stage),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        running[stage] = process, time.monotonic()

    try:
        while waiting or running:
            for stage in [stage for stage in waiting if results.keys() >= {*stage.needs}]:
                failed = [name for name in stage.needs if results[name].verdict != "passed"]
                if failed:
                    waiting.remove(stage)
                    print(f"\n== {stage.name}: not run: {failed[0]} did not pass", flush=True)
                    results[stage.name] = Result("FAILED")
                elif len(running) < _AT_ONCE:
                    waiting.remove(stage)
                    start(stage)
            time.sleep(0.05)
            for stage, (process, began) in list(running.items()):
                if result := _result_of(process, began):
                    del running[stage]
                    results[stage.name] = result
                    print(f"\n== {stage.name}: {stage.description}\n{stage.output()}")
                    ending = f"{result.verdict} after {result.wall_seconds:.1f} s"
                    print(f"== {stage.name}: {ending}", flush=True)
            if time.monotonic() - told >= HEARTBEAT_SECONDS:
                told = time.monotonic()
                for stage in running:
                    last = stage.output().rpartition("\n")[2].strip()
                    say(f"  {told - begin:.0f} s {stage.name}: {last[:90]}")
    except Stopped:
        for process, _ in running.values():
            stop(process)
        raise
    return {stage.name: results[stage.name] for stage in stages}
