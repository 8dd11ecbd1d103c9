# SPDX-License-Identifier: Apache-2.0
"""Writes tables out: Markdown, CSV, JSON, and as plain text, as wide as the terminal."""

import csv
import io
import json
import re
import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from crossover_bench.show.tables.table import (
    LONGEST,
    LONGEST_NOTE,
    NOTHING,
    Cell,
    Column,
    Run,
    Table,
    letters,
    runs_of_columns,
)
from crossover_bench.words.text import markdown, printable

_GAP = "  "  # between columns
_PIPED = 100  # characters of a line where there is no terminal
_NARROWEST = 20  # characters that a column of text is wrapped to at least
# A number and its unit stay on one line: in between stands what textwrap does not break at.
_UNIT = re.compile(r"(\d) (?=(?:[nµm]?s|%)(?:\W|$))")
_UNBROKEN = "\u00a0"


def terminal_width() -> int:
    """Characters of a line: those of the terminal, or 100 where the output is piped."""
    return shutil.get_terminal_size(fallback=(_PIPED, 24)).columns


def wrapped(text: str, indent: str = "", first: str | None = None, most: int = 1000) -> str:
    """`text` in lines as wide as the terminal, or `most` characters, each behind `indent`, the
    first behind `first`."""
    width = max(min(terminal_width(), most), 2 * _NARROWEST)
    return "\n".join(_lines(text, width, indent if first is None else first, indent))


