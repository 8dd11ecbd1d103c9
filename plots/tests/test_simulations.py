# SPDX-License-Identifier: Apache-2.0
"""The shares that docs/method states of simulated files, of fewer files than there.

The seeds are fixed. A margin of 2.6 standard errors lets a rule pass whose true share is just what
is asked for, and fails the smallest of several medians, a rank test, and a point at the border.
"""

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
        (8, 5, "equal"),
        (8, 9, "equal"),
        (8, 9, "one ahead by 1.5 errors"),
        (6, 30, "equal"),
    ],
)
def test_intervals_with_the_best_of_several_thread_counts_cover(threads, repetitions, counts):
    files = 60
    found = simulate.coverage(threads, repetitions, counts, files=files)
    assert found.crossover >= WANTED - margin(WANTED, files)
    assert found.speed_up >= WANTED - margin(WANTED, files)
    # In standard errors of a median; the smallest of 8 medians is off by 1.1 of them, and the
    # crossover, whose slope is 0.8, by 1.2.
    error = simulate.standard_error(repetitions)
    assert abs(found.speed_up_bias) < 0.75 * error and abs(found.bias) < 0.95 * error


@pytest.fixture
def file(tmp_path):
    return simulate.a_file(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("noise", "repetitions"),
    [("normal", (9, 9)), ("normal", (5, 5)), ("two modes", (9, 9))],
)
def test_equal_files_are_seldom_called_different(file, noise, repetitions):
    count = 25
    called, failed, _ = simulate.noted(file, noise, repetitions, files=count)
    most = FALSE_ALARMS + margin(FALSE_ALARMS, count)
    assert called <= most and failed <= most


@pytest.mark.slow
def test_one_slow_row_of_many_is_found(file):
    count = 25
    _, failed, named = simulate.noted(file, "normal", (9, 9), slow_row=1.3, files=count)
    assert failed >= named >= POWER - margin(POWER, count)


@pytest.mark.slow
def test_the_interval_decides_at_the_border(file):
    """All rows are slower by just what is allowed; the points of half of them are above it."""
    count = 25
    _, failed, _ = simulate.noted(file, "normal", (9, 9), drift=1.05, limit=0.05, files=count)
    assert failed <= FALSE_ALARMS + margin(FALSE_ALARMS, count)
