# SPDX-License-Identifier: Apache-2.0
"""Rows of Minibatch and of Forward wherever rows are read, compared, explained and shown."""

import json
import re

import numpy as np
import pytest

import crossover_bench
from crossover_bench.answers.advise.analysis import fit_series
from crossover_bench.answers.answer import section as verdict
from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.crossover import section as crossovers
from crossover_bench.answers.machines.table import machines_table
from crossover_bench.answers.predict import analysis as predict
from crossover_bench.answers.record import section as record
from crossover_bench.answers.training.section import steps
from crossover_bench.answers.why import section as reasons
from crossover_bench.answers.why.analysis import PARTS, counterfactuals, splits
from crossover_bench.answers.why.chart import COLOURS, draw_why
from crossover_bench.counts.cost import BENCH_PATH, has_own_rates
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.headline import over_batches
from crossover_bench.curves.network import step_rows
from crossover_bench.files import loading
from crossover_bench.files.families import EPOCH, MINIBATCH
from crossover_bench.show.charts.crossover import draw_charts
from crossover_bench.show.page.section import Context
from crossover_bench.study.machines import side_by_side
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic, synthetic_steps
from crossover_bench.tests.conftest import why_tables
from crossover_bench.tests.synthetic_steps import passes
from crossover_bench.tests.synthetic_sweep import DISC_MODELS


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A file with epochs and training steps on CPU and GPU."""
    path = tmp_path_factory.mktemp("steps") / "file.json"
    return loading.load_file(synthetic.write(path, synthetic_steps.machine()))


@pytest.fixture
def load(read):
    """A file of some entries, loaded."""
    return lambda entries, **options: read(synthetic.document(entries, **options))


# --- the file


def test_a_row_is_read_with_all_it_counts(read):
    configuration = synthetic_steps.cpu_configuration("alexnet-r", 2)
    entries = synthetic_steps.samples(configuration, [0.2, 0.3, 0.25])
    document = synthetic.as_file(synthetic.document(entries))
    (row,) = read(document).rows
    assert (row.median, row.optimizer) == (0.25, "sgd")
    assert row.verification.batch == 4
    assert row.counters["seconds_per_step"] == 0.25
    assert row.counters["samples_per_second"] == pytest.approx(1024 / 0.25)
    profile = sum(value for key, value in row.counters.items() if key[8:] in PARTS)
    assert row.counters["seconds_unattributed"] == pytest.approx(0.25 - profile)
    assert "seconds_per_epoch" not in row.counters
    for key in ("rows", "steps", "peak_bytes", "reorders"):  # which an older file lacks
        document["rows"][0].pop(key)
    assert read(document).rows[0].counters["seconds_per_step"] == 0.25


# --- crossovers over batch size


def test_a_network_is_a_curve_over_its_batches_that_crosses_where_the_formula_says(file):
    compared = [pair for pair in comparisons(file) if pair.family == MINIBATCH]
    assert {pair.model for pair in compared} == {"alexnet-r", "fcn-r"}
    assert all(pair.measure == "batch" and "batch" not in pair.common for pair in compared)
    assert {tuple(pair.sizes) for pair in compared} == {(2.0, 8.0, 32.0, 128.0, 1024.0)}
    # Two thread counts and the best of them against two ways of the GPU.
    assert len(compared) == 2 * 3 * 2
    # The batch from which the GPU wins is that of the formula.
    network = synthetic_steps.NETWORKS["alexnet-r"]
    (pair,) = [pair for pair in over_batches(compared) if pair.model == "alexnet-r"]
    assert pair.gpu.configuration["data"] == "resident"  # which wins earlier
    # 10 ms and flops / 5e12 on the GPU against flops / (3e10 * 2 ** 0.9).
    known = 1e-2 / (network.flops * (1 / (3e10 * 2**0.9) - 1 / 5e12))
    assert pair.crossover.kind == "once"
    assert pair.crossover.low * 0.97 < known < pair.crossover.high * 1.03
    of_epochs, of_steps = Study(file).speed_ups(), Study(file).speed_ups(MINIBATCH)
    assert {speed_up.family for speed_up in of_epochs} == {EPOCH}
    assert {speed_up.family for speed_up in of_steps} == {MINIBATCH}
    assert len(of_steps) == (len(synthetic_steps.NETWORKS) + 2 * 4) * 2


def test_the_headline_stays_the_one_over_parameters(file, read):
    alone = read(synthetic_steps.machine(epochs=False))
    answer = glance(Study(file))
    assert answer.sentence.endswith(", at batch 100, data on the GPU.")
    assert Study(alone).headline == []
    answer = glance(Study(alone))
    assert answer.sentence.endswith(", training fcn-r step by step.")
    first, second = answer.lines
    assert first.startswith("At 14,204,938 parameters (fcn-r, batch 1,024) the GPU is ")
    assert second.startswith("alexnet-r: from batch ")


def test_without_curves_or_a_gpu_it_says_what_there_is(load):
    both = load(synthetic_steps.steps(["lstm", "resnet-56"]), gpu="synthetic GPU")
    answer = glance(Study(both))
    assert (
        answer.sentence
        == "With our own programs, the GPU trains 2 of 2 networks faster than the CPU."
    )
    assert any("lstm, batch 128) the GPU is" in line for line in answer.lines)
    cpu = load(synthetic_steps.steps(["lstm"], ways=(), batches=(8,)))
    first, second = glance(Study(cpu)).lines
    assert first.startswith("The CPU trains lstm (6,182,672 parameters) at 2.6")
    assert "s a training step of 128 samples on 2 threads" in first
    assert second.endswith("(here: synthetic).")


def test_rows_that_do_other_work_are_not_compared(load):
    entries = synthetic_steps.steps(["lstm"], threads=(1,), batches=(8,))
    for entry in entries:
        if entry["configuration"]["device"] != "cpu" and entry["configuration"]["batch"] == "8":
            entry["workload"] = "0123456789abcdef"
    file = load(entries, gpu="synthetic GPU")
    assert {speed_up.batch for speed_up in Study(file).speed_ups(MINIBATCH)} == {"128"}
    assert comparisons(file) == []


@pytest.mark.usefixtures("undrawn")
def test_each_network_has_a_chart(file):
    charts = draw_charts(file, comparisons(file))
    names = [chart.name for chart in charts]
    assert names[0] == "crossover-epoch-100-f32"
    assert {"crossover-minibatch-fcn-r-f32", "crossover-minibatch-alexnet-r-f32"} < set(names)
    alt = charts[names.index("crossover-minibatch-fcn-r-f32")].alt
    assert "against samples in a batch" in alt


# --- why


def test_every_part_of_a_profile_has_a_share_and_a_colour(file):
    counted = {key for row in step_rows(file) for key in row.counters if key[:8] == "seconds_"}
    assert counted - {f"seconds_{part}" for part in PARTS} == {
        *("seconds_per_step", "seconds_unattributed")
    }
    assert PARTS.keys() <= COLOURS.keys()
    for split in splits(step_rows(file)):
        total = sum(split.parts.values()) + split.unattributed
        assert total == pytest.approx(split.row.median)


def test_why_has_tables_of_both_and_changes_of_each(file):
    compared = comparisons(file)
    tables = why_tables(file, compared)
    titles = [table.title for table in tables]
    assert len(titles) == len(set(titles)) == 8
    (split,) = (table for table in tables if "of a training step goes" in table.title)
    (line,) = (
        line
        for line in split.records()
        if (line["model"], line["on"], line["batch"]) == ("alexnet-r", "CPU, 2 threads", 1024)
    )
    assert line["convolution_percent"] == pytest.approx(97 * 0.6, rel=0.01)
    assert line["reorder_percent"] == pytest.approx(97 * 0.02, rel=0.01)
    assert line["bound"] == "compute" and line["step_seconds"] > 0
    (repaid,) = (table for table in tables if "repaid in training steps" in table.title)
    assert repaid.records()[0].keys() >= {"steps", "gpu_step_seconds"}
    for family in (EPOCH, MINIBATCH):
        changes = counterfactuals(Study(file, compared=compared), family)
        assert changes and {change.pair.family for change in changes} == {family}
    assert all("parameters" not in change.sentence for change in changes)


def test_the_profile_stands_in_for_a_way_that_was_not_measured(load):
    ways = (("graph", "pageable"),)
    entries = synthetic_steps.steps(["alexnet-r"], ways=ways, batches=(2, 8, 32, 128))
    file = load(entries, gpu="synthetic GPU")
    changes = counterfactuals(Study(file), MINIBATCH)
    (change,) = (change for change in changes if not change.measured)  # 5 % of each step are copies
    assert change.change == "without copies to the GPU"
    assert change.after.size / change.before.size == pytest.approx(0.95, rel=0.03)


def test_the_chart_names_networks_by_batch(file):
    drawn = draw_why(Study(file), MINIBATCH).pictures.svg.decode()
    for text in ("alexnet-r ×1024, 90k", "convolution", "normalization", "pooling", "reorders"):
        assert f">{text}<" in drawn
    assert "% of the step" in drawn
    assert "convolution" not in draw_why(Study(file)).pictures.svg.decode()


# --- compare, side by side, advise


TIMES = np.array([0.300, 0.301, 0.302, 0.299, 0.298, 0.300, 0.301, 0.299, 0.300])


def test_machines_have_a_ratio_of_steps(read):
    files = []
    for name, slow in (("a", 1.0), ("b", 2.0)):
        entries = [
            entry
            for model in ("lstm", "fcn-r")
            for on in (1, 2)
            for entry in synthetic_steps.samples(
                synthetic_steps.cpu_configuration(model, on), (slow / on * TIMES).tolist()
            )
        ]
        files.append(read(synthetic.document(entries, name), f"{name}.json"))
    side = side_by_side(files, baseline=files[0])
    ratio = side.standings[1].ratios[MINIBATCH, "cpu"]
    assert ratio.mean == pytest.approx(2.0) and ratio.works == 2
    assert "minibatch_cpu_ratio" in machines_table(side).records()[1]


def test_steps_of_networks_without_convolutions_join_the_fit(file):
    series, _ = fit_series(file, "f32")
    cpu = next(fitted for fitted in series if fitted.label == "CPU, 1 thread")
    assert {"lstm", "fcn-s", "disc-2"} < set(cpu.residuals)
    assert "alexnet-r" not in cpu.residuals
    assert {has_own_rates(row) for row in step_rows(file)} == {True, False}


# --- the page


@pytest.mark.usefixtures("undrawn")
def test_sections_show_epochs_then_steps(file):
    context = Context()
    (block,) = crossovers.build([file], context).blocks
    assert [(table.short or table).title.partition(" (")[0] for table in block.tables][::2] == [
        "From which size the GPU trains disc networks faster than the CPU",
        "From which batch size the GPU trains step by step faster than the CPU",
    ]
    assert "minibatch-fcn-r" in block.pictures[-1].name and "epoch" in block.pictures[0].name
    (block,) = reasons.build([file], context).blocks
    assert [picture.name for picture in block.pictures] == ["machine.why", "machine.why-steps"]
    titles = [table.title for table in block.tables if table.lines]
    assert len(set(titles)) == len(titles)
    (block,) = steps([file], context).blocks
    best = block.tables[0].records()
    assert len(best) == 16  # of each batch of each network
    assert all(line["speed_up"] for line in best)
    memory = block.tables[-1].records()
    assert memory[0].keys() >= {"network", "batch", "on", "peak_bytes"}
    assert verdict.build([file], context).blocks[0].lead.startswith("PyTorch's own loop was not")
    rows = record.build([file], context).blocks[0].folds[0].tables[0]
    assert any(line["family"] == "Minibatch" and line["verified"] for line in rows.records())


def test_a_file_without_steps_has_no_section_of_them(read):
    assert steps([read(synthetic.sweep())], Context()) is None


# --- networks in use


@pytest.fixture
def used(write):
    """A file of forward passes."""
    entries = [
        entry
        for model in (*DISC_MODELS, "heart")
        for batch in (1, 1024)
        for device in ("cpu", "cuda")
        for entry in passes(model, batch, device)
    ]
    return write(synthetic.document(entries, gpu="synthetic GPU"))


def test_latencies_are_shown_and_have_a_crossover_for_each_batch(used, shell):
    printed = shell("crossover", used, "--of=latency-p99", "--format=json", "--all")
    crossovers, ratios = json.loads(printed.out)
    sizes = {line["batch"]: line["crossover"] for line in crossovers["rows"]}
    # 1 us and 2 params batch / 2e10 are 20 us at 190,000 parameters, and of 1,024 at 186.
    assert sizes == {1: pytest.approx(190_000, rel=0.1), 1024: pytest.approx(186, rel=0.2)}
    assert {line["model"] for line in ratios["rows"]} >= {"heart", "disc-12"}
    best, _, latencies = json.loads(shell("times", used, "--format=json").out)
    assert best["title"].startswith("Forward passes: the fastest way")
    line = next(line for line in latencies["rows"] if line["network"] == "heart")
    assert line["latency_p99_seconds"] == pytest.approx(2 * line["latency_p50_seconds"], rel=0.05)
    assert line["latency_passes"] == 10_000 - 4
    samples = crossover_bench.load(str(used)).where(model="heart", batch="1", device="cpu")
    assert len(samples.where(quantity="latency-p99")) == 9


def test_crossovers_of_training_know_nothing_of_networks_in_use(used, write, shell):
    alone = synthetic.sweep()
    content = json.loads(used.read_text("utf-8"))
    both = synthetic.as_file(alone)
    for part in ("rows", "benchmarks"):
        both[part] += content[part]
    of_training = shell("crossover", write(alone, "a.json"), "--format=json").out
    of_both = shell("crossover", write(both, "b.json"), "--format=json").out
    tables = json.loads(of_both)
    assert sum("pass" in table["title"] for table in tables) == 2
    assert [table for table in tables if "pass" not in table["title"]] == json.loads(of_training)
    assert shell("crossover", write(both, "b.json"), "--summary").out == (
        shell("crossover", write(alone, "b.json"), "--summary").out
    )


@pytest.mark.skipif(not BENCH_PATH.is_file(), reason="no bench is built to count forward passes")
def test_cards_that_nobody_measured_are_predicted(write, shell, tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "BENCH_PATH", BENCH_PATH)
    entries = [entry for model in DISC_MODELS for entry in passes(model, 1, "cpu")]
    file = write(synthetic.document(entries))
    printed = " ".join(shell("predict", file, "--gpu=rtx-4060").out.split())
    assert printed.count("(a forward pass, graph, pinned, batch 1); predicted, not measured.") == 1
    shell("report", file, f"--out={tmp_path}")
    page = (tmp_path / "index.html").read_text("utf-8")
    assert re.search(r"a GPU wins from [^.]* in forward passes at batch 1\.", page)
    assert "ms a forward pass on this CPU" in page, page[page.find("on the largest") :][:300]
    every = shell("predict", file, "--gpu=rtx-4060", "--format=json", "--all").out
    lines = [line for table in json.loads(every) for line in table["rows"] if "model" in line]
    here = {(line["execution"], line["data"]): line for line in lines if line["model"] == "disc-5"}
    assert len(here) == 4 and all(line["low_seconds"] for line in here.values())
    resident, pinned = (
        here["graph", data]["predicted_pass_seconds"] for data in ("resident", "pinned")
    )
    assert 6e-6 < pinned - resident < 2e-5  # two copies


def test_the_page_answers_for_networks_in_use(used, shell, tmp_path):
    shell("report", used, f"--out={tmp_path}")
    page = (tmp_path / "index.html").read_text("utf-8")
    assert "To use the trained network, do you need a GPU?" in page
    assert 'data-key="latency_p99_seconds"' in page  # of every row
    assert "10 of 24 lines." in page
    assert "samples per second" in next(tmp_path.glob("*.throughput.svg")).read_text("utf-8")
    chart = next(tmp_path.glob("*.passes.svg")).read_text("utf-8")
    assert "networks disc-N, batch 1" in chart
    assert "wall-clock time of one pass" in chart and "published" not in chart
