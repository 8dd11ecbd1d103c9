# SPDX-License-Identifier: Apache-2.0
"""Rows of networks in use: the family Forward, its latencies and its crossovers."""

import json
import re

import pytest

import plots
from plots.core.cost import BENCH_PATH
from plots.features.predict import analysis
from plots.tests import synthetic
from plots.tests.synthetic_steps import passes


@pytest.fixture
def used(write):
    ladder = [f"disc-{depth}" for depth in range(2, 13)]
    entries = [
        entry
        for model in (*ladder, "heart")
        for batch in (1, 1024)
        for device in ("cpu", "cuda")
        for entry in passes(model, batch, device)
    ]
    return write(synthetic.document(entries, gpu="synthetic GPU"))


def test_latency_has_a_crossover_for_each_batch(used, shell):
    printed = shell("crossover", used, "--of=latency-p99", "--format=json", "--all")
    crossovers, ratios = json.loads(printed.out)
    sizes = {line["batch"]: line["crossover"] for line in crossovers["rows"]}
    # 1 us and 2 params batch / 2e10 are 20 us at 190,000 parameters, and of 1,024 at 186.
    assert sizes == {1: pytest.approx(190_000, rel=0.1), 1024: pytest.approx(186, rel=0.2)}
    assert {line["model"] for line in ratios["rows"]} >= {"heart", "disc-12"}


def test_crossovers_of_training_know_nothing_of_networks_in_use(used, write, shell):
    alone = synthetic.sweep()
    content = json.loads(used.read_text("utf-8"))
    both = synthetic.as_file(alone)
    for part in ("rows", "benchmarks"):
        both[part] += content[part]
    of_training = shell("crossover", write(alone, "a.json"), "--format=json").out
    of_both = shell("crossover", write(both, "b.json"), "--format=json").out
    titles = [table["title"] for table in json.loads(of_both)]
    training = json.loads(of_training)
    assert [table for table in json.loads(of_both) if "pass" not in table["title"]] == training
    assert sum("pass" in title for title in titles) == 2
    assert shell("crossover", write(both, "b.json"), "--summary").out == (
        shell("crossover", write(alone, "b.json"), "--summary").out
    )


def test_passes_are_shown_with_their_latencies(used, shell):
    best, _, latencies = json.loads(shell("times", used, "--format=json").out)
    assert best["title"].startswith("Forward passes: the fastest way")
    line = next(line for line in latencies["rows"] if line["network"] == "heart")
    assert line["latency_p99_seconds"] == pytest.approx(2 * line["latency_p50_seconds"], rel=0.05)
    assert line["latency_passes"] == 10_000 - 4
    samples = plots.load(str(used)).where(model="heart", batch="1", device="cpu")
    (p99,) = {len(samples.where(quantity="latency-p99"))}
    assert p99 == 9


@pytest.mark.skipif(not BENCH_PATH.is_file(), reason="no bench is built to count forward passes")
def test_cards_that_nobody_measured_are_predicted(write, shell, tmp_path, monkeypatch):
    monkeypatch.setattr(analysis, "BENCH_PATH", BENCH_PATH)
    ladder = [f"disc-{depth}" for depth in range(2, 13)]
    entries = [entry for model in ladder for entry in passes(model, 1, "cpu")]
    file = write(synthetic.document(entries))
    printed = " ".join(shell("predict", file, "--gpu=rtx-4060").out.split())
    assert printed.count("(a forward pass, graph, pinned, batch 1); predicted, not measured.") == 1
    shell("report", file, f"--out={tmp_path}")
    page = (tmp_path / "index.html").read_text("utf-8")
    assert re.search(r"A GPU wins from [^.]* in forward passes at batch 1\.", page)
    assert "ms a forward pass on this CPU" in page, page[page.find("At the largest") :][:300]
    every = shell("predict", file, "--gpu=rtx-4060", "--format=json", "--all").out
    lines = [line for table in json.loads(every) for line in table["rows"] if "model" in line]
    here = {(line["execution"], line["data"]): line for line in lines if line["model"] == "disc-5"}
    assert len(here) == 4 and all(line["low_seconds"] for line in here.values())
    times = (here["graph", data]["predicted_pass_seconds"] for data in ("resident", "pinned"))
    resident, pinned = times
    assert 6e-6 < pinned - resident < 2e-5  # two copies


def test_the_page_answers_for_networks_in_use(used, shell, tmp_path):
    shell("report", used, f"--out={tmp_path}")
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "To use the trained network, do you need a GPU?" in page
    assert "Latency of forward passes (48)" in page
    assert "10 of 24 lines, evenly spread." in page
    assert "samples per second" in next(tmp_path.glob("*.throughput.svg")).read_text("utf-8")
    chart = next(tmp_path.glob("*.passes.svg")).read_text("utf-8")
    assert "networks disc-N, batch 1" in chart
    assert "wall-clock time of one pass" in chart and "published" not in chart
