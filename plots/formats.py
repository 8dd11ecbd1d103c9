# SPDX-License-Identifier: Apache-2.0
"""Writes tables out: plain text, Markdown, CSV, LaTeX, HTML, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from itertools import groupby

from plots.table import Cell, Table
from plots.text import latex, markdown, printable

_LONGEST = 60  # characters of a cell
_LONGEST_NOTE = 400


def as_text(table: Table) -> str:
    """Aligned columns for a terminal."""
    titles = [
        printable(f"{column.group} {column.title}".strip(), _LONGEST) for column in table.columns
    ]
    lines = [
        [
            " ".join([printable(cell.text, _LONGEST), *(f"[{mark}]" for mark in cell.marks)])
            for cell in line
        ]
        for line in table.lines
    ]
    widths = [max(map(len, column)) for column in zip(titles, *lines, strict=True)]
    text = [printable(table.title, _LONGEST_NOTE), ""]
    for line in (titles, *lines):
        fields = [
            field.rjust(width) if column.numeric else field.ljust(width)
            for field, width, column in zip(line, widths, table.columns, strict=True)
        ]
        text.append("  ".join(fields).rstrip())
    text += [
        f"[{mark}] {printable(note, _LONGEST_NOTE)}" for mark, note in enumerate(table.notes, 1)
    ]
    return "\n".join(text) + "\n"


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
    """A `table` environment; needs the package booktabs."""
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    groups = [
        (name, len(list(columns)))
        for name, columns in groupby(table.columns, key=lambda column: column.group)
    ]
    text = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex(table.title, _LONGEST_NOTE)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
    ]
    if any(name for name, _ in groups):
        headings, rules, first = [], [], 1
        for name, width in groups:
            headings.append(rf"\multicolumn{{{width}}}{{c}}{{{latex(name, _LONGEST)}}}")
            if name:
                rules.append(rf"\cmidrule(lr){{{first}-{first + width - 1}}}")
            first += width
        text += [" & ".join(headings) + r" \\", " ".join(rules)]
    text += [" & ".join(latex(column.title, _LONGEST) for column in table.columns) + r" \\"]
    text.append(r"\midrule")
    for line in table.lines:
        cells = []
        for cell in line:
            shown = latex(cell.text, _LONGEST)
            marks = ",".join(map(str, cell.marks))
            cells.append(
                (rf"\textbf{{{shown}}}" if cell.bold else shown)
                + (rf"\textsuperscript{{{marks}}}" if marks else "")
            )
        text.append(" & ".join(cells) + r" \\")
    text += [r"\bottomrule", r"\end{tabular}"]
    for mark, note in enumerate(table.notes, 1):
        text.append(rf"\par\footnotesize\textsuperscript{{{mark}}} {latex(note, _LONGEST_NOTE)}")
    text.append(r"\end{table}")
    return "\n".join(text) + "\n"


def as_html(table: Table) -> str:
    """A `table` element in a box; cells carry their value for a script that sorts."""
    # Imported here because the other formats need no template.
    from plots.html import render_table  # noqa: PLC0415

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
