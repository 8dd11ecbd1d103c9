# SPDX-License-Identifier: Apache-2.0
"""`crossover crossover`: what people read by default, what programs and --all get, its
charts, its sentences, its exit codes."""

import csv
import io
import json

import numpy as np
import pytest
from matplotlib.image import imread

from crossover_bench.answers.crossover.section import crossover_table, speed_up_table
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.files import loading
from crossover_bench.shell.cli import main
from crossover_bench.show.charts.crossover import draw_charts, draw_crossovers
from crossover_bench.show.charts.files import write_charts
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, epochs, known, pairs


def test_the_tables_of_one_file(simple, shell):
    printed = shell("crossover", simple, "--format", "json")
    assert printed.err == ""
    crossovers, ratios = json.loads(printed.out)
    assert crossovers["title"] == "Crossover of training epochs on synthetic machine"
    (line,) = crossovers["rows"]  # the best of one thread count is not told twice
    interval = line.pop("low"), line.pop("high")
    assert interval[0] <= 50_000 <= interval[1]
    assert line["crossings"] == [line["crossover"]]
    # The rule takes the faster device at each size but perhaps at those beside the crossover.
    assert 0 <= line.pop("regret") <= line.pop("largest_regret") < 0.05
    assert line.pop("crossings") and line.pop("crossover") == pytest.approx(50_000, rel=0.05)
    assert line == {
        "what": "epoch",
        "batch": 100,
        "precision": "f32",
        "cpu_threads": 1,
        "cpu_how": None,
        "execution": "graph",
        "data": "pinned",
        "measure": "parameters",
        "kind": "once",
    }
    assert [line["model"] for line in ratios["rows"]] == list(DISC_MODELS)
    for line in ratios["rows"]:
        assert line["speed_up"] == pytest.approx(line["cpu_seconds"] / line["gpu_seconds"])
        assert line["low"] <= line["speed_up"] <= line["high"]
        assert (line["speed_up"] > 1) == (line["params"] > 50_000)


@pytest.mark.slow
def test_the_winner_is_bold(wide):
    ratios = Study(wide, compared=[]).speed_ups()  # each by its interval
    table = speed_up_table([(wide, ratios)])
    place = {column.key: number for number, column in enumerate(table.columns)}
    assert len(table.lines) == len(ratios)
    for line in table.lines:
        low, high = line[place["low"]].value, line[place["high"]].value
        assert line[place["gpu_seconds"]].bold == (low > 1)
        assert line[place["cpu_seconds"]].bold == (high < 1)


def test_flags_are_marked(read):
    entries = []
    for model in ("disc-3", "disc-12"):
        entries += synthetic.samples(synthetic.cpu_configuration(model, 4), warnings=["crowded"])
        entries += synthetic.samples(synthetic.gpu_configuration(model))
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    for table in (
        crossover_table([(file, comparisons(file))]),
        speed_up_table([(file, Study(file).speed_ups())]),
    ):
        assert table.notes == ("crowded",)
        place = [column.key for column in table.columns].index("cpu_threads")
        assert all(line[place].marks == (1,) for line in table.lines)


def test_several_files_share_a_table(write, tmp_path, shell):
    for name, machine in (("a", "one"), ("b", "two")):
        write(synthetic.document(known(), machine=machine, gpu="synthetic GPU"), f"in/{name}.json")
    crossovers = csv.DictReader(
        io.StringIO(shell("crossover", tmp_path / "in", "--format", "csv").out.split("\n\n")[0])
    )
    assert [(line["machine"], line["file"]) for line in crossovers] == [
        ("one", "a.json"),
        ("two", "b.json"),
    ]


@pytest.mark.parametrize(
    ("ways", "out", "err"),
    [
        (
            [synthetic.cpu_configuration("heart", 1), synthetic.gpu_configuration("heart")],
            *("\n\nSPEEDUP", "fewer than two sizes"),
        ),
        ([synthetic.gpu_configuration("disc-3")], "", "no row of the CPU computes the same"),
    ],
)
def test_one_size_gives_speed_ups_only_and_a_gpu_alone_nothing(write, shell, ways, out, err):
    entries = [entry for way in ways for entry in synthetic.samples(way)]
    printed = shell("crossover", write(synthetic.document(entries, gpu="synthetic GPU")))
    assert out in printed.out and err in printed.err and bool(out) == bool(printed.out)


