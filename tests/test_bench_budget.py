# SPDX-License-Identifier: Apache-2.0
"""`bench --budget`: what matters most first, and an end; budget_test.cpp asks when that is."""

from collections import Counter
from typing import Any

import pytest
from bench_runs import DISC, EPOCHS, SHORT, Document, measure, plan, repetitions, run


def counted(names: list[str]) -> str:
    families = Counter(name.partition("/")[0] for name in names)
    return ", ".join(f"{count} {family}" for family, count in sorted(families.items()))


def test_the_question_comes_first():
    sweep = ("--threads=1,2,4", "--cuda=off")
    rows = plan("--budget=10h", *sweep)
    assert sorted(row.name for row in rows) == sorted(row.name for row in plan(*sweep))
    passes = "ceilings networks Epoch Copy Gemm Layer Minibatch Forward"
    assert list(dict.fromkeys(row.phase for row in rows)) == passes.split()
    ladder = [row.axes for row in rows if row.phase == "networks"]
    models = list(dict.fromkeys(axes["model"] for axes in ladder))
    # On each ladder, each step halves the widest gap.
    assert models[:5] == ["disc-2", "disc-12", "disc-7", "disc-4", "disc-9"]
    transformers = [model for model in models if model.startswith("gpt-")]
    assert transformers[:3] == ["gpt-16", "gpt-256", "gpt-64"]
    assert len(transformers) == 5 and models[11] == "heart" and len(models) == 26
    # The fastest on the CPU is one of these, mostly.
    assert {axes["cpu_threads"] for axes in ladder} == {"1", "4"}
    assert {row.axes["cpu_threads"] for row in rows if row.phase == "Epoch"} == {"2"}


def test_rows_of_a_gpu_are_on_the_ladder_where_the_data_is_resident():
    rows = plan("--budget=1h", "--threads=1", "--model=disc-2", "--family=Epoch")
    on_gpu = [row for row in rows if row.axes["device"] == "cuda"]
    placements = {(row.phase, row.axes["data"]) for row in on_gpu}
    assert {place for phase, place in placements if phase == "networks"} == {"resident"}
    assert ("Epoch", "pinned") in placements


def assert_whole(document: Document, planned: set[str]) -> dict[str, Any]:
    """Each planned row is in the file or left open. What the file says of the budget."""
    crossover = document["context"]["crossover"]
    budget = crossover["budget"]
    names = [row["name"] for row in document["rows"]]
    assert sorted([*names, *budget["left_open"]]) == sorted(planned)
    assert crossover["complete"] is (not budget["left_open"])
    return budget


@pytest.mark.slow
def test_a_run_ends_and_says_what_is_open(tmp_path):
    # Far more than fits: the repetitions alone take longer.
    sweep = ("--cuda=off", "--threads=1", "--benchmark_min_time=0.1")
    document, done = run(tmp_path, *sweep, "--budget=2s")
    budget = assert_whole(document, {row.name for row in plan(*sweep)})
    assert budget["seconds"] == 2
    assert f"left open by the budget: {counted(budget['left_open'])} of" in done.stderr


def assert_goes_on(before: dict[str, Any], after: dict[str, Any]) -> None:
    """The rows in their order, each with the repetitions that it had."""
    names = [row["name"] for row in before["rows"]]
    assert [row["name"] for row in after["rows"]][: len(names)] == names
    for name in names:
        known = repetitions(before, name)
        assert repetitions(after, name)[: len(known)] == known


@pytest.mark.slow
def test_a_larger_budget_adds_to_the_same_file(tmp_path):
    batches = "--batch=" + ",".join(map(str, range(100, 112)))
    rows = ("--model=disc-2", "--threads=1", *EPOCHS, batches)
    flags = (*rows, "--benchmark_min_time=0.02", "--benchmark_repetitions=3")
    names = {row.name for row in plan(*rows)}
    first = measure(tmp_path, *flags, "--budget=0.5s")
    assert assert_whole(first, names)["left_open"]  # the repetitions alone take 0.7 s
    second = measure(tmp_path, *flags, "--budget=1s", "--resume")
    assert assert_whole(second, names)["seconds"] == 1
    assert_goes_on(first, second)
    whole = measure(tmp_path, *flags, "--budget=1h", "--resume")
    assert assert_whole(whole, names)["left_open"] == []
    assert_goes_on(second, whole)
    assert whole["context"]["crossover"]["complete"] is True


@pytest.mark.slow
def test_time_that_is_left_goes_to_more_repetitions(tmp_path):
    # It ends where there is nothing more to do.
    document = measure(tmp_path, *DISC[:-2], *SHORT[:1], "--budget=1h")
    (row,) = document["rows"]
    assert assert_whole(document, {row["name"]})["left_open"] == []
    asked = document["context"]["crossover"]["configuration"]["repetitions"]
    assert row["repetitions"] == 3 * asked == len(repetitions(document, row["name"]))
    assert row["chosen"]["cpu_threads"] == "1"  # as in the first of its instances
    # All repetitions have as many iterations as the first, which settled them.
    assert [entry.get("iterations") for entry in document["benchmarks"][1:]].count(None) > asked


def test_times_are_read_and_no_random_order_is_none():
    for text in ("1.5h", "90s", "5m", "1e2s"):
        assert plan(*DISC, f"--budget={text}", "--benchmark_enable_random_interleaving=false")
