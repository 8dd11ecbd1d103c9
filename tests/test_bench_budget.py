# SPDX-License-Identifier: Apache-2.0
"""`bench --budget`: what matters most first, and an end; budget_test.cpp asks when that is."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bench_runs import (
    DISC,
    EPOCHS,
    SHORT,
    assert_refused,
    bench,
    needs_bench,
    repetitions,
    strict,
    validate,
)

pytestmark = needs_bench


def counted(names: list[str]) -> str:
    families = Counter(name.partition("/")[0] for name in names)
    return ", ".join(f"{count} {family}" for family, count in sorted(families.items()))


def planned(*arguments: str) -> list[tuple[str, str]]:
    """Pass and name of each row, in the order of measuring."""
    lines = bench("--plan", *arguments).stdout.splitlines()
    words = [line.split() for line in lines if " rows " not in line]
    return [(row[0], row[-1]) for row in words]


def test_the_question_comes_first() -> None:
    sweep = ("--threads=1,2,4", "--cuda=off")
    rows = planned("--budget=10h", *sweep)
    assert sorted(name for _, name in rows) == sorted(name for _, name in planned(*sweep))
    passes = list(dict.fromkeys(each for each, _ in rows))
    assert passes == [
        "ceilings",
        "networks",
        "Epoch",
        "Copy",
        "Gemm",
        "Layer",
        "Minibatch",
        "Forward",
    ]
    ladder = [name for each, name in rows if each == "networks"]
    models = list(dict.fromkeys(name.split("/")[1].removeprefix("model:") for name in ladder))
    # On each ladder, each step halves the widest gap.
    assert models[:5] == ["disc-2", "disc-12", "disc-7", "disc-4", "disc-9"]
    transformers = [model for model in models if model.startswith("gpt-")]
    assert transformers[:3] == ["gpt-16", "gpt-256", "gpt-64"]
    assert len(transformers) == 5 and models[11] == "heart" and len(models) == 26
    # The fastest on the CPU is one of these, mostly.
    assert {name.rpartition(":")[2] for name in ladder} == {"1", "4"}
    assert {name.rpartition(":")[2] for each, name in rows if each == "Epoch"} == {"2"}


def test_rows_of_a_gpu_are_on_the_ladder_where_the_data_is_resident() -> None:
    rows = planned("--budget=1h", "--cuda=on", "--threads=1", "--model=disc-2", "--family=Epoch")
    ladder = [name for each, name in rows if each == "networks"]
    on_gpu = [name for name in ladder if "device:cuda" in name]
    assert on_gpu and all("data:resident" in name for name in on_gpu)
    assert any("data:pinned" in name for each, name in rows if each == "Epoch")


def assert_whole(path: Path, plan: set[str]) -> dict[str, Any]:
    """Each row of the plan is in the file or left open. What the file says of the budget."""
    validate(path)
    document = strict(path)
    crossover = document["context"]["crossover"]
    budget = crossover["budget"]
    names = [row["name"] for row in document["rows"]]
    assert sorted([*names, *budget["left_open"]]) == sorted(plan)
    assert crossover["complete"] is (not budget["left_open"])
    return budget


@pytest.mark.slow
def test_a_run_ends_and_says_what_is_open(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    # Far more than fits: the repetitions alone take longer.
    sweep = ("--cuda=off", "--threads=1", "--benchmark_min_time=0.1")
    done = bench(*sweep, "--budget=2s", f"--out={path}")
    assert done.returncode == 0, done.stderr
    budget = assert_whole(path, {name for _, name in planned(*sweep)})
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
def test_a_larger_budget_adds_to_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    batches = "--batch=" + ",".join(map(str, range(100, 112)))
    rows = ("--model=disc-2", "--threads=1", *EPOCHS, batches)
    effort = ("--benchmark_min_time=0.02", "--benchmark_repetitions=3", f"--out={path}")
    plan = {name for _, name in planned(*rows)}
    assert bench(*rows, *effort, "--budget=0.5s").returncode == 0
    assert assert_whole(path, plan)["left_open"]  # the repetitions alone take 0.7 s
    first = strict(path)
    assert bench(*rows, *effort, "--budget=1s", "--resume").returncode == 0
    assert assert_whole(path, plan)["seconds"] == 1
    second = strict(path)
    assert_goes_on(first, second)
    assert bench(*rows, *effort, "--budget=1h", "--resume").returncode == 0
    assert assert_whole(path, plan)["left_open"] == []
    whole = strict(path)
    assert_goes_on(second, whole)
    assert whole["context"]["crossover"]["complete"] is True


@pytest.mark.slow
def test_time_that_is_left_goes_to_more_repetitions(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    # It ends where there is nothing more to do.
    done = bench(*DISC[:-2], *SHORT[:1], "--budget=1h", f"--out={path}")
    assert done.returncode == 0, done.stderr
    document = strict(path)
    (row,) = document["rows"]
    assert assert_whole(path, {row["name"]})["left_open"] == []
    asked = document["context"]["crossover"]["configuration"]["repetitions"]
    assert row["repetitions"] == 3 * asked == len(repetitions(document, row["name"]))
    # All repetitions have as many iterations as the first, which settled them.
    assert [entry.get("iterations") for entry in document["benchmarks"][1:]].count(None) > asked


def test_an_order_of_its_own_is_not_random() -> None:
    shuffled = "--benchmark_enable_random_interleaving"
    assert_refused(bench(*DISC, "--budget=5m", shuffled), "--budget", shuffled)
    assert bench("--plan", *DISC, "--budget=5m", f"{shuffled}=false").returncode == 0


@pytest.mark.parametrize("text", ["1.5h", "90s", "5m", "1e2s"])
def test_times_are_read(text: str) -> None:
    assert bench("--plan", *DISC, f"--budget={text}").returncode == 0
