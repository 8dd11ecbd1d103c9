# SPDX-License-Identifier: Apache-2.0
"""Two peaks are found where there are two, and seldom where there is one."""

import json

import numpy as np
import pytest

from crossover_bench.answers.doubts import section as doubts
from crossover_bench.counts.peaks import FEWEST, peaks, separation, threshold
from crossover_bench.show.page.section import Context
from crossover_bench.tests import synthetic

TRIALS = 20_000
ONE_PEAK = {  # of the logarithm of a time, and the share of 9 repetitions that two are seen in
    "normal": (lambda generator, size: generator.standard_normal(size), 0.02),
    "skewed": (lambda generator, size: generator.gumbel(size=size), 0.03),
    "heavy-tailed": (lambda generator, size: generator.standard_t(3, size), 0.02),
    "exponential": (lambda generator, size: generator.exponential(size=size), 0.04),
}


def share(values: np.ndarray) -> float:
    """Of samples, one a line, those in which two peaks would be seen, however near."""
    return float(np.mean(separation(np.sort(values))[0] > threshold(values.shape[1])))


@pytest.mark.parametrize("noise", ONE_PEAK)
def test_one_peak_is_seldom_taken_for_two(noise):
    draw, most = ONE_PEAK[noise]
    generator = np.random.default_rng(1)
    assert share(draw(generator, (TRIALS, 9))) < most
    for count in (15, 40):
        assert share(draw(generator, (TRIALS, count))) < 0.04


@pytest.mark.parametrize("count", [7, 8, 9, 10, 12, 14, 17, 20, 27, 45])
def test_the_thresholds_are_what_5_percent_of_the_flattest_exceed(count):
    assert share(np.random.default_rng(2).random((TRIALS, count))) == pytest.approx(0.05, abs=0.01)


def test_two_peaks_are_found():
    generator = np.random.default_rng(3)
    for count, least in ((9, 0.8), (20, 0.95)):
        slow = generator.permuted(np.arange(count)[None].repeat(TRIALS, 0), axis=1) < count // 2
        assert share(np.log(1.5) * slow + 0.04 * generator.standard_normal(slow.shape)) > least


def row(read, samples, **more):
    entries = synthetic.samples(synthetic.cpu_configuration("disc-3", 2), samples, **more)
    return read(synthetic.document(entries)).rows[0]


FAST, SLOW = [1.70e-3, 1.71e-3, 1.73e-3, 1.74e-3], [2.57e-3, 2.58e-3, 2.60e-3, 2.61e-3, 2.70e-3]


def test_each_peak_has_its_median_and_its_count(read):
    modes = peaks(row(read, [*SLOW, *FAST]))
    assert (modes.lows, modes.highs) == (4, 5)
    assert modes.low == pytest.approx(1.72e-3) and modes.high == pytest.approx(2.60e-3)


@pytest.mark.parametrize(
    "samples",
    [
        [1e-3] * 9,
        [*FAST, *SLOW][: FEWEST - 1],
        [1e-3 + 1e-7 * place for place in range(8)] + [9e-3],  # an outlier is no peak
        [1.00e-3, 1.00e-3, 1.00e-3, 1.00e-3, 1.02e-3, 1.02e-3, 1.02e-3, 1.02e-3, 1.02e-3],  # near
    ],
)
def test_what_is_not_two_peaks(read, samples):
    assert peaks(row(read, samples)) is None


def test_the_page_and_times_say_so(read, write, shell):
    document = synthetic.document(
        synthetic.samples(synthetic.cpu_configuration("disc-3", 2), [*SLOW, *FAST])
    )
    words = "Two peaks: 4 of 9 instances of the program take about 1.72 ms, 5 about 2.60 ms"
    assert words in " ".join(shell("times", write(document)).out.split())
    table, _ = json.loads(shell("times", write(document), "--format=json").out)
    assert any(note.startswith(words) for note in table["notes"])
    (block,) = doubts.build([read(document)], Context()).blocks
    (table,) = block.tables
    assert any(words in line[1].text for line in table.lines) and "two peaks" in block.lead
