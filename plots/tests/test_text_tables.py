# SPDX-License-Identifier: Apache-2.0
"""Tables as plain text: headings over groups, and what a narrow terminal gets."""

from __future__ import annotations

from plots.tables.formats import as_text
from plots.tables.table import NOTHING, Cell, Column, Table


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
    bare = Table("t", tuple(Column(k, k * 60) for k in "ab"), ())
    assert as_text(bare) == f"t\n\n{'a' * 60}  {'b' * 60}\n"


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
