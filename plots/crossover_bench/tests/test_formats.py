# SPDX-License-Identifier: Apache-2.0
"""Tables in each format; what a result file holds stays text in all of them; headings over groups
in text, and what a narrow terminal gets; text from files and numbers, as they are shown."""

import argparse
import csv
import io
import json
import sys
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from crossover_bench.answers.command import print_sections, print_tables
from crossover_bench.show.page.page import environment
from crossover_bench.show.page.section import Block, Section
from crossover_bench.show.tables.formats import (
    FORMATS,
    as_csv,
    as_json,
    as_markdown,
    as_text,
    render,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table
from crossover_bench.words import units
from crossover_bench.words.text import markdown, printable, slug

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
        "         --------CPU---------     GPU",
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
        "| disc-2 | **65.1 µs** | 1 <sup>a</sup> | 600 µs |",
        "| disc-12 | 1.20 s | 16 <sup>a</sup> <sup>b</sup> | – |",
        "",
        "- a: too many threads",
        "- b: noisy",
    ]


def test_programs_read_the_values():
    lines = list(csv.DictReader(io.StringIO(as_csv(SMALL))))
    assert [line["model"] for line in lines] == ["disc-2", "disc-12"]
    assert [float(line["cpu_seconds"]) for line in lines] == [65.1e-6, 1.2]
    assert [line["gpu_seconds"] for line in lines] == ["0.0006", ""]
    content = json.loads(as_json(SMALL))
    assert (content["title"], content["notes"]) == (SMALL.title, [*SMALL.notes])
    second = {"model": "disc-12", "cpu_seconds": 1.2, "cpu_threads": 16, "gpu_seconds": None}
    assert content["rows"] == SMALL.records() and content["rows"][1] == second
    (line,) = csv.DictReader(io.StringIO(as_csv(hostile()), newline=""))
    assert line == {"a": HOSTILE, "b": "1.5"}
    assert json.loads(as_json(hostile()))["rows"] == [{"a": HOSTILE, "b": 1.5}]
    assert as_json(hostile()).replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("is_terminal", "shown"), [(True, "\\u001b[31m\\u202e"), (False, "\x1b[31m\u202e")]
)
@pytest.mark.parametrize("name", ["csv", "json"])
def test_a_terminal_carries_no_text_out(capsys, monkeypatch, is_terminal, shown, name):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    table = Table("T", (Column("a", "a"),), ((Cell("x", "\x1b[31m\u202e"),),))
    print_tables([table], argparse.Namespace(format=name))
    assert (shown if name == "csv" else "\\u001b[31m\\u202e") in capsys.readouterr().out


@pytest.mark.parametrize(
    ("value", "field"), [("=1+1", "'=1+1"), ("@x", "'@x"), (-1.5, "-1.5"), ("a=b", "a=b")]
)
def test_no_text_is_a_formula(value, field):
    table = Table("T", (Column("a", "a"), Column("b", "b")), ((Cell("x", value), NOTHING),))
    (line,) = csv.DictReader(io.StringIO(as_csv(table)))
    assert line["a"] == field


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
    page = parsed(hostile())
    assert "script" not in page.tags and page.tags.count("td") == 2
    assert printable(HOSTILE) in page.data
    assert "\u202e" not in "".join(page.data)


@pytest.mark.parametrize("name", ["text", "markdown"])
def test_hostile_text_is_cut_and_breaks_no_line(name):
    text = render([hostile()], name)
    assert "y" * 1000 not in text and "n" * 1000 not in text and "(10,000 characters)" in text
    lines = text.splitlines()
    assert not [line for line in lines if line.startswith("# ")]
    assert len(lines) == len(render([hostile("x" * len(printable(HOSTILE)))], name).splitlines())


def test_several_tables_and_an_empty_one():
    assert all(render([EMPTY], name) for name in FORMATS)
    titles = [table["title"] for table in json.loads(render([SMALL, EMPTY], "json"))]
    assert titles == [SMALL.title, EMPTY.title]
    assert json.loads(render([], "json")) == [] and render([], "text") == ""
    assert render([SMALL, EMPTY], "text") == f"{as_text(SMALL)}\n{as_text(EMPTY)}"
    assert render([SMALL, EMPTY], "csv").split("\n\n")[1] == "a,b\n"


