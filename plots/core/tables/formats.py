# SPDX-License-Identifier: Apache-2.0
"""Writes tables out: Markdown, CSV, JSON; plots/core/tables/plain.py as plain text."""

import csv
import io
import json
from collections.abc import Sequence

from plots.core.tables.plain import as_text
from plots.core.tables.table import LONGEST, LONGEST_NOTE, Cell, Table
from plots.text import markdown


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
        writer.writerow(
            " ".join(map(str, cell.value)) if isinstance(cell.value, tuple) else cell.value
            for cell in line
        )
    return buffer.getvalue()


def as_json(table: Table) -> str:
    """An object with title, notes and the lines as objects of key and value."""
    content = {"title": table.title, "rows": table.records(), "notes": list(table.notes)}
    return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


FORMATS = {"text": as_text, "markdown": as_markdown, "csv": as_csv, "json": as_json}
ENDINGS = {"text": "txt", "markdown": "md", "csv": "csv", "json": "json"}  # of file names


def render(tables: Sequence[Table], name: str) -> str:
    """`tables` in the format `name`, one below the other; in JSON as one list."""
    if name == "json":
        return "[\n" + ",\n".join(as_json(table).rstrip() for table in tables) + "\n]\n"
    return "\n".join(FORMATS[name](table) for table in tables)
