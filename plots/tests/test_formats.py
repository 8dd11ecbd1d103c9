# SPDX-License-Identifier: Apache-2.0
"""One small table in each format; what a result file holds stays text in all of them."""

import csv
import io
import json
from html.parser import HTMLParser

import pytest

from plots.core.page.html import environment
from plots.core.tables.formats import (
    FORMATS,
    as_csv,
    as_json,
    as_markdown,
    as_text,
    render,
)
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.text import printable

HOSTILE = 'x|y `z` <script>alert("1")</script>\n# [a](b) 5 % $1 & #_^~ \u202e,"q"'

SMALL = Table(
    title="Times on a machine",
    columns=(
        Column("model", "network"),
        Column("cpu_seconds", "time", numeric=True, group="CPU"),
        Column("cpu_threads", "threads", numeric=True, group="CPU"),
        Column("gpu_seconds", "time", numeric=True, group="GPU"),
    ),
    lines=(
        (
            Cell("disc-2", "disc-2"),
            Cell("65.1 µs", 65.1e-6, bold=True),
            Cell("1", 1, marks=(1,)),
            Cell("600 µs", 6e-4),
        ),
        (Cell("disc-12", "disc-12"), Cell("1.20 s", 1.2), Cell("16", 16, marks=(1, 2)), NOTHING),
    ),
    notes=("too many threads", "noisy"),
)
EMPTY = Table("Nothing", (Column("a", "A"), Column("b", "B", numeric=True)), ())


def hostile(text: str = HOSTILE) -> Table:
    """A table with `text` wherever a result file's text may come."""
    return Table(
        text,
        (Column("a", text, group=text), Column("b", "b", numeric=True)),
        ((Cell(text, text, marks=(1,)), Cell("y" * 10_000, 1.5, bold=True)),),
        (text, "n" * 10_000),
    )


def test_text_is_aligned():
    lines = as_text(SMALL).splitlines()
    assert lines == [
        "Times on a machine",
        "",
        "         --------CPU---------  -GPU--",
        "network      time     threads    time",
        "disc-2   *65.1 µs       1 [1]  600 µs",
        "disc-12    1.20 s  16 [1] [2]       –",
        "[1] too many threads",
        "[2] noisy",
    ]


def test_markdown():
    assert as_markdown(SMALL).splitlines() == [
        "**Times on a machine**",
        "",
        "| network | CPU time | CPU threads | GPU time |",
        "| --- | ---: | ---: | ---: |",
        "| disc-2 | **65.1 µs** | 1 <sup>1</sup> | 600 µs |",
        "| disc-12 | 1.20 s | 16 <sup>1</sup> <sup>2</sup> | – |",
        "",
        "1. too many threads",
        "2. noisy",
    ]


def test_csv_has_the_values():
    lines = list(csv.DictReader(io.StringIO(as_csv(SMALL))))
    assert [line["model"] for line in lines] == ["disc-2", "disc-12"]
    assert [float(line["cpu_seconds"]) for line in lines] == [65.1e-6, 1.2]
    assert [line["gpu_seconds"] for line in lines] == ["0.0006", ""]


def test_csv_keeps_hostile_text_as_it_is():
    (line,) = csv.DictReader(io.StringIO(as_csv(hostile()), newline=""))
    assert line == {"a": HOSTILE, "b": "1.5"}


def test_json():
    content = json.loads(as_json(SMALL))
    assert content["title"] == "Times on a machine"
    assert content["notes"] == ["too many threads", "noisy"]
    assert content["rows"] == SMALL.records()
    assert content["rows"][1] == {
        "model": "disc-12",
        "cpu_seconds": 1.2,
        "cpu_threads": 16,
        "gpu_seconds": None,
    }
    assert json.loads(as_json(hostile()))["rows"] == [{"a": HOSTILE, "b": 1.5}]


class _Cells(HTMLParser):
    """Collects the tags, the cells and their values."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.data: list[str] = []
        self.values: list[str | None] = []
        self.spans: list[str | None] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        fields = dict(attributes)
        if tag == "td":
            self.values.append(fields.get("data-value"))
        if "colspan" in fields:
            self.spans.append(fields["colspan"])

    def handle_data(self, data: str) -> None:
        self.data.append(data.replace("\u00a0", " "))  # units stay with their numbers


def parsed(table: Table) -> _Cells:
    parser = _Cells()
    parser.feed(str(environment().get_template("table.html.j2").module.table(table)))
    return parser


def test_html():
    page = parsed(SMALL)
    assert page.spans == ["1", "2", "1"]
    assert page.tags.count("tr") == 4 and page.tags.count("td") == 8
    assert page.tags.count("strong") == 1 and page.tags.count("li") == 2
    assert page.values == [None, "6.51e-05", "1", "0.0006", None, "1.2", "16", None]
    for text in ("Times on a machine", "network", "CPU", "65.1 µs", "–", "noisy"):
        assert text in page.data


def test_html_shows_hostile_text():
    page = parsed(hostile())
    assert "script" not in page.tags and page.tags.count("td") == 2
    assert printable(HOSTILE) in page.data
    assert "\u202e" not in "".join(page.data)


@pytest.mark.parametrize("name", sorted(set(FORMATS) - {"csv", "json"}))
def test_long_text_is_cut_for_people(name):
    assert "y" * 1000 not in render([hostile()], name) and "n" * 1000 not in render(
        [hostile()], name
    )
    assert "(10,000 characters)" in render([hostile()], name)


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_hostile_text_breaks_no_line(name):
    lines = render([hostile()], name).splitlines()
    assert not [line for line in lines if line.startswith("# ")]
    assert len(lines) == len(render([hostile("x" * len(printable(HOSTILE)))], name).splitlines())


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_empty_table(name):
    assert render([EMPTY], name)


def test_several_tables():
    assert [table["title"] for table in json.loads(render([SMALL, EMPTY], "json"))] == [
        "Times on a machine",
        "Nothing",
    ]
    assert json.loads(render([], "json")) == []
    assert render([SMALL, EMPTY], "text") == f"{as_text(SMALL)}\n{as_text(EMPTY)}"
    assert render([SMALL, EMPTY], "csv").split("\n\n")[1] == "a,b\n"
    assert render([], "text") == ""
