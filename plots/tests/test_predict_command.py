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
from plots.core.cost import CostError
from plots.core.tables.formats import FORMATS
from plots.features.predict.analysis import DEFAULT_CARDS, NOT_MEASURED
from plots.features.predict.cards import chosen_cards
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
        (["--gpu=rtx-9090"], "--gpu=rtx-9090: no such card; did you mean "),
        (["--execution=lazy"], "--execution=lazy: is none of eager, graph, graph-epoch"),
        (["--placement=pageable"], "--placement=pageable: is none of resident, pinned"),
        (["--batch=many"], "--batch=many: a number from 1 on is needed"),
        (["--batch=77"], "nothing can be predicted, because no row of its CPU trains"),
    ],
)
def test_bad_input_gets_a_sentence(path, shell, arguments, words):
    error = shell("predict", path, *arguments, code=2).err
    assert words in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("said", "card"),
    [
        *(
            (name, "rtx-4090")
            for name in ("RTX 4090", "rtx4090", "4090", "NVIDIA GeForce RTX 4090")
        ),
        *(("4060", "rtx-4060"), ("rtx_4060 laptop", "rtx-4060-laptop"), ("A100", "a100")),
        *(("Tesla T4", "t4"), ("2080 Ti", "rtx-2080-ti"), ("H100 SXM5 80 GB", "h100")),
    ],
)
def test_names_of_cards_are_forgiven(said, card):
    assert [one.id for one in chosen_cards(said)] == [card]


def test_every_card_is_found_by_its_id_and_by_its_name():
    for card in load_cards().values():
        own = [*chosen_cards(card.id.upper()), *chosen_cards(card.name.replace(",", ""))]
        assert {one.id for one in own} == {card.id}


def test_data_sheets_stand_among_names():
    found = chosen_cards("l4, tflops:82.6,bandwidth:1008,link:31.5, tflops:10,bandwidth:200,4090")
    assert [one.id for one in found][::3] == ["l4", "rtx-4090"]
    first, second = found[1:3]
    assert first.figure("f32_flops") == pytest.approx(82.6e12)
    assert first.figure("memory_bytes_per_second") == pytest.approx(1008e9)
    assert (first.figure("link_bytes_per_second"), second.figure("link_bytes_per_second")) == (
        pytest.approx(31.5e9),
        None,
    )
    assert first.figure("multiprocessors") == 150 and second.figure("multiprocessors") == 18


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("rtx 4080 ti", "did you mean rtx-4070-ti or rtx-4060-ti or rtx-3080-ti?"),
        ("108", "did you mean gtx-1080 or gtx-1080-ti?"),
        ("orin", "no such card; did you mean"),
        ("foo", "predict --gpus lists those that are known"),
        ("l4,,t4", "there is an empty name"),
        ("tflops:82.6", "needs bandwidth too"),
        ("tflops:many,bandwidth:1", "tflops needs a number"),
        ("speed:9", "a data sheet says tflops, bandwidth,"),
    ],
)
def test_a_card_that_is_not_known_gets_a_sentence(said, words):
    with pytest.raises(CostError, match=re.escape(words)):
        chosen_cards(said)


def test_files_are_needed_but_for_lists(capsys, shell):
    assert "name result files" in shell("predict", code=2).err
    cards = json.loads(printed(capsys, "predict", "--gpus", "--format=json"))[0]["rows"]
    assert [row["card"] for row in cards] == list(load_cards())


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
    return write(json.loads(cost_line("disc-7")), "cost.json")


def cost_line(model: str) -> str:
    path = ROOT / "plots" / "reference" / "costs.json"
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if json.loads(line)["model"] == model)


@pytest.fixture
def without_disc_7(write) -> Path:
    models = tuple(name for name in synthetic.MODELS if name != "disc-7")
    return write(synthetic_machine.machine(modes=(), models=models), "cpu.json")


def test_advise_adds_cards(without_disc_7, saved, capsys):
    flags = ["advise", without_disc_7, "--cost", saved, "--gpu=L4,rtx4090", "--format=json"]
    (table,) = json.loads(printed(capsys, *flags))
    assert NOT_MEASURED in table["title"]
    cards = [row for row in table["rows"] if row["device"] != "cpu"]
    assert [row["device"] for row in cards] == ["l4"] * 4 + ["rtx-4090"] * 4
    for row in cards:
        assert row["low_seconds"] < row["seconds"] < row["high_seconds"]
        assert row["step_seconds"] == pytest.approx(row["seconds"] / 10)
        assert row["measured"] == 0 and row["winner"] in ("cpu", "gpu", None)


def test_advise_knows_a_card_by_its_data_sheet(without_disc_7, saved, capsys):
    """What a sheet leaves out is told from what it says, so well that the band needs no more."""
    sheet = "tflops:82.6,bandwidth:1008"
    flags = ["advise", without_disc_7, "--cost", saved, f"--gpu=4090,{sheet}", "--format=json"]
    (table,) = json.loads(printed(capsys, *flags))
    for way in ("eager, resident", "graph, resident"):
        own = {row["device"]: row["seconds"] for row in table["rows"] if row["on"].endswith(way)}
        assert own[sheet] == pytest.approx(own["rtx-4090"], rel=0.25)
    copied = [row["device"] for row in table["rows"] if row["on"].endswith("pinned-async")]
    assert copied == ["rtx-4090"] * 2
    assert any("its link_bytes_per_second" in note for note in table["notes"])


# --- the page


@pytest.mark.usefixtures("undrawn")
def test_the_page_has_a_section_behind_the_cpu_s_curves(path):
    file = loading.load_file(path)
    contents = report.build_report([file], predicted=predictions([file]))
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
    contents = report.build_report([file], predicted=found)
    page = contents["index.html"].decode()
    assert "If this machine had another GPU" in page
    answer = page[page.index('class="answer"') :].split("</p>")[0]
    assert NOT_MEASURED not in answer  # which is of measured times


@pytest.mark.usefixtures("undrawn")
def test_without_predictions_there_is_no_section(path):
    contents = report.build_report([loading.load_file(path)])
    assert 'id="predicted"' not in contents["index.html"].decode()


@pytest.mark.usefixtures("undrawn")
def test_the_report_s_command_predicts(path, tmp_path, shell):
    text = " ".join(shell("report", path, "-o", tmp_path / "out", "--summary").out.split())
    assert "A GPU wins" in text and "predicted for" in text
    assert 'id="predicted"' in (tmp_path / "out" / "index.html").read_text()


def test_a_precision_that_the_cpu_lacks_is_compared_with_its_f32(without_disc_7, shell):
    out = shell("advise", without_disc_7, "--model=disc-7", "--precision=f16", "--gpu=l4").out
    assert "The CPU trains in f32." in out and NOT_MEASURED in out and "RTX" not in out
