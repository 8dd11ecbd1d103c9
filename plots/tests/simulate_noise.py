# SPDX-License-Identifier: Apache-2.0
"""How often the statistics are right where noise is not independent: instances, bursts, drift.

Prints the tables of docs/method/crossover.md and docs/method/comparing.md that are about these;
plots/tests/test_simulations.py holds a part of them.

    python -m plots.tests.simulate_noise crossover [FILES]
    python -m plots.tests.simulate_noise equal [FILES]
    python -m plots.tests.simulate_noise runs [FILES]
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from plots.core.crossover import Crossover, find_crossover
from plots.core.curves import Curve
from plots.features.compare.analysis import compare
from plots.file.axes import Label
from plots.file.rows import File, Instances
from plots.tests.simulate import SLOPE, a_file
from plots.tests.synthetic_sweep import DISC_SIZES

OWN = 0.03  # the standard deviation within an instance, of the logarithms of times
_LOGS = np.log(DISC_SIZES)
_PASS = 240  # rows of a sweep, that lie between two repetitions of one row
_BURST, _SLOWER, _SHARE = (20, 200), 1.6, 0.15  # of repetitions, and of the time

Noise = Callable[[np.random.Generator, np.ndarray, int], np.ndarray]


@dataclass(frozen=True, slots=True)
class Design:
    """So many instances of each row, with so many repetitions each."""

    instances: int = 9
    repetitions: int = 1

    @property
    def of(self) -> tuple[int, ...]:
        """As a row has it."""
        if self.instances == 1:
            return ()
        return tuple(np.repeat(np.arange(self.instances), self.repetitions).tolist())


def between_instances(deviation: float, design: Design) -> Noise:
    """Each instance of each row has a speed of its own."""

    def noise(generator: np.random.Generator, logs: np.ndarray, _side: int) -> np.ndarray:
        shape = len(logs), design.instances
        return np.repeat(deviation * generator.standard_normal(shape), design.repetitions, axis=1)

    return noise


def bursts(slowed: tuple[int, ...], design: Design) -> Noise:
    """For a while something else runs on the machine, and the `slowed` sides take longer. Each
    instance is a pass over the sweep; in it, both sides of a size stand beside each other."""
    state: dict[str, np.ndarray] = {}

    def noise(generator: np.random.Generator, logs: np.ndarray, side: int) -> np.ndarray:
        if side == 0:
            state["slow"] = _bursts(generator, _PASS * design.instances)
        rows = np.arange(len(logs)) * (_PASS // len(logs))
        times = np.arange(design.instances) * _PASS
        places = rows[:, None] + np.repeat(times, design.repetitions)[None, :] + side
        return np.log(_SLOWER) * state["slow"][places] * (side in slowed)

    return noise


def _bursts(generator: np.random.Generator, count: int) -> np.ndarray:
    slow = np.zeros(count, dtype=bool)
    mean = sum(_BURST) / 2
    starts = np.flatnonzero(generator.random(count) < _SHARE / mean / (1 - _SHARE))
    for start in starts:
        slow[start : start + generator.integers(*_BURST, endpoint=True)] = True
    return slow


def drift(design: Design) -> Noise:
    """Both sides become slower by 30 % over the run."""

    def noise(_generator: np.random.Generator, logs: np.ndarray, _side: int) -> np.ndarray:
        times = np.repeat(np.arange(design.instances), design.repetitions)
        return np.log(1.3) * times[None, :] / max(1, design.instances - 1) * np.ones((len(logs), 1))

    return noise


def outlier(side: int) -> Noise:
    """One repetition of each row of `side` takes 50 times as long."""

    def noise(generator: np.random.Generator, logs: np.ndarray, own: int) -> np.ndarray:
        added = np.zeros((len(logs), 9))
        if own == side:
            added[np.arange(len(logs)), generator.integers(0, 9, len(logs))] = np.log(50)
        return added

    return noise


def answer(
    generator: np.random.Generator,
    ratios: np.ndarray,
    noise: Noise,
    design: Design,
    spread: float = 0.0,
) -> Crossover:
    """The crossover of a file in which the speedups are exp(`ratios`)."""
    sides = []
    for side, logs in enumerate((ratios, 0 * ratios)):
        times = logs[:, None] + noise(generator, logs, side)
        times = times + OWN * generator.standard_normal((len(logs), len(design.of) or 9))
        instances = ((Instances(design.of, spread),),) * len(logs)
        sides.append(Curve(Label(), {}, DISC_SIZES, tuple(np.exp(times)), (), instances))
    return find_crossover(*sides)


def covered(
    noise: Noise, design: Design, *, spread: float = 0.0, files: int = 300, slope: float = SLOPE
) -> tuple[float, float, float]:
    """Of `files` files the share whose interval holds the true crossover, which lies anywhere in
    the sizes, the width of the interval as a factor (median), and the share that is ambiguous."""
    generator = np.random.default_rng(7)
    hits, widths, ambiguous = 0, [], 0
    for _ in range(files):
        truth = float(generator.uniform(_LOGS[1], _LOGS[-2]))
        found = answer(generator, slope * (_LOGS - truth), noise, design, spread)
        low, high = np.log([found.low or DISC_SIZES[0], found.high or DISC_SIZES[-1]])
        hits += low <= truth <= high
        widths.append(high - low)
        ambiguous += found.kind == "ambiguous"
    return hits / files, float(np.exp(np.median(widths))), ambiguous / files


def decided(noise: Noise, design: Design, *, spread: float = 0.0, files: int = 300) -> float:
    """Of `files` files of equal devices the share in which any size has a winner."""
    generator = np.random.default_rng(8)
    ratios = np.zeros(len(DISC_SIZES))
    return (
        sum(any(answer(generator, ratios, noise, design, spread).winners) for _ in range(files))
        / files
    )


def runs(
    file: File,
    design: Design,
    deviation: float,
    *,
    rows: int = 120,
    differing: float = 0.0,
    slow_row: float = 1.0,
    files: int = 50,
) -> tuple[float, float, float]:
    """Of `files` comparisons of two runs of one program the share in which a row is called, the
    mean number of rows called, and the share in which --fail-on-slower=5% names the first row.

    Instances of a row differ by `deviation`, of some rows more than of others if `differing`, the
    standard deviation of its logarithm. The first row of the second file takes `slow_row` as long.
    """
    generator = np.random.default_rng(9)
    called, count, named = 0, 0, 0
    for _ in range(files):
        own = deviation * np.exp(differing * generator.standard_normal((rows, 1)))
        both = []
        for place in (0, 1):
            effects = own * generator.standard_normal((rows, design.instances))
            times = np.repeat(effects, design.repetitions, axis=1)
            times = times + OWN * generator.standard_normal(times.shape)
            times[0] += np.log(slow_row) * place
            both.append(_with_rows(file, 1e-3 * np.exp(times), design, deviation))
        found = compare(*both)
        changed = found.count("slower") + found.count("faster")
        called += changed > 0
        count += changed
        slower = [pair.baseline.name for pair in found.slower_than(0.05)]
        named += both[0].rows[0].name in slower
    return called / files, count / files, named / files


def _with_rows(file: File, times: np.ndarray, design: Design, deviation: float) -> File:
    row = file.rows[0]
    rows = tuple(
        replace(
            row,
            name=f"{row.name}/{place}",
            index=place,
            samples=samples,
            instances=Instances(design.of, deviation),
        )
        for place, samples in enumerate(times)
    )
    return replace(file, rows=rows)


DESIGNS = (Design(9, 1), Design(5, 1), Design(3, 3), Design(1, 9))


def _print_crossover(files: int) -> None:
    print(f"{files} files each; holds the truth, median width, ambiguous")

    def line(words: str, noise: Noise, design: Design, **more: float) -> None:
        held, width, ambiguous = covered(noise, design, files=files, **more)
        print(
            f"{design.instances} x {design.repetitions}, {words}: {held:.1%}, x {width:.2f}, "
            f"{ambiguous:.0%}",
            flush=True,
        )

    for deviation in (0.02, 0.03, 0.05):
        for design in DESIGNS:
            noise = between_instances(deviation, design)
            line(f"instances {deviation:.0%}", noise, design, spread=deviation)
        line(f"instances {deviation:.0%}, unknown", noise, design)
    for design in (Design(9, 1), Design(3, 3)):
        line("bursts on both sides", bursts((0, 1), design), design)
        line("bursts on the CPU", bursts((0,), design), design)
        line("drift", drift(design), design)
    for slope in (0.3, 0.8):
        line(f"outlier, slope {slope}", outlier(1), Design(9, 1), slope=slope)


def _print_equal(files: int) -> None:
    print(f"{files} files of equal devices each; any size decided")
    for design in (Design(5, 1), Design(7, 1), Design(9, 1), Design(3, 3), Design(1, 9)):
        for deviation in (0.0, 0.03):
            share = decided(
                between_instances(deviation, design), design, spread=deviation, files=files
            )
            print(
                f"{design.instances} x {design.repetitions}, instances {deviation:.0%}: {share:.1%}"
            )


def _print_runs(files: int) -> None:
    print(f"{files} comparisons of 120 equal rows each: any called, rows called, row named")
    with TemporaryDirectory() as folder:
        file = a_file(Path(folder))
        for deviation, differing in ((0.03, 0.0), (0.078, 0.65)):
            for design in (Design(9, 1), Design(5, 1), Design(1, 9)):
                for slow_row in (1.0, 1.1, 1.2, 1.5):
                    found = runs(
                        file,
                        design,
                        deviation,
                        differing=differing,
                        slow_row=slow_row,
                        files=files,
                    )
                    words = f"instances {deviation:.1%}, row x {slow_row}"
                    print(
                        f"{design.instances} x {design.repetitions}, {words}: {found[0]:.0%}, "
                        f"{found[1]:.1f}, {found[2]:.0%}",
                        flush=True,
                    )


if __name__ == "__main__":
    wanted, *number = sys.argv[1:]
    tables = {"crossover": _print_crossover, "equal": _print_equal, "runs": _print_runs}
    tables[wanted](int((number or [300])[0]))
