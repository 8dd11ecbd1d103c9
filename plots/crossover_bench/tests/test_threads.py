# SPDX-License-Identifier: Apache-2.0
"""From which size more threads pay, what pairs say of it, and what following it costs."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.crossover.section import crossover_table
from crossover_bench.answers.paired import DISAGREES, disagree, pairs_of, pairs_words, spacing
from crossover_bench.answers.threads import section
from crossover_bench.answers.threads.section import more_threads, threads_sentence, threads_table
from crossover_bench.answers.training.table import best_table
from crossover_bench.curves.crossover import (
    EQUAL_WITHIN,
    Crossover,
    comparisons,
    find_crossover,
    regret,
)
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.curves import thread_pairs
from crossover_bench.curves.network import epoch_rows
from crossover_bench.files import loading
from crossover_bench.files.ladders import DISC
from crossover_bench.files.rows import PairedInterval, Refinement
from crossover_bench.show.page.section import Context
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_answers import PAIRED, interval, pairs
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, DISC_SIZES, curve, known

CROSSING = 30_000.0


def seconds(threads: int, params: float) -> float:
    return 1e-3 * (params / CROSSING) ** (0.9 if threads == 1 else 0.5)


def rows(counts: tuple[int, ...] = (1, 2), crossing: float = 1.0) -> list[dict[str, Any]]:
    """Epochs on these numbers of threads; `crossing` moves the time of one."""
    generator = np.random.default_rng(1)
    entries = []
    for model in DISC_MODELS:
        params = float(synthetic.MODELS[model][0])
        for count in counts:
            centre = seconds(count, params) * (crossing if count == 1 else 1.0)
            times = centre * (1 + generator.gamma(2.0, 0.005, 9))
            configuration = synthetic.cpu_configuration(model, count)
            entries += synthetic.samples(configuration, times.tolist())
    return entries


@pytest.mark.parametrize(("ahead", "kind"), [(1.02, "once"), (1.10, "several")])
def test_what_drifts_by_little_is_no_win(ahead: float, kind: str) -> None:
    """2 threads seem a little faster up to the fifth size, are slower up to the eighth, and then
    faster."""
    places = np.arange(len(DISC_SIZES))
    generator = np.random.default_rng(2)
    seconds_of_one = np.where(places < 5, ahead, 1.0)
    seconds_of_two = np.select([places < 5, places < 8], [1.0, 1.3], 0.6)
    answer = find_crossover(
        curve("cpu", seconds_of_one, generator, scale=0.001),
        curve("cuda", seconds_of_two, generator, scale=0.001),
        equal_within=EQUAL_WITHIN,
    )
    assert answer.kind == kind


@pytest.fixture
def read(read) -> Callable[..., Any]:
    def of(entries: list[dict[str, Any]], *refinements: dict[str, Any], **options: Any) -> Any:
        document = synthetic.document(entries, **options)
        if refinements:
            document["context"]["crossover"]["refinements"] = list(refinements)
        return read(document)

    return of


def test_networks_in_between_are_discs():
    assert all(map(DISC.has, ("disc-8", "disc-8x1.5", "disc-12x1.0625")))
    assert not any(map(DISC.has, ("disc", "disc-8x", "disc-x1", "disco-8", "disc-8-x1.5")))


def test_sides_that_run_one_program_are_equal(read):
    entries = rows()
    for entry in entries:
        configuration = entry["configuration"]
        is_small = configuration["model"] in DISC_MODELS[:3]
        entry["threads_used"] = 1 if is_small else int(configuration["cpu_threads"])
    (pair,) = more_threads(read(entries))
    assert pair.crossover.winners[:4] == (0, 0, 0, -1)


def test_the_fewest_threads_stand_against_as_many_as_there_are_cores(read):
    ((_, fewest, most),) = thread_pairs(read(rows((1, 2, 8))))  # of a machine with two cores
    assert [side.configuration["cpu_threads"] for side in (fewest, most)] == ["1", "2"]
    assert not list(thread_pairs(read(rows((1, 8)))))
    assert more_threads(read(rows((2,)))) == []


@pytest.mark.parametrize(("crossing", "side"), [(1e4, "2 threads"), (1e-4, "1 thread")])
def test_one_side_that_always_wins_is_said(read, crossing, side):
    file = read(rows(crossing=crossing))
    sentence = threads_sentence(file, *more_threads(file))
    assert f"faster on {side} at every size measured" in sentence


def test_pairs_are_those_of_the_same_sides_and_may_contradict(read):
    same = pairs(interval(25504, 33000))
    other = pairs(interval(1, 2), common={**PAIRED, "batch": "10"})
    words = "In paired measurements, 2 threads won reliably from between 25,504 and 33,000"
    for refinements, has in (((same, other), True), ((other,), False)):
        file = read(rows(), *refinements)
        (pair,) = more_threads(file)
        assert (words in threads_sentence(file, pair)) == has
        assert bool(pairs_of(file, pair)) == has
    file = read(rows(), pairs(interval(100, 200)))  # far away
    compared = more_threads(file)
    words = "contradict that: 2 threads won reliably from between 100"
    assert words in threads_sentence(file, compared[0])
    assert DISAGREES in threads_table(file, compared).notes
    # Of a run that was resumed the last pairs count.
    file = read(rows(), pairs(complete=False), pairs(interval(25504, 33000)))
    assert pairs_of(file, more_threads(file)[0]).complete


@pytest.mark.parametrize(("low", "high"), [(40_000, 60_000), (400, 600)])
def test_pairs_of_the_device_stand_for_the_best_thread_count(read, low, high):
    second = {"device": "cuda", "execution": "graph", "data": "pinned"}
    paired = pairs(interval(low, high), kind="device", second=second)
    file = read(known(50_000), paired, gpu="synthetic GPU")
    compared = comparisons(file)
    assert pairs_of(file, next(pair for pair in compared if pair.cpu.candidates))
    table, contradicts = crossover_table([(file, compared)]), high < 50_000
    (record,) = table.records()
    assert (record["pairs_low"], record["pairs_high"]) == (low, high)
    between = f"between {low:,} and {high:,} parameters"
    assert record["pairs"] == f"GPU won reliably from {between}"
    assert (DISAGREES in table.notes) == contradicts
    head = "Paired measurements contradict that:" if contradicts else "In paired measurements,"
    assert (
        f"{head} the GPU won reliably from {between}."
        in glance(Study(file, compared=compared)).lines
    )


def refinement(*intervals: PairedInterval, complete: bool = True) -> Refinement:
    ladder = ((10.0, "first"), (40.0, "first"), (400.0, "second"))
    return Refinement("threads", {}, {}, {}, complete, ladder, (), intervals)


def crossover(kind: Any, *numbers: float | None) -> Crossover:
    size, low, high = numbers or (None, None, None)
    return Crossover(kind, size, low, high, ())


def once(low: float | None = 80, high: float | None = 120) -> Crossover:
    return crossover("once", 100, low, high)


FIRST, SECOND = (partial(PairedInterval, side) for side in ("first", "second"))


@pytest.mark.parametrize(
    ("answer", "paired", "expected"),
    [
        (once(), refinement(FIRST(110, 130)), False),
        (once(), refinement(FIRST(121, 130)), True),
        (once(), refinement(FIRST(50, 79)), True),
        (once(low=None), refinement(FIRST(50, 79)), False),
        (once(high=None), refinement(FIRST(500, 600)), False),
        (once(), refinement(FIRST(None, 90)), False),
        (once(), refinement(FIRST(None, 70)), True),
        (once(), refinement(SECOND(90, 110)), True),
        (once(), refinement(), True),
        (once(), refinement(complete=False), False),
        (crossover("always"), refinement(), False),
        (crossover("always"), refinement(FIRST(50, 60)), False),
        (crossover("always"), refinement(SECOND(50, 60)), True),
        (crossover("never"), refinement(FIRST(50, 60)), True),
        (crossover("never"), refinement(FIRST(50, None)), False),
        (crossover("ambiguous"), refinement(FIRST(50, 60)), False),
    ],
)
def test_which_answers_contradict_each_other(answer, paired, expected):
    assert disagree(answer, paired) is expected


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        ([SECOND(10, 12)], "1 thread won reliably from between 10 and 12 parameters"),
        (
            [SECOND(None, 12)],
            "1 thread first won reliably at 12 parameters, 2 threads at no smaller size",
        ),
        (
            [SECOND(10, None)],
            "2 threads last won reliably at 10 parameters, 1 thread at no larger size",
        ),
        ([SECOND(None, None)], "no side won reliably where the winner seemed to change"),
        ([FIRST(10, 12)] * 5, "; 2 more changes"),
        ([], "the winner did not change (unfinished)"),
    ],
)
def test_pairs_in_words(intervals, words):
    paired = refinement(*intervals, complete=bool(intervals))
    assert pairs_words(paired, ("1 thread", "2 threads")).endswith(words)
    assert spacing(paired) == 10


def test_regret_is_the_time_that_the_rule_loses():
    sizes = np.array([1.0, 2.0, 3.0, 4.0])
    generator = np.random.default_rng(0)
    below = curve("cpu", np.array([1.0, 1.0, 2.0, 8.0]), generator, sizes=sizes, scale=0.0)
    above = curve("cuda", np.array([4.0, 2.0, 1.0, 1.0]), generator, sizes=sizes, scale=0.0)
    right = regret(crossover("once", 2.5, 2.0, 3.0), below, above)
    assert right and right.mean == right.largest == 0
    late = regret(crossover("once", 3.5, 2.0, 3.0), below, above)  # takes 2 where 1 would do
    assert late and (late.mean, late.largest, late.at) == pytest.approx((0.125, 0.5, 3.0))
    always = regret(crossover("always"), below, above)
    assert always and always.mean == pytest.approx((0.75 + 0.5) / 4)
    never = regret(crossover("never"), below, above)
    assert never and never.largest == pytest.approx(0.875) and never.at == 4
    assert regret(crossover("ambiguous"), below, above) is None
    assert regret(crossover("several"), below, above) is None


def test_what_following_it_costs_is_said(read):
    # The GPU wins at large sizes and at one small one, which the rule gives away.
    entries = known(50_000)
    for entry in entries:
        if entry["configuration"]["model"] == "disc-4" and "cpu_threads" in entry:
            for field in ("real_time", "cpu_time"):
                entry[field] *= 1e4
    file = read(entries, gpu="synthetic GPU")
    compared = comparisons(file)
    lost = regret(compared[0].crossover, compared[0].cpu, compared[0].gpu)
    assert lost and lost.largest > 0.5 and lost.at == 230
    (record,) = crossover_table([(file, compared)]).records()
    assert (record["regret"], record["largest_regret"]) == (lost.mean, lost.largest)


def test_sizes_in_between_join_the_curve_and_choose_no_headline(read):
    entries = known(50_000)
    more = synthetic.cpu_configuration("disc-8", 1)
    for configuration in (more, synthetic.gpu_configuration("disc-8")):
        between = {**configuration, "model": "disc-8x1.5"}
        entries += synthetic.samples(between, [1e-3] * 9, params=99824, rows=1000)
    file = read(entries, gpu="synthetic GPU")
    pair = next(pair for pair in comparisons(file) if pair.cpu.candidates)
    assert 99824 in pair.sizes and 99824 not in pair.ladder
    assert len(pair.ladder) == len(DISC_MODELS)
    (note,) = best_table(epoch_rows(file)).notes
    assert note == "1 disc network between these sizes was measured as well."


def test_the_command_and_the_page_show_where_more_threads_pay(read, shell):
    file = read(rows(), pairs(interval(25504, 33000)))
    (pair,) = more_threads(file)
    assert pair.sides == ("1 thread", "2 threads") and pair.crossover.kind == "once"
    assert pair.crossover.size == pytest.approx(CROSSING, rel=0.05)
    assert pair.crossover.low <= CROSSING <= pair.crossover.high
    sentence = threads_sentence(file, pair)
    assert sentence.startswith(
        "At batch 100, 2 threads train disc networks faster than 1 thread from "
    )
    assert sentence in " ".join(shell("crossover", "--threads", file.path).out.split())
    (line,) = json.loads(shell("crossover", "--threads", "--format=json", file.path).out)[0]["rows"]
    assert (line["kind"], line["pairs_low"], line["pairs_high"]) == ("once", 25504, 33000)
    assert 0 <= line["regret"] <= line["largest_regret"] < 0.1
    built = section.build([file], Context())
    assert built and built.blocks[0].points == (sentence,)


def test_faulty_pairs_are_refused(read):
    for fault in (
        {"kind": "threats"},
        {"intervals": [{"below": "third", "low": 1, "high": 2}]},
        {"complete": "yes"},
        {"sizes": [{"model": "disc-8x1.5"}]},
    ):
        with pytest.raises(loading.BadFileError):
            read(rows(), pairs(**fault))


def test_sides_are_named_as_asked():
    sizes = np.array([10.0, 100.0])
    generator = np.random.default_rng(0)
    fast = curve("cpu", np.array([1.0, 1.0]), generator, sizes=sizes)
    slow = curve("cpu", np.array([2.0, 2.0]), generator, sizes=sizes)
    for sides, begin in ((fast, slow), "one at every size"), ((slow, fast), "all at every size"):
        answer = find_crossover(*sides, sides=("one", "all"))
        assert crossover_words(answer).startswith(begin)
