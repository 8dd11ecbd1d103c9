# SPDX-License-Identifier: Apache-2.0
"""Writes tables out: plain text, Markdown, CSV, LaTeX, HTML, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby

from plots.tables.table import NOTHING, Cell, Column, Table
from plots.text import latex, markdown, printable

_LONGEST = 120  # characters of a cell
_LONGEST_NOTE = 400
_GAP = "  "  # between columns of plain text
_TERMINAL = 120  # characters of a line of plain text
# In LaTeX: characters that fit beside each other in 10 pt, and lines below each other.
_TEXT_WIDTH = 72
_SIDEWAYS = 110
_PAGE_LINES = 44
_SIZES = (
    (_TEXT_WIDTH, r"\normalsize"),
    (90, r"\footnotesize"),
    (105, r"\scriptsize"),
    (150, r"\tiny"),
)


def as_text(table: Table) -> str:
    """Aligned columns for a terminal; what is bold elsewhere has an asterisk.

    A table wider than a terminal is cut between groups of columns, and each part repeats the
    columns before the first group; where they do not tell all lines apart, lines have numbers. A
    part leaves out lines whose figures are in other parts alone.
    """
    texts = [[_plain(cell) for cell in line] for line in table.lines]
    widths = [
        max(map(len, (printable(column.title, _LONGEST), *(line[place] for line in texts))))
        for place, column in enumerate(table.columns)
    ]
    runs = _runs(table.columns)
    for name, places in runs:  # a heading may need more than its columns
        lacking = len(printable(name, _LONGEST)) - _width(widths, places)
        for place in places:
            widths[place] += max(0, -(-lacking // len(places)))
    stub = runs[0][1] if not runs[0][0] else ()
    text = [printable(table.title, _LONGEST_NOTE)]
    rest = runs[1:] if stub else runs
    parts = _parts(rest, stub, widths)
    if len(parts) > 1 and len({tuple(line[place] for place in stub) for line in texts}) < len(
        texts
    ):
        return as_text(_numbered(table))
    for part in parts:
        lines = [line for line in texts if len(parts) == 1 or _belongs(line, part, rest)]
        text += ["", *_text_part([("", stub), *part] if stub else part, table, lines, widths)]
    text += [
        f"[{mark}] {printable(note, _LONGEST_NOTE)}" for mark, note in enumerate(table.notes, 1)
    ]
    return "\n".join(text) + "\n"


def _numbered(table: Table) -> Table:
    numbers = (Cell(str(number), number) for number in range(1, len(table.lines) + 1))
    return replace(
        table,
        columns=(Column("line", "#", numeric=True), *table.columns),
        lines=tuple((number, *line) for number, line in zip(numbers, table.lines, strict=True)),
    )


_Run = tuple[str, tuple[int, ...]]  # a group of columns and their places


def _plain(cell: Cell) -> str:
    marks = "".join(f" [{mark}]" for mark in cell.marks)
    return f"{'*' if cell.bold else ''}{printable(cell.text, _LONGEST)}{marks}"


def _runs(columns: Sequence[Column]) -> list[_Run]:
    """The groups of `columns` in their order; neighbours without a group are one run."""
    places = groupby(range(len(columns)), key=lambda place: columns[place].group)
    return [(name, tuple(run)) for name, run in places]


def _width(widths: Sequence[int], places: Sequence[int]) -> int:
    return sum(widths[place] for place in places) + len(_GAP) * (len(places) - 1)


def _parts(runs: Sequence[_Run], stub: Sequence[int], widths: Sequence[int]) -> list[list[_Run]]:
    """`runs` in as few parts as a terminal's width allows; one that is wider has its own."""
    parts: list[list[_Run]] = [[]]
    for run in runs:
        places = [place for _, taken in parts[-1] for place in taken]
        if places and _width(widths, [*stub, *places, *run[1]]) > _TERMINAL:
            parts.append([])
        parts[-1].append(run)
    return parts


def _belongs(line: Sequence[str], part: Sequence[_Run], runs: Sequence[_Run]) -> bool:
    """Whether `line` has a figure in `part`, or in none of `runs`."""

    def measured(groups: Sequence[_Run]) -> bool:
        return any(line[place] != NOTHING.text for _, run in groups for place in run)

    return measured(part) or not measured(runs)


def _text_part(
    runs: Sequence[_Run], table: Table, lines: Sequence[Sequence[str]], widths: Sequence[int]
) -> list[str]:
    text = []
    if any(name for name, _ in runs):
        headings = (
            printable(name, _LONGEST).center(_width(widths, places), "-" if name else " ")
            for name, places in runs
        )
        text.append(_GAP.join(headings).rstrip())
    titles = [printable(column.title, _LONGEST) for column in table.columns]
    for line in (titles, *lines):
        fields = (
            line[place].rjust(widths[place])
            if table.columns[place].numeric
            else line[place].ljust(widths[place])
            for _, places in runs
            for place in places
        )
        text.append(_GAP.join(fields).rstrip())
    return text


