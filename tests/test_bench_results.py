# SPDX-License-Identifier: Apache-2.0
"""The result file of `bench`, and Google Benchmark's compare.py on it."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_runs import (
    DISC,
    SHORT,
    bench,
    epoch_name,
    measure,
    needs_bench,
    refused,
    samples,
    strict,
)

pytestmark = needs_bench

PARAMETERS = {"disc-2": 22, "disc-4": 230, "heart": 1522}
GRID = [
    "--model=" + ",".join(PARAMETERS),
    "--batch=100,300",
    "--threads=1,2",
    "--family=Epoch",
    *SHORT,
]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result file of three models, two batch sizes and two thread counts."""
    folder = tmp_path_factory.mktemp("grid")
    measure(folder, *GRID)
    return folder / "result.json"


def test_names_and_repetitions(grid: Path) -> None:
    expected = [
        (epoch_name(model, batch, threads), repetition)
        for model in PARAMETERS
        for batch in (100, 300)
        for threads in (1, 2)
        for repetition in (0, 1)
    ]
    rows = samples(strict(grid))
    assert [(row["name"], row["repetition_index"]) for row in rows] == expected
    for row in rows:
        pairs = [f"{key}:{value}" for key, value in list(row["configuration"].items())[1:]]
        assert row["name"] == "/".join([row["configuration"]["family"], *pairs])
        assert row["repetitions"] == 2
        assert row["run_name"] == row["name"]


def test_counters(grid: Path) -> None:
    units = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
    for row in samples(strict(grid)):
        configuration, seconds = row["configuration"], row["seconds_per_epoch"]
        assert row["params"] == PARAMETERS[configuration["model"]]
        assert row["batch"] == int(configuration["batch"])
        assert row["cpu_threads"] == int(configuration["cpu_threads"])
        assert row["steps"] == math.ceil(row["rows"] / row["batch"])
        assert seconds == pytest.approx(row["real_time"] * units[row["time_unit"]])
        assert row["samples_per_second"] == pytest.approx(row["rows"] / seconds)
        assert row["flops_per_second"] == pytest.approx(row["flops"] / seconds)
        assert row["flops"] > row["params"] * row["rows"]
        assert row["first_call_seconds"] > 0
        assert 0 < row["loss_first_epoch"] < 10


def test_verification(grid: Path) -> None:
    for row in samples(strict(grid)):
        verification = row["verification"]
        assert verification["reference"]
        assert 0 < verification["steps"] <= verification["steps_of"] == row["steps"]
        assert 0 <= verification["relative_error"] <= verification["tolerance"] < 1e-2


def test_loss_does_not_depend_on_threads(grid: Path) -> None:
    losses: dict[tuple[str, str], list[float]] = {}
    for row in samples(strict(grid)):
        key = (row["configuration"]["model"], row["configuration"]["batch"])
        losses.setdefault(key, []).append(row["loss_first_epoch"])
    for found in losses.values():
        assert len(found) == 4
        assert max(found) == pytest.approx(min(found), rel=1e-5)


def test_context(grid: Path) -> None:
    crossover = strict(grid)["context"]["crossover"]
    assert crossover["complete"] is True
    command = crossover["configuration"]["command"]
    assert command[1 : 1 + len(GRID)] == GRID
    assert not any("/" in word for word in command), "folders of the user's machine"
    assert crossover["configuration"]["repetitions"] == 2
    assert crossover["configuration"]["min_time_seconds"] == 0.001
    assert crossover["machine"] == strict(bench("--machine").stdout)


def test_load_average_at_the_end(grid: Path) -> None:
    assert strict(grid)["context"]["crossover"]["load_average_end"]


def test_context_of_the_command_line(tmp_path: Path) -> None:
    assert measure(tmp_path, *DISC, "--benchmark_context=where=lab")["context"]["where"] == "lab"


@pytest.mark.parametrize("what", ["report", "display"])
def test_refuses_a_result_file_without_samples(tmp_path: Path, what: str) -> None:
    refused(tmp_path, ("samples", "--out"), *DISC, f"--benchmark_{what}_aggregates_only=true")
    assert bench(*DISC, f"--benchmark_{what}_aggregates_only=true").returncode == 0


def test_flags_a_policy_that_slows_threads(tmp_path: Path) -> None:
    variables = {"OMP_WAIT_POLICY": "passive"}
    path = tmp_path / "result.json"
    assert (
        bench(
            "--model=disc-2",
            "--threads=2",
            "--family=Epoch",
            *SHORT,
            f"--out={path}",
            variables=variables,
        ).returncode
        == 0
    )
    for row in samples(strict(path)):
        assert any("OMP_WAIT_POLICY" in sentence for sentence in row["quality"])


def test_random_interleaving(tmp_path: Path) -> None:
    interleaved = "--benchmark_enable_random_interleaving=true"
    document = measure(
        tmp_path, "--model=disc-2", "--threads=1,2", "--family=Epoch", *SHORT, interleaved
    )
    keys = {(row["name"], row["repetition_index"]) for row in samples(document)}
    assert keys == {
        (epoch_name("disc-2", 100, t), repetition) for t in (1, 2) for repetition in (0, 1)
    }


# --- Google Benchmark's compare.py


@pytest.mark.slow
def test_compare_two_files(grid: Path, tmp_path: Path, compare: Callable[..., str]) -> None:
    other = tmp_path / "result.json"
    measure(tmp_path, "--model=disc-2", "--threads=1,2", "--family=Epoch", *SHORT)
    lines = compare("benchmarks", grid, other).splitlines()
    for threads in (1, 2):
        assert any(line.startswith(epoch_name("disc-2", 100, threads) + " ") for line in lines)
    assert not any("disc-4" in line for line in lines)


@pytest.mark.slow
def test_compare_thread_counts(grid: Path, compare: Callable[..., str]) -> None:
    pair = ("cpu_threads:1", "cpu_threads:2")
    lines = compare("filters", grid, *pair).splitlines()
    for model in PARAMETERS:
        row = epoch_name(model, 100, 1).replace(pair[0], f"[{pair[0]} vs. {pair[1]}]")
        assert any(line.startswith(row) for line in lines)


@pytest.mark.slow
def test_cost_is_that_of_the_measured_row(grid: Path) -> None:
    for row in samples(strict(grid)):
        model, batch = row["configuration"]["model"], row["configuration"]["batch"]
        cost = strict(bench("--cost", f"--model={model}", f"--batch={batch}").stdout)
        for field in ("params", "batch", "rows", "steps"):
            assert cost[field] == row[field]
        assert cost["optimizer"] == row["label"]
        assert cost["epoch"]["flops"] == row["flops"]
        assert cost["epoch"]["bytes"] == row["bytes"]
        assert cost["epoch"]["products"] == row["products"]
        assert cost["epoch"]["device_launches"]["cpu"] == row["launches"]