def test_programs_read_all_and_people_what_is_not_folded(capsys):
    short = replace(SMALL, title="Some", lines=SMALL.lines[:1])
    first = Block("one", lead="So it is.", tables=(SMALL.shortened(short), EMPTY))
    second = Block("two", tables=(replace(SMALL, title="More, on two").as_folded(),))
    sections = [Section("Times", "times", blocks=(first, second), notes=("As measured.",))]
    print_sections(sections, argparse.Namespace(format="json", all=False))
    assert [len(table["rows"]) for table in json.loads(capsys.readouterr().out)] == [2, 2]
    print_sections(sections, argparse.Namespace(format="text", all=False))
    left = "--all shows, too: Times on a machine (2); More (2)."
    shown = f"one\nSo it is.\n\n{as_text(short)}\ntwo\n\n{left}\n"
    assert capsys.readouterr().out == shown
    print_sections(sections, argparse.Namespace(format="text", all=True))
    shown = f"one\nSo it is.\n\n{as_text(SMALL)}\ntwo\n\n"
    shown += f"{as_text(replace(SMALL, title='More'))}\nAs measured.\n"
    assert capsys.readouterr().out == shown


FULL = (Cell("x"), Cell("1"), Cell("2", bold=True), Cell("3", marks=(1,)), Cell("4"))
WIDE = Table(
    "t",
    (Column("n", "n"), *(Column(g, g * 70, True, g) for g in "abc"), Column("d", "d")),
    (FULL,),
)


def test_a_wide_table_is_cut_between_groups():
    first = (Cell("y"), Cell("5"), NOTHING, NOTHING, NOTHING)
    none = (Cell("z"), NOTHING, NOTHING, NOTHING, NOTHING)
    _, *parts = as_text(replace(WIDE, lines=(FULL, first, none))).split("\n\n")
    assert [part.splitlines()[0].strip(" -") for part in parts] == ["a", "b", "c"]
    names = [[line[0] for line in part.splitlines()[2:]] for part in parts]
    assert names == [["x", "y", "z"], ["x", "z"], ["x", "z"]]
    assert parts[2].splitlines()[2].split() == [*("x", "3", "[1]"), "4"]  # no group, no own part
    # Lines that look alike in each part have numbers.
    alike = (Cell("x"), Cell("1"), Cell("2"), Cell("3"), Cell("4"))
    _, *parts = as_text(replace(WIDE, lines=(FULL, alike))).split("\n\n")
    heads = [[line.split()[:2] for line in part.splitlines()[1:]] for part in parts]
    assert heads == [[["#", "n"], ["1", "x"], ["2", "x"]]] * 3
    # Columns behind the groups may be a part.
    columns = (Column("n", "n"), Column("a", "a" * 70, True, "a"), Column("d", "d" * 70, True))
    assert (
        "2" in as_text(Table("t", columns, ((Cell("x"), Cell("1"), Cell("2")),))).split("\n\n")[2]
    )


def test_a_table_without_groups_or_lines_is_whole():
    bare = Table("t", tuple(Column(k, k * 49) for k in "ab"), ())
    assert as_text(bare) == f"t\n\n{'a' * 49}  {'b' * 49}\n"


def test_lines_are_as_wide_as_the_terminal(monkeypatch):
    columns = (Column("n", "name"), *(Column(g, g * 12, True, g) for g in "abc"))
    wide = Table("t " * 40, columns, ((Cell("x"), *(Cell("1"),) * 3),), ("note " * 40,))
    for width, parts in ((30, 3), (35, 2), (60, 1)):
        monkeypatch.setenv("COLUMNS", str(width))
        text = as_text(wide)
        assert max(map(len, text.splitlines())) <= max(width, 40), width
        assert text.count("name") == parts


def test_a_table_without_groups_is_cut_behind_its_names(monkeypatch):
    columns = (
        Column("n", "name"),
        *(Column(key, key * 15, numeric=True) for key in "abcd"),
        Column("how", "how"),
    )
    cells = (*(Cell(str(number)) for number in range(4)), Cell("in some way " * 3))
    for names, first in (("xy", "name"), ("xx", "#")):
        table = Table("t", columns, tuple((Cell(name), *cells) for name in names))
        for width in (40, 80):
            monkeypatch.setenv("COLUMNS", str(width))
            text = as_text(table)
            assert max(map(len, text.splitlines())) <= width
            heads = [part.split()[0] for part in text.split("\n\n")[1:]]
            assert len(heads) > 1 and set(heads) == {first}


