# SPDX-License-Identifier: Apache-2.0
"""How often the statistics are right, on simulated measurements whose truth is known.

Prints the tables of docs/method/crossover.md and docs/method/comparing.md, which takes long;
plots/tests/test_simulations.py holds a part of them.

    python -m plots.tests.simulate crossover [FILES]
    python -m plots.tests.simulate equal [FILES]
    python -m plots.tests.simulate compare [FILES]
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from plots.core import statistics
from plots.core.crossover import find_crossover
from plots.core.curves import Curve
from plots.core.replicates import estimate
from plots.features.compare.analysis import compare
from plots.file import loading
from plots.file.axes import Label
from plots.file.rows import File, Instances
from plots.tests import synthetic
from plots.tests.synthetic_sweep import DISC_SIZES, noisy

SLOPE = 0.8  # of the speedup over the size, both in logarithms
ROWS = 240
_SHAPE = 2.0**0.5  # the gamma noise's spread, of its scale


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of files whose interval holds the true crossover, and of sizes whose interval holds
    the true speedup; `bias` is the median of log(crossover / truth), `speed_up_bias` the mean."""

    crossover: float
    speed_up: float
    bias: float
    speed_up_bias: float


# How much slower thread count number `place` is than the best, in standard errors of a median.
COUNTS: dict[str, Callable[[int], float]] = {
    "equal": lambda place: 0.0,
    "one ahead by 1.5 errors": lambda place: 1.5 * (place > 0),
    "each 0.7 errors behind the last": lambda place: 0.7 * place,
    "clearly apart": lambda place: 20.0 * place,
}


def standard_error(repetitions: int, scale: float = 0.02) -> float:
    """About that of the median's logarithm: 1.25 times that of the mean."""
    return 1.25 * _SHAPE * scale / repetitions**0.5


def coverage(
    threads: int, repetitions: int, counts: str, *, scale: float = 0.02, files: int = 200
) -> Coverage:
    """Of `files` files with as many thread counts, whose crossover lies anywhere in the sizes.

    Noise is right-skewed; its standard deviation is 1.4 times `scale`.
    """
    generator = np.random.default_rng([threads, repetitions, list(COUNTS).index(counts)])
    error = standard_error(repetitions, scale)
    slower = [float(np.exp(error * COUNTS[counts](place))) for place in range(threads)]
    logs = np.log(DISC_SIZES)
    covered, covered_sizes, biases, size_biases = 0, 0, [], []
    for _ in range(files):
        truth = float(generator.uniform(logs[1], logs[-2]))
        ratios = SLOPE * (logs - truth)
        cpu = _best(np.exp(ratios), slower, generator, scale, repetitions)
        gpu = _best(np.ones(len(ratios)), [1.0], generator, scale, repetitions)
        found = find_crossover(cpu, gpu)
        low, high = np.log([found.low or DISC_SIZES[0], found.high or DISC_SIZES[-1]])
        covered += low <= truth <= high
        if found.size:
            biases.append(np.log(found.size) - truth)
        sides = estimate(cpu, 0), estimate(gpu, 1)
        replicates = sides[0].replicates - sides[1].replicates
        for place, ratio in enumerate(ratios):
            low, high = statistics.interval(replicates[:, place])
            covered_sizes += low <= ratio <= high
        size_biases += (sides[0].logs - sides[1].logs - ratios).tolist()
    return Coverage(
        crossover=covered / files,
        speed_up=covered_sizes / files / len(logs),
        bias=float(np.median(biases)),
        speed_up_bias=float(np.mean(size_biases)),
    )


def decided(threads: int, repetitions: int, *, files: int = 200) -> float:
    """Of `files` files of a CPU and a GPU that take the same time at each size the share whose
    answer is not that they are ambiguous."""
    generator = np.random.default_rng([threads, repetitions])
    ones = np.ones(len(DISC_SIZES))
    kinds = [
        find_crossover(
            _best(ones, [1.0] * threads, generator, 0.02, repetitions),
            _best(ones, [1.0], generator, 0.02, repetitions),
        ).kind
        for _ in range(files)
    ]
    return 1 - kinds.count("ambiguous") / files


def _best(
    seconds: np.ndarray,
    slower: list[float],
    generator: np.random.Generator,
    scale: float,
    repetitions: int,
) -> Curve:
    candidates = tuple(
        tuple(noisy(time * factor, generator, scale, repetitions) for factor in slower)
        for time in seconds
    )
    samples = tuple(min(each, key=np.median) for each in candidates)
    return Curve(Label(), {}, DISC_SIZES, samples, candidates if len(slower) > 1 else ())


