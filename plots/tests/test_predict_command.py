# SPDX-License-Identifier: Apache-2.0
"""`predict`, `advise --gpu` and the page: what is predicted is always said to be."""

import csv
import io
import json
import re
from pathlib import Path

import pytest

from plots.cli import main
from plots.core import costs
from plots.core.cards import load_cards
from plots.core.published import load_published
from plots.core.tables.formats import FORMATS
from plots.features.predict.analysis import DEFAULT_CARDS, NOT_MEASURED
from plots.features.predict.files import predictions
from plots.features.report import report
from plots.file import loading
from plots.tests import synthetic, synthetic_machine, synthetic_steps

ROOT = Path(__file__).parents[2]
FILE = ROOT / "results" / "amd-epyc-25-17-2c" / "2026-11-21-54adc5a.json"
NEWER = FILE.with_name("2026-11-23-bfe530f.json")
SMALL = ("disc-3", "disc-6", "disc-9", "heart")


@pytest.fixture
def path(write) -> Path:
    """A machine without a GPU: four networks, and steps of the seven."""
    document = synthetic_machine.machine(modes=(), models=SMALL)
    document["benchmarks"] += synthetic_steps.steps(ways=())
    return write(document, "cpu.json")


def printed(capsys, *arguments: object) -> str:
    assert main([*map(str, arguments)]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_the_text_names_the_range_of_each_card(capsys):
    newer = " ".join(printed(capsys, "predict", NEWER).split())
    flat = " ".join(printed(capsys, "predict", FILE).split())
    for name in ("RTX 4060", "L4", "RTX 4090", "H200"):
        pattern = rf"{name}[^:]*: the GPU would win from [\d,]+ parameters \([\d,]+ to [\d,]+\)"
        assert re.search(
            pattern + r" \(graph, resident, batch 100\); predicted, not measured\.", newer
        )
    assert flat.count(NOT_MEASURED) >= 5
    assert re.search(r"disc-12 11,201,190 100 381 ms \*\d", flat)
    assert "The band holds 90 % of simulated cards" in flat
    assert "It is for this program. PyTorch starts each operation from Python" in flat
    assert "as far as published times do; no whole step of a small network" in flat


def test_all_formats_say_so_in_every_table(path, capsys):
    for name in FORMATS:
        text = printed(capsys, "predict", path, f"--format={name}", "--gpu=l4")
        if name == "csv":
            lines = [line for line in csv.reader(io.StringIO(text)) if line]
            assert sum("measured" in line for line in lines) == 3
        else:
            assert " ".join(text.split()).count(NOT_MEASURED) >= 3, name
    found = json.loads(printed(capsys, "predict", path, "--format=json", "--gpu=l4"))
    for table in found:
        assert NOT_MEASURED in table["title"]
        assert table["rows"] and all(row["measured"] == 0 for row in table["rows"])


def test_all_shows_every_way(path, capsys):
    text = printed(capsys, "predict", path, "--all", "--gpu=l4,h200", "--batch=100")
    for words in ("eager", "graph", "pinned-async", "resident", "earliest", "latest"):
        assert words in text
    only = printed(
        capsys, "predict", path, "--gpu=l4", "--execution=graph-epoch", "--placement=resident"
    )
    assert "graph-epoch, resident" in only and "eager" not in only
    assert "a training step has no graph of an epoch" in " ".join(only.split())


def test_cards_without_a_figure_are_left_out_with_the_reason(path, capsys, shell):
    text = printed(capsys, "predict", path, "--gpu=gtx-980,h200", "--precision=tf32")
    flat = " ".join(text.split())
    assert "GTX 980: nothing is predicted (no source gives its tf32_flops" in flat
    assert "tf32 (CPU: f32)" in flat
    assert (
        "no source gives its tf32_flops"
        in shell("predict", path, "--gpu=gtx-980", "--precision=tf32", code=2).err
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--gpu=rtx-9090"], "--gpu=rtx-9090: no such card; there are gtx-980"),
        (["--execution=lazy"], "--execution=lazy: is none of eager, graph, graph-epoch"),
        (["--placement=pageable"], "--placement=pageable: is none of resident, pinned"),
        (["--batch=many"], "--batch=many: a number from 1 on is needed"),
        (["--batch=77"], "nothing can be predicted, because no row of its CPU trains"),
    ],
)
def test_bad_input_gets_a_sentence(path, shell, arguments, words):
    error = shell("predict", path, *arguments, code=2).err
    assert words in error and error.count("\n") == 1


def test_files_are_needed_but_for_lists(capsys, shell):
    assert "name result files" in shell("predict", code=2).err
    cards = json.loads(printed(capsys, "predict", "--gpus", "--format=json"))[0]["rows"]
    assert [row["card"] for row in cards] == list(load_cards())
    check = printed(capsys, "predict", "--check")
    assert "both the card and the network" in check and "in the band" in check


def test_a_bad_file_beside_a_good_one(path, tmp_path, shell):
    (tmp_path / "bad.json").write_text("{")
    out, err = shell("predict", tmp_path, "--gpu=l4", code=2)
    assert NOT_MEASURED in out and "bad.json" in err


def test_missing_reference_figures_are_restored(path, shell, monkeypatch, tmp_path):
    missing = {"path": tmp_path / "costs.json"}
    monkeypatch.setattr(costs.find_cost, "__kwdefaults__", missing)
    assert "costs.json: No such file or directory; restore it" in shell("predict", path, code=2).err
    assert "so no report was written" in shell("report", path, "-o", tmp_path / "out", code=2).err


