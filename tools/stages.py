# SPDX-License-Identifier: Apache-2.0
"""Stages of ./test: one after the other, as each uses all cores by itself."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tools.console import Failure, Missing

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
        results[stage.name] = measured(partial(verdict_of, stage, asked))
    return results
