# SPDX-License-Identifier: Apache-2.0
"""The crossover of curves whose crossover is known, because they are made around it.

How often intervals hold the truth, and equal devices have a winner: test_simulations.py.
"""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import bootstrap

from crossover_bench.curves.crossover import Crossover, find_crossover
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.curves import Curve
from crossover_bench.files.axes import Label
from crossover_bench.tests.synthetic_sweep import DISC_SIZES, curve, noisy

GPU_SECONDS = np.full(len(DISC_SIZES), 1e-3)
WIDE_NOISE = 0.15  # the gamma noise's scale: times spread by a fifth


def speed_up_curves(
    speed_ups: np.ndarray, seed: int = 0, scale: float = 0.015, repetitions: int = 9
) -> tuple[Curve, Curve]:
    """CPU and GPU curves whose median times have these ratios."""
    generator = np.random.default_rng(seed)
    cpu = curve("cpu", GPU_SECONDS * speed_ups, generator, scale=scale, repetitions=repetitions)
    gpu = curve("cuda", GPU_SECONDS, generator, scale=scale, repetitions=repetitions)
    return cpu, gpu


def crossing_at(*sizes: float, slope: float = 0.8) -> np.ndarray:
    """Speedups that cross 1 exactly at `sizes`, the first time to the GPU's favour.

    Around each crossing they are a power law, so that log-log interpolation has no error.
    """
    distances = [slope * np.log(DISC_SIZES / size) for size in sizes]
    turned = [(-1) ** place * distance for place, distance in enumerate(distances)]
    nearest = np.argmin(np.abs(distances), axis=0)
    return np.exp(np.choose(nearest, turned))


def answer(speed_ups: np.ndarray, **noise: float) -> Crossover:
    return find_crossover(*speed_up_curves(speed_ups, **noise))


@pytest.mark.parametrize("known", [(50_000.0,), (300.0, 20_000.0, 1.5e6), (300.0, 1.5e6)])
def test_crossings_are_found_in_noise(known):
    crossover = answer(crossing_at(*known))
    assert crossover.kind == ("several" if len(known) > 1 else "once")
    assert crossover.crossings == pytest.approx(known, rel=0.05)
    if len(known) % 2 == 0:  # the CPU wins at the end
        assert crossover.size is None and crossover.high is None
        return
    assert crossover.size == crossover.crossings[-1]
    assert (
        crossover.low <= known[-1] <= crossover.high
        and crossover.low <= crossover.size <= crossover.high
    )
    assert crossover.high / crossover.low < 1.2


LAST = "from 1,500,000 parameters (1,500,000 to 1,500,000)"
THREE = (300.0, 20_000.0, 1.5e6)
NOT_WHOLE = (300.4, 20_000.0, 1.5e6)


@pytest.mark.parametrize(
    ("known", "turned", "measure", "words"),
    [
        ((25.0,), False, "parameters", "from 25 parameters (25 to 25)"),
        ((806.0,), False, "parameters", "from 806 parameters (806 to 806)"),
        ((12_345.0,), False, "parameters", "from 12,300 parameters (12,300 to 12,300)"),
        ((9e6,), False, "size", "from size 9,000,000 (9,000,000 to 9,000,000)"),
        ((20_000.0,), True, "parameters", "GPU only up to 20,000 parameters"),
        (THREE[::2], False, "parameters", "GPU only from 300 to 1,500,000 parameters"),
        (THREE[::2], True, "parameters", f"GPU up to 300 and {LAST}"),
        (THREE, False, "parameters", f"GPU from 300 to 20,000 and {LAST}"),
        (NOT_WHOLE, False, "parameters", f"GPU from 301 to 20,000 and {LAST}"),
        (NOT_WHOLE, True, "size", "GPU only up to size 300 and from size 20,000 to size 1,500,000"),
        (THREE, True, "width", "GPU only up to width 300 and from width 20,000 to width 1,500,000"),
    ],
)
def test_without_noise_crossings_are_exact(known, turned, measure, words):
    speed_ups = crossing_at(*known) ** (-1 if turned else 1)
    crossover = find_crossover(*speed_up_curves(speed_ups, scale=0.0), measure)
    assert crossover_words(crossover) == words
    assert crossover.crossings == pytest.approx(known, rel=1e-9)
    for value in (crossover.size, crossover.low, crossover.high):
        assert value == (pytest.approx(known[-1], rel=1e-9) if speed_ups[-1] > 1 else None)


