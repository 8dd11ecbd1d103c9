# SPDX-License-Identifier: Apache-2.0
"""Writes tables out: Markdown, CSV, LaTeX, HTML, JSON; plots/core/tables/plain.py as plain text."""

import csv
import io
import json
from collections.abc import Callable, Sequence

from plots.core.tables.plain import as_text
from plots.core.tables.table import LONGEST, LONGEST_NOTE, Cell, Table, Value, runs_of_columns
from plots.text import latex, markdown

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


def as_markdown(table: Table) -> str:
    """A Markdown table under its title in bold."""
    table = table.shown()

    def shown(cell: Cell) -> str:
        text = markdown(cell.text, LONGEST)
        marks = "".join(f" <sup>{mark}</sup>" for mark in cell.marks)
        return f"**{text}**{marks}" if cell.bold else f"{text}{marks}"

    titles = [markdown(f"{column.group} {column.title}".strip()) for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [titles, rules, *([shown(cell) for cell in line] for line in table.lines)]
    text = [f"**{markdown(table.title, LONGEST_NOTE)}**", ""]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    if table.notes:
        text.append("")
        text += [
            f"{mark}. {markdown(note, LONGEST_NOTE)}" for mark, note in enumerate(table.notes, 1)
        ]
    return "\n".join(text) + "\n"


def as_csv(table: Table) -> str:
    """The values, not the texts, under the columns' keys; an empty field where there is none,
    several in one field with spaces between."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(column.key for column in table.columns)
    for line in table.lines:
        writer.writerow(_csv_field(cell.value) for cell in line)
    return buffer.getvalue()


def _csv_field(value: Value) -> float | int | str:
    if value is None:
        return ""
    return " ".join(map(str, value)) if isinstance(value, tuple) else value


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
    table = table.shown()
    widest = sum(
        max(len(column.title), *(len(line[place].text) for line in table.lines), 0) + 2
        for place, column in enumerate(table.columns)
    )
    alignment = "".join("r" if column.numeric else "l" for column in table.columns)
    caption = rf"\caption{{{latex(table.title, LONGEST_NOTE)}}}"
    head = _latex_head(table)
    body = [_latex_line(line) for line in table.lines]
    notes = [
        rf"\textsuperscript{{{mark}}} {latex(note, LONGEST_NOTE)}\par"
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
    runs = runs_of_columns(table.columns)
    text = [r"\toprule"]
    if any(name for name, _ in runs):
        headings = (
            rf"\multicolumn{{{len(places)}}}{{c}}{{{latex(name, LONGEST)}}}"
            for name, places in runs
        )
        rules = (
            rf"\cmidrule(lr){{{places[0] + 1}-{places[-1] + 1}}}" for name, places in runs if name
        )
        text += [" & ".join(headings) + r" \\", " ".join(rules)]
    text.append(" & ".join(latex(column.title, LONGEST) for column in table.columns) + r" \\")
    return [*text, r"\midrule"]


def _latex_line(line: Sequence[Cell]) -> str:
    cells = []
    for cell in line:
        shown = latex(cell.text, LONGEST)
        marks = ",".join(map(str, cell.marks))
        cells.append(
            (rf"\textbf{{{shown}}}" if cell.bold else shown)
            + (rf"\textsuperscript{{{marks}}}" if marks else "")
        )
    return " & ".join(cells) + r" \\"


def as_html(table: Table) -> str:
    """A `table` element in a box; cells carry their value for a script that sorts."""
    # Imported here because the other formats need no template.
    from plots.core.page.html import render_table  # noqa: PLC0415

    return render_table(table)


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": as_text,
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
    "html": as_html,
    "json": as_json,
}
# Of file names.
ENDINGS = {
    "text": "txt",
    "markdown": "md",
    "csv": "csv",
    "latex": "tex",
    "html": "html",
    "json": "json",
}


def render(tables: Sequence[Table], name: str) -> str:
    """`tables` in the format `name`, one below the other; in JSON as one list."""
    if name == "json":
        return "[\n" + ",\n".join(as_json(table).rstrip() for table in tables) + "\n]\n"
    return "\n".join(FORMATS[name](table) for table in tables)
