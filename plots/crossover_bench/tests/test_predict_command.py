# SPDX-License-Identifier: Apache-2.0
"""`predict`, `advise --gpu` and the page: what is predicted is always said to be."""

import json
from pathlib import Path

import pytest

from crossover_bench.answers.predict.analysis import NOT_MEASURED
from crossover_bench.answers.predict.answer import predictions
from crossover_bench.answers.predict.cards import chosen_cards
from crossover_bench.answers.report import report
from crossover_bench.counts import costs
from crossover_bench.counts.cards import load_cards, load_others
from crossover_bench.counts.cost import CostError
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_peers, synthetic_steps

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
        tables = json.loads(printed("predict", path, other, "--format=json", "--gpu=l4", *flags))
        assert sum("another" in table["title"] for table in tables) >= 2
        for table in tables:
            assert NOT_MEASURED in table["title"]
            assert table["rows"] and all(row["measured"] == 0 for row in table["rows"])


def test_networks_that_a_file_describes_are_counted_without_bench(write, printed):
    document = synthetic_machine.machine(modes=(), models=SMALL)
    command = ("--gpu=l4", "--format=json")
    plain = printed("predict", write(document, "cpu.json"), *command)
    document["context"]["crossover"]["networks"] = [{"name": name} for name in SMALL]
    assert printed("predict", write(document, "cpu.json"), *command) == plain


def test_a_card_that_the_file_measured_is_not_predicted(write, shell):
    document = synthetic_machine.machine(models=SMALL)
    document["context"]["crossover"]["machine"]["gpu"]["name"] = "NVIDIA L4"
    path = write(document)
    both = shell("predict", path, "--gpu=l4,h200")
    assert "the file measured the L4 itself." in both.out and both.err == ""
    alone = shell("predict", path, "--gpu=l4", code=2)
    assert "nothing can be predicted: the file measured the L4 itself" in alone.err
    assert "itself" not in shell("predict", path).out  # of cards that nobody asked for


def test_all_shows_every_way_and_nothing_is_written_into_result_files(path, printed):
    before = path.read_bytes()
    text = printed("predict", path, "--all", "--gpu=l4,h200", "--batch=100")
    assert path.read_bytes() == before
    for words in ("eager", "graph", "pinned-async", "resident", "earliest", "latest"):
        assert words in text
    only = printed("predict", path, "--gpu=l4", "--execution=graph-epoch", "--placement=resident")
    assert "graph-epoch, resident" in only and "eager" not in only
    assert "a training step has no graph of an epoch" in " ".join(only.split())


def test_names_of_cards_are_forgiven():
    names = {
        **dict.fromkeys(("RTX 4090", "rtx4090", "4090", "NVIDIA GeForce RTX 4090"), "rtx-4090"),
        **{"4060": "rtx-4060", "rtx_4060 laptop": "rtx-4060-laptop", "A100": "a100"},
        **{"Tesla T4": "t4", "2080 Ti": "rtx-2080-ti", "H100 SXM5 80 GB": "h100"},
    }
    names |= {"Radeon RX 7900 XTX": "rx-7900-xtx", "B580": "arc-b580", "Intel Arc A770": "arc-a770"}
    for card in (*load_cards().values(), *load_others().values()):
        names |= dict.fromkeys((card.id.upper(), card.name.replace(",", "")), card.id)
    for name, id in names.items():
        assert [card.id for card in chosen_cards(name)] == [id], name


@pytest.mark.parametrize("name", ["RX 7900 GRE", "rx9070", "Radeon Pro W7900"])
def test_a_card_of_amd_is_described_by_half_of_its_sheet(name):
    with pytest.raises(CostError, match=r"of AMD's is known; .* by half of the TFLOP/s"):
        chosen_cards(name)


@pytest.mark.parametrize("name", ["Ryzen AI NPU", "Apple Neural Engine", "Hexagon"])
def test_an_npu_trains_nothing(name):
    with pytest.raises(CostError, match="NPUs run networks, and PyTorch trains none on them"):
        chosen_cards(name)