EVERYWHERE = np.ones(len(DISC_SIZES))
TIE = np.array([1.0, *EVERYWHERE[1:] / 3])


@pytest.mark.parametrize(
    ("speed_ups", "kind", "words"),
    [
        (3 * EVERYWHERE, "always", "GPU at every size measured, width 22 to 11,201,190"),
        (EVERYWHERE / 3, "never", "CPU at every size measured, width 22 to 11,201,190"),
        (TIE, "never", "GPU at no size measured, width 22 to 11,201,190"),
    ],
)
def test_one_device_may_win_everywhere(speed_ups, kind, words):
    crossover = find_crossover(*speed_up_curves(speed_ups), "width")
    assert (crossover.kind, crossover_words(crossover)) == (kind, words)
    assert not any((crossover.size, crossover.low, crossover.high, crossover.crossings))


def test_equal_devices_are_ambiguous():
    crossover = answer(EVERYWHERE)
    assert crossover.kind == "ambiguous" and crossover.size is None
    assert crossover_words(crossover) == "ambiguous: equal within noise at 11 of 11 sizes"
    cpu, _ = speed_up_curves(EVERYWHERE)
    assert find_crossover(cpu, cpu).kind == "ambiguous"  # the very same samples


def test_equal_at_the_ends_only():
    speed_ups = crossing_at(50_000.0)
    small = speed_ups.copy()
    small[0] = 1.0  # a doubt far below the crossover leaves it as it is
    assert answer(small).kind == "once"
    large = speed_ups.copy()
    large[-1] = 1.0
    crossover = answer(large)
    assert crossover.kind == "ambiguous" and crossover.low and crossover.high is None
    words = crossover_words(crossover)
    assert words.startswith("ambiguous: GPU at 3 sizes, 176,806 to 2,804,390 parameters, and at ")
    assert words.endswith(" at the earliest, or not at 11,201,190 parameters")
    always = 3 * EVERYWHERE
    always[0] = 1.0
    crossover = answer(always)
    assert (
        crossover.kind == "ambiguous" and crossover.low is None and crossover.high < DISC_SIZES[1]
    )
    assert crossover_words(crossover).startswith("ambiguous: GPU at every size measured, or from ")


def test_overlapping_intervals_widen_the_answer():
    narrow = answer(crossing_at(50_000.0, slope=0.3))
    wide = answer(crossing_at(50_000.0, slope=0.3), scale=WIDE_NOISE)
    assert narrow.kind == wide.kind == "once"
    assert wide.high / wide.low > 1.5 * narrow.high / narrow.low
    assert wide.low <= 50_000 <= wide.high


def test_a_size_within_noise_between_the_winners_is_no_crossing():
    speed_ups = np.array([0.2, 0.3, 1.0, 0.3, 0.4, 0.5, 3.0, 4.0, 5.0, 6.0, 7.0])
    for seed in range(20):  # in about half of them the median at the third size is above 1
        crossover = answer(speed_ups, seed=seed)
        assert crossover.kind == "once" and len(crossover.crossings) == 1
        assert DISC_SIZES[5] < crossover.size < DISC_SIZES[6]


def test_scipy_finds_the_same_interval_of_a_difference_of_two_runs():
    cpu, gpu = speed_up_curves(crossing_at(50_000.0), scale=WIDE_NOISE)
    logs = np.log(DISC_SIZES)
    count = len(logs)

    def log_crossover(*samples: np.ndarray, axis: int) -> np.ndarray:
        medians = np.log([np.median(each, axis=axis) for each in samples])
        ratios = medians[:count] - medians[count:]
        # One crossing in the middle of a wide range, so it lies where the sign changes.
        left = np.count_nonzero(ratios <= 0, axis=0) - 1
        below = np.choose(left, ratios)
        above = np.choose(left + 1, ratios)
        return logs[left] - below * (logs[left + 1] - logs[left]) / (above - below)

    expected = bootstrap(
        (*cpu.samples, *gpu.samples),
        log_crossover,
        n_resamples=4000,
        method="percentile",
        vectorized=True,
        rng=1,
    ).confidence_interval
    crossover = find_crossover(cpu, gpu)
    # Another run's crossover differs from this one's by two draws.
    middle, width = np.log(crossover.size), expected.high - expected.low
    low, high = (middle + 2**0.5 * (end - middle) for end in (expected.low, expected.high))
    assert np.log(crossover.low) == pytest.approx(low, abs=0.1 * width)
    assert np.log(crossover.high) == pytest.approx(high, abs=0.1 * width)


