# SPDX-License-Identifier: Apache-2.0
"""`why`: splits that add up, counterfactuals of known crossovers, epochs counted one by one."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from plots import loading, rows
from plots.analysis import crossover, why
from plots.analysis.crossover import Comparison, Crossover, Curve
from plots.charts.why import draw_why
from plots.cli import main
from plots.network import epoch_rows
from plots.tables.formats import FORMATS, render
from plots.tables.why import why_tables
from plots.tests import synthetic, synthetic_machine

COMMON = {"family": "Epoch", "batch": "100"}
SIZES = np.array([22.0, 2982.0, 703142.0])


@pytest.fixture
def load(write):
    """A synthetic machine's file, loaded."""
    return lambda **options: loading.load_file(write(synthetic_machine.machine(**options)))


def answer(size: float | None, words: str = "", spread: float = 0.1) -> Crossover:
    """A crossover at `size`, its interval `spread` wide on each side."""
    if size is None:
        return Crossover("always", None, None, None, (), words or "GPU always")
    low, high = size * (1 - spread), size * (1 + spread)
    words = words or f"from {size:,.0f} parameters"
    return Crossover("once", size, low, high, (size,), words)


def curve(seconds: float = 1.0, **configuration: str) -> Curve:
    samples = tuple(np.full(9, seconds) for _ in SIZES)
    return Curve("", {"precision": "f32", **configuration}, SIZES, samples)


def comparison(found: Crossover, threads: str = "best", **gpu: str) -> Comparison:
    return Comparison(
        COMMON,
        "parameters",
        curve(device="cpu", execution="eager", cpu_threads=threads),
        curve(device="cuda", **gpu),
        found,
    )


def sentences(file: rows.File, *compared: Comparison) -> list[str]:
    return [item.sentence for item in why.counterfactuals(file, compared)]


# --- the split


def test_the_parts_add_up_to_the_median(load):
    file = load(noise=0.5)
    found = why.splits(epoch_rows(file))
    assert len(found) == len(epoch_rows(file)) == 14 * 4
    for split in found:
        total = sum(split.parts.values()) + split.unattributed
        assert total == pytest.approx(split.row.median)
    # With noise this large the profile is above the median of about half of them.
    assert 10 < sum(split.unattributed < 0 for split in found) < 46


def test_a_row_without_profile_has_no_split(small, write):
    file = loading.load_file(write(small))
    assert why.splits(epoch_rows(file)) == []
    (table,) = why_tables(file, [])
    assert "unattributed_percent" not in table.records()[0]
    assert draw_why(file) is None


def test_shares_are_percent_of_the_epoch(load):
    file = load(threads=(1,), modes=(), noise=0.0)
    (table,) = why_tables(file, [])
    what = synthetic_machine.counts("disc-2")
    line = next(line for line in table.records() if line["model"] == "disc-2")
    parts = synthetic_machine.profile(what, synthetic.cpu_configuration("disc-2", 1))
    total = sum(parts.values())
    assert line["loss_percent"] == pytest.approx(100 * parts["loss"] / total)
    assert line["unattributed_percent"] == pytest.approx(0, abs=1e-6)
    assert line["bound"] == "compute"
    assert line["bound_percent"] == pytest.approx(100 * what["flops"] / 5e10 / total)


def test_columns_are_those_that_the_file_has(load):
    cpu = why_tables(load(modes=()), [])[0].records()[0]
    assert "launch_percent" not in cpu and "update_percent" not in cpu
    gpu = why_tables(load(modes=(("eager", "pinned"),)), [])[0].records()
    assert {line["copy_to_device_percent"] is None for line in gpu} == {True, False}


def test_the_bound_of_a_row(small, write):
    for entry, percent in zip(small["benchmarks"], (20.0, 60.0, 30.0), strict=True):
        entry["bound"] = {"name": "memory", "seconds": 0.006, "percent": percent}
    (row,) = loading.load_file(write(small)).rows
    assert row.bound == rows.Bound("memory", 0.006, 30.0)
    for entry in small["benchmarks"]:
        entry["bound"] = {"reason": "no ceilings in this file"}
    file = loading.load_file(write(small))
    assert file.rows[0].bound == rows.Bound(None, None, None, "no ceilings in this file")
    assert "No bound: no ceilings in this file." in why_tables(file, [])[0].notes
    for entry in small["benchmarks"]:
        del entry["bound"]
    assert loading.load_file(write(small)).rows[0].bound is None


# --- threads


def test_more_threads(load):
    file = load(noise=0.0)
    found = {item.rows[1].configuration["model"]: item for item in why.threads(file.rows[7:])}
    assert found["disc-12"].speed_ups[2] == pytest.approx(2, rel=1e-2)
    assert found["disc-2"].speed_ups[1] == 1
    assert found["disc-12"].unsure == frozenset()


