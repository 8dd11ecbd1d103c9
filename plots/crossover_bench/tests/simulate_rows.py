# SPDX-License-Identifier: Apache-2.0
"""How often compare and peers are right, on simulated rows whose truth is known."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy import special

from crossover_bench.answers.compare.analysis import compare
from crossover_bench.answers.peers.analysis import ratio_interval
from crossover_bench.files import loading
from crossover_bench.files.rows import File
from crossover_bench.files.samples import with_spreads
from crossover_bench.tests import synthetic
from crossover_bench.tests.simulate_curves import NOISE_WITHIN, NOTHING, Design, within

# Logarithms of times in one instance; their standard deviation is NOISE_WITHIN where there is one.
NOISES: dict[str, Callable[[np.random.Generator, tuple[int, int]], np.ndarray]] = {
    "normal": lambda generator, shape: NOISE_WITHIN * generator.standard_normal(shape),
    "right-skewed": within,
    "heavy-tailed": lambda generator, shape: 0.02 * generator.standard_t(2, shape),
    "two modes": lambda generator, shape: (
        0.1 * (generator.random(shape) < 0.3) + 0.005 * generator.standard_normal(shape)
    ),
}


@dataclass(frozen=True, slots=True)
class Called:
    """Of comparisons of two runs the share in which a row is called slower or faster, the mean
    number of such rows, the share in which --fail-on-slower exits with 1, and in which it names
    the first row."""

    any: float
    rows: float
    failed: float
    named: float


@dataclass(frozen=True, slots=True)
class Runs:
    """Two runs of `rows` rows, of so many instances in the first and in the second.

    Instances of a row differ by `between`, of some rows more than of others if `differing`, the
    standard deviation of its logarithm. Rows of the second run take `drift` as long, its first row
    `slow_row` as long in addition.
    """

    designs: tuple[Design, Design]
    noise: str = "normal"
    between: float = 0.0
    differing: float = 0.0
    drift: float = 1.0
    slow_row: float = 1.0
    rows: int = 120

    def pair(self, generator: np.random.Generator, file: File) -> tuple[File, File]:
        apart = self.between * np.exp(self.differing * generator.standard_normal((self.rows, 1)))
        first, second = (
            design.repeated(apart * generator.standard_normal((self.rows, design.instances)))
            + NOISES[self.noise](generator, (self.rows, design.count))
            for design in self.designs
        )
        second += np.log(self.drift)
        second[0] += np.log(self.slow_row)
        return self._written(file, first, 0), self._written(file, second, 1)

    def _written(self, file: File, logs: np.ndarray, place: int) -> File:
        row = file.rows[0]
        instances = self.designs[place].of()
        rows = tuple(
            replace(row, name=f"{row.name}/{index}", index=index, samples=each, instances=instances)
            for index, each in enumerate(1e-3 * np.exp(logs))
        )
        return with_spreads([replace(file, rows=rows)])[0]


def a_file(folder: Path) -> File:
    entries = synthetic.samples(synthetic.cpu_configuration("disc-3", 1))
    return loading.load_file(synthetic.write(folder / "file.json", synthetic.document(entries)))


def called(file: File, runs: Runs, count: int, limit: float = 0.05) -> Called:
    """Of `count` comparisons of two `runs`, with --fail-on-slower=`limit`."""
    generator = np.random.default_rng(9)
    rows, failed, named = [], [], []
    for _ in range(count):
        first, second = runs.pair(generator, file)
        compared = compare(first, second)
        slower = {pair.baseline.name for pair in compared.worse_than(limit)}
        rows.append(compared.count("worse") + compared.count("better"))
        failed.append(bool(slower))
        named.append(first.rows[0].name in slower)
    return Called(
        any=float(np.mean(np.array(rows) > 0)),
        rows=float(np.mean(rows)),
        failed=float(np.mean(failed)),
        named=float(np.mean(named)),
    )


def ratios_covered(design: Design, between: float, count: int, *, known: bool = True) -> float:
    """Of `count` pairs of our row and another framework's, ten in a file, the share whose interval
    holds the true ratio. Instances of either differ by `between`; if not `known`, the statistics
    take it for nothing."""
    generator = np.random.default_rng(10)
    hits = 0
    for _ in range(count // 10):
        theirs, ours = (
            design.repeated(between * generator.standard_normal((10, design.instances)))
            + within(generator, (10, design.count))
            for _ in range(2)
        )
        spreads = [
            design.spread((row,) for row in each) if known else NOTHING for each in (theirs, ours)
        ]
        sides = [design.of(spread) for spread in spreads]
        for ratio in np.exp(theirs - ours):
            interval = ratio_interval(ratio, *sides)
            hits += interval is not None and interval[0] <= 1 <= interval[1]
    return hits / (count // 10 * 10)


def decided_by_pairs(effect: float, between: float, sizes: int) -> tuple[float, float]:
    """Of `sizes` sizes at which one side takes `effect` as long, the share whose pairs are sure of
    it, and the mean number of pairs; instances differ by `between`, and each pair has its own.

    As bench --refine decides (bench/run/refine/search.cpp): 5 % over 32 sizes, 100 pairs.
    """
    deviation = np.sqrt(2 * (between**2 + NOISE_WITHIN**2))
    longer = np.random.default_rng(1).normal(np.log(effect), deviation, (sizes, 100)) > 0
    won, pairs = longer.cumsum(axis=1), np.arange(1, 101)
    evidence = np.log(pairs + 1) + special.gammaln(pairs + 1) - pairs * np.log(2)
    evidence = evidence - special.gammaln(won + 1) - special.gammaln(pairs - won + 1)
    sure = evidence < np.log(0.05 / 32)
    first = sure.argmax(axis=1)
    right = sure.any(axis=1) & (2 * won[np.arange(sizes), first] > pairs[first])
    return float(right.mean()), float(np.where(sure.any(axis=1), first + 1, 100).mean())