@pytest.mark.slow
def test_any_answer_is_in_itself_consistent():
    generator = np.random.default_rng(11)
    kinds = Counter()
    for seed in range(400):
        speed_ups = np.exp(generator.normal(0.0, 0.03, len(DISC_SIZES)).cumsum())
        crossover = answer(speed_ups, seed=seed, repetitions=int(generator.integers(3, 12)))
        kinds[crossover.kind] += 1
        bounds = [
            value for value in (crossover.low, crossover.size, crossover.high) if value is not None
        ]
        assert bounds == sorted(bounds)
        assert all(DISC_SIZES[0] <= value <= DISC_SIZES[-1] for value in bounds)
        # Another day's crossover may lie beyond the sizes, whatever this one's is.
        is_known = crossover.low is not None and crossover.high is not None
        assert crossover.size is not None or not is_known
        assert list(crossover.crossings) == sorted(crossover.crossings)
        assert bool(crossover.crossings) == (crossover.kind in ("once", "several"))
        assert crossover.size in (None, *crossover.crossings[-1:])
        assert "inf" not in crossover_words(crossover) and "nan" not in crossover_words(crossover)
    assert set(kinds) == {"always", "never", "once", "several", "ambiguous"}


@pytest.mark.parametrize("repetitions", [1, 2, 4])
def test_too_few_repetitions_say_nothing_sure(repetitions):
    for speed_ups in (crossing_at(50_000.0), EVERYWHERE, 3 * EVERYWHERE):
        crossover = answer(speed_ups, repetitions=repetitions)
        assert (crossover.kind, crossover.size, crossover.low, crossover.high) == (
            "ambiguous",
            None,
            None,
            None,
        )
        assert crossover_words(crossover).startswith("ambiguous: fewer than 5 repetitions; ")


def test_only_common_sizes_count_and_no_order_of_samples():
    cpu, gpu = speed_up_curves(crossing_at(50_000.0))
    turned = replace(cpu, samples=tuple(samples[::-1] for samples in cpu.samples))
    assert find_crossover(turned, gpu) == find_crossover(cpu, gpu)
    cpu, gpu = speed_up_curves(crossing_at(50_000.0), scale=0.0)
    few = replace(gpu, sizes=gpu.sizes[6:], samples=gpu.samples[6:])
    assert find_crossover(cpu, few).size == pytest.approx(50_000)
    beyond = replace(gpu, sizes=gpu.sizes[-3:], samples=gpu.samples[-3:])
    words = "GPU at every size measured, 703,142 to 11,201,190 parameters"
    assert crossover_words(find_crossover(cpu, beyond)) == words
    nowhere = replace(gpu, sizes=gpu.sizes + 1)
    with pytest.raises(ValueError, match="no size in common"):
        find_crossover(cpu, nowhere)


def test_the_best_of_two_is_chosen_in_each_replicate():
    generator = np.random.default_rng(0)
    slow, fast = (
        tuple(noisy(time, generator) for time in GPU_SECONDS * crossing_at(size))
        for size in (2_000.0, 50_000.0)
    )
    candidates = tuple(zip(slow, fast, strict=True))
    best = Curve(Label("best"), {"cpu_threads": "best"}, DISC_SIZES, fast, candidates)
    gpu = curve("cuda", GPU_SECONDS, generator)
    crossover = find_crossover(best, gpu)
    assert crossover.kind == "once" and crossover.size == pytest.approx(50_000, rel=0.05)


def test_a_thread_count_that_is_far_ahead_is_the_best():
    cpu, gpu = speed_up_curves(crossing_at(50_000.0))
    alone = find_crossover(cpu, gpu)
    best_of_one = replace(cpu, candidates=tuple((samples,) for samples in cpu.samples))
    assert find_crossover(best_of_one, gpu) == alone
    candidates = tuple((2 * samples, samples) for samples in cpu.samples)
    crossover = find_crossover(replace(cpu, candidates=candidates), gpu)
    assert crossover.size == pytest.approx(alone.size, rel=1e-9)
    assert (crossover.low, crossover.high) == pytest.approx((alone.low, alone.high), rel=0.01)
