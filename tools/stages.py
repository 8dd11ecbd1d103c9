# SPDX-License-Identifier: Apache-2.0
"""Stages of ./test: one after the other, as each uses all cores by itself."""

import os
import subprocess
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from crossover_bench.place import ROOT
from crossover_bench.run.console import Failure, Missing

ALL = "CROSSOVER_TEST_ALL"  # set by ./test --all; tests in C++ ask for it as well


def in_ci() -> bool:
    return bool(os.environ.get("CI"))


def weekly() -> bool:
    """./test --all: tests that thin out their cases run all of them."""
    return bool(os.environ.get(ALL))


def thorough() -> bool:
    """In continuous integration, too: tests of what few changes touch run more than one case."""
    return in_ci() or weekly()


def passes(command: Sequence[str | Path], variables: dict[str, str] | None = None) -> bool:
    sys.stdout.flush()
    done = subprocess.run(command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0


@dataclass(frozen=True)
class Stage:
    """A line of the summary. `needs`: stages that must have passed; after those not run at all."""

    name: str
    description: str
    run: Callable[[Namespace], bool]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Result:
    """How a stage ended."""

    verdict: str
    seconds: float = 0.0


def _verdict_of(stage: Stage, asked: Namespace) -> str:
    try:
        return "passed" if stage.run(asked) else "FAILED"
    except Missing as missing:
        print(f"skipped: {missing}")
        return "FAILED" if in_ci() else "skipped"  # CI must not pass by leaving things out
    except (Failure, OSError) as failure:
        print(failure)
        return "FAILED"


def run_all(stages: Sequence[Stage], asked: Namespace) -> dict[str, Result]:
    """Run each, also where another failed that it does not need."""
    results: dict[str, Result] = {}
    for stage in stages:
        lacking = [name for name in stage.needs if results[name].verdict != "passed"]
        if lacking:
            results[stage.name] = Result(f"not run without {' and '.join(lacking)}")
            continue
        print(f"\n{stage.name}: {stage.description}", flush=True)
        start = time.monotonic()
        results[stage.name] = Result(_verdict_of(stage, asked), time.monotonic() - start)
    return results
