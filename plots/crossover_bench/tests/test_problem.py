# SPDX-License-Identifier: Apache-2.0
"""Any work with ways to do it on both devices: who wins from which size on, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from crossover_bench.curves.problem import Answer, Device, NoAnswerError, Problem, Way, answer
from crossover_bench.curves.problem_words import sentences, verdict
from crossover_bench.files.samples import assumed
from crossover_bench.show.charts.crossover import draw_problem
from crossover_bench.show.tables.problem import crossovers_table, sizes_table

SIZES = tuple(float(2**power) for power in range(7, 18))
EQUAL = 7500.0  # where a CPU of 1 ns each and a GPU of a launch meet


def way(
    word: str,
    device: Device,
    start: float,
    each: float,
    *,
    sizes: tuple[float, ...] = SIZES,
    count: int = 5,
    failures: Mapping[float, str] | None = None,
    processes: int = 1,
) -> Way:
    """Seconds of `start` and `each` size, with 2 % of noise."""
    random = np.random.default_rng([*word.encode()])
    lines = {
        size: tuple((start + each * size) * random.normal(1, 0.02, count * processes))
        for size in sizes
    }
    of = tuple(place // count for place in range(count * processes)) if processes > 1 else ()
    return Way(word, device, lines, {size: of for size in lines if of}, failures or {})


def asked(*ways: Way, **more: object) -> Answer:
    return answer(Problem("sort", "n", ways, **more))  # type: ignore[arg-type]


SERIAL = way("serial", "cpu", 0, 1e-9)
CUDA = way("cuda", "gpu", EQUAL * 1e-9, 0)


def test_a_crossing_by_size_and_interval_ends_and_words():
    told = asked(SERIAL, CUDA, common={"batch": "64"})
    crossover = told.crossover
    assert crossover.kind == "once"
    assert crossover.size == pytest.approx(EQUAL, rel=0.03)
    assert crossover.low < EQUAL < crossover.high
    lead, ends, *_, spread = sentences(told)
    assert lead.startswith("sort, batch 64: the GPU wins from n = 7,")
    assert ends.startswith("At n = 128 the CPU is 5") and "at n = 131,072 the GPU is 1" in ends
    assert "standard deviation" in spread
    (record,) = crossovers_table([told]).records()
    assert (record["problem"], record["batch"], record["measure"]) == ("sort", "64", "n")
    assert record["crossover"] == crossover.size
    assert len(sizes_table(told).records()) == len(SIZES)


def test_the_best_of_the_host_stands_for_it_and_each_way_of_the_gpu_has_an_answer():
    parallel = way("parallel", "cpu", 2e-6, 0.25e-9)
    slow = way("slow", "gpu", 2 * EQUAL * 1e-9, 0)
    told = asked(SERIAL, parallel, CUDA, slow)
    assert told.crossover.size == pytest.approx(4 * (EQUAL - 2000), rel=0.1)
    assert [each.gpu.words.how for each in told.compared] == ["cuda", "slow"]
    assert told.compared[1].crossover.size == pytest.approx(4 * (2 * EQUAL - 2000), rel=0.1)
    text = " ".join(sentences(told))
    assert "The CPU is the fastest of serial and parallel, at each size." in text
    assert "Of the GPU's ways, cuda: from n = 2" in text
    assert {record["cpu"] for record in sizes_table(told).records()} == {"serial", "parallel"}


def test_what_has_no_time_is_named_and_left_out():
    left = dict.fromkeys(SIZES[-2:], "out of memory")
    failing = way("cuda", "gpu", EQUAL * 1e-9, 0, sizes=SIZES[:-2], failures=left)
    told = asked(SERIAL, failing)
    assert told.crossover.size == pytest.approx(EQUAL, rel=0.03)
    text = " ".join(sentences(told))
    assert "On the GPU cuda has no time at n = 65,536 and 131,072: out of memory." in text
    assert sizes_table(told).notes == ("cuda: out of memory",)


@pytest.mark.parametrize(
    ("launch", "kind", "words"),
    [
        (1.0, "never", "CPU at every size measured, n = 128 to 131,072"),
        (1e-9, "always", "GPU at every size measured, n = 128 to 131,072"),
    ],
)
def test_never_and_always(launch, kind, words):
    told = asked(SERIAL, way("cuda", "gpu", launch, 0))
    assert (told.crossover.kind, verdict(told)) == (kind, words)


def test_one_repetition_tells_by_the_median_and_says_so():
    told = asked(
        way("serial", "cpu", 0, 1e-9, count=1), way("cuda", "gpu", EQUAL * 1e-9, 0, count=1)
    )
    assert told.crossover.kind == "ambiguous"
    lead = sentences(told)[0]
    assert lead.startswith("sort: the GPU wins from n = 7,")
    assert lead.endswith(", by medians of fewer than 5 repetitions, without an interval.")
    assert told.fewest == 1


def test_many_processes_say_themselves_how_far_they_are_apart():
    told = asked(
        way("serial", "cpu", 0, 1e-9, processes=5), way("cuda", "gpu", EQUAL * 1e-9, 0, processes=5)
    )
    alone = asked(SERIAL, CUDA).crossover
    assert not told.spreads
    assert told.crossover.high / told.crossover.low < 0.5 * alone.high / alone.low + 0.5


def test_no_answer_says_why():
    with pytest.raises(NoAnswerError, match="no row of the GPU has a time"):
        asked(SERIAL)
    other = way("cuda", "gpu", 1, 0, sizes=(3.0, 128.0))
    with pytest.raises(NoAnswerError, match="at 1 common size, and two are needed"):
        asked(SERIAL, other)


def test_a_chart_has_each_way_and_the_answer():
    chart = draw_problem(asked(SERIAL, CUDA))
    assert chart.name == "crossover-sort"
    assert b"serial" in chart.pictures.svg and "from n = 7," in chart.alt


def test_ways_of_one_device_are_called_by_their_names():
    other = way("vectors", "gpu", EQUAL * 1e-9, 0)
    told = asked(SERIAL, other, both="cpu")
    words = " ".join(sentences(told))
    assert words.startswith("sort: vectors wins from n = 7,")
    assert "at n = 131,072 vectors is 1" in words and "GPU" not in words
    (spread,) = {spread.deviation for spread in told.spreads}
    assert spread == assumed("cpu").deviation
    assert "where vectors overtakes serial" in draw_problem(told).pictures.svg.decode()
    several = asked(SERIAL, other, way("slow", "gpu", EQUAL * 1e-9, 1e-8), both="cpu")
    assert sentences(several)[0].startswith("sort: the best of vectors and slow wins from n = 7,")
    assert several.compared[1].crossover.question.sides == ("serial", "slow")