def as_markdown(table: Table) -> str:
    """A Markdown table under its title in bold."""

    def shown(cell: Cell) -> str:
        text = markdown(cell.text, _LONGEST)
        marks = "".join(f" <sup>{mark}</sup>" for mark in cell.marks)
        return f"**{text}**{marks}" if cell.bold else f"{text}{marks}"

    titles = [markdown(f"{column.group} {column.title}".strip()) for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [titles, rules, *([shown(cell) for cell in line] for line in table.lines)]
    text = [f"**{markdown(table.title, _LONGEST_NOTE)}**", ""]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    if table.notes:
        text.append("")
        text += [
            f"{mark}. {markdown(note, _LONGEST_NOTE)}" for mark, note in enumerate(table.notes, 1)
        ]
    return "\n".join(text) + "\n"


def as_csv(table: Table) -> str:
    """The values, not the texts, under the columns' keys; an empty field where there is none."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(column.key for column in table.columns)
    for line in table.lines:
        writer.writerow("" if cell.value is None else cell.value for cell in line)
    return buffer.getvalue()


def as_json(table: Table) -> str:
    """An object with title, notes and the lines as objects of key and value."""
    content = {"title": table.title, "rows": table.records(), "notes": list(table.notes)}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_latex(table: Table) -> str:
    """A `table` environment, which needs the package booktabs.

    A wide one shrinks to the width of the text, which needs graphicx as well, and a very wide one
    lies on its side (`sidewaystable` of the package rotating); one with more lines than a page is
    a `longtable`, which needs the package of that name.
    """
    widest = sum(
        max(len(column.title), *(len(line[place].text) for line in table.lines), 0) + 2
        for place, column in enumerate(table.columns)
    )
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    caption = rf"\caption{{{latex(table.title, _LONGEST_NOTE)}}}"
    head = _latex_head(table)
    body = [_latex_line(line) for line in table.lines]
    notes = [
        rf"\textsuperscript{{{mark}}} {latex(note, _LONGEST_NOTE)}\par"
        for mark, note in enumerate(table.notes, 1)
    ]
    if notes:
        notes = [r"\begin{flushleft}\footnotesize", *notes, r"\end{flushleft}"]
    if len(table.lines) > _PAGE_LINES:
        # A longtable can't be scaled, so the letters are as small as the width asks for.
        size = next((size for width, size in _SIZES if widest <= width), _SIZES[-1][1])
        text = [
            rf"\begingroup{size}\setlength{{\tabcolsep}}{{3pt}}",
            rf"\begin{{longtable}}{{{alignment}}}",
            rf"{caption} \\",
            *head,
            r"\endhead",
            *body,
            r"\bottomrule",
            r"\end{longtable}",
            *notes,
            r"\endgroup",
        ]
        return "\n".join(text) + "\n"
    tabular = [
        rf"\begin{{tabular}}{{{alignment}}}",
        *head,
        *body,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    environment = "sidewaystable" if widest > _SIDEWAYS else "table"
    if widest > _TEXT_WIDTH:
        scale = r"\resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%"
        tabular = [r"\setlength{\tabcolsep}{3pt}", scale, *tabular, "}"]
    text = [
        rf"\begin{{{environment}}}",
        r"\centering",
        r"\setlength{\belowcaptionskip}{6pt}",  # the caption stands above
        caption,
        *tabular,
        *notes,
        rf"\end{{{environment}}}",
    ]
    return "\n".join(text) + "\n"


def _latex_head(table: Table) -> list[str]:
    runs = _runs(table.columns)
    text = [r"\toprule"]
    if any(name for name, _ in runs):
        headings = (
            rf"\multicolumn{{{len(places)}}}{{c}}{{{latex(name, _LONGEST)}}}"
            for name, places in runs
        )
        rules = (
            rf"\cmidrule(lr){{{places[0] + 1}-{places[-1] + 1}}}" for name, places in runs if name
        )
        text += [" & ".join(headings) + r" \\", " ".join(rules)]
    text.append(" & ".join(latex(column.title, _LONGEST) for column in table.columns) + r" \\")
    return [*text, r"\midrule"]


def _latex_line(line: Sequence[Cell]) -> str:
    cells = []
    for cell in line:
        shown = latex(cell.text, _LONGEST)
        marks = ",".join(map(str, cell.marks))
        cells.append(
            (rf"\textbf{{{shown}}}" if cell.bold else shown)
            + (rf"\textsuperscript{{{marks}}}" if marks else "")
        )
    return " & ".join(cells) + r" \\"


def as_html(table: Table) -> str:
    """A `table` element in a box; cells carry their value for a script that sorts."""
    # Imported here because the other formats need no template.
    from plots.page.html import render_table  # noqa: PLC0415

    return render_table(table)


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
    "html": as_html,
    "json": as_json,
}


def render(tables: Sequence[Table], name: str) -> str:
    """`tables` in the format `name`, one below the other; in JSON as one list."""
    if name == "json":
        return "[\n" + ",\n".join(as_json(table).rstrip() for table in tables) + "\n]\n"
    return "\n".join(FORMATS[name](table) for table in tables)
