# SPDX-License-Identifier: Apache-2.0
"""The table of Shi et al. 2016, alone and with rows of this project."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from plots import loading
from plots.analysis import shi
from plots.analysis.shi import load_shi, shi_table
from plots.cli import main
from plots.tables.formats import FORMATS, render
from plots.tables.table import Table
from plots.tests import synthetic

ROOT = Path(__file__).parents[2]


@pytest.fixture
def figures():
    """The published table."""
    return load_shi()


def loaded(write, *entries, name: str = "file.json", **options):
    content = synthetic.document([one for row in entries for one in row], **options)
    return loading.load_file(write(content, name))


def cell(table: Table, network: str, framework: str, key: str):
    place = [column.key for column in table.columns].index(key)
    line = next(
        line for line in table.lines if (line[0].text, line[1].text) == (network, framework)
    )
    return line[place]


def notes(table: Table, network: str, framework: str, key: str) -> list[str]:
    return [table.notes[mark - 1] for mark in cell(table, network, framework, key).marks]


def test_every_published_cell_is_there(figures):
    table = shi_table(figures, [])
    assert len(table.columns) == 2 + 13 and len(table.lines) == 7 * 5
    assert len(figures) == 455
    for figure in figures:
        shown = cell(table, figure.network, figure.framework, figure.column.key)
        assert shown.value == figure.seconds
        assert shown.text == (figure.text if figure.seconds else "–")
    assert "FCN-R 1024" in table.notes[0]


def test_the_fastest_of_each_group_is_bold(figures):
    table = shi_table(figures, [])
    for line in table.lines:
        for group in {column.group for column in table.columns if column.group}:
            members = [
                cell
                for cell, column in zip(line, table.columns, strict=True)
                if column.group == group
            ]
            times = [cell.value for cell in members if cell.value is not None]
            bold = [cell.value for cell in members if cell.bold]
            assert set(bold) == ({min(times)} if times else set())
    assert cell(table, "FCN-S", "Caffe", "server_8_seconds").bold
    assert not cell(table, "ResNet-50", "CNTK", "server_8_seconds").bold  # a dash


def test_an_epoch_is_divided_by_its_batches(figures, write):
    file = loaded(
        write,
        synthetic.samples(synthetic.cpu_configuration("fcn-r", 1), [8.0] * 5),
        synthetic.samples(synthetic.cpu_configuration("fcn-r", 2), [4.0, 4.4, 4.8]),
    )
    table = shi_table(figures, [file])
    assert file.rows[0].counters["steps"] == 4
    assert cell(table, "FCN-R", "Crossover", "synthetic_machine_cpu_1_seconds").value == 2.0
    best = cell(table, "FCN-R", "Crossover", "synthetic_machine_cpu_2_seconds")
    assert (best.value, best.text, best.bold) == (pytest.approx(1.1), "1.10", True)
    assert cell(table, "FCN-R", "Crossover", "desktop_1_seconds").text == "–"
    lines = [line[1].text for line in table.lines if line[0].text == "FCN-R"]
    assert lines == ["Caffe", "CNTK", "TF", "MXNet", "Torch", "Crossover"]
    assert len(table.lines) == 36


def test_another_family_is_one_entry(figures, write, monkeypatch):
    monkeypatch.setitem(shi._MINIBATCHES, "Epoch", lambda row: 1)
    file = loaded(write, synthetic.samples(synthetic.cpu_configuration("fcn-r", 1), [8.0] * 5))
    table = shi_table(figures, [file])
    assert cell(table, "FCN-R", "Crossover", "synthetic_machine_cpu_1_seconds").value == 8.0


def test_the_fastest_way_of_a_gpu_is_named(figures, write):
    graph = synthetic.gpu_configuration("fcn-r")
    eager = {**graph, "execution": "eager", "data": "resident"}
    half = {**graph, "precision": "bf16"}
    file = loaded(
        write,
        synthetic.samples(graph, [0.8] * 5),
        synthetic.samples(eager, [0.4] * 5, quality=["clock fell"]),
        synthetic.samples(half, [0.1] * 5),
        gpu="synthetic GPU",
    )
    table = shi_table(figures, [file])
    key = "synthetic_machine_gpu_seconds"
    assert cell(table, "FCN-R", "Crossover", key).value == pytest.approx(0.1)
    assert notes(table, "FCN-R", "Crossover", key) == ["eager, resident", "clock fell"]
    assert "synthetic GPU" in {column.title for column in table.columns}


def test_a_row_without_a_result_is_a_dash_with_its_reason(figures, write):
    configuration = synthetic.cpu_configuration("fcn-r", 1)
    file = loaded(write, [synthetic.failure(configuration, "9 GB needed", "skipped")])
    table = shi_table(figures, [file])
    key = "synthetic_machine_cpu_1_seconds"
    assert cell(table, "FCN-R", "Crossover", key).value is None
    assert notes(table, "FCN-R", "Crossover", key) == ["skipped: 9 GB needed"]


def test_another_batch_size_or_network_is_no_row_of_it(figures, write):
    other = {**synthetic.cpu_configuration("fcn-r", 1), "batch": "64"}
    file = loaded(
        write,
        synthetic.samples(other, [1.0] * 5),
        synthetic.samples(synthetic.cpu_configuration("heart", 1)),
    )
    table = shi_table(figures, [file])
    assert len(table.lines) == 35 and len(table.columns) == 15
    assert any("no row of these networks" in note for note in table.notes)


def test_of_a_machine_the_newest_file_with_such_rows_counts(figures, write):
    row = synthetic.cpu_configuration("fcn-r", 1)
    old = loaded(write, synthetic.samples(row, [8.0] * 5), name="1.json", date="2020-01-01")
    new = loaded(write, synthetic.samples(row, [4.0] * 5), name="2.json", date="2020-01-02")
    heart = synthetic.samples(synthetic.cpu_configuration("heart", 1))
    newest = loaded(write, heart, name="3.json", date="2020-01-03")
    table = shi_table(figures, [new, newest, old])
    assert cell(table, "FCN-R", "Crossover", "synthetic_machine_cpu_1_seconds").value == 1.0
    assert any("2020-01-02" in note for note in table.notes)


def test_machines_with_similar_names_have_columns_of_their_own(figures, write):
    row = synthetic.samples(synthetic.cpu_configuration("fcn-r", 1), [4.0] * 5)
    files = [
        loaded(write, row, name=f"{place}.json", machine=machine)
        for place, machine in enumerate(("a b", "a-b", "desktop", "<b>"))
    ]
    table = shi_table(figures, files)
    keys = [column.key for column in table.columns]
    assert len(keys) == len(set(keys)) == 15 + 4
    assert len(table.lines) == 36
    for name in FORMATS:
        assert render([table], name)


def test_text_fits_a_terminal_and_keeps_every_figure(figures, write, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    row = synthetic.samples(synthetic.cpu_configuration("fcn-r", 1), [4.0] * 5)
    text = render([shi_table(figures, [loaded(write, row)])], "text")
    assert max(len(line) for line in text.splitlines() if not line.startswith("[")) <= 120
    for figure in figures:
        assert figure.text in text
    assert text.count("Crossover  ") == 1  # only where the line has a figure
    assert text.count("LSTM       Caffe") == 2  # a line of nothing but dashes stays


def test_programs_get_numbers(figures, capsys):
    assert main(["shi", "--format=csv"]) == 0
    lines = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert lines[0]["desktop_1_seconds"] == "1.324" and lines[1]["desktop_8_seconds"] == ""
    assert main(["shi", "--format=json"]) == 0
    tables = json.loads(capsys.readouterr().out)
    assert tables[0]["rows"][0]["k80_seconds"] == 0.071


def test_the_command_shows_good_files_beside_bad_ones(write, tmp_path, capsys):
    write(synthetic.sweep(), "in/good.json")
    write({}, "in/bad.json")
    assert main(["shi", str(tmp_path / "in")]) == 2
    printed = capsys.readouterr()
    assert "Crossover" in printed.out and printed.err.count("\n") == 1


def test_a_missing_reference_is_one_sentence(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr("plots.commands.shi.load_shi", lambda: load_shi(tmp_path / "gone.csv"))
    assert main(["shi"]) == 2
    assert "install crossover-plots again" in capsys.readouterr().err


def test_the_committed_results_are_shown(capsys):
    assert main(["shi", str(ROOT / "results")]) == 0
    assert "amd-epyc-2c" in capsys.readouterr().out
