# SPDX-License-Identifier: Apache-2.0
"""The shares that docs/method states of simulated files, of fewer files than there.

Seeds are fixed. A rule whose true share is just what is asked for passes a bound with a probability
of 99.9 %, by the binomial distribution of the count.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from crossover_bench.curves import crossover
from crossover_bench.files.samples import days
from crossover_bench.tests.simulate_curves import (
    NOTHING,
    Design,
    Files,
    between_instances,
    bursts,
    coverage,
    decided,
    slow_repetitions,
    standard_error,
    within,
)
from crossover_bench.tests.simulate_rows import (
    Runs,
    a_file,
    called,
    decided_by_pairs,
    ratios_covered,
)
from tools.stages import thorough, weekly

WANTED, MOST = 0.93, 0.99  # of the intervals
POWER = 0.95
FALSE_ALARMS = 0.05
ERROR = 0.001

DESIGNS = ((9, 1), (5, 1), (3, 3), (1, 9))

pytestmark = pytest.mark.slow


def cases(some: Sequence[tuple], every: Sequence[tuple] = ()) -> list[Any]:
    """All of `every` with ./test --all; else `some`, of which without continuous integration the
    first alone."""
    assert not every or {*some} <= {*every}
    chosen = (every or some) if weekly() else some if thorough() else some[:1]
    return [pytest.param(*case, id="-".join(map(str, case))) for case in chosen]


def at_least(share: float, count: int) -> float:
    """What a share of `count` is at least, if its expectation is `share`."""
    return float(binom.ppf(ERROR, count, share)) / count


def at_most(share: float, count: int) -> float:
    return float(binom.isf(ERROR, count, share)) / count


@pytest.mark.parametrize(
    ("design", "deviation"),
    cases(
        [(Design(1, 5), 0.28), (Design(9, 1), 0.03), (Design(2, 5), 0.1), (Design(3, 3), 0.03)],
        [(Design(*each), by) for each in (*DESIGNS, (1, 5), (2, 5)) for by in (0.03, 0.1, 0.28)],
    ),
)
def test_intervals_cover_what_lies_between_instances(design, deviation):
    """Of files whose thread counts came to one program; as they do what another such file says."""
    count = 100
    noise = between_instances(deviation, design)
    covered = coverage(Files(design, noise, threads=2, of_one_program=True), count)
    assert at_least(WANTED, count) <= min(covered.crossover, covered.again)
    # The most that is wanted cannot be told from always by so few files. An interval whose size is
    # off by a factor of 1.5 is: it is as wide as four standard deviations of what another day says.
    if design.repetitions == 1:
        spread = np.hypot(standard_error(design.instances), deviation / design.instances**0.5)
        spread = np.hypot(spread, (days() ** 2 - 1) ** 0.5 * deviation)
        assert np.log(covered.width) < 1.5 * 4 * 2 * spread / 0.8


@pytest.mark.parametrize("design", cases([(Design(9, 1),), (Design(3, 3),)]))
def test_intervals_cover_bursts_in_turn(design):
    covered = coverage(Files(design, bursts((0, 1), design)), 500)
    assert at_least(WANTED, 500) <= covered.crossover


def test_slow_repetitions_do_not_hide_what_lies_between_instances():
    """A tenth of the repetitions takes longer; of three instances with three each."""
    files = Files(Design(3, 3), slow_repetitions(0.05, Design(3, 3)))
    assert at_least(WANTED, 300) <= coverage(files, 300).crossover
    assert decided(files, 300) <= at_most(FALSE_ALARMS, 300)


def found_in(design: Design, rows: np.ndarray) -> float:
    return design.spread((row,) for row in rows).deviation


def test_what_lies_between_instances_is_found_whatever_repetitions_are_slow():
    generator, design = np.random.default_rng(7), Design(3, 3)
    spreads, doubled = [], []
    for _ in range(200):
        noises = between_instances(0.05, design), slow_repetitions(0.05, design)
        calm, slow = (noise(generator, 0) + within(generator, (11, 9)) for noise in noises)
        spreads.append([found_in(design, rows) for rows in (calm, slow)])
        calm[:, 0] += np.log(2)  # one in nine
        doubled.append(found_in(design, calm))
    calm, slow = np.median(spreads, axis=0)
    assert calm == pytest.approx(0.05, rel=0.1) and slow == pytest.approx(0.05, rel=0.1)
    assert np.mean(np.array(spreads) == 0) < 0.01 and np.median(doubled) > 0.95 * calm


def test_an_interval_that_knows_nothing_of_instances_is_found_to_be_too_narrow(monkeypatch):
    count, design = 100, Design(1, 9)
    monkeypatch.setattr(Design, "spread", lambda *_: NOTHING)
    covered = coverage(Files(design, between_instances(0.1, design)), count)
    assert max(covered.crossover, covered.again) < at_least(WANTED, count)
    assert ratios_covered(design, 0.03, count, known=False) < at_least(WANTED, count)


@pytest.mark.parametrize(
    ("design", "deviation"),
    cases(
        [(Design(1, 5), 0.28), (Design(3, 3), 0.03), (Design(5, 1), 0.1)],
        [(Design(*each), by) for each in (*DESIGNS, (1, 5), (2, 5)) for by in (0.03, 0.1, 0.28)],
    ),
)
def test_equal_devices_have_seldom_a_winner(design, deviation):
    files = Files(design, between_instances(deviation, design), threads=2, of_one_program=True)
    assert decided(files, 200) <= at_most(FALSE_ALARMS, 200)


def test_equal_devices_have_seldom_a_winner_with_the_best_of_eight_thread_counts():
    files = Files(Design(9, 1), between_instances(0.03, Design(9, 1)), threads=8)
    assert decided(files, 60) <= at_most(FALSE_ALARMS, 60)


def test_a_winner_at_each_size_by_itself_is_found_to_be_too_much(monkeypatch):
    """Each size at 5 %, whatever the others say."""
    monkeypatch.setattr(crossover, "_LEVEL_OF_AN_END", 0.05)
    monkeypatch.setattr(
        crossover, "_first_above", lambda values, level: int(np.sum(values <= level))
    )
    assert decided(Files(Design(5, 1)), 200) > at_most(FALSE_ALARMS, 200)


@pytest.mark.parametrize(
    ("threads", "repetitions", "counts"),
    cases([(8, 5, "equal"), (8, 9, "ahead"), (6, 30, "equal")]),
)
def test_intervals_with_the_best_of_several_thread_counts_cover(threads, repetitions, counts):
    count = 200
    covered = coverage(Files(Design(repetitions, 1), threads=threads, counts=counts), count)
    assert at_least(WANTED, count) <= min(covered.crossover, covered.speed_up)
    # In standard errors of a median; the smallest of 8 medians is off by 1.1 of them, and the
    # crossover, whose slope is 0.8, by 1.2.
    error = standard_error(repetitions)
    assert abs(covered.speed_up_bias) < 0.75 * error and abs(covered.bias) < 0.95 * error


@pytest.mark.parametrize(
    ("design", "deviation"),
    cases(
        [(Design(9, 1), 0.02), (Design(3, 3), 0.05), (Design(1, 9), 0.05)],
        [(Design(*each), by) for each in DESIGNS for by in (0.02, 0.05)],
    ),
)
def test_ratios_to_another_framework_cover_what_lies_between_instances(design, deviation):
    assert at_least(0.95, 1000) <= ratios_covered(design, deviation, 1000)


@pytest.fixture
def file(tmp_path):
    return a_file(tmp_path)


FIVE, NINE = ((Design(repetitions, 1),) * 2 for repetitions in (5, 9))


@pytest.mark.parametrize(
    ("designs", "noise", "between"),
    cases(
        [
            (NINE, "normal", 0.03),
            (FIVE, "normal", 0.0),
            (NINE, "two modes", 0.0),
            ((Design(1, 9),) * 2, "normal", 0.03),
        ]
    ),
)
def test_equal_files_are_seldom_called_different(file, designs, noise, between):
    runs = Runs(designs, noise, between)
    shares = called(file, runs, 25)
    assert max(shares.any, shares.failed) <= at_most(FALSE_ALARMS, 25)


def test_one_slow_row_of_many_is_found(file):
    shares = called(file, Runs(NINE, slow_row=1.3), 25)
    assert shares.failed >= shares.named >= at_least(POWER, 25)


def test_pairs_find_a_slowdown_of_5_percent():
    (power, _), (false_alarms, _) = (decided_by_pairs(effect, 0.03, 400) for effect in (1.05, 1.0))
    assert power >= at_least(POWER, 400)
    assert false_alarms <= at_most(0.05 / 32, 400)


def test_the_interval_decides_at_the_border(file):
    """All rows are slower by just what is allowed; the points of half of them are above it."""
    shares = called(file, Runs(NINE, drift=1.05), 25, limit=0.05)
    assert shares.failed <= at_most(FALSE_ALARMS, 25)