def _lines(text: str, width: int, first: str = "", indent: str = "") -> list[str]:
    lines = textwrap.wrap(
        _UNIT.sub(rf"\1{_UNBROKEN}", text),
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    return [line.replace(_UNBROKEN, " ") for line in lines]


def as_text(table: Table) -> str:
    """Aligned columns for a terminal; what is bold elsewhere has an asterisk.

    A last column of text is wrapped. Any other table that is wider than the terminal is cut between
    groups of columns, or where a group is too wide in it, and each part repeats the columns before
    the first group, or without groups the first ones of text; where they do not tell all lines
    apart, lines have numbers. A part leaves out lines whose figures are in other parts alone.
    """
    table = table.shown()

    def plain(cell: Cell) -> str:
        marks = "".join(f" [{mark}]" for mark in cell.marks)
        return f"{'*' if cell.bold else ''}{printable(cell.text, LONGEST)}{marks}"

    texts = [[plain(cell) for cell in line] for line in table.lines]
    widths = [
        max(map(len, (printable(column.title, LONGEST), *(line[place] for line in texts))))
        for place, column in enumerate(table.columns)
    ]
    runs = runs_of_columns(table.columns)
    for name, places in runs:  # a heading may need more than its columns
        lacking = len(printable(name, LONGEST)) - _width(widths, places)
        for place in places:
            widths[place] += max(0, -(-lacking // len(places)))
    stub = runs[0][1] if not runs[0][0] else ()
    text = [wrapped(printable(table.title, LONGEST_NOTE))]
    rest = runs[1:] if stub else runs
    folded = list(widths)  # a last column of text is as narrow as it may be
    if table.columns and not table.columns[-1].numeric:
        folded[-1] = min(folded[-1], _NARROWEST)
    if stub and not rest and _width(folded, stub) > terminal_width():
        names = next((at for at in stub[1:] if table.columns[at].numeric), len(stub))
        stub, rest = stub[:names], [("", stub[names:])] if stub[names:] else []
    parts = _parts(rest, stub, widths)
    if len(parts) > 1 and len({tuple(line[place] for place in stub) for line in texts}) < len(
        texts
    ):
        return as_text(_numbered(table))

    def measured(line: Sequence[str], groups: Sequence[Run]) -> bool:
        return any(line[place] != NOTHING.text for _, run in groups for place in run)

    for part in parts:
        lines = [
            line
            for line in texts
            if len(parts) == 1 or measured(line, part) or not measured(line, rest)
        ]
        text += ["", *_text_part([("", stub), *part] if stub else part, table, lines, widths)]
    text += [
        wrapped(printable(note, LONGEST_NOTE), " " * 4, f"[{mark}] ")
        for mark, note in enumerate(table.notes, 1)
    ]
    return "\n".join(text) + "\n"


def _numbered(table: Table) -> Table:
    numbers = (Cell(str(number), number) for number in range(1, len(table.lines) + 1))
    return replace(
        table,
        columns=(Column("line", "#", numeric=True), *table.columns),
        lines=tuple((number, *line) for number, line in zip(numbers, table.lines, strict=True)),
    )


def _width(widths: Sequence[int], places: Sequence[int]) -> int:
    return sum(widths[place] for place in places) + len(_GAP) * (len(places) - 1)


def _parts(runs: Sequence[Run], stub: Sequence[int], widths: Sequence[int]) -> list[list[Run]]:
    """`runs` in as few parts as a terminal's width allows; a wider column has a part of its own."""
    most = terminal_width()
    parts: list[list[Run]] = [[]]
    for name, places in runs:
        fits = _width(widths, [*stub, *places]) <= most
        for run in [(name, places)] if fits else [(name, (place,)) for place in places]:
            taken = [place for _, columns in parts[-1] for place in columns]
            if taken and _width(widths, [*stub, *taken, *run[1]]) > most:
                parts.append([])
            if parts[-1] and not fits and parts[-1][-1][0] == name:
                parts[-1][-1] = (name, (*parts[-1][-1][1], *run[1]))
            else:
                parts[-1].append(run)
    return parts


def _text_part(
    runs: Sequence[Run], table: Table, lines: Sequence[Sequence[str]], widths: Sequence[int]
) -> list[str]:
    text = []
    if any(name for name, _ in runs):

        def heading(name: str, places: Sequence[int]) -> str:
            """Over several columns a line shows how far it reaches."""
            across = ">" if table.columns[places[0]].numeric else "<"
            if name and len(places) > 1:
                across = "-^"
            return f"{printable(name, LONGEST):{across}{_width(widths, places)}}"

        text.append(_GAP.join(heading(*run) for run in runs).rstrip())
    titles = [printable(column.title, LONGEST) for column in table.columns]
    places = [place for _, run in runs for place in run]
    last = places[-1]
    left = terminal_width() - _width(widths, places) + widths[last]
    indent = " " * (_width(widths, places) - widths[last])
    for line in (titles, *lines):
        first, *more = [line[last]]
        if left < widths[last] and not table.columns[last].numeric:
            first, *more = _lines(line[last], max(left, _NARROWEST)) or [""]
        cells = {**{place: line[place] for place in places}, last: first}
        fields = [
            f"{cell:{'>' if table.columns[place].numeric else '<'}{widths[place]}}"
            for place, cell in cells.items()
        ]
        text.append(_GAP.join(fields).rstrip())
        text += [indent + other for other in more]
    return text


# ---- the formats


def as_markdown(table: Table) -> str:
    """A Markdown table under its title in bold."""
    table = table.shown()

    def shown(cell: Cell) -> str:
        text = markdown(cell.text, LONGEST)
        marks = "".join(f" <sup>{letters(mark)}</sup>" for mark in cell.marks)
        return f"**{text}**{marks}" if cell.bold else f"{text}{marks}"

    titles = [markdown(f"{column.group} {column.title}".strip()) for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [titles, rules, *([shown(cell) for cell in line] for line in table.lines)]
    text = [f"**{markdown(table.title, LONGEST_NOTE)}**", ""]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    if table.notes:
        text.append("")
        text += [
            f"- {letters(mark)}: {markdown(note, LONGEST_NOTE)}"
            for mark, note in enumerate(table.notes, 1)
        ]
    return "\n".join(text) + "\n"


_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # begins one in spreadsheets


def as_csv(table: Table) -> str:
    """The values, not the texts, under the columns' keys; an empty field where there is none,
    several in one field with spaces between. A text that a spreadsheet would take for a formula has
    an apostrophe before it, as they show none."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(column.key for column in table.columns)
    for line in table.lines:
        writer.writerow(_field(cell.value) for cell in line)
    return buffer.getvalue()


def _field(value: object) -> object:
    text = " ".join(map(str, value)) if isinstance(value, tuple) else value
    return f"'{text}" if isinstance(text, str) and text.startswith(_FORMULA) else text


def as_json(table: Table) -> str:
    """An object with title, notes and the lines as objects of key and value."""
    content = {"title": table.title, "rows": table.records(), "notes": list(table.notes)}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    return harmless(text) + "\n"


def harmless(text: str) -> str:
    """`text` with what a terminal would carry out, or show in another order, as JSON escapes it."""
    return "\n".join("".join(map(_escaped, line)) for line in text.split("\n"))


def _escaped(character: str) -> str:
    return character if character.isprintable() else json.dumps(character)[1:-1]


FORMATS = {"text": as_text, "markdown": as_markdown, "csv": as_csv, "json": as_json}
ENDINGS = {"text": "txt", "markdown": "md", "csv": "csv", "json": "json"}  # of file names


def render(tables: Sequence[Table], name: str) -> str:
    """`tables` in the format `name`, one below the other; in JSON as one list."""
    if name == "json":
        return "[\n" + ",\n".join(as_json(table).rstrip() for table in tables) + "\n]\n"
    return "\n".join(FORMATS[name](table) for table in tables)