def test_a_group_that_is_too_wide_is_cut_in_it():
    columns = (Column("n", "n"), *(Column(str(k), str(k) * 20, True, "g") for k in range(8)))
    wide = Table("t", columns, ((Cell("x"), *(Cell("1"),) * 8),))
    _, *parts = as_text(wide).split("\n\n")
    heads = [part.splitlines()[1].split()[0::4] for part in parts]
    assert heads == [["n", "3" * 20], ["n", "7" * 20]]
    assert all(part.splitlines()[0].strip(" -") == "g" for part in parts)


def test_a_last_column_of_text_is_wrapped():
    table = Table(
        "t",
        (Column("n", "n", numeric=True), Column("words", "words")),
        ((Cell("1"), Cell("word " * 20)), (Cell("2"), Cell("few"))),
    )
    lines = ["t", "", "n  words", "1  " + " ".join(["word"] * 19), "   word", "2  few"]
    assert as_text(table).splitlines() == lines


def test_what_is_for_programs_is_not_shown():
    table = Table(
        "t",
        (Column("a", "a"), Column("b", "b", for_programs=True)),
        ((Cell("x", "x"), Cell("1; 2", (1.5, 2.0))),),
    )
    for name in ("text", "markdown"):
        assert "b" not in FORMATS[name](table).partition("x")[0].split(), name
        assert "1; 2" not in FORMATS[name](table)
    assert FORMATS["csv"](table) == "a,b\nx,1.5 2.0\n"
    assert json.loads(FORMATS["json"](table))["rows"] == [{"a": "x", "b": [1.5, 2.0]}]


# --- text and numbers


def test_printable_escapes_and_shortens():
    assert printable("a\n\x1b\u202eb µ") == "a\\n\\x1b\\u202eb µ"
    assert printable("x" * 10_000, 5) == "xxxxx… (10,000 characters)"


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a|b", r"a\|b"),
        ("`code`", r"\`code\`"),
        ("<script>", r"\<script\>"),
        ("&lt;", r"\&lt;"),
        ("two\nlines", r"two\\nlines"),
        ("[text](url)", r"\[text\](url)"),
        (r"back\slash", r"back\\slash"),
        ("https://example.org", r"https\://example.org"),
        ("www.example.org", r"www\.example.org"),
        ("cpu_threads: 2", r"cpu\_threads: 2"),
    ],
)
def test_markdown_shows_text_literally(raw, shown):
    assert markdown(raw) == shown


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        ("amd-epyc-2c", "amd-epyc-2c"),
        ("../../etc/passwd", "etc-passwd"),
        ("/", "unnamed"),
        ("Ünï $x$", "n-x"),
        ("a" * 10_000, "a" * 60),
    ],
)
def test_slug_is_a_plain_file_name(raw, name):
    assert slug(raw) == name


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (21.34e-6, "21.3 µs"),
        (0.0312, "31.2 ms"),
        (1.25, "1.25 s"),
        (0.9996, "1.00 s"),
        (999.4e-6, "999 µs"),
        (9.996e-3, "10.0 ms"),
        (1234.0, "1,230 s"),
        (5e-10, "0.500 ns"),
    ],
)
def test_seconds(value, shown):
    assert units.seconds(value) == shown


def test_ranges_name_the_unit_once():
    assert units.seconds_range(0.0312, 0.0315) == "31.2 – 31.5 ms"
    assert units.seconds_range(0.0009, 0.0011) == "900 µs – 1.10 ms"
    assert units.seconds_range(1.0, 1.0) == "1.00 s"


def test_axis_labels():
    assert [units.power_of_ten_count(10.0**k) for k in (1, 3, 5, 6)] == ["10", "1k", "100k", "1M"]
    powers = [units.power_of_ten_seconds(10.0**k) for k in (-7, -6, -4, -1, 0, 2)]
    assert powers == ["100 ns", "1 µs", "100 µs", "100 ms", "1 s", "100 s"]
