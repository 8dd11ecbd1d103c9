# SPDX-License-Identifier: Apache-2.0
"""Every row of a file on its page: the data, what a reader chooses, and what charts say."""

import html
import json
import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from crossover_bench.answers.ceilings.chart import draw_rooflines, intensity, rooflines
from crossover_bench.answers.rows.section import data_of, facts_of, lines_of, short, table_of
from crossover_bench.curves.rates import rate
from crossover_bench.files import loading
from crossover_bench.files.again import template
from crossover_bench.files.rows import File
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic_machine
from crossover_bench.tests.conftest import browse, with_browser

RESULTS = Path(__file__).parents[3] / "results"
LARGE = (
    "intel-xeon-6-207-16c/2026-11-27-7050029.json",  # an H200's
    "amd-epyc-25-17-2c/2026-11-23-bfe530f.json",
)


def decoded(data: dict[str, Any], key: str) -> list[Any]:
    runs = (run.partition("*") for run in data["values"][key].split(","))
    texts = [text for text, _, times in runs for _ in range(int(times or 1))]
    if key not in data["words"]:
        return [float(text) if text else None for text in texts]
    words = [""]
    for word in data["words"][key]:
        words.append(words[-1][: int(word[0], 36)] + word[1:])
    return [words[int(text) + 1] for text in texts]


@pytest.mark.parametrize("name", LARGE)
def test_the_data_has_every_row_and_is_small(name):
    file = loading.load_file(RESULTS / name)
    lines = lines_of(Study(file))
    facts = facts_of(lines)
    data = json.loads(json.dumps(data_of(file, lines, facts)))
    names = map("".join, zip(decoded(data, "head"), decoded(data, "tail"), strict=True))
    medians = dict(zip(names, decoded(data, "seconds"), strict=True))
    rows = (*file.own_rows, *file.peers)
    assert medians.keys() == {row.name for row in rows}
    for row in rows:
        expected = None if row.failure else pytest.approx(row.median / row.count, rel=0.005)
        assert medians[row.name] == expected, row.name
    assert len(json.dumps(data, separators=(",", ":"))) < 120 * len(rows)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.2345e-5, "123e-7"),
        (62.4, "62.4"),
        (0.5, "0.5"),
        (1e9, "1e9"),
        (-0.125, "-0.125"),
        (0, "0"),
    ],
)
def test_a_number_is_spelled_in_few_characters(value, text):
    assert short(value) == text and float(text) == pytest.approx(value, rel=0.005)


