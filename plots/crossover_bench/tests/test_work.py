# SPDX-License-Identifier: Apache-2.0
"""Only rows that do the same work are compared, and what is left out is said."""

from dataclasses import replace
from typing import Any

import pytest

from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.compare.analysis import compare
from crossover_bench.answers.compare.command import mix
from crossover_bench.answers.crossover.section import crossover_table, other_work, speed_up_table
from crossover_bench.answers.training.table import best_table
from crossover_bench.answers.why import analysis as why
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.network import epoch_rows, familiar
from crossover_bench.files.rows import File
from crossover_bench.show.tables.formats import render
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, epochs

OTHER = "disc-6"
OTHER_SIZE = synthetic.MODELS[OTHER][0]
FINGERPRINT = "a" * 16


def entries(threads: tuple[int, ...] = (1, 2), **gpu_fields: Any) -> list[dict[str, Any]]:
    """The disc family on both devices, which cross at 10,000; `gpu_fields` are those of the GPU's
    row of OTHER, None where the field is to be missing everywhere."""
    configurations = [
        configuration
        for model in DISC_MODELS
        for configuration in (
            *(synthetic.cpu_configuration(model, count) for count in threads),
            synthetic.gpu_configuration(model),
        )
    ]
    rows = epochs(
        configurations,
        lambda configuration, params: 1e-6 * params if configuration["device"] == "cpu" else 1e-2,
    )
    for entry in rows:
        entry |= {"label": "sgd lr=0.1", "workload": FINGERPRINT}
        configuration = entry["configuration"]
        mine = (configuration["device"], configuration["model"]) == ("cuda", OTHER)
        for key, value in gpu_fields.items():
            if value is None:
                del entry[key]
            elif mine:
                entry[key] = value
    return rows


@pytest.fixture
def load(read):
    """Loads a file of entries."""
    return lambda content, name="file.json": read(
        synthetic.document(content, gpu="synthetic GPU"), name
    )


OLD = {"workload": None}
DIFFERENCES = [
    ({**OLD, "rows": 500}, "not the same work: rows 1,000 and 500"),
    ({**OLD, "steps": 5}, "not the same work: steps 10 and 5"),
    ({**OLD, "label": "adamw lr=0.001"}, "optimizer sgd lr=0.1 and adamw lr=0.001"),
    ({"workload": "b" * 16}, "trains differently"),
    ({"workload": "b" * 16, "rows": 500}, "not the same work: rows 1,000 and 500"),
]


@pytest.mark.parametrize(("fields", "reason"), DIFFERENCES)
def test_other_work_is_no_point_of_a_curve(load, fields, reason):
    file = load(entries(**fields))
    compared = comparisons(file)
    assert len(compared) == 3  # one thread, two, and the best of them
    turned = replace(file, rows=tuple(reversed(file.rows)))
    assert comparisons(turned)[-1].cpu.label == "CPU, best of 1, 2 threads"
    for pair in compared:
        assert OTHER_SIZE not in pair.gpu.sizes and OTHER_SIZE not in pair.cpu.sizes
        assert len(pair.gpu.sizes) == len(DISC_MODELS) - 1
        assert pair.crossover.size == pytest.approx(1e4, rel=0.05)
    models = [pair.model for pair in Study(file).speed_ups()]
    assert models == [model for model in DISC_MODELS if model != OTHER]
    for table in (
        crossover_table([(file, compared)]),
        speed_up_table([(file, Study(file).speed_ups())]),
    ):
        text = " ".join(render([table], "text").split())
        assert "2 rows of the CPU and 1 row of the GPU are not compared" in text and reason in text


@pytest.mark.parametrize("fields", [{}, OLD, {"label": None}, {"rows": 500}])
def test_the_same_work_is_compared(load, fields):
    """The fingerprint decides where both have one; what a file does not say is no difference."""
    file = load(entries(**fields))
    assert other_work(file) == ""
    assert all(OTHER_SIZE in pair.gpu.sizes for pair in comparisons(file))


@pytest.mark.parametrize(("fields", "is_same"), [({}, True), ({"rows": 500}, False)])
def test_casts_are_no_other_work(load, fields, is_same):
    """A GPU's f16 stands against the CPU's f32, and its casts give it a fingerprint of its own."""
    content = entries(**fields)
    for entry in content:
        if entry["configuration"]["device"] == "cuda":
            entry["configuration"]["precision"] = "f16"
            entry["name"] = synthetic.row_name(entry["configuration"])
            entry["workload"] = "b" * 16
    file = load(content)
    assert ("rows 1,000 and 500" in other_work(file)) != is_same
    compared = comparisons(file)
    assert {pair.precision for pair in compared} == {"f16 (CPU: f32)"}
    assert all((OTHER_SIZE in pair.gpu.sizes) == is_same for pair in compared)
    assert len(Study(file).speed_ups()) == len(DISC_MODELS) - (not is_same)


def test_a_thread_count_that_does_other_work_is_none_of_the_best(load):
    content = entries(**OLD)
    for entry in content:
        if entry["configuration"].get("cpu_threads") == "2":
            entry["rows"] = 100
            entry["real_time"] /= 10
    file = load(content)
    compared = comparisons(file)
    assert [pair.cpu.label for pair in compared] == ["CPU, 1 thread", "CPU, best of 1 thread"]
    assert all(pair.crossover.size == pytest.approx(1e4, rel=0.05) for pair in compared)
    assert "11 rows of the CPU and 11 rows of the GPU are not compared" in other_work(file)


@pytest.fixture
def other(load) -> File:
    """A file whose GPU trains half of the rows in half of the time."""
    content = entries(**OLD)
    for entry in content:
        if entry["configuration"]["device"] == "cuda":
            entry["rows"] = 500
    return load(content, "other.json")


def test_a_file_or_a_mix_of_nothing_but_other_work_says_so(load, other, shell):
    assert comparisons(other) == [] and Study(other).speed_ups() == []
    mine = load(entries(**OLD), "mine.json")
    assert comparisons(mix(mine, other)) == []
    alone = shell("crossover", other.path)
    mixed = shell("compare", f"--cpu-of={mine.path}", f"--gpu-of={other.path}", code=2)
    for printed, remedy in ((alone, "measure both in one run"), (mixed, "name files of one sweep")):
        assert printed.out == "" and printed.err.count("\n") == 1
        assert "rows 1,000 and 500" in printed.err and remedy in printed.err


def test_no_pair_anywhere_is_of_other_work(other):
    assert why.repayments(epoch_rows(other)) == []
    assert "nothing to compare" in glance(Study(other)).sentence
    lines = best_table(epoch_rows(other)).records()
    assert all(line["speed_up"] is None for line in lines)
    assert [line["network"] for line in lines[:2]] == ["disc-2, rows 1000", "disc-2, rows 500"]


def test_compare_sees_another_optimizer(load):
    first = load(entries(**OLD), "first.json")
    second = load(entries(**{**OLD, "label": "adamw lr=0.001"}), "second.json")
    compared = compare(first, second)
    (unmatched,) = compared.unmatched
    assert unmatched.row.model == OTHER and compared.misnamed == 1
    assert unmatched.reason == ("not the same work: optimizer sgd lr=0.1 and adamw lr=0.001")


def test_networks_that_nobody_trains_are_shown_only_where_there_are_no_others(read):
    rows = epoch_rows(read(synthetic.sweep()))
    odd = replace(rows[0], configuration={**rows[0].configuration, "model": "mlp-44-54"})
    assert familiar([odd, *rows]) == rows and familiar([odd]) == [odd]
