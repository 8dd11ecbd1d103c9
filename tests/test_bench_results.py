# SPDX-License-Identifier: Apache-2.0
"""The result file of `bench`, and Google Benchmark's compare.py on it."""

import json
import math
import os
import re
import sys
from itertools import product
from pathlib import Path

import pytest
from bench_runs import DISC, SHORT, Document, bench, epoch_name, measure, samples, strict
from scripts import ran
from test_code_versions import table

PARAMETERS = {"disc-2": 22, "disc-4": 230, "heart": 1522}
COMPARE = Path("/usr/share/benchmark/compare.py")  # of libbenchmark-tools
GRID = [
    "--execution=eager",  # auto may choose another way in another run
    "--model=" + ",".join(PARAMETERS),
    "--batch=100,300",
    "--threads=1,2",
    "--family=Epoch",
    "--benchmark_context=where=lab",
    *SHORT,
]


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result file of three models, two batch sizes and two thread counts."""
    folder = tmp_path_factory.mktemp("grid")
    measure(folder, *GRID)
    return folder / "result.json"


@pytest.mark.slow
def test_names_and_repetitions(grid):
    names = [
        epoch_name(model, batch, threads, "eager")
        for model, batch, threads in product(PARAMETERS, (100, 300), (1, 2))
    ]
    document = strict(grid)
    assert [row["name"] for row in document["rows"]] == names
    assert [entry["name"] for entry in document["benchmarks"]] == [n for n in names for _ in "12"]
    assert {entry["run_type"] for entry in document["benchmarks"]} == {"iteration"}
    for row in document["rows"]:
        pairs = [f"{key}:{value}" for key, value in list(row["configuration"].items())[1:]]
        assert row["name"] == "/".join([row["configuration"]["family"], *pairs])
        assert row["repetitions"] == 2


def test_counters_and_verification(grid):
    for row in samples(strict(grid)):
        configuration = row["configuration"]
        assert row["params"] == PARAMETERS[configuration["model"]]
        assert row["batch"] == int(configuration["batch"])
        assert row["cpu_threads"] == int(configuration["cpu_threads"])
        assert row["steps"] == math.ceil(row["rows"] / row["batch"])
        assert row["flops"] > row["params"] * row["rows"]
        assert row["first_call_seconds"] > 0
        assert 0 < row["loss_first_epoch"] < 10
        checked = row["verification"]
        assert 0 < checked["steps"] <= checked["steps_of"] == row["steps"]
        assert 0 <= checked["relative_error"] <= checked["tolerance"] < 1e-2


def test_context(grid):
    context = strict(grid)["context"]
    crossover = context["crossover"]
    assert context["where"] == "lab"
    assert crossover["complete"] is True
    command = crossover["configuration"]["command"]
    assert command[1 : 1 + len(GRID)] == GRID
    assert not any("/" in word for word in command), "folders of the user's machine"
    assert crossover["configuration"]["repetitions"] == 2
    assert crossover["configuration"]["min_time_seconds"] == 0.001
    assert crossover["machine"] == strict(bench("--machine").stdout)
    assert crossover["load_average_end"]
    numbers = {key: version["number"] for key, version in table()["versions"].items()}
    assert crossover["code_versions"] == ({} if crossover["software"]["dirty"] else numbers)


def of_six_digits(text: str) -> float:
    """No clock is steadier than a millionth; whole numbers are kept."""
    number = float(text)
    assert number.is_integer() or number == float(f"{number:.6g}")
    return number


def test_a_file_has_a_line_for_each_row_and_repetition(grid):
    document, lines = strict(grid), grid.read_text("utf-8").splitlines()
    for key in ("rows", "benchmarks"):
        first = lines.index(f' "{key}": [') + 1
        written = [line.rstrip(",") for line in lines[first : first + len(document[key])]]
        assert [json.loads(line, parse_float=of_six_digits) for line in written] == document[key]


@pytest.mark.slow
def test_a_diff_of_two_runs_shows_times_alone(grid, tmp_path):
    again = tmp_path / "result.json"
    measure(tmp_path, *GRID)

    def facts(path: Path) -> tuple[list[str], list[Document], Document]:
        document = strict(path)
        lines = path.read_text("utf-8").splitlines()
        rows = lines[lines.index(' "rows": [') : lines.index(' "benchmarks": [')]
        assert len(rows) == len(document["rows"]) + 2  # and what encloses them
        times = re.compile(
            "(real_time|cpu_time|iterations|instance|.*seconds.*|cpu_wait|cpu_steal)$"
        )
        entries = [
            {key: value for key, value in entry.items() if not times.match(key)}
            for entry in document["benchmarks"]
        ]
        context = document["context"]
        for of_a_moment in ("date", "load_avg", "mhz_per_cpu"):
            del context[of_a_moment]
        for of_a_moment in ("load_average_end", "parts"):
            del context["crossover"][of_a_moment]
        return rows, entries, context

    first, second = facts(grid), facts(again)
    assert first == second
    assert {key for entry in first[1] for key in entry} == {"name", "run_type", "time_unit"}


@pytest.mark.parametrize(
    ("variables", "policy"),
    [
        ({"OMP_WAIT_POLICY": "PASSIVE"}, "passive"),
        ({"GOMP_SPINCOUNT": "0"}, "passive"),
        ({"OMP_WAIT_POLICY": "active", "OMP_PROC_BIND": "close"}, "active"),
        ({"OMP_DYNAMIC": "false"}, "default"),
    ],
)
def test_flags_a_policy_that_slows_threads(tmp_path, variables, policy):
    document = measure(tmp_path, *DISC, "--threads=2", **variables)
    configuration = document["context"]["crossover"]["configuration"]
    assert configuration["environment"] == variables
    assert configuration["openmp"]["wait_policy"] == policy
    assert configuration["openmp"]["binding"] == variables.get("OMP_PROC_BIND", "false")
    for row in samples(document):
        flagged = any("OMP_WAIT_POLICY" in sentence for sentence in row["warnings"])
        assert flagged == (policy == "passive")


@pytest.mark.skipif(
    len(os.sched_getaffinity(0)) == 1, reason="threads are bound to one of several processors"
)
def test_binding_threads_changes_no_machine(tmp_path):
    machine = strict(bench("--machine").stdout)
    for variables in ({"OMP_PROC_BIND": "true"}, {"OMP_PLACES": "threads"}):
        assert strict(bench("--machine", variables=variables).stdout) == machine
    first = str(min(os.sched_getaffinity(0)))
    for place, flagged in (
        ({"GOMP_CPU_AFFINITY": first}, True),
        ({"OMP_PROC_BIND": "true"}, False),
    ):
        document = measure(tmp_path, *DISC, "--threads=2", **place)
        assert document["context"]["crossover"]["machine"]["cpu"] == machine["cpu"]
        warned = " ".join(word for row in samples(document) for word in row["warnings"])
        assert ("2 threads are bound to 1 processor (" in warned) == flagged


@pytest.mark.slow
@pytest.mark.skipif(not COMPARE.exists(), reason="libbenchmark-tools is not installed")
def test_compare_py_pairs_the_rows_of_a_file(grid):
    pair = ("cpu_threads:1", "cpu_threads:2")
    done = ran(sys.executable, "-B", COMPARE, "--no-color", "filters", grid, *pair)
    for model in PARAMETERS:
        row = epoch_name(model, 100, 1, "eager").replace(pair[0], f"[{pair[0]} vs. {pair[1]}]")
        assert any(line.startswith(row) for line in done.stdout.splitlines())