def test_what_has_nothing_to_draw_says_so(write, tmp_path, shell):
    path = write(synthetic.document(synthetic.samples(synthetic.gpu_configuration("heart"))))
    for command in ("crossover", "why"):
        printed = shell(command, path, "--charts", tmp_path / "out", code=2)
        assert "no chart was drawn, because" in printed.err
        assert not list(tmp_path.glob("out/*"))


@pytest.mark.slow
def test_charts_state_the_finding(simple, tmp_path, capsys):
    folder = tmp_path / "out" / "charts"
    assert main(["crossover", str(simple), "--charts", str(folder)]) == 0
    charts = ("strip", "crossover-epoch-100-f32")
    names = [f"synthetic-machine.{chart}.{ending}" for chart in charts for ending in ("png", "svg")]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert capsys.readouterr().err.splitlines() == [f"wrote {folder / name}" for name in names]
    picture = imread(folder / names[2])
    ink = np.mean(picture[..., :3].min(axis=2) < 0.9)
    assert picture.shape[1] > 900 and 0.01 < ink < 0.8
    file = loading.load_file(simple)
    compared = comparisons(file)
    chart = draw_crossovers(file, compared)
    assert chart.pictures.svg == (folder / names[3]).read_bytes()
    assert f"GPU, graph, pinned: {crossover_words(compared[-1].crossover)}." in chart.alt
    assert "trainable parameters, batch 100, f32" in chart.alt
    # Charts of two files from one machine do not collide.
    written = write_charts([file] * 2, [draw_charts(file, compared)] * 2, tmp_path / "both")
    assert len(set(written)) == len(written) == 4 and all(path.is_file() for path in written)


@pytest.mark.slow
@pytest.mark.parametrize("words", ["ambiguous", "GPU only up to "])
def test_ambiguous_and_several_are_drawn(read, words):
    def seconds(configuration: dict[str, str], params: float) -> float:
        is_wavy = words != "ambiguous" and configuration["device"] == "cpu"
        return 1e-3 * (np.exp(np.sin(np.log(params))) if is_wavy else 1)

    entries = epochs(pairs(DISC_MODELS), seconds)
    file = read(synthetic.document(entries, gpu="synthetic GPU"))
    chart = draw_crossovers(file, comparisons(file))
    assert words in chart.alt and b"<script" not in chart.pictures.svg


@pytest.mark.slow
def test_text_is_short_and_epochs_come_first(wide, shell):
    lines = shell("crossover", wide.path).out.splitlines()
    assert max(map(len, lines)) <= 100 and len(lines) < 80
    titles = ["disc networks faster", "SPEEDUP", "square matrices", "layers faster"]
    places = [next(n for n, line in enumerate(lines) if title in line) for title in titles]
    assert places == sorted(places)
    (answer,) = (
        crossover_words(pair.crossover)
        for pair in comparisons(wide)
        if pair.cpu.candidates and (pair.common.get("batch"), pair.precision) == ("100", "f32")
        if pair.gpu.label == "GPU, graph, pinned"
    )
    shown = [line for line in lines if line.startswith("graph, pinned ") and line.endswith(" 100")]
    assert len(shown) == 1 and answer in shown[0]
    # Three thread counts and the best of them on 30 ways.
    assert f"Crossover of training epochs ({4 * 30})" in " ".join(lines)


def test_lines_are_as_wide_as_the_terminal(simple, monkeypatch, shell):
    widths = []
    for columns in ("80", "140"):
        monkeypatch.setenv("COLUMNS", columns)
        widths.append(max(map(len, shell("crossover", simple).out.splitlines())))
    assert 70 < widths[0] <= 80 and 110 < widths[1] <= 140


def test_programs_get_every_crossing(write, shell):
    def seconds(way: dict[str, str], params: float) -> float:
        cpu = 1 / 2 if 1000 < params < 1e6 else 2.0
        return cpu if way["device"] == "cpu" else 1.0

    path = write(synthetic.document(epochs(pairs(DISC_MODELS), seconds), gpu="synthetic GPU"))
    crossings = list(comparisons(loading.load_file(path))[0].crossover.crossings)
    assert len(crossings) == 2
    as_json = json.loads(shell("crossover", path, "--format", "json").out)
    assert as_json[0]["rows"][0]["crossings"] == crossings
    as_csv = io.StringIO(shell("crossover", path, "--format", "csv").out.split("\n\n")[0])
    first = next(csv.DictReader(as_csv))
    assert [float(text) for text in first["crossings"].split()] == crossings
    assert "crossings" not in shell("crossover", path, "--all").out