def test_cards_of_other_makers_are_predicted_in_pytorch_alone(write, shell):
    path = write(synthetic_peers.document(synthetic_peers.on_cpu()))
    text = " ".join(shell("predict", path, "--gpu=rx-7900-xtx").out.split())
    assert "RX 7900 XTX: the GPU would win from" in text and "(PyTorch, eager" in text
    assert "no source" not in text
    beside = " ".join(shell("predict", path, "--gpu=rx-7900-xtx,l4").out.split())
    assert "our own programs run on NVIDIA's GPUs alone" in beside
    assert "With our own programs, RX" not in beside


def test_data_sheets_stand_among_names():
    cards = chosen_cards("l4, tflops:82.6,bandwidth:1008,link:31.5, tflops:10,bandwidth:200,4090")
    assert [card.id for card in cards][::3] == ["l4", "rtx-4090"]
    first, second = cards[1:3]
    figures = {"f32_flops": 82.6e12, "memory_bytes_per_second": 1008e9}
    figures |= {"link_bytes_per_second": 31.5e9, "multiprocessors": 150}
    assert {name: first.figure(name) for name in figures} == pytest.approx(figures)
    assert second.figure("link_bytes_per_second") is None
    assert second.figure("multiprocessors") == 18


def test_missing_reference_figures_are_restored(path, shell, monkeypatch, tmp_path):
    monkeypatch.setattr(costs, "COSTS_PATH", tmp_path / "costs.json")
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
def advised(write, printed):
    """The table on disc-7 by its saved cost, on cards, by a file without it."""
    models = tuple(name for name in synthetic.MODELS if name != "disc-7")
    file = write(synthetic_machine.machine(modes=(), models=models), "cpu.json")
    saved = write(costs.kept_cost("disc-7").fields, "cost.json")

    def table(cards: str) -> dict:
        flags = ("--cost", saved, f"--gpu={cards}", "--format=json")
        (advice,) = json.loads(printed("advise", file, *flags))
        return advice

    return table


def test_advise_adds_cards(advised):
    table = advised("L4,rtx4090")
    assert NOT_MEASURED in table["title"]
    cards = [row for row in table["rows"] if row["device"] != "cpu"]
    assert [row["device"] for row in cards] == ["l4"] * 5 + ["rtx-4090"] * 5
    for row in cards:
        assert row["low_seconds"] < row["seconds"] < row["high_seconds"]
        assert row["step_seconds"] == pytest.approx(row["seconds"] / 10)
        assert row["measured"] == 0 and row["winner"] in ("cpu", "gpu", None)


def test_advise_knows_a_card_by_its_data_sheet(advised):
    """What a sheet leaves out is told from what it says, so well that the band needs no more."""
    sheet = "tflops:82.6,bandwidth:1008"
    table = advised(f"4090,{sheet}")
    for way in ("eager, resident", "graph, resident"):
        rows = [row for row in table["rows"] if row["on"].endswith(way)]
        seconds = {row["device"]: row["seconds"] for row in rows}
        assert seconds[sheet] == pytest.approx(seconds["rtx-4090"], rel=0.25)
    copied = [row["device"] for row in table["rows"] if row["on"].endswith("pinned-async")]
    assert copied == ["rtx-4090"] * 2
    assert any("its link_bytes_per_second" in note for note in table["notes"])


# --- the page


@pytest.mark.usefixtures("undrawn")
def test_a_machine_with_a_gpu_is_told_of_others(read):
    document = synthetic_machine.machine(models=SMALL)
    document["context"]["crossover"]["machine"]["gpu"]["name"] = "NVIDIA L4"
    file = read(document)
    predicted = predictions([file])
    assert [verdict.card.id for verdict in predicted.of(file)] == ["rtx-4060", "rtx-4090", "h200"]
    contents = report.build_report([file], predicted=predicted)
    page = contents["index.html"].decode()
    assert "If this machine had another GPU" in page
    answer = page[page.index('class="answer"') :].split("</p>")[0]
    assert NOT_MEASURED not in answer  # which is of measured times


@pytest.mark.usefixtures("undrawn")
def test_the_report_s_command_predicts(path, tmp_path, shell):
    text = " ".join(shell("report", path, "-o", tmp_path / "out", "--summary").out.split())
    assert "a GPU wins" in text and "predicted for" in text
    assert 'id="predicted"' in (tmp_path / "out" / "index.html").read_text()