def test_thread_counts_whose_repetitions_overlap_are_marked(write):
    entries = [
        *synthetic.samples(synthetic.cpu_configuration("disc-3", 1), [0.010, 0.012, 0.014]),
        *synthetic.samples(synthetic.cpu_configuration("disc-3", 2), [0.009, 0.0101, 0.011]),
    ]
    file = loading.load_file(write(synthetic.document(entries)))
    (item,) = why.threads(file.rows)
    assert item.unsure == {2}
    table = why_tables(file, [])[1]
    (line,) = table.lines
    assert line[-1].value == pytest.approx(0.012 / 0.0101) and line[-1].marks == (1,)


# --- start-up


@pytest.mark.parametrize(
    ("cpu_first", "cpu_epoch", "gpu_first", "gpu_epoch"),
    [
        (0.1, 0.1, 1.0, 0.01),
        (0.1, 0.1, 1.0, 0.1),
        (0.1, 0.1, 1.0, 0.2),
        (1.0, 0.1, 0.5, 0.01),
        (0.5, 0.25, 1.5, 0.125),  # equal after 9 epochs, to the bit
        (0.5, 0.25, 0.5, 0.125),
    ],
)
def test_repayment_is_the_first_epoch_that_is_ahead(
    cpu_first, cpu_epoch, gpu_first, gpu_epoch, write
):
    cpu = synthetic.cpu_configuration("disc-3", 1)
    gpu = synthetic.gpu_configuration("disc-3")
    entries = [
        *synthetic.samples(cpu, [cpu_epoch] * 3, first_call_seconds=cpu_first),
        *synthetic.samples(gpu, [gpu_epoch] * 3, first_call_seconds=gpu_first),
    ]
    file = loading.load_file(write(synthetic.document(entries, gpu="synthetic GPU")))
    times = (Fraction(time) for time in (cpu_first, cpu_epoch, gpu_first, gpu_epoch))
    cpu_start, cpu_each, gpu_start, gpu_each = times
    ahead = [
        n for n in range(1, 1000) if gpu_start + (n - 1) * gpu_each < cpu_start + (n - 1) * cpu_each
    ]
    (item,) = why.repayments(file.rows)
    assert item.epochs == (ahead[0] if ahead else None)


def test_repayment_is_against_the_fastest_cpu_row(load):
    found = why.repayments(load().rows[7:])
    assert {item.cpu.configuration["cpu_threads"] for item in found} == {"2"}
    assert len(found) == 14 * 2


# --- what changes the crossover


def test_each_change_is_against_the_plainest_like_it(load):
    file = load(modes=())
    found = sentences(
        file,
        comparison(answer(180_000), execution="eager", data="resident"),
        comparison(answer(703_000), execution="eager", data="pinned"),
        comparison(answer(90_000), execution="graph", data="resident"),
    )
    assert found == [
        "with the data resident the crossover falls from 703,000 to 180,000 parameters "
        "(batch 100, f32, eager)",
        "with CUDA graphs the crossover falls from 180,000 to 90,000 parameters "
        "(batch 100, f32, resident)",
    ]


def test_more_threads_raise_the_crossover(load):
    mode = {"execution": "eager", "data": "resident"}
    (sentence,) = sentences(
        load(modes=()),
        comparison(answer(100_000), threads="2", **mode),
        comparison(answer(50_000), threads="1", **mode),
        comparison(answer(100_000), **mode),
    )[:1]
    assert sentence == (
        "with 2 CPU threads instead of 1 the crossover rises from 50,000 to 100,000 parameters "
        "(batch 100, f32, eager, resident)"
    )


def test_thread_counts_are_compared_on_the_same_gpu_curve(load):
    waited = {"execution": "eager", "data": "resident", "loss": "step"}
    mode = {"execution": "eager", "data": "resident"}
    found = why.counterfactuals(
        load(modes=()),
        [
            comparison(answer(size), threads=threads, **way)
            for size, threads, way in (
                (50_000, "1", mode),
                (900_000, "16", waited),
                (100_000, "2", mode),
                (60_000, "1", waited),
            )
        ],
    )
    assert [(item.before.size, item.after.size) for item in found] == [(50_000, 100_000)]


def test_a_change_within_the_uncertainty_is_called_that(load):
    pinned = comparison(answer(703_000, spread=0.4), execution="eager", data="pinned")
    resident = comparison(answer(600_000), execution="eager", data="resident")
    (sentence,) = sentences(load(modes=()), pinned, resident)
    assert "moves from 703,000 to 600,000" in sentence and "uncertainty of both" in sentence
    open_end = replace(answer(100_000), high=None)  # it may lie beyond the largest size
    (sentence,) = sentences(load(modes=()), pinned, replace(resident, crossover=open_end))
    assert "uncertainty of both" in sentence


