# SPDX-License-Identifier: Apache-2.0
"""`predict`, `advise --gpu` and the page: what is predicted is always said to be."""

import json
from pathlib import Path

import pytest

from plots.core import costs
from plots.core.cards import load_cards
from plots.features.predict.analysis import NOT_MEASURED
from plots.features.predict.answer import predictions
from plots.features.predict.cards import chosen_cards
from plots.features.report import report
from plots.tests import synthetic, synthetic_machine, synthetic_steps

ROOT = Path(__file__).parents[2]
SMALL = ("disc-3", "disc-6", "disc-9", "heart")


@pytest.fixture
def path(write) -> Path:
    """A machine without a GPU: four networks, and steps of the seven."""
    document = synthetic_machine.machine(modes=(), models=SMALL)
    document["benchmarks"] += synthetic_steps.steps(ways=())
    return write(document, "cpu.json")


@pytest.fixture
def printed(shell):
    """What a command prints, which complains of nothing."""

    def run(*arguments: object) -> str:
        out, err = shell(*arguments)
        assert err == ""
        return out

    return run


def test_every_table_says_that_nothing_was_measured(path, write, printed):
    document = synthetic_machine.machine(modes=(), models=SMALL)
    document["context"]["crossover"]["machine"]["id"] = "another"
    other = write(document, "other.json")
    for flags in ([], ["--ranks=2", "--all"]):
        found = json.loads(printed("predict", path, other, "--format=json", "--gpu=l4", *flags))
        assert sum("another" in table["title"] for table in found) >= 2
        for table in found:
            assert NOT_MEASURED in table["title"]
            assert table["rows"] and all(row["measured"] == 0 for row in table["rows"])


def test_networks_that_a_file_describes_are_counted_without_bench(write, printed):
    document = synthetic_machine.machine(modes=(), models=SMALL)
    command = ("--gpu=l4", "--format=json")
    plain = printed("predict", write(document, "cpu.json"), *command)
    document["context"]["crossover"]["networks"] = [{"name": name} for name in SMALL]
    assert printed("predict", write(document, "cpu.json"), *command) == plain


def test_nothing_is_written_into_result_files(path, printed):
    before = path.read_bytes()
    printed("predict", path)
    assert path.read_bytes() == before


def test_all_shows_every_way(path, printed):
    text = printed("predict", path, "--all", "--gpu=l4,h200", "--batch=100")
    for words in ("eager", "graph", "pinned-async", "resident", "earliest", "latest"):
        assert words in text
    only = printed("predict", path, "--gpu=l4", "--execution=graph-epoch", "--placement=resident")
    assert "graph-epoch, resident" in only and "eager" not in only
    assert "a training step has no graph of an epoch" in " ".join(only.split())


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


def test_missing_reference_figures_are_restored(path, shell, monkeypatch, tmp_path):
    missing = {"path": tmp_path / "costs.json"}
    monkeypatch.setattr(costs.find_cost, "__kwdefaults__", missing)
    assert "costs.json: No such file or directory; restore it" in shell("predict", path, code=2).err
    assert "so no report was written" in shell("report", path, "-o", tmp_path / "out", code=2).err


@pytest.mark.slow
def test_charts_are_named_predicted(path, tmp_path, shell):
    charts = tmp_path / "charts"
    shell("predict", path, "--charts", charts, "--gpu=l4,h200")
    names = sorted(each.name for each in charts.iterdir())
    stem = "synthetic-machine.predicted-epoch-100-f32"
    assert names == [f"{stem}.png", f"{stem}.svg"]
    svg = (charts / names[1]).read_text()
    assert "predicted, not measured" in svg and "this CPU, measured" in svg


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


def test_advise_adds_cards(without_disc_7, saved, printed):
    flags = ["advise", without_disc_7, "--cost", saved, "--gpu=L4,rtx4090", "--format=json"]
    (table,) = json.loads(printed(*flags))
    assert NOT_MEASURED in table["title"]
    cards = [row for row in table["rows"] if row["device"] != "cpu"]
    assert [row["device"] for row in cards] == ["l4"] * 5 + ["rtx-4090"] * 5
    for row in cards:
        assert row["low_seconds"] < row["seconds"] < row["high_seconds"]
        assert row["step_seconds"] == pytest.approx(row["seconds"] / 10)
        assert row["measured"] == 0 and row["winner"] in ("cpu", "gpu", None)


def test_advise_knows_a_card_by_its_data_sheet(without_disc_7, saved, printed):
    """What a sheet leaves out is told from what it says, so well that the band needs no more."""
    sheet = "tflops:82.6,bandwidth:1008"
    flags = ["advise", without_disc_7, "--cost", saved, f"--gpu=4090,{sheet}", "--format=json"]
    (table,) = json.loads(printed(*flags))
    for way in ("eager, resident", "graph, resident"):
        own = {row["device"]: row["seconds"] for row in table["rows"] if row["on"].endswith(way)}
        assert own[sheet] == pytest.approx(own["rtx-4090"], rel=0.25)
    copied = [row["device"] for row in table["rows"] if row["on"].endswith("pinned-async")]
    assert copied == ["rtx-4090"] * 2
    assert any("its link_bytes_per_second" in note for note in table["notes"])


# --- the page


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
def test_the_report_s_command_predicts(path, tmp_path, shell):
    text = " ".join(shell("report", path, "-o", tmp_path / "out", "--summary").out.split())
    assert "A GPU wins" in text and "predicted for" in text
    assert 'id="predicted"' in (tmp_path / "out" / "index.html").read_text()
