# SPDX-License-Identifier: Apache-2.0
"""How often crossovers are right, on simulated curves whose truth is known.

Noise within an instance is right-skewed; on top of it come instances, bursts, drift and outliers.
What the statistics assume of instances comes from the simulated file, as from any other, and from
committed files.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from crossover_bench.curves import statistics
from crossover_bench.curves.crossover import find_crossover
from crossover_bench.curves.curves import Curve
from crossover_bench.curves.statistics import estimate
from crossover_bench.files.axes import Label
from crossover_bench.files.rows import Instances, Spread, median_of
from crossover_bench.files.samples import assumed, by_instance, spread_between
from crossover_bench.tests.synthetic_sweep import DISC_SIZES

NOISE_WITHIN = 0.03  # the standard deviation within an instance, of the logarithms of times
SLOPE = 0.8  # of the speedup over the size, both in logarithms
_LOGS = np.log(DISC_SIZES)
_PASS = 240  # rows of a sweep, that lie between two instances of one row
_BURST, _SLOWER, _SHARE = (20, 200), 1.6, 0.15  # of repetitions, and of the time

NOTHING = Spread(0.0)

Noise = Callable[[np.random.Generator, int], np.ndarray]  # a side's: sizes x repetitions


@dataclass(frozen=True, slots=True)
class Design:
    """So many instances of each row, with so many repetitions each."""

    instances: int = 9
    repetitions: int = 1

    @property
    def count(self) -> int:
        return self.instances * self.repetitions

    def of(self, spread: Spread = NOTHING) -> Instances:
        """As a row has it, if instances are known to be so far apart."""
        ran = np.repeat(np.arange(self.instances), self.repetitions)
        return spread.of(Instances(tuple(ran.tolist()) if self.instances > 1 else ()))

    def spread(self, programs: Iterable[Sequence[np.ndarray]]) -> Spread:
        """What the statistics take for the spread between instances, where the rows of each of the
        `programs` of a file have these logarithms of times on a CPU."""
        of = self.of().of
        shown = [[run for row in rows for run in by_instance(row, of)] for rows in programs]
        return spread_between(shown, assumed("cpu"))

    def repeated(self, of_instances: np.ndarray) -> np.ndarray:
        """What each instance has (the last axis), for each of its repetitions."""
        return np.repeat(of_instances, self.repetitions, axis=-1)

    def __str__(self) -> str:
        return f"{self.instances} × {self.repetitions}"


@dataclass(frozen=True, slots=True)
class Coverage:
    """Shares of files whose interval holds the true crossover, and that of another file like it
    (`again`); and of sizes whose interval holds the true speedup. `width` is that of a crossover's
    interval, a factor, its median. `bias` is the median of log(crossover / truth), `speed_up_bias`
    the mean; `ambiguous` a share of files."""

    crossover: float
    again: float
    speed_up: float
    width: float
    bias: float
    speed_up_bias: float
    ambiguous: float


# How much slower thread count number `place` is than the best, in standard errors of a median.
COUNTS: dict[str, Callable[[int], float]] = {
    "equal": lambda place: 0.0,
    "ahead": lambda place: 1.5 * (place > 0),
    "steps": lambda place: 0.7 * place,
    "apart": lambda place: 20.0 * place,
}


def standard_error(repetitions: int, noise: float = NOISE_WITHIN) -> float:
    """About that of the median's logarithm: 1.25 times that of the mean."""
    return 1.25 * noise / repetitions**0.5


def within(
    generator: np.random.Generator, shape: tuple[int, ...], noise: float = NOISE_WITHIN
) -> np.ndarray:
    """Logarithms of times in one instance; both sides have them, so their median does not count."""
    return noise / 2**0.5 * generator.gamma(2.0, 1.0, shape)


def between_instances(deviation: float, design: Design) -> Noise:
    """Each instance of each row has a speed of its own."""
    shape = len(_LOGS), design.instances
    return lambda generator, _: design.repeated(deviation * generator.standard_normal(shape))


def slow_repetitions(between: float, design: Design) -> Noise:
    """A tenth of the repetitions, each by itself, take longer; instances differ by `between`."""
    of_instances, shape = between_instances(between, design), (len(_LOGS), design.count)

    def noise(generator: np.random.Generator, side: int) -> np.ndarray:
        slow = generator.random(shape) < 0.1
        return of_instances(generator, side) + np.log(_SLOWER) * slow

    return noise