@pytest.mark.slow
def test_charts_are_named_predicted(path, tmp_path, capsys):
    charts = tmp_path / "charts"
    assert main(["predict", str(path), "--charts", str(charts), "--gpu=l4,h200"]) == 0
    names = sorted(each.name for each in charts.iterdir())
    stems = ["predicted-epoch-100-f32", "predicted-minibatch"]
    assert names == [
        f"synthetic-machine.{stem}.{kind}" for stem in stems for kind in ("png", "svg")
    ]
    for name in names:
        if name.endswith("svg"):
            svg = (charts / name).read_text()
            assert "predicted, not measured" in svg
            assert "this CPU, measured" in svg or "measured: CPU" in svg


def test_nothing_is_written_into_result_files(path, capsys):
    before = path.read_bytes()
    printed(capsys, "predict", path)
    assert path.read_bytes() == before


# --- advise


@pytest.fixture
def saved(write) -> Path:
    """The cost of disc-7, as bench --cost prints it."""
    cost = json.loads(cost_line("disc-7"))
    what = synthetic_machine.counts("disc-7")
    cost["epoch"]["device_launches"]["cpu"] = what["cpu_launches"]
    return write(cost, "cost.json")


def cost_line(model: str) -> str:
    path = ROOT / "plots" / "reference" / "costs.json"
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if json.loads(line)["model"] == model)


def test_advise_adds_cards(write, saved, capsys, shell):
    models = tuple(name for name in synthetic.MODELS if name != "disc-7")
    file = write(synthetic_machine.machine(modes=(), models=models), "cpu.json")
    flags = ["advise", file, "--cost", saved, "--gpu=l4,rtx-4090", "--format=json"]
    tables = json.loads(printed(capsys, *flags))
    (cards,) = [table for table in tables if NOT_MEASURED in table["title"]]
    assert [row["card"] for row in cards["rows"]] == ["l4"] * 4 + ["rtx-4090"] * 4
    for row in cards["rows"]:
        assert row["low_seconds"] < row["epoch_seconds"] < row["high_seconds"]
        assert row["step_seconds"] == pytest.approx(row["epoch_seconds"] / 10)
        assert row["measured"] == 0
    assert "no such card" in shell("advise", file, "--cost", saved, "--gpu=foo", code=2).err


def test_advise_without_gpu_predicts_no_card(write, saved, capsys):
    models = tuple(name for name in synthetic.MODELS if name != "disc-7")
    file = write(synthetic_machine.machine(modes=(), models=models), "cpu.json")
    assert NOT_MEASURED not in printed(capsys, "advise", file, "--cost", saved)


# --- the page


@pytest.mark.usefixtures("undrawn")
def test_the_page_has_a_section_behind_the_cpu_s_curves(path):
    file = loading.load_file(path)
    contents = report.build_report([file], load_published(), predicted=predictions([file]))
    page = contents["index.html"].decode()
    order = [page.index(f'id="{anchor}"') for anchor in ("epochs", "steps", "predicted", "why")]
    assert order == sorted(order)
    section = page[order[2] : order[3]]
    assert "If this machine had a GPU" in section
    for name in DEFAULT_CARDS:
        assert load_cards()[name].name.removeprefix("NVIDIA ").removeprefix("GeForce ") in section
    assert section.count(NOT_MEASURED) > 6
    assert "tools/gpu_sweep" in section and "Contribute a file" in section
    answer = page[page.index('class="answer"') :].split("</p>")[0]
    assert "A GPU wins" in answer and "predicted for" in answer
    assert "synthetic-machine.predicted-minibatch.svg" in contents


@pytest.mark.usefixtures("undrawn")
def test_a_machine_with_a_gpu_is_told_of_others(read):
    document = synthetic_machine.machine(models=SMALL)
    document["context"]["crossover"]["machine"]["gpu"]["name"] = "NVIDIA L4"
    file = read(document)
    found = predictions([file])
    assert [one.card.id for one in found.of(file)] == ["rtx-4060", "rtx-4090", "h200"]
    contents = report.build_report([file], load_published(), predicted=found)
    page = contents["index.html"].decode()
    assert "If this machine had another GPU" in page
    answer = page[page.index('class="answer"') :].split("</p>")[0]
    assert NOT_MEASURED not in answer  # which is of measured times


@pytest.mark.usefixtures("undrawn")
def test_without_predictions_there_is_no_section(path):
    contents = report.build_report([loading.load_file(path)], load_published())
    assert 'id="predicted"' not in contents["index.html"].decode()


@pytest.mark.usefixtures("undrawn")
def test_the_report_s_command_predicts(path, tmp_path, shell):
    text = " ".join(shell("report", path, "-o", tmp_path / "out", "--summary").out.split())
    assert "A GPU wins" in text and "predicted for" in text
    assert 'id="predicted"' in (tmp_path / "out" / "index.html").read_text()


def test_a_cost_that_the_cpu_cannot_compute_still_has_cards(write, saved, shell):
    """bench --cost says nothing of a device that lacks an operation, as the CPU does in f16."""
    content = json.loads(saved.read_text())
    del content["epoch"]["device_launches"]["cpu"]
    models = tuple(name for name in synthetic.MODELS if name != "disc-7")
    file = write(synthetic_machine.machine(modes=(), models=models), "cpu.json")
    cost = write(content, "no-cpu.json")
    out, err = shell("advise", file, "--cost", cost, "--gpu=l4", code=2)
    assert "bench --cost does not count this configuration" in err
    assert NOT_MEASURED in out and "RTX" not in out
