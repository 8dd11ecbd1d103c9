# SPDX-License-Identifier: Apache-2.0
"""The report's pictures and page."""

from __future__ import annotations

import io
import json
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread

from plots import report, rows, units
from plots.published import PUBLISHED_PATH, load_published
from plots.series import series_labels
from plots.tests import synthetic

HOSTILE = 'x|y `z` <script>alert(1)</script>\n# title $\\frac$ [a](b) ../../up \u202e "q"'


def build(*files) -> dict[str, bytes]:
    return report.build_report(list(files), load_published())


def page_of(contents: dict[str, bytes]) -> str:
    return contents[report.PAGE].decode()


@pytest.fixture
def sweep(write):
    """The file of a whole synthetic sweep with CPU and GPU."""
    return rows.load_file(write(synthetic.sweep()))


def test_pictures_are_drawn(sweep):
    contents = build(sweep)
    assert list(contents) == ["synthetic-machine.png", "synthetic-machine.svg", "README.md"]
    picture = imread(io.BytesIO(contents["synthetic-machine.png"]))
    assert picture.shape[0] > 600 and picture.shape[1] > 1000
    ink = np.mean(picture[..., :3].min(axis=2) < 0.9)
    assert 0.01 < ink < 0.5
    svg = ElementTree.fromstring(contents["synthetic-machine.svg"])
    assert svg.tag.endswith("svg")
    assert not [element for element in svg.iter() if element.tag.endswith("script")]
    assert b"<dc:date>" not in contents["synthetic-machine.svg"]


def test_the_same_files_give_the_same_bytes(sweep):
    assert build(sweep) == build(sweep)


def test_table_holds_the_medians_and_ranges(sweep):
    page = page_of(build(sweep))
    text = report.summary(sweep)
    shown = report.epoch_rows(sweep)
    assert len(shown) == 41  # 14 networks on 3 series, less the skipped row
    for row in shown:
        (line,) = [part for part in page.splitlines() if part.startswith(f"| {row_model(row)} |")]
        median = units.seconds(float(np.median(row.samples)))
        assert f"**{median}**" in line and median in text
        assert units.seconds_range(row.samples.min(), row.samples.max()) in line
        assert units.significant(row.counters["rows"] / row.median) in line
        assert f"| {row.counters['params']:,.0f} |" in line


def row_model(row: rows.Row) -> str:
    return row.configuration["model"]


def test_small_table_by_hand(small, write):
    page = page_of(build(rows.load_file(write(small))))
    assert "| disc-3 | 70 | 100 | **20.0 ms** | 10.0 – 30.0 ms | 50,000 |" in page


def test_failures_flags_notes_and_record_are_told(write):
    document = synthetic.sweep(threads=(1, 4), gpu=False)
    document["context"]["crossover"]["complete"] = False
    document["context"]["crossover"]["software"]["dirty"] = True
    file = rows.load_file(write(document))
    for text in (page_of(build(file)), report.summary(file)):
        assert "too little memory: 9 GB needed" in text
        assert "oversubscribed: 4 threads on 2 cores" in text
        assert "interrupted" in text and "uncommitted" in text
        assert "none (synthetic)" in text
    assert "    OMP_NUM_THREADS=2 bench --sweep=default\n" in page_of(build(file))


def test_published_experiments_are_told(sweep):
    page = page_of(build(sweep))
    assert "703,142" in page and "27.75 s" in page and "27.89 s" in page and "0.995" in page


def test_published_figures():
    disc, heart = load_published()
    assert disc.crossover_params == 703_142 and disc.speed_up is None
    assert heart.params == 1522
    assert heart.seconds_per_epoch == pytest.approx({"CPU": 0.2775, "GPU": 0.2789})
    assert heart.speed_up == pytest.approx(0.995, abs=5e-4)
    assert set(json.loads(PUBLISHED_PATH.read_text(encoding="utf-8"))["units"]) == {
        "params",
        "crossover_params",
        "seconds",
    }


