# SPDX-License-Identifier: Apache-2.0
"""What the page says first, what it folds, and how it shows the GPU while it was measured."""

from dataclasses import replace

import pytest

from crossover_bench.answers.conditions import section as conditions
from crossover_bench.answers.crossover import section as crossovers
from crossover_bench.answers.report import report
from crossover_bench.answers.report.sections import SECTIONS
from crossover_bench.answers.training import section as training
from crossover_bench.answers.why import section as reasons
from crossover_bench.answers.why.analysis import counterfactuals
from crossover_bench.shell.cli import main
from crossover_bench.show.charts.files import stems
from crossover_bench.show.page.section import Context
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic, synthetic_machine, synthetic_probes, synthetic_sweep

MODES = (("eager", "pageable"), ("eager", "resident"), ("graph", "resident"))


@pytest.fixture
def machine(read):
    """CPU and GPU with profiles, the GPU in tf32 as well."""
    document = synthetic_machine.machine(modes=MODES)
    for entry in list(document["benchmarks"]):
        if entry["configuration"].get("data"):
            configuration = {**entry["configuration"], "precision": "tf32"}
            name = synthetic.row_name(configuration)
            changes = {"name": name, "configuration": configuration}
            document["benchmarks"].append({**entry, **changes})
    return read(document, "in/machine.json")


def context(*files):
    return Context(
        detailed=len(files),
        stems={file.path: stem for file, stem in zip(files, stems(files), strict=True)},
    )


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_of_the_counterfactuals_three_stand_first(machine):
    (block,) = reasons.build([machine], context(machine)).blocks
    every = counterfactuals(Study(machine))
    assert len(every) > 3 and 1 <= len(block.points) <= 3
    table = next(table for table in block.tables if "changes the crossover" in table.title)
    assert table.folded and len(table.lines) == len(every)
    assert not [point for point in block.points if " stays " in point]
    assert [note for note in table.notes if " stays " in note]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_batch_of_the_headline_comes_first(read):
    file = read(synthetic_sweep.wide_sweep())
    (block,) = crossovers.build([file], context(file)).blocks
    assert "batch 100, f32" in block.pictures[0].alt
    table = block.tables[0]
    place = [column.key for column in table.columns].index("batch")
    batches = [line[place].value for line in table.lines]
    assert batches[0] == 100 and set(batches) == {10, 100, 1000}


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_epochs_are_compared_without_dashes(machine):
    (block,) = training.epochs([machine], context(machine)).blocks
    table, _ = block.tables
    assert len(table.opened().lines) == 10 < len(synthetic.MODELS)
    assert NOTHING not in [cell for line in table.short.lines for cell in line]
    assert [column.key for column in table.short.shown().columns][:4] == [
        *("network", "speed_up", "cpu_seconds_per_epoch", "gpu_seconds_per_epoch")
    ]
    alone = [line for line in table.records() if line["cpu_seconds_per_epoch"] is None]
    assert len(alone) == len(synthetic.MODELS) and all("tf32" in line["network"] for line in alone)


@pytest.mark.slow
def test_epochs_stand_before_products_and_layers(read):
    file = read(synthetic_sweep.wide_sweep((100,)))
    # Operations come first in a file, as ./run measures them.
    rows = sorted(file.rows, key=lambda row: row.family == "Epoch")
    file = replace(file, rows=tuple(rows))
    (block,) = crossovers.build([file], context(file)).blocks
    short = block.tables[0].short
    assert short and "f32" in short.shown().title and "tf32" not in short.shown().title
    titles = [table.title for table in block.tables]
    assert "epochs" in titles[0] and "products" in titles[-2] and "layers" in titles[-1]
    assert ["epoch" in picture.name for picture in block.pictures] == [True]


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_titles_of_tables_differ(read):
    file = read(synthetic_probes.everything())
    sections = [build([file], context(file)) for build in SECTIONS]
    titles = [
        table.title
        for section in sections
        if section
        for block in section.blocks
        for table in (*block.tables, *(table for fold in block.folds for table in fold.tables))
    ]
    assert len(titles) > 10 and len(set(titles)) == len(titles)


def test_what_all_lines_share_is_in_the_title():
    columns = (
        Column("name", "name"),
        Column("batch", "batch", numeric=True),
        Column("time", "time", numeric=True, group="CPU"),
        Column("empty", "empty"),
        Column("kept", "kept"),
    )
    lines = tuple(
        (Cell(name), Cell("100", 100), Cell(time, time), NOTHING, Cell("same"))
        for name, time in (("a", "1"), ("b", "2"))
    )
    table = Table("Times", columns, lines)
    shown = table.led_by("time", "kept", "unknown").shown()
    assert shown.title == "Times (batch 100)"
    assert [column.key for column in shown.columns] == ["time", "kept", "name"]
    assert [cell.text for cell in shown.lines[1]] == ["2", "same", "b"]
    alone = replace(table, lines=lines[:1]).led_by("time", title="One").shown()
    assert alone.title == "One" and len(alone.columns) == 5
    flagged = replace(
        table, lines=tuple((*line[:1], replace(line[1], marks=(1,)), *line[2:]) for line in lines)
    )
    assert "batch" in [column.key for column in flagged.led_by("time").shown().columns]
    programs = replace(table, columns=tuple(replace(c, for_programs=True) for c in table.columns))
    assert programs.led_by("time", title="Two").shown().title == "Two"


@pytest.mark.slow
def test_charts_have_one_name_in_all_commands(machine, tmp_path):
    """Takes long, as it draws the charts of a page and of two commands."""
    page = report.build_report([machine])
    folder = machine.path.parent
    for command in ("crossover", "why"):
        assert main([command, str(folder), "--charts", str(tmp_path / "charts")]) == 0
    drawn = {path.name: path.read_bytes() for path in (tmp_path / "charts").iterdir()}
    both = drawn.keys() & page.keys()
    assert {"synthetic-machine.why.svg", "synthetic-machine.why.png"} <= both
    assert "synthetic-machine.crossover-epoch-100-f32.svg" in both
    assert all(drawn[name] == page[name] for name in both)
    assert all(name.startswith("synthetic-machine.") for name in drawn)


def test_a_gpu_is_shown_as_it_was_while_measured(read):
    """Of two models; the second was held back, and its temperature rose."""
    entries = synthetic.samples(synthetic.gpu_configuration("disc-2"))
    held = synthetic.samples(
        synthetic.gpu_configuration("disc-8"),
        warnings=["the GPU's clocks were held back: power cap"],
    )
    for entry in held:
        entry["joules_gpu"] = 0.3 * entry["real_time"]
    document = synthetic.document(entries + held, gpu="synthetic GPU")
    assert conditions.build([read(document)], Context()) is None  # the driver tells nothing
    for place, (first, second) in enumerate(zip(entries, held, strict=True)):
        first |= {"sm_clock_mhz_after": 1980 - place, "temperature_celsius_after": 40 + place}
        second |= {"sm_clock_mhz_after": 1700 + place, "temperature_celsius_after": 60 + place}
    (block,) = conditions.build([read(document)], Context()).blocks
    assert block.points == (
        "Clock: median 1840 MHz, 1700 to 1980.",
        "Temperature: median 54 °C, 40 to 68.",
        "Power: 300 W.",
        "The driver held clocks back in 1 of 2 rows: power cap.",
    )
    (picture,) = block.pictures
    assert "the driver held clocks back" in picture.pictures.svg.decode()
