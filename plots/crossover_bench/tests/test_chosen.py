# SPDX-License-Identifier: Apache-2.0
"""Executions: the best row of a CPU whatever its execution, and what rows of auto chose."""

from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.threads.section import more_threads
from crossover_bench.answers.training.table import best_table
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.curves import BEST
from crossover_bench.curves.series import chosen_words, device_label, device_name
from crossover_bench.files.rows import File
from crossover_bench.tests import synthetic

DISCS = ("disc-4", "disc-6", "disc-8", "disc-10")


def entries(
    model: str, execution: str, threads: int, seconds: float, chosen: dict[str, str] | None = None
) -> list[dict[str, Any]]:
    """The entries of a row, whose repetitions differ by less than any two rows here."""
    changes = {"chosen": chosen} if chosen else {}
    configuration = {**synthetic.cpu_configuration(model, threads), "execution": execution}
    times = (seconds * (1 + 1e-3 * np.arange(9))).tolist()
    return synthetic.samples(configuration, times, **changes)


def executions(seconds: dict[str, float]) -> list[dict[str, Any]]:
    """Each network in each execution, which takes so many times the seconds of its size."""
    return [
        entry
        for place, model in enumerate(DISCS)
        for execution, factor in seconds.items()
        for entry in entries(model, execution, 1, factor * 4.0**place * 1e-4)
    ]


ON_A_GPU = {**synthetic.gpu_configuration("disc-4"), "execution": "auto", "data": "resident"}
TUNED = {"execution": "graph", "products": "autotuned"}


@pytest.mark.parametrize(
    ("threads", "chosen", "words"),
    [
        (1, {"execution": "fused", "cpu_threads": "1"}, "auto: fused"),
        (2, {"execution": "fused", "cpu_threads": "2"}, "auto: fused"),
        (2, {"execution": "eager", "cpu_threads": "1"}, "auto: eager, 1 thread used"),
        (0, {"execution": "persistent"}, "auto: persistent"),
        (0, TUNED, "auto: graph, autotuned products"),
        (0, {**TUNED, "cudnn": "benchmark"}, "auto: graph, autotuned products, cudnn.benchmark"),
    ],
)
def test_a_label_says_what_auto_chose(read, threads, chosen, words):
    repetitions = synthetic.samples(ON_A_GPU, [1e-3] * 9, chosen=chosen)
    if threads:
        repetitions = entries("disc-4", "auto", threads, 1e-3, chosen)
    (row,) = read(synthetic.document(repetitions, gpu="synthetic GPU")).rows
    device = ("GPU, resident", "CPU, 1 thread", "CPU, 2 threads")[threads]
    assert chosen_words(row) == words
    assert str(device_label(row)) == device_name(row) == f"{device} ({words})"
    (line,) = best_table([row]).records()
    assert line["cpu_on" if threads else "gpu_on"] == f"{device} ({words})"


def test_other_rows_chose_nothing(read):
    (row,) = read(synthetic.document(entries("disc-4", "fused", 2, 1e-3))).rows
    assert row.chosen is None and chosen_words(row) == ""
    assert str(device_label(row)) == "CPU, fused, 2 threads"


def crossing(file: File) -> float | None:
    """Of the best of the CPU with the one GPU curve."""
    (pair,) = (pair for pair in comparisons(file) if pair.cpu.configuration["cpu_threads"] == BEST)
    return pair.crossover.size


def with_gpu(cpu: list[dict[str, Any]]) -> dict[str, Any]:
    gpu = [
        entry
        for model in DISCS
        for entry in synthetic.samples(
            synthetic.gpu_configuration(model), (2e-3 * (1 + 1e-3 * np.arange(9))).tolist()
        )
    ]
    return synthetic.document(cpu + gpu, gpu="synthetic GPU")


def test_the_cpus_side_is_its_best_row_whatever_the_execution(read):
    alone = {name: read(with_gpu(executions({name: 1.0}))) for name in ("eager", "fused", "auto")}
    sizes = {name: crossing(file) for name, file in alone.items()}
    assert sizes["eager"] == pytest.approx(sizes["fused"]) == pytest.approx(sizes["auto"])
    slower = read(with_gpu(executions({"eager": 3.0, "fused": 1.0})))
    assert crossing(slower) == pytest.approx(sizes["fused"])
    slower = read(with_gpu(executions({"eager": 1.0, "fused": 5.0, "auto": 2.0})))
    assert crossing(slower) == pytest.approx(sizes["eager"])


def test_more_threads_are_compared_in_auto_where_there_is_auto(read):
    def of(*names: str) -> list[str]:
        repetitions = [
            entry
            for model, seconds in (("disc-4", 1e-3), ("disc-10", 1e-2))
            for name in names
            for threads in (1, 2)
            for entry in entries(model, name, threads, seconds / threads)
        ]
        compared = more_threads(read(synthetic.document(repetitions)))
        return [pair.gpu.configuration["execution"] for pair in compared]

    assert of("eager", "fused", "auto") == ["auto"]
    assert of("eager", "fused") == ["eager", "fused"]


def test_files_of_both_kinds_are_read_side_by_side(write, shell):
    old = write(synthetic.document(executions({"eager": 1.0})), "old.json")
    new = write(synthetic.document(executions({"auto": 0.5})), "new.json")
    out = shell("compare", old, new).out
    assert "4 rows compared: 4 faster" in out
    assert "4 rows of the CPU are eager in the baseline and auto in the other file." in out
    both = write(synthetic.document(executions({"auto": 0.5, "eager": 1.0})), "both.json")
    assert "4 rows compared: 0 faster, 0 slower, 4 same" in shell("compare", old, both).out