def test_hostile_text_stays_text(write):
    configuration = {**synthetic.cpu_configuration("heart", 2), "execution": HOSTILE}
    entries = synthetic.samples(configuration, quality=[HOSTILE, "y" * 10_000])
    for model in (HOSTILE, "m" * 10_000):
        changed = {**configuration, "model": model}
        name = synthetic.row_name(changed)
        entries += [
            {**entry, "name": name, "run_name": name, "configuration": changed}
            for entry in entries[: synthetic.REPETITIONS]
        ]
    entries.append(synthetic.failure(synthetic.cpu_configuration("disc-2", 1), HOSTILE))
    document = synthetic.document(entries, machine=HOSTILE, gpu=HOSTILE)
    crossover = document["context"]["crossover"]
    crossover["machine"]["cpu"]["model"] = HOSTILE
    crossover["configuration"]["command"] = ["bench", HOSTILE, "```"]
    crossover["configuration"]["environment"] = {HOSTILE: HOSTILE}
    crossover["software"]["libraries"] = {HOSTILE: HOSTILE}
    file = rows.load_file(write(document))
    contents = build(file)
    assert all(name.replace(".", "-").replace("-", "a").isalnum() for name in contents)
    outside_code = [line for line in page_of(contents).splitlines() if not line.startswith("    ")]
    for line in outside_code:
        assert not line.startswith("# title")
        assert "<script" not in line.replace("\\<script", "")
        assert "[a](b)" not in line.replace("\\[a\\](b)", "")
    assert "y" * 1000 not in page_of(contents) and "m" * 1000 not in page_of(contents)
    table = [line for line in outside_code if line.startswith("| ") and "MISSING" not in line]
    columns = [line.replace("\\\\", "").replace("\\|", "").count("|") for line in table]
    assert len(set(columns[:4])) == 1  # no text of a cell opens another one
    assert b"<script" not in contents[next(name for name in contents if name.endswith(".svg"))]
    assert "\u202e" not in report.summary(file) and "\x1b" not in report.summary(file)


def test_each_machine_gets_its_own_pictures(small, write):
    files = []
    for number, machine in enumerate(("Machine A", "machine-a", "b")):
        small["context"]["crossover"]["machine"]["id"] = machine
        files.append(rows.load_file(write(small, f"{number}.json")))
    names = [name for name in build(*files) if name.endswith(".svg")]
    assert names == ["machine-a.svg", "machine-a-2.svg", "b.svg"]


def test_the_newest_file_of_each_machine_is_taken(small, write):
    for name, date in (
        ("old.json", "2020-01-01T12:00:00+00:00"),
        ("new.json", "2020-01-01T12:00:00-05:00"),
        ("middle.json", "2020-01-01T13:00:00"),
    ):
        small["context"]["date"] = date
        write(small, name)
    small["context"]["crossover"]["machine"]["id"] = "another"
    folder = write(small, "other.json").parent
    files, _ = rows.load_files([folder])
    chosen = report.newest_per_machine(files)
    assert [file.path.name for file in chosen] == ["other.json", "new.json"]


def test_a_file_without_a_result_has_a_section_but_no_picture(small, write):
    small["benchmarks"] = [synthetic.failure(synthetic.cpu_configuration("disc-2", 1), "why")]
    contents = build(rows.load_file(write(small)))
    assert list(contents) == ["README.md"]
    assert "No Epoch row of this file has a result" in page_of(contents)


@pytest.mark.parametrize("models", [["heart"], ["disc-3"], ["heart", "mlp-784-512-10", "disc-12"]])
def test_few_points_are_drawn_too(write, models):
    entries = []
    for model in models:
        entries += synthetic.samples(synthetic.cpu_configuration(model, 1))
    assert len(build(rows.load_file(write(synthetic.document(entries))))) == 3


def test_labels_say_what_differs(sweep):
    labels = list(series_labels(sweep.rows).values())
    assert labels == ["CPU, 1 thread", "CPU, 2 threads", "GPU, graph, pinned"]


def test_labels_name_precision_and_execution_where_they_differ(write):
    base = synthetic.cpu_configuration("disc-3", 1)
    entries = []
    for changes in ({}, {"precision": "bf16"}, {"execution": "fused"}, {"layout": "blocked"}):
        entries += synthetic.samples({**base, **changes})
    file = rows.load_file(write(synthetic.document(entries)))
    assert sorted(series_labels(file.rows).values()) == [
        "CPU, bf16, eager, 1 thread",
        "CPU, f32, eager, 1 thread",
        "CPU, f32, eager, 1 thread, layout blocked",
        "CPU, f32, fused, 1 thread",
    ]