# Chooses, sorts, copies and follows a link, and leaves what the page then shows.
PROBE = """<!DOCTYPE html><meta charset="utf-8"><body><script>
const frame = document.createElement("iframe");
frame.style.cssText = "width:1280px;height:900px;border:0";
const later = () => new Promise(resolve => setTimeout(resolve, 50));
frame.onload = async () => {
  const page = frame.contentDocument, view = frame.contentWindow, copies = [];
  const clipboard = {value: {writeText: async text => { copies.push(text); }}};
  Object.defineProperty(view.navigator, "clipboard", clipboard);
  const root = page.querySelector("#rows"), body = root.querySelector("tbody");
  const choices = [...root.querySelectorAll("select")];
  const selects = Object.fromEntries(choices.map(select => [select.name, select]));
  const visible = () => [...body.rows].filter(row => !row.hidden);
  const lines = () => visible().map(row => [...row.cells].map(cell => cell.textContent));
  const head = key => root.querySelector(`th[data-key=${key}] button`);
  const choose = (name, value) => {
    selects[name].value = value;
    selects[name].dispatchEvent(new view.Event("change", {bubbles: true}));
  };
  const seen = {all: lines(), filters: Object.keys(selects)};
  choose("family", "Epoch");
  choose("device", "GPU");
  head("seconds").click();
  head("seconds").click();
  seen.chosen = lines();
  seen.words = root.querySelector("output").innerText;
  seen.printed = visible().filter(row => !row.classList.contains("beyond")).length;
  seen.address = view.location.hash;
  const offered = [...selects.family.options].filter(option => !option.hidden);
  seen.offered = offered.map(option => option.value);
  root.querySelector("caption .copy").click();
  body.querySelector("tr:not([hidden]) button").click();
  seen.told = root.querySelector(".again").innerText;
  root.querySelector(".again .copy").click();
  const buttons = [...body.querySelectorAll("tr:not([hidden]) button")];
  buttons[0].focus();
  buttons[0].dispatchEvent(new view.KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true}));
  seen.moved = buttons.indexOf(page.activeElement);
  seen.reached = buttons.filter(button => button.tabIndex === 0).length;
  view.location.hash = "#rows?device=CPU&sort=network";
  await later();
  seen.linked = lines();
  seen.of = [selects.family.value, selects.device.value];
  seen.columns = [...root.querySelectorAll("thead tr:last-child th")].map(each => each.dataset.key);
  seen.charts = [];
  for (const svg of page.querySelectorAll(".told svg.wide")) {
    const chart = svg.closest("figure"), label = chart.querySelector(".hover");
    const points = [...svg.querySelectorAll("use")].filter(use => use.querySelector("title"));
    const {left, top} = points[0].getBoundingClientRect();
    svg.dispatchEvent(new view.PointerEvent("pointermove", {clientX: left + 3, clientY: top + 3}));
    const pointed = !label.hidden && label.textContent;
    svg.dispatchEvent(new view.KeyboardEvent("keydown", {key: "ArrowRight"}));
    const named = points.map(use => use.querySelector("title").textContent);
    seen.charts.push({of: chart.closest("section").id, pointed, stepped: label.textContent, named});
  }
  page.querySelector("#crossover figcaption .copy").click();
  await later();
  seen.copies = copies;
  document.body.textContent = "FOUND" + JSON.stringify(seen) + "END";
};
frame.srcdoc = SOURCE;
document.body.append(frame);
</script></body>"""


@pytest.fixture(scope="module")
def report(report_of) -> Any:
    return report_of("gpu")


