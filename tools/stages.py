# SPDX-License-Identifier: Apache-2.0
"""Stages of ./test: ninja runs them, each in a process of its own, which notes how it ended."""

import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from tools.console import ROOT, Failure, Missing, stop

ALL = "CROSSOVER_TEST_ALL"  # set by ./test --all; tests in C++ ask for it as well
_FOLDER = "build/stages"
# Every stage uses all cores by itself; a second one fills them where the first has a single long
# compilation or test left.
_AT_ONCE = 2


def in_ci() -> bool:
    return bool(os.environ.get("CI"))


def weekly() -> bool:
    """./test --all: tests that thin out their cases run all of them."""
    return bool(os.environ.get(ALL))


@dataclass(frozen=True)
class Stage:
    """A line of the summary. `needs`: stages that must have passed; after those not run at all."""

    name: str
    description: str
    run: Callable[[Any], bool]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a stage ended; processor_seconds are those of all its processes."""

    verdict: str
    wall_seconds: float = 0.0
    processor_seconds: float = 0.0

    def line(self, name: str) -> str:
        times = f"{self.wall_seconds:7.1f} s {self.processor_seconds:9.1f} s"
        return f"{name:<12}{times}  {self.verdict}".rstrip()


HEAD = f"{'stage':<12}{'wall':>7}   {'processor':>9}"


def measured(run: Callable[[], str]) -> Result:
    """What `run` says, and how long it took."""
    start, processor = time.monotonic(), sum(os.times()[:4])
    verdict = run()
    return Result(verdict, time.monotonic() - start, sum(os.times()[:4]) - processor)


def perform(stage: Stage, asked: Any) -> int:
    """Run a stage in this process; its exit code."""

    def run() -> str:
        try:
            return "passed" if stage.run(asked) else "FAILED"
        except Missing as missing:
            print(f"skipped: {missing}")
            return "FAILED" if in_ci() else "skipped"  # CI must not pass by leaving things out
        except (Failure, OSError) as failure:
            print(failure)
            return "FAILED"

    result = measured(run)
    (ROOT / _FOLDER / stage.name).write_text(json.dumps(astuple(result)), encoding="utf-8")
    return int(result.verdict == "FAILED")


def run_all(stages: Sequence[Stage], command: Sequence[str]) -> dict[str, Result]:
    """Run `command --stage=NAME` for each, in the order given where their needs allow it.

    ninja prints a stage's output when it has ended.
    """
    folder = ROOT / _FOLDER
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = shlex.join(command).replace("$", "$$")
    graph = [f"builddir = {_FOLDER}", "rule stage", f"  command = {words} --stage=$stage"]
    graph.append("  description = $stage: $text")
    for stage in stages:
        needs = "".join(f" {_FOLDER}/{name}" for name in stage.needs)
        graph.append(f"build {_FOLDER}/{stage.name}: stage ||{needs}")
        graph += [f"  stage = {stage.name}", f"  text = {stage.description}"]
    (folder / "build.ninja").write_text("\n".join(graph) + "\n", encoding="utf-8")
    ninja = shutil.which("ninja") or "ninja-build"
    options = ["-f", f"{_FOLDER}/build.ninja", "-k", "0", "-j", str(_AT_ONCE)]
    process = subprocess.Popen([ninja, *options], cwd=ROOT, stdin=subprocess.DEVNULL)
    try:
        process.wait()
    finally:
        stop(process)  # it ends what it has started
    return {stage.name: _result(stage) for stage in stages}


def _result(stage: Stage) -> Result:
    try:
        return Result(*json.loads((ROOT / _FOLDER / stage.name).read_text(encoding="utf-8")))
    except OSError:
        return Result("not run, or not to its end")
