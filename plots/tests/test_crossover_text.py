# SPDX-License-Identifier: Apache-2.0
"""`python -m plots crossover`: what people read by default, and what programs and --all get."""

import csv
import io
import json

import pytest

from plots.core.crossover import comparisons
from plots.core.crossover_words import crossover_words
from plots.file import loading
from plots.tests import synthetic
from plots.tests.synthetic_sweep import DISC_MODELS, epochs
from plots.units import significant


def test_text_has_the_answer_beside_the_way(simple, shell):
    blocks = shell("crossover", simple).out.split("\n\n")
    crossover = comparisons(loading.load_file(simple))[0].crossover
    assert blocks[0].startswith(
        "synthetic machine\nFrom which network size does a GPU win? (fully "
    )
    assert blocks.pop(1).startswith("  On disc networks at batch 100, copying each")
    assert blocks[1].endswith("faster than the CPU (1 thread)")
    answer = crossover_words(crossover)
    assert blocks[2] == f"batch  GPU            answer\n  100  graph, pinned  {answer}"
    assert blocks[3].startswith("By how much the GPU trains faster, graph, pinned: SPEEDUP = ")
    assert blocks[4].count("\ndisc-") == 11
    assert len(blocks) == 5


def test_text_of_all_lines(simple, monkeypatch, shell):
    monkeypatch.setenv("COLUMNS", "120")
    lines = shell("crossover", simple, "--all").out.splitlines()
    (line,) = [line.split() for line in lines if line.startswith("epoch ")]
    crossover = comparisons(loading.load_file(simple))[0].crossover
    ends = [significant(size) for size in (crossover.size, crossover.low, crossover.high)]
    said = ["epoch", "100", "f32", "1", "graph", "pinned", "once", "parameters", *ends]
    assert line == [*said, "0.0", "%"]


@pytest.mark.slow
def test_text_is_short_and_epochs_come_first(wide, shell):
    lines = shell("crossover", wide.path).out.splitlines()
    assert max(map(len, lines)) <= 100 and len(lines) < 80
    titles = ["disc networks faster than", "SPEEDUP", "square matrices", "layers faster"]
    places = [next(n for n, line in enumerate(lines) if title in line) for title in titles]
    assert places == sorted(places)
    (each,) = [line for line in lines if line.startswith("  100  graph, pinned ")]
    found = [one for one in comparisons(wide) if one.cpu.candidates]
    (one,) = [
        one
        for one in found
        if (one.common.get("batch"), one.precision) == ("100", "f32")
        and one.gpu.label == "GPU, graph, pinned"
    ]
    assert each.endswith(crossover_words(one.crossover))
    # Three thread counts and the best of them on 30 ways, of which 15 are f32.
    left = f"[1] {4 * 30 - 15} more: --all shows each precision and each number of CPU threads."
    assert lines.count(left) == 1


def test_lines_are_as_wide_as_the_terminal(simple, monkeypatch, shell):
    widths = []
    for columns in ("80", "140"):
        monkeypatch.setenv("COLUMNS", columns)
        widths.append(max(map(len, shell("crossover", simple).out.splitlines())))
    assert 70 < widths[0] <= 80 and 110 < widths[1] <= 140


@pytest.mark.slow
def test_every_format_but_text_has_all_lines(wide, shell):
    tables = json.loads(shell("crossover", wide.path, "--format", "json").out)
    assert [table["title"].partition(" on ")[0] for table in tables] == [
        "Crossover of training epochs",
        "SPEEDUP = CPU time / GPU time of one epoch",
        "Crossover of square matrix products",
        "Crossover of layers",
    ]
    assert [len(table["rows"]) for table in tables] == [120, 360, 1, 1]


def test_programs_get_every_crossing(write, shell):
    def seconds(way: dict[str, str], params: float) -> float:
        cpu = 1 / 2 if 1000 < params < 1e6 else 2.0
        return cpu if way["device"] == "cpu" else 1.0

    ways = [
        way
        for model in DISC_MODELS
        for way in (synthetic.cpu_configuration(model, 1), synthetic.gpu_configuration(model))
    ]
    path = write(synthetic.document(epochs(ways, seconds), gpu="synthetic GPU"))
    known = list(comparisons(loading.load_file(path))[0].crossover.crossings)
    assert len(known) == 2
    assert (
        json.loads(shell("crossover", path, "--format", "json").out)[0]["rows"][0]["crossings"]
        == known
    )
    (line,) = csv.DictReader(
        io.StringIO(shell("crossover", path, "--format", "csv").out.split("\n\n")[0])
    )
    assert [float(text) for text in line["crossings"].split()] == known
    assert "crossings" not in shell("crossover", path, "--all").out