def source(report: Any) -> str:
    return (report.folder / "index.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def seen(report, tmp_path_factory) -> dict[str, Any]:
    place = tmp_path_factory.mktemp("explorer")
    page = place / "probe.html"
    text = PROBE.replace("SOURCE", json.dumps(source(report)).replace("<", "\\u003c"))
    page.write_text(text, encoding="utf-8")
    opened = browse(page, place / "profile")
    assert "CONSOLE" not in opened.stderr, opened.stderr
    match = re.search(r"FOUND(.*)END", opened.stdout, re.DOTALL)
    assert match, opened.stderr
    return json.loads(html.unescape(match[1]))


def expected(file: File) -> list[list[str]]:
    lines = lines_of(Study(file))
    table = table_of("", lines, facts_of(lines))
    return [[cell.text for cell in line] for line in table.lines]


class TestThePage:
    pytestmark = with_browser

    def test_shows_every_row_as_python_words_it(self, report, seen):
        assert len(seen["all"]) > 100
        assert seen["all"] == expected(report.file)

    def test_filters_sorts_and_keeps_the_choice_in_a_link(self, report, seen):
        place = {key: at for at, key in enumerate(seen["columns"])}
        columns = {key: [line[at] for line in seen["chosen"]] for key, at in place.items()}
        assert set(columns["family"]) == {"Epoch"} and set(columns["device"]) == {"GPU"}
        assert 1 < len(seen["chosen"]) < len(seen["all"])
        assert seen["words"] == f"{len(seen['chosen'])} of {len(seen['all'])} rows"
        of_all = [
            line
            for line in seen["all"]
            if line[place["family"]] == "Epoch" and line[place["device"]] == "GPU"
        ]
        assert sorted(seen["chosen"]) == sorted(of_all)
        without_a_script = f"The first 10 of {len(seen['all'])} rows"
        assert seen["printed"] == 20 and without_a_script in source(report)
        assert "Peak" in seen["offered"] and "" in seen["offered"]
        assert seen["address"] == "#rows?family=Epoch&device=GPU&sort=-seconds"
        assert {"family", "network", "batch", "device", "way"} <= {*seen["filters"]}
        # Of a link nothing is left of what was chosen before.
        assert seen["of"] == ["", "CPU"]
        assert {line[place["device"]] for line in seen["linked"]} == {"CPU"}

    def test_copies_a_table_a_command_and_a_picture(self, report, seen):
        table, command, picture = seen["copies"]
        keys, *lines = [line.split("\t") for line in table.splitlines()]
        assert keys == seen["columns"] and len(lines) == len(seen["chosen"])
        times = [float(line[keys.index("seconds")]) for line in lines]
        assert times == sorted(times, reverse=True) and len(set(times)) > 1
        before, _, _ = template(report.file.run).partition(" '--benchmark_filter")
        assert command.startswith(before) and command in seen["told"]
        name = shlex.split(command)[-1].removeprefix("--benchmark_filter=^").removesuffix("$")
        assert name.replace("\\", "") in {row.name for row in report.file.rows}
        drawn = ElementTree.fromstring(picture)
        assert drawn.tag.endswith("svg") and not drawn.findall(".//*[@class]")
        assert "var(--" not in picture and "stroke: #" in picture

    def test_is_used_with_keys(self, seen):
        assert seen["moved"] == 1 and seen["reached"] == 1

    def test_charts_say_what_a_point_is(self, seen):
        assert [chart["of"] for chart in seen["charts"]] == ["crossover", "epochs"]
        for chart in seen["charts"]:
            assert chart["pointed"] in chart["named"] and chart["stepped"] == chart["named"][0]
            assert all(": " in name for name in chart["named"])


def test_a_roofline_holds_what_was_measured(read):
    file = read(synthetic_machine.machine(modes=(("graph", "resident"),)))
    cpu, gpu = rooflines(file)
    assert (cpu.name, gpu.name) == ("CPU", "GPU")
    for roofline in (cpu, gpu):
        peaks = [row for row in file.rows if row.family == "Peak" and row.device == roofline.device]
        triads = [row.counters["bytes"] / row.minimum for row in peaks if "triad" in row.name]
        assert roofline.memory == pytest.approx(max(triads))
        works = {(row.family, row.model, row.batch, row.precision) for row in roofline.rows}
        assert len(works) == len(roofline.rows) > 5
        for row in roofline.rows:  # the best of what is alike, below the level of its precision
            alike = [
                each for each in file.rows if each.name.startswith(row.name.split("/device")[0])
            ]
            on = [each.median for each in alike if each.device == row.device]
            assert row.median == min(on)
            assert rate(row, "flops") < 1.05 * roofline.arithmetic[row.precision]
    charts = draw_rooflines(file)
    assert [chart.name for chart in charts] == ["roofline-cpu", "roofline-gpu"]
    for chart, roofline in zip(charts, (cpu, gpu), strict=True):
        root = ElementTree.fromstring(chart.pictures.svg)
        points = root.findall(".//{*}use[{*}title]")
        assert len(points) == len(roofline.rows)
        at = {point.findtext("{*}title"): point for point in points}
        drawn = []  # both axes are logarithmic: places are lines of logarithms
        for row in roofline.rows:
            what = f"{row.family.lower()} of {row.model}, batch {row.batch}, {row.precision}: "
            (point,) = (at[title] for title in at if title.startswith(what))
            place = float(point.attrib["x"]), float(point.attrib["y"])
            drawn.append((*place, *np.log([intensity(row), rate(row, "flops")])))
        x, y, per_byte, per_second = np.array(drawn).T
        for place, value in ((x, per_byte), (y, per_second)):
            assert np.polyval(np.polyfit(value, place, 1), value) == pytest.approx(place, abs=0.1)


def test_without_ceilings_there_is_no_roofline(read, small):
    assert rooflines(read(small)) == []
