# SPDX-License-Identifier: Apache-2.0
"""Machines side by side as people meet them: the chart, the page, the commands."""

import json
from xml.etree import ElementTree

import pytest

from plots.cli import main
from plots.core.machines import named, side_by_side
from plots.features.machines.chart import MOST_SHOWN, draw_machines
from plots.features.report import report
from plots.file import loading
from plots.tests import synthetic_machines, synthetic_probes
from plots.tests.synthetic_machines import FIVE, Machine, cpu_alone, ids


def strokes(svg: bytes) -> set[str]:
    """Colours of lines."""
    root = ElementTree.fromstring(svg)
    styles = [element.get("style", "") for element in root.iter()]
    return {style.split("stroke: ")[1][:7].lower() for style in styles if "stroke: #" in style}


@pytest.mark.slow
def test_of_many_machines_few_are_coloured(tmp_path):
    synthetic_machines.write_all(tmp_path, 12)
    files, _ = loading.load_files([tmp_path])
    side = side_by_side(files, baseline=named(files, "synthetic-a-8c"))
    chart = draw_machines(side)
    assert chart == draw_machines(side)
    svg = chart.pictures.svg.decode()
    assert "thin grey: 11 other machines" in svg
    assert "synthetic-a-8c: CPU alone" in svg  # the baseline, which the order has far below
    assert sum(name in svg for name in ids(side)) == MOST_SHOWN
    assert "#b0b0b0" in strokes(chart.pictures.svg)
    assert all(name in chart.alt for name in ids(side))


def test_machines_without_two_networks_have_no_chart(read):
    one = read(cpu_alone({"heart": 1e-3}, machine="a"), "a")
    two = read(cpu_alone({"disc-3": 1e-3}, machine="b"), "b")
    assert draw_machines(side_by_side([one, two])) is None


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_the_page_has_the_machines_behind_the_answer_and_folds_the_rest(five_files):
    page = report.build_report(five_files, detailed=2)
    text = page[report.PAGE].decode()
    sections = [text.index(f'<section id="{name}">') for name in ("answer", "machines", "epochs")]
    assert sections == sorted(sections) and sections[0] == text.index("<section")
    first = text[sections[1] :]
    assert "machines.svg" in page and "machines.png" in page
    table = first[: first.index("</table>")]
    places = [table.index(f">{name}<") for name in ids(side_by_side(five_files))]
    assert places == sorted(places)
    epochs = text[text.index('id="epochs"') : text.index("</section>", text.index('id="epochs"'))]
    assert epochs.count('<details class="machine">') == 2
    assert epochs.index("<details") < epochs.index("<svg")


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_files_of_one_machine_stand_beside_each_other(read):
    made = []
    for place in (1, 2):
        document = cpu_alone({"disc-3": 1e-3, "disc-4": 2e-3}, date=f"2020-01-0{place}")
        made.append(read(document, f"{place}.json"))
    text = report.build_report(made)[report.PAGE].decode()
    assert 'id="machines"' not in text and 'class="machine"' not in text


@pytest.mark.slow
def test_compare_takes_the_first_file_or_the_one_named_as_its_baseline(five, shell):
    paths = [str(path) for path in sorted(five.glob("*/*.json"))]
    chosen = "synthetic-c-4c"
    for options, expected in ([], "synthetic-a-8c"), ([f"--baseline={chosen}"], chosen):
        (table,) = json.loads(shell("compare", *paths, *options, "--format=json").out)
        assert table["title"].endswith(f"ratios to {expected}")
        own = next(line for line in table["rows"] if line["machine"] == expected)
        assert own["epoch_cpu_ratio"] == 1.0
    printed = shell("compare", *paths, "--baseline=nobody", code=2)
    assert printed.out == "" and printed.err.count("\n") == 1 and "nobody" in printed.err


@pytest.mark.slow
def test_rows_of_machines_are_compared_where_asked(five, shell):
    paths = [str(next(five.glob(f"synthetic-{name}-*/*.json"))) for name in "ae"]
    titles = [
        table["title"]
        for table in json.loads(shell("compare", *paths, "--rows", "--format=json").out)
    ]
    assert titles[0].startswith("Crossover, times") and "rows of the same name" in titles[1]
    assert not any("geometric mean" in title for title in titles)  # one mean, of one set of rows
    assert "rows are slower" in shell("compare", *paths, "--fail-on-slower=5%", code=1).err


def test_older_files_are_counted_and_two_gpus_are_two_machines(write, shell):
    for place, (date, gpu) in enumerate(
        (("2020-01-01", "A"), ("2020-01-02", "A"), ("2020-01-03", "B"))
    ):
        own = Machine(**{**FIVE[1].__dict__, "gpu": gpu, "date": f"{date}T00:00:00+00:00"})
        document = synthetic_machines.document(own, models=("disc-3", "disc-10"))
        folder = write(document, f"in/{place}.json").parent
    for options, lines in ([], 2), (["--all"], 3):
        (table,) = json.loads(shell("compare", folder, "--format=json", *options).out)
        assert len(table["rows"]) == lines
        assert any("1 older file left out" in note for note in table["notes"]) == (lines == 2)


def test_every_family_has_a_ratio_probes_included(write, shell):
    for name in ("one", "two"):
        path = write(synthetic_probes.everything(gpu=False, machine=name), f"in/{name}.json")
    (table,) = json.loads(shell("compare", path.parent, "--format=json").out)
    families = ("epoch", "gemm", "layer", "copy", "peak")
    assert {f"{family}_cpu_ratio" for family in families} <= table["rows"][0].keys()


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_report_sorts_and_takes_a_baseline(five, tmp_path, capsys, shell):
    output = tmp_path / "out"
    command = ["report", str(five), "-o", str(output), "--detail=1"]
    assert main([*command, "--sort=crossover", "--baseline=synthetic-e-2c"]) == 0
    page = (output / "index.html").read_text(encoding="utf-8")
    assert "ratios to synthetic-e-2c" in page
    assert (output / "synthetic-c-4c.epochs.svg").is_file()  # the first in that order
    capsys.readouterr()
    assert shell(*command, "--baseline=nobody", code=2).err.count("\n") == 1
