# SPDX-License-Identifier: Apache-2.0
"""Stages of ./test: one after the other, as each uses all cores by itself."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tools import build, environment
from tools.console import ROOT, Failure, Missing, cores

ALL = "CROSSOVER_TEST_ALL"  # set by ./test --all; tests in C++ ask for it as well


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
    """How a stage ended."""

    verdict: str
    seconds: float = 0.0


def verdict_of(stage: Stage, asked: Any) -> str:
    try:
        return "passed" if stage.run(asked) else "FAILED"
    except Missing as missing:
        print(f"skipped: {missing}")
        return "FAILED" if in_ci() else "skipped"  # CI must not pass by leaving things out
    except (Failure, OSError) as failure:
        print(failure)
        return "FAILED"


def run_all(stages: Sequence[Stage], asked: Any) -> dict[str, Result]:
    """Run each, also where another failed that it does not need."""
    results: dict[str, Result] = {}
    for stage in stages:
        lacking = [name for name in stage.needs if results[name].verdict != "passed"]
        if lacking:
            results[stage.name] = Result(f"not run without {' and '.join(lacking)}")
            continue
        print(f"\n{stage.name}: {stage.description}", flush=True)
        start = time.monotonic()
        results[stage.name] = Result(verdict_of(stage, asked), time.monotonic() - start)
    return results


# ---- those that run tests


def _passes(command: Sequence[str], variables: dict[str, str] | None = None) -> bool:
    sys.stdout.flush()
    done = subprocess.run(command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def run_ctest(preset: str, quick: bool = False) -> bool:
    """The preset's tests; `quick`: no slow ones."""
    left_out = ["emulation"] if preset == "default" and not weekly() else []
    left_out += ["slow"] if quick else []
    command = ["ctest", "--test-dir", str(build.folder(preset)), "--output-on-failure"]
    command += ["--parallel", str(cores())]
    command += ["--label-exclude", f"^({'|'.join(left_out)})$"] if left_out else []
    return _passes(command)


def run_pytest(quick: bool = False) -> bool:
    """All tests; `quick`: no slow ones."""
    command = [str(environment.PYTHON), "-m", "pytest", "-q", f"--numprocesses={cores()}"]
    command += ["--dist=worksteal", "--durations=10", *(["-m", "not slow"] if quick else [])]
    return _passes(command, environment.variables())
