# SPDX-License-Identifier: Apache-2.0
"""The shares that docs/method states of simulated files, of fewer files than there.

The seeds are fixed. A margin of 2.6 standard errors of the share leaves room for few files only: a
rule whose true share were just what is asked for would pass with 99.5 %.
"""

from __future__ import annotations

import pytest

from plots.tests import simulate

WANTED = 0.93  # of the intervals with the best of several thread counts
POWER = 0.95
FALSE_ALARMS = 0.05


def margin(share: float, count: int) -> float:
    return 2.6 * (share * (1 - share) / count) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("threads", "repetitions", "counts"),
    [
        (3, 9, "equal"),
        (8, 5, "equal"),
        (8, 9, "equal"),
        (8, 9, "one ahead by 1.5 errors"),
        (8, 9, "clearly apart"),
        (6, 30, "equal"),
    ],
)
def test_intervals_with_the_best_of_several_thread_counts_cover(threads, repetitions, counts):
    files = 100
    found = simulate.coverage(threads, repetitions, counts, files=files)
    assert found.crossover >= WANTED - margin(WANTED, files)
    assert found.speed_up >= WANTED - margin(WANTED, files)
    # Beside intervals of 5 to 10 %; the smallest medians of 8 are off by 1.3 to 1.9 %.
    assert abs(found.speed_up_bias) < 0.009 and abs(found.bias) < 0.012


@pytest.fixture
def file(tmp_path):
    return simulate.a_file(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "repetitions"),
    [("normal", (9, 9)), ("skewed", (9, 9)), ("normal", (5, 5)), ("two modes", (9, 9))],
)
def test_equal_files_are_seldom_called_different(file, noise, repetitions):
    count = 40
    called, failed, _ = simulate.noted(file, noise, repetitions, files=count)
    most = FALSE_ALARMS + margin(FALSE_ALARMS, count)
    assert called <= most and failed <= most


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_one_slow_row_of_many_is_found(file, noise):
    count = 40
    _, failed, named = simulate.noted(file, noise, (9, 9), slow_row=1.3, files=count)
    assert failed >= named >= POWER - margin(POWER, count)


@pytest.mark.slow
def test_the_interval_decides_at_the_border(file):
    """All rows are slower by just what is allowed; the points of half of them are above it."""
    count = 40
    _, failed, _ = simulate.noted(file, "normal", (9, 9), drift=1.05, limit=0.05, files=count)
    assert failed <= FALSE_ALARMS + margin(FALSE_ALARMS, count)