def bursts(slowed: tuple[int, ...], design: Design) -> Noise:
    """For a while something else runs on the machine, and the `slowed` sides take longer. Each
    instance is a pass over the sweep; in it, both sides of a size stand beside each other."""
    rows = np.arange(len(_LOGS)) * (_PASS // len(_LOGS))
    places = rows[:, None] + design.repeated(np.arange(design.instances) * _PASS)
    state: dict[str, np.ndarray] = {}

    def noise(generator: np.random.Generator, side: int) -> np.ndarray:
        if side == 0:
            state["slow"] = _bursts(generator, _PASS * design.instances)
        return np.log(_SLOWER) * state["slow"][places + side] * (side in slowed)

    return noise


def _bursts(generator: np.random.Generator, count: int) -> np.ndarray:
    slow = np.zeros(count, dtype=bool)
    mean = sum(_BURST) / 2
    starts = np.flatnonzero(generator.random(count) < _SHARE / mean / (1 - _SHARE))
    for start in starts:
        slow[start : start + generator.integers(*_BURST, endpoint=True)] = True
    return slow


def drift(design: Design) -> Noise:
    """Both sides become slower by 30 % over the run, pass by pass and row by row."""
    share = np.linspace(0, 1, len(_LOGS))[:, None] + design.repeated(np.arange(design.instances))
    return lambda *_: np.log(1.3) * share / design.instances


def bursts_in_turn(between: float, design: Design) -> Noise:
    """As bursts() of both sides, with instances that differ by `between`."""
    return _both(between_instances(between, design), bursts((0, 1), design))


def drifting(between: float, design: Design) -> Noise:
    """As drift(), with instances that differ by `between`."""
    return _both(between_instances(between, design), drift(design))


def _both(first: Noise, second: Noise) -> Noise:
    return lambda generator, side: first(generator, side) + second(generator, side)


def outlier(design: Design) -> Noise:
    """One repetition of each row of the GPU takes 50 times as long."""

    def noise(generator: np.random.Generator, side: int) -> np.ndarray:
        added = np.zeros((len(_LOGS), design.count))
        if side == 1:
            added[np.arange(len(_LOGS)), generator.integers(0, design.count, len(_LOGS))] = 50
        return np.log1p(added)

    return noise


def _quiet(*_: object) -> np.ndarray:
    return np.zeros((len(_LOGS), 1))


@dataclass(frozen=True, slots=True)
class Files:
    """Files with a CPU's curve, of the best of several thread counts (COUNTS), and a GPU's. The
    counts are `of_one_program` if each came to the same, as auto does; as many rows of the GPU do
    so, then."""

    design: Design = Design()
    noise: Noise = _quiet
    threads: int = 1
    counts: str = "equal"
    of_one_program: bool = False
    noise_within: float = NOISE_WITHIN
    slope: float = SLOPE

    def curves(self, generator: np.random.Generator, ratios: np.ndarray) -> tuple[Curve, Curve]:
        """Those of one file in which the speedups are exp(`ratios`)."""
        error = standard_error(self.design.count, self.noise_within)
        slower = [error * COUNTS[self.counts](place) for place in range(self.threads)]
        cpu = [self._logs(generator, ratios + more, 0) for more in slower]
        rows = self.threads if self.of_one_program else 1
        gpu = [self._logs(generator, 0 * ratios, 1) for _ in range(rows)]
        return self._curve(cpu, len(cpu)), self._curve(gpu, 1)

    def _logs(self, generator: np.random.Generator, logs: np.ndarray, side: int) -> np.ndarray:
        inside = within(generator, (len(logs), self.design.count), self.noise_within)
        return logs[:, None] + self.noise(generator, side) + inside

    def _curve(self, counts: list[np.ndarray], most: int) -> Curve:
        """The best of the first `most` counts; all of them show how far instances are apart."""
        candidates = tuple(zip(*map(np.exp, counts[:most]), strict=True))
        samples = tuple(min(each, key=median_of) for each in candidates)
        rows = [*zip(*counts, strict=True)]
        if not self.of_one_program:
            rows = [(row,) for of_size in rows for row in of_size]
        known = ((self.design.of(self.design.spread(rows)),) * most,) * len(samples)
        several = candidates if most > 1 else ()
        return Curve(Label(), {}, DISC_SIZES, samples, several, known)


def coverage(files: Files, count: int) -> Coverage:
    """Of `count` files whose crossover lies anywhere in the sizes."""
    generator = np.random.default_rng(7)
    hits, again, widths, biases, is_open, size_hits, size_biases = [], [], [], [], [], [], []
    for _ in range(count):
        truth = float(generator.uniform(_LOGS[1], _LOGS[-2]))
        ratios = files.slope * (_LOGS - truth)
        cpu, gpu = files.curves(generator, ratios)
        crossover = find_crossover(cpu, gpu)
        low, high = np.log([crossover.low or DISC_SIZES[0], crossover.high or DISC_SIZES[-1]])
        is_open.append(crossover.kind == "ambiguous")
        biases += [np.log(crossover.size) - truth] if crossover.size else []
        hits.append(low <= truth <= high)
        other = find_crossover(*files.curves(generator, ratios)).size
        again += [low <= np.log(other) <= high] if other else []
        widths.append(high - low)
        sides = estimate(cpu, 0), estimate(gpu, 1)
        replicates = sides[0].replicates - sides[1].replicates
        for ratio, each in zip(ratios, replicates.T, strict=True):
            low, high = statistics.interval(each)
            size_hits.append(low <= ratio <= high)
        size_biases += (sides[0].logs - sides[1].logs - ratios).tolist()
    return Coverage(
        crossover=float(np.mean(hits)),
        again=float(np.mean(again)),
        speed_up=float(np.mean(size_hits)),
        width=float(np.exp(np.median(widths))),
        bias=float(np.median(biases)) if biases else 0.0,
        speed_up_bias=float(np.mean(size_biases)),
        ambiguous=float(np.mean(is_open)),
    )


def decided(files: Files, count: int) -> float:
    """Of `count` files of equal devices the share in which any size has a winner."""
    generator = np.random.default_rng(8)
    equal = np.zeros(len(DISC_SIZES))
    crossovers = (find_crossover(*files.curves(generator, equal)) for _ in range(count))
    return float(np.mean([any(crossover.winners) for crossover in crossovers]))