def test_answers_without_a_size_are_quoted(load):
    pinned = comparison(answer(703_000), execution="eager", data="pinned")
    resident = comparison(answer(None), execution="eager", data="resident")
    (sentence,) = sentences(load(modes=()), pinned, resident)
    assert "“GPU always” instead of “from 703,000 parameters”" in sentence
    (sentence,) = sentences(load(modes=()), replace(resident, gpu=pinned.gpu), resident)
    assert "stays the same: GPU always" in sentence


def test_the_profile_stands_in_for_what_was_not_measured(load, monkeypatch):
    file = load(modes=(("eager", "pinned"),), noise=0.0)
    asked = []
    monkeypatch.setattr(
        why, "find_crossover", lambda cpu, gpu, measure: asked.append(gpu) or answer(500_000)
    )
    pair = comparison(answer(703_000), execution="eager", data="pinned")
    found = why.counterfactuals(file, [pair])
    assert [(item.change, item.measured) for item in found] == [
        ("without copies to the GPU", False),
        ("without the time of launches", False),
    ]
    assert "by the profile" in found[0].sentence
    for gpu, part in zip(asked, ("copy_to_device", "launch"), strict=True):
        for model, samples in zip(("disc-2", "disc-6", "disc-10"), gpu.samples, strict=True):
            what = synthetic_machine.counts(model)
            parts = synthetic_machine.profile(what, pair.gpu.configuration)
            assert samples == pytest.approx(1.0 - parts[part], abs=1e-6)


def test_other_families_change_nothing(load):
    pair = comparison(answer(512), execution="eager", data="resident")
    other = replace(pair, common={"family": "Gemm"}, measure="size")
    assert why.counterfactuals(load(modes=()), [other]) == []


# --- the command


def test_a_file_without_gpu_is_complete_and_says_what_one_would_add(load, capsys):
    path = load(modes=()).path
    assert main(["why", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "Where the time of an epoch goes" in printed.out
    assert "What more threads bring" in printed.out
    assert "There is no GPU row here: none (synthetic)" in printed.out
    assert "start-up is repaid" not in printed.out


@pytest.fixture
def gpu_path(load, monkeypatch):
    """A file with a GPU, whose crossovers are known."""
    known = [
        comparison(answer(703_000), execution="eager", data="pinned"),
        comparison(answer(180_000), execution="eager", data="resident"),
        comparison(answer(90_000), execution="graph", data="resident"),
    ]
    monkeypatch.setattr(crossover, "comparisons", lambda file: known)
    return load(modes=(("eager", "pinned"), ("eager", "resident"), ("graph", "resident"))).path


def test_a_file_with_gpu_says_all(gpu_path, capsys):
    assert main(["why", str(gpu_path)]) == 0
    printed = capsys.readouterr().out
    assert "[1] With the data resident the crossover falls from 703,000 to 180,000" in printed
    assert "When the GPU's start-up is repaid" in printed
    assert "There is no GPU row" not in printed


@pytest.mark.parametrize("name", FORMATS)
def test_every_format(gpu_path, name, capsys):
    assert main(["why", str(gpu_path), "--format", name]) == 0
    printed = capsys.readouterr().out
    assert "703,000" in printed or "703000" in printed
    if name == "json":
        tables = json.loads(printed)
        change = next(table for table in tables if "What changes" in table["title"])
        assert (change["rows"][0]["before"], change["rows"][0]["after"]) == (703_000, 180_000)


@pytest.mark.slow
def test_charts_are_written_and_always_the_same(gpu_path, tmp_path, capsys):
    for folder in ("a", "b"):
        assert main(["why", str(gpu_path), "--charts", str(tmp_path / folder)]) == 0
    names = ["synthetic-machine-why.png", "synthetic-machine-why.svg"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    svg = (tmp_path / "a" / names[1]).read_text()
    for label in (
        "launch",
        "copy to GPU",
        "products",
        "unattributed",
        "bound",
        "GPU, eager, pinned",
    ):
        assert label in svg
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["why", str(gpu_path), "--charts", str(blocked)]) == 2
    assert "choose another folder with --charts" in capsys.readouterr().err


def test_hostile_text_breaks_no_table(write):
    configuration = synthetic.cpu_configuration("disc-3", 1)
    hostile = "<script>|$\\x\n" * 50
    document = synthetic.document(synthetic.samples(configuration, seconds_loss=0.01), hostile)
    file = loading.load_file(write(document))
    for name in ("html", "markdown"):
        assert "<script>" not in render(why_tables(file, []), name)
    assert draw_why(file) is not None


def test_a_file_without_epochs_is_told(write, capsys):
    document = synthetic.document(synthetic_machine.peaks((1,), gpu=False))
    path = write(document)
    assert main(["why", str(path)]) == 2
    assert f"{path}: no Epoch row has a result" in capsys.readouterr().err