def _skewed(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    return 0.03 / _SHAPE * generator.gamma(2.0, 1.0, shape)


# Of the logarithms of times; the standard deviation is 3 % where there is one.
NOISES: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda generator, shape: 0.03 * generator.standard_normal(shape),
    "skewed": _skewed,
    "heavy-tailed": lambda generator, shape: 0.02 * generator.standard_t(2, shape),
    "two modes": lambda generator, shape: (
        0.1 * (generator.random(shape) < 0.3) + 0.005 * generator.standard_normal(shape)
    ),
}


def a_file(folder: Path) -> File:
    """A file to put rows into."""
    entries = synthetic.samples(synthetic.cpu_configuration("disc-3", 1))
    return loading.load_file(synthetic.write(folder / "file.json", synthetic.document(entries)))


def noted(
    file: File,
    noise: str,
    repetitions: tuple[int, int],
    *,
    slow_row: float = 1.0,
    drift: float = 1.0,
    limit: float = 0.05,
    files: int = 100,
) -> tuple[float, float, float]:
    """Of `files` comparisons of files of ROWS rows the share in which a row is called slower or
    faster, in which --fail-on-slower=`limit` exits with 1, and in which it names the first row.

    The second file has times `drift` as long, its first row in addition `slow_row` as long.
    """
    generator = np.random.default_rng([*repetitions, list(NOISES).index(noise)])
    called, failed, named = 0, 0, 0
    for _ in range(files):
        times = [1e-3 * np.exp(NOISES[noise](generator, (ROWS, count))) for count in repetitions]
        times[1] *= drift
        times[1][0] *= slow_row
        first, second = (_with_rows(file, each) for each in times)
        found = compare(first, second)
        slower = {pair.baseline.name for pair in found.slower_than(limit)}
        called += found.count("slower") + found.count("faster") > 0
        failed += bool(slower)
        named += first.rows[0].name in slower
    return called / files, failed / files, named / files


def _with_rows(file: File, times: np.ndarray) -> File:
    row = file.rows[0]
    rows = tuple(
        replace(
            row,
            name=f"{row.name}/{place}",
            index=place,
            samples=samples,
            instances=Instances(tuple(range(len(samples)))),
        )
        for place, samples in enumerate(times)
    )
    return replace(file, rows=rows)


def _print_crossover(files: int) -> None:
    print(f"{files} files each; crossover, speedup (bias of each)")
    for scale, threads, counts in (
        *((0.02, 1, "equal"), (0.15, 1, "equal"), (0.15, 8, "equal")),
        *((0.02, threads, counts) for threads in (2, 4, 8) for counts in COUNTS),
    ):
        for repetitions in (3, 5, 9, 30):
            found = coverage(threads, repetitions, counts, scale=scale, files=files)
            print(
                f"noise {scale}, {repetitions} repetitions, {threads} counts, {counts}: "
                f"{found.crossover:.1%} ({found.bias:+.2%}), "
                f"{found.speed_up:.1%} ({found.speed_up_bias:+.2%})",
                flush=True,
            )


def _print_equal(files: int) -> None:
    print(f"{files} files of equal devices each; called anything but ambiguous")
    for threads in (1, 8):
        for repetitions in (3, 5, 9):
            share = decided(threads, repetitions, files=files)
            print(f"{repetitions} repetitions, {threads} counts: {share:.1%}", flush=True)


def _print_compare(files: int) -> None:
    print(f"{files} comparisons each: called, exit 1 at 5 %, the slow row named")
    with TemporaryDirectory() as folder:
        file = a_file(Path(folder))
        for noise in NOISES:
            for repetitions in ((5, 5), (9, 9), (30, 30), (5, 30)):
                for words, truth in (
                    ("equal", {}),
                    ("drift 1.02", {"drift": 1.02}),
                    ("one row 1.3", {"slow_row": 1.3}),
                ):
                    found = noted(file, noise, repetitions, files=files, **truth)
                    shares = ", ".join(f"{share:.1%}" for share in found)
                    print(f"{noise}, {repetitions}, {words}: {shares}", flush=True)


if __name__ == "__main__":
    wanted, *number = sys.argv[1:]
    tables = {"crossover": _print_crossover, "equal": _print_equal, "compare": _print_compare}
    tables[wanted](int((number or [400])[0]))
