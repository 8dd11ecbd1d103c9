# SPDX-License-Identifier: Apache-2.0
"""Stages of ./test, side by side: each a process of its own with a log, a time and a verdict."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from tools.console import LOGS, ROOT, Stopped, stop
from tools.passed import in_ci

# What a stage's process ends with where it cannot run here, as in other test tools.
SKIPPED = 77
# Every stage uses all cores by itself; a second one fills them where the first has a single long
# compilation or test left.
_AT_ONCE = 2
_HEARTBEAT_SECONDS = 15.0


@dataclass(frozen=True)
class Stage:
    """A line of the summary. `needs`: stages that must have passed; after those not run at all."""

    name: str
    description: str
    run: Callable[[], bool]
    needs: tuple[str, ...] = ()

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


def _result(process: "subprocess.Popen[str]", start: float) -> Result:
    _, status, usage = os.wait4(process.pid, 0)
    code = process.returncode = os.waitstatus_to_exitcode(status)
    verdict = "passed" if code == 0 else "skipped" if code == SKIPPED else "FAILED"
    if verdict == "skipped" and in_ci():
        verdict = "FAILED"  # continuous integration must not pass by leaving things out
    return Result(verdict, time.monotonic() - start, usage.ru_utime + usage.ru_stime)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace")[-400:].split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _tell_end(stage: Stage, result: Result) -> None:
    text = stage.log.read_text(encoding="utf-8", errors="replace").rstrip()
    print(f"\n== {stage.name}: {stage.description}\n{text}")
    print(f"== {stage.name}: {result.verdict} after {result.wall_seconds:.1f} s", flush=True)


def run_all(
    stages: Sequence[Stage], command: Callable[[Stage], Sequence[str | Path]]
) -> dict[str, Result]:
    """Run `command` of each stage, two at a time, in the order given where their needs allow it.

    Prints a stage's output when it has ended, and now and then what the running ones do.
    """
    waiting = list(stages)
    running: dict[Future[Result], tuple[Stage, subprocess.Popen[str]]] = {}
    results: dict[str, Result] = {}
    begin = time.monotonic()
    LOGS.mkdir(parents=True, exist_ok=True)

    def start(stage: Stage) -> None:
        with stage.log.open("w", encoding="utf-8") as log:
            process = subprocess.Popen(
                command(stage),
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                text=True,
            )
        running[pool.submit(_result, process, time.monotonic())] = stage, process

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        try:
            while waiting or running:
                for stage in [s for s in waiting if results.keys() >= {*s.needs}]:
                    failed = [name for name in stage.needs if results[name].verdict != "passed"]
                    if failed:
                        waiting.remove(stage)
                        print(f"\n== {stage.name}: not run: {failed[0]} did not pass", flush=True)
                        results[stage.name] = Result("FAILED")
                    elif len(running) < _AT_ONCE:
                        waiting.remove(stage)
                        start(stage)
                ended = wait(running, _HEARTBEAT_SECONDS, FIRST_COMPLETED).done
                for job in ended:
                    stage, _ = running.pop(job)
                    results[stage.name] = job.result()
                    _tell_end(stage, job.result())
                for stage, _ in running.values() if not ended else ():
                    seconds = f"{time.monotonic() - begin:.0f} s"
                    print(
                        f"  {seconds} {stage.name}: {_last_line(stage.log)[:90]}", file=sys.stderr
                    )
        except Stopped:
            for _, process in running.values():
                stop(process)
            raise
    return {stage.name: results[stage.name] for stage in stages}
