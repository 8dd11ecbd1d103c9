# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/evidence/crossover.md, comparing.md and peers.md that are simulated.

tests/test_simulations.py holds a part of them. One table, or all of them:

    python -m crossover_bench.tests.simulate [instances | thread-counts | noise | rows | …]
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from crossover_bench.tests.simulate_curves import (
    COUNTS,
    Design,
    Files,
    between_instances,
    bursts,
    bursts_in_turn,
    coverage,
    decided,
    drift,
    drifting,
    outlier,
    slow_repetitions,
)
from crossover_bench.tests.simulate_rows import (
    NOISES,
    Runs,
    a_file,
    called,
    decided_by_pairs,
    ratios_covered,
)

_DESIGNS = (Design(9, 1), Design(5, 1), Design(3, 3), Design(1, 9))
_FEWER = (Design(1, 5), Design(2, 5), Design(3, 3), Design(5, 1), Design(9, 1))
_DEVIATIONS = (0.02, 0.03, 0.05)
_SPREADS = ((0.03, 0.0), (0.078, 0.65))  # between instances, and of its logarithm between rows


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _line(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _header(cells: Sequence[object]) -> str:
    return f"{_line(cells)}\n{_line(['---'] * len(cells))}"


def _thread_counts() -> Iterator[str]:
    yield _header(["repetitions", "thread counts", *COUNTS, "bias if equal"])
    for repetitions, threads in product((5, 9, 30), (1, 2, 8)):
        covered = [
            coverage(Files(Design(repetitions, 1), threads=threads, counts=counts), 400)
            for counts in (COUNTS if threads > 1 else ["equal"])
        ]
        cells = [f"{100 * each.crossover:.0f} / {100 * each.speed_up:.0f} %" for each in covered]
        bias = f"{100 * covered[0].bias:+.1f} / {100 * covered[0].speed_up_bias:+.1f} %"
        yield _line([repetitions, threads, *(cells + [""] * 3)[:4], bias])
    for repetitions, threads in product((5, 9), (1, 8)):
        noisy = coverage(Files(Design(repetitions, 1), threads=threads, noise_within=0.21), 400)
        yield f"noise of 21 %, {repetitions}, {threads}: {_percent(noisy.crossover)}"


def _instances() -> Iterator[str]:
    yield _header(["noise", *_FEWER])
    for deviation in (0.03, 0.1, 0.28):
        yield _instances_line(f"instances {deviation}", between_instances, deviation)
    for words, more in (("bursts", bursts_in_turn), ("a drift of 30 %", drifting)):
        yield _instances_line(f"instances 0.1, {words}", more, 0.1)


def _instances_line(words: str, noise: Callable[[float, Design], Any], deviation: float) -> str:
    cells = []
    for design in _FEWER:
        files = Files(design, noise(deviation, design), threads=2, of_one_program=True)
        covered, ties = coverage(files, 500), decided(files, 500)
        held = f"{_percent(covered.crossover)}, {_percent(covered.again)}"
        cells.append(f"{held}, × {covered.width:.2f}, {_percent(ties)}")
    return _line([words, *cells])


def _noise() -> Iterator[str]:
    several = Design(9, 1), Design(3, 3)
    yield _header(["noise", *several])
    noises: dict[str, Callable[[Design], Any]] = {
        "bursts on both sides, in turn": lambda design: bursts((0, 1), design),
        "bursts on the CPU alone": lambda design: bursts((0,), design),
        "drift of 30 %, in turn": drift,
        "a tenth slow": lambda design: slow_repetitions(0.0, design),
        "a tenth slow, instances 5 %": lambda design: slow_repetitions(0.05, design),
    }
    for words, noise in noises.items():
        covered = [coverage(Files(design, noise(design)), 1000) for design in several]
        yield _line([words, *(f"{_percent(of.crossover)}, × {of.width:.2f}" for of in covered)])
    for slope in (0.3, 0.8):
        shaken = coverage(Files(noise=outlier(Design()), slope=slope), 400)
        words = f"{_percent(shaken.crossover)}, {shaken.ambiguous:.0%} ambiguous"
        yield f"outlier, slope {slope}: {words}"


def _equal() -> Iterator[str]:
    designs = (*(Design(count, 1) for count in (3, 5, 7, 9)), Design(3, 3), Design(1, 9))
    yield _header(["", *designs])
    for words, noise, deviation, threads in (
        ("one thread count", between_instances, 0.0, 1),
        ("instances 3 %", between_instances, 0.03, 1),
        ("best of 8 counts", between_instances, 0.0, 8),
        ("a tenth slow", slow_repetitions, 0.0, 1),
        ("a tenth slow, instances 5 %", slow_repetitions, 0.05, 1),
    ):
        shares = [
            decided(Files(design, noise(deviation, design), threads), 2000) for design in designs
        ]
        yield _line([words, *map(_percent, shares)])


def _rows() -> Iterator[str]:
    yield _header(["noise", "instances", "false alarm, equal", "false alarm, drift", "found"])
    with TemporaryDirectory() as folder:
        file = a_file(Path(folder))
        counts = [(noise, (count, count)) for noise in NOISES for count in (5, 9, 30)]
        for noise, (first, second) in (*counts, ("normal", (5, 30))):
            runs = Runs((Design(first, 1), Design(second, 1)), noise)
            truths = runs, replace(runs, drift=1.02), replace(runs, slow_row=1.3)
            *equal, slow = (called(file, truth, 50) for truth in truths)
            alarms = [f"{100 * shares.any:.0f} %" for shares in equal]
            words = first if first == second else f"{first} against {second}"
            yield _line([noise, words, *alarms, f"{100 * slow.named:.0f} %"])


def _slow_row() -> Iterator[str]:
    factors = (1.05, 1.1, 1.2, 1.5)
    yield _header(["between instances", "", "any called", "rows", *(f"× {by}" for by in factors)])
    with TemporaryDirectory() as folder:
        file = a_file(Path(folder))
        for (between, differing), design in product(_SPREADS, _DESIGNS):
            equal, *slow = (
                called(file, Runs((design, design), "normal", between, differing, 1, factor), 50)
                for factor in (1.0, *factors)
            )
            named = [f"{100 * shares.named:.0f} %" for shares in slow]
            words = f"{100 * between:.1f} %" + (", rows differ" if differing else "")
            yield _line([words, design, f"{100 * equal.any:.0f} %", f"{equal.rows:.2f}", *named])


def _pairs() -> Iterator[str]:
    effects = (1.0, 1.02, 1.03, 1.05, 1.1)
    yield _header(["between instances", *(f"× {effect}" for effect in effects)])
    for between in (0.02, 0.03, 0.05, 0.078):
        decided = (decided_by_pairs(effect, between, 4000) for effect in effects)
        cells = [f"{100 * share:.0f} %, {pairs:.0f} pairs" for share, pairs in decided]
        yield _line([f"{100 * between:.1f} %", *cells])


def _peers() -> Iterator[str]:
    designs = Design(9, 1), Design(6, 1), Design(3, 3), Design(1, 9)
    yield _header(["instances", *designs, "1 × 9, spread unknown"])
    for deviation in (0.0, *_DEVIATIONS):
        shares = [ratios_covered(design, deviation, 4000) for design in designs]
        shares.append(ratios_covered(Design(1, 9), deviation, 4000, known=False))
        yield _line([f"{100 * deviation:.0f} %", *map(_percent, shares)])


TABLES = {
    "instances": _instances,
    "thread-counts": _thread_counts,
    "noise": _noise,
    "equal": _equal,
    "rows": _rows,
    "slow-row": _slow_row,
    "pairs": _pairs,
    "peers": _peers,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or TABLES:
        print(f"\n{name}")
        for line in TABLES[name]():
            print(line, flush=True)
