# SPDX-License-Identifier: Apache-2.0
"""Intervals of committed crossovers by others' statistics: scipy.stats.bootstrap, and R's boot and
segmented. They resample the repetitions of one run, so they stand beside what ours says of one run,
without what it adds for other instances and another day."""

from __future__ import annotations

import csv
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import scipy

from crossover_bench.curves.crossover import Question, comparisons, drawn_crossover
from crossover_bench.curves.curves import Curve
from crossover_bench.curves.statistics import estimate
from crossover_bench.files.loading import load_file
from crossover_bench.place import ROOT
from tools.outside.results import Suite, Verdict

_FILE = ROOT / "results" / "intel-xeon-6-207-16c" / "2026-11-27-7050029.json"
_MOST = 6
# Of the logarithm of the interval's width, for an end: both draw 2,000 times.
_SHARE = 0.1
_SCRIPT = Path(__file__).with_name("intervals.R")
Interval = tuple[float, float]


@dataclass(frozen=True)
class Case:
    """`samples[side][i]` are seconds at `sizes[i]`."""

    name: str
    size: float
    sizes: np.ndarray
    samples: tuple[list[np.ndarray], list[np.ndarray]]
    ours: Interval


def suites() -> Iterator[Suite]:
    cases = [*_cases()]
    how = f"ends of the interval, to {_SHARE:.0%} of its width on a logarithmic axis"
    unit = f"crossovers of {_FILE.relative_to(ROOT)}"
    by_scipy = [_beside(case, _of_scipy(case)) for case in cases]
    yield Suite("scipy.stats.bootstrap", scipy.__version__, how, by_scipy, unit)
    if not _has_r():
        return
    answers = _of_r(cases)
    told = _r("cat(R.version$major, R.version$minor, sep = '.')")
    by_boot = [_beside(case, answers[case.name][0]) for case in cases]
    ratios = [answers[case.name][1] / case.size for case in cases]
    note = (
        "R's segmented draws one broken line through the logarithms of speedups, where ours goes "
        f"from size to size. It crosses at {min(ratios):.2f} to {max(ratios):.2f} times our size."
    )
    yield Suite("R's boot::boot.ci", f"R {told}", how, by_boot, unit, [note])


def lacking() -> str:
    """Why R's part is left out; empty where it is there."""
    packages = "r-base-core, r-cran-boot and r-cran-segmented"
    return "" if _has_r() else f"R's part is left out: install {packages}"


def _has_r() -> bool:
    if shutil.which("Rscript") is None:
        return False
    asked = ["Rscript", "-e", "library(boot); library(segmented)"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def _r(expression: str) -> str:
    command = ["Rscript", "-e", expression]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _cases() -> Iterator[Case]:
    """Of one thread count, as the best of several is chosen anew in each of our replicates."""
    single = [
        comparison
        for comparison in comparisons(load_file(_FILE))
        if not comparison.cpu.candidates
        and not comparison.gpu.candidates
        and comparison.crossover.kind == "once"
        and comparison.crossover.low
        and comparison.crossover.high
    ]
    places = np.linspace(0, len(single) - 1, min(_MOST, len(single))).astype(int)
    for place in np.unique(places):
        comparison = single[place]
        sizes, *at = np.intersect1d(comparison.cpu.sizes, comparison.gpu.sizes, return_indices=True)
        curves = [_of_one_run(curve) for curve in (comparison.cpu, comparison.gpu)]
        cpu, gpu = (
            estimate(curve, side).replicates[:, at[side]] for side, curve in enumerate(curves)
        )
        answer = drawn_crossover(sizes, cpu - gpu, Question(comparison.measure))
        first, second = ([curve.samples[i] for i in at[side]] for side, curve in enumerate(curves))
        if answer.size and answer.low and answer.high:
            ends = answer.low, answer.high
            yield Case(f"crossover-{place}", answer.size, sizes, (first, second), ends)


def _of_one_run(curve: Curve) -> Curve:
    """Without instances: repetitions alone are resampled."""
    return replace(curve, instances=())


def _beside(case: Case, theirs: Interval) -> Verdict:
    ours, other = np.log(case.ours), np.log(theirs)
    apart = float(np.abs(ours - other).max() / (ours[1] - ours[0]))
    if not apart <= _SHARE:
        low, high = case.ours
        reason = f"{theirs[0]:,.0f} to {theirs[1]:,.0f} beside our {low:,.0f} to {high:,.0f}"
        return Verdict(case.name, "different", reason, apart)
    return Verdict(case.name, "equal", apart=apart)


def _of_scipy(case: Case) -> Interval:
    logs, count = np.log(case.sizes), len(case.sizes)

    def start(*samples: np.ndarray, axis: int = -1) -> np.ndarray:
        medians = np.log([np.median(sample, axis=axis) for sample in samples])
        difference = medians[:count] - medians[count:]
        lost = count - 1 - np.argmax((difference <= 0)[::-1], axis=0)
        left = np.minimum(lost, count - 2)
        below, above = (
            np.take_along_axis(difference, np.expand_dims(left + more, 0), 0)[0] for more in (0, 1)
        )
        share = -below / (above - below)
        return logs[left] + share * (logs[left + 1] - logs[left])

    drawn = scipy.stats.bootstrap(
        [*case.samples[0], *case.samples[1]],
        start,
        n_resamples=2000,
        method="percentile",
        rng=np.random.default_rng(1),
        vectorized=True,
    )
    low, high = drawn.confidence_interval
    return float(np.exp(low)), float(np.exp(high))


def _of_r(cases: list[Case]) -> dict[str, tuple[Interval, float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "crossovers.csv")
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("crossover", "size", "side", "seconds"))
            for case in cases:
                for side, samples in zip(("cpu", "gpu"), case.samples, strict=True):
                    for size, times in zip(case.sizes, samples, strict=True):
                        writer.writerows((case.name, size, side, repr(float(t))) for t in times)
        done = subprocess.run(
            ["Rscript", _SCRIPT, path], capture_output=True, text=True, check=True
        )
    answers = {}
    for line in done.stdout.splitlines():
        name, low, high, zero = line.split()
        answers[name] = ((float(low), float(high)), float(zero))
    return answers
