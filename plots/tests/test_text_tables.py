# SPDX-License-Identifier: Apache-2.0
"""Tables as plain text: headings over groups, and what a narrow terminal gets."""

import json

from plots.core.tables.formats import FORMATS, as_text
from plots.core.tables.table import NOTHING, Cell, Column, Table


def table(width: int, *lines: tuple[Cell, ...]) -> Table:
    return Table(
        "t",
        (
            Column("name", "name"),
            Column("a", "a", True, "first group"),
            Column("b", "b", True, "first group"),
            Column("c", "c" * width, True, "second"),
            Column("d", "d", True),
        ),
        lines,
        ("a note",),
    )


FULL = (Cell("x"), Cell("1"), Cell("2", bold=True), Cell("3", marks=(1,)), Cell("4"))
FIRST = (Cell("y"), Cell("5"), NOTHING, NOTHING, NOTHING)
EMPTY = (Cell("z"), NOTHING, NOTHING, NOTHING, NOTHING)


def test_groups_have_one_heading():
    assert as_text(table(1, FULL, FIRST, EMPTY)).splitlines() == [
        "t",
        "",
        "      first group  second",
        "name     a      b       c  d",
        "x        1     *2   3 [1]  4",
        "y        5      –       –  –",
        "z        –      –       –  –",
        "[1] a note",
    ]


def test_a_wide_table_is_cut_between_groups():
    parts = as_text(table(59, FULL, FIRST, EMPTY)).split("\n\n")
    assert len(parts) == 2  # title, table
    wide = Table(
        "t",
        (Column("n", "n"), *(Column(g, g * 70, True, g) for g in "abc"), Column("d", "d")),
        (FULL, FIRST, EMPTY),
    )
    _, *parts = as_text(wide).split("\n\n")
    assert [part.splitlines()[0].strip(" -") for part in parts] == ["a", "b", "c"]
    names = [[line[0] for line in part.splitlines()[2:]] for part in parts]
    assert names == [["x", "y", "z"], ["x", "z"], ["x", "z"]]
    assert parts[2].splitlines()[2].split() == [
        "x",
        "3",
        "[1]",
        "4",
    ]  # no group, no part of its own


def test_columns_behind_the_groups_may_be_a_part():
    wide = Table(
        "t",
        (Column("n", "n"), Column("a", "a" * 70, True, "a"), Column("d", "d" * 70, True)),
        ((Cell("x"), Cell("1"), Cell("2")),),
    )
    assert "2" in as_text(wide).split("\n\n")[2]


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
    assert [part.splitlines()[1].split()[0::4] for part in parts] == [
        ["n", "3" * 20],
        ["n", "7" * 20],
    ]
    assert all(part.splitlines()[0].strip(" -") == "g" for part in parts)


def test_a_last_column_of_text_is_wrapped():
    said = Table(
        "t",
        (Column("n", "n", numeric=True), Column("words", "words")),
        ((Cell("1"), Cell("word " * 20)), (Cell("2"), Cell("few"))),
    )
    assert as_text(said).splitlines() == [
        "t",
        "",
        "n  words",
        "1  " + " ".join(["word"] * 19),
        "   word",
        "2  few",
    ]


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


def test_lines_that_look_alike_in_each_part_have_numbers():
    alike = (Cell("x"), Cell("1"), Cell("2"), Cell("3"), Cell("4"))
    wide = Table(
        "t",
        (Column("n", "n"), *(Column(g, g * 70, True, g) for g in "abc"), Column("d", "d")),
        (FULL, alike),
    )
    _, *parts = as_text(wide).split("\n\n")
    assert [[line.split()[:2] for line in part.splitlines()[1:]] for part in parts] == [
        [["#", "n"], ["1", "x"], ["2", "x"]]
    ] * 3
