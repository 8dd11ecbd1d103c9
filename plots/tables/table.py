# SPDX-License-Identifier: Apache-2.0
"""A table as data: what every analysis returns and plots/tables/formats.py writes out.

Text in it is still as the result file has it; each format escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Column:
    """`key` names the column for programs, with the unit (`cpu_seconds`); `title` is for people.

    Neighbouring columns with the same `group` stand under one heading. `numeric` aligns right.
    """

    key: str
    title: str
    numeric: bool = False
    group: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """`text` is what people read, `value` what programs read and sort by, in SI units.

    A cell without a measurement has the text "–" and no value. `marks` are numbers of the
    table's notes, from 1.
    """

    text: str
    value: float | int | str | None = None
    bold: bool = False
    marks: tuple[int, ...] = ()


NOTHING = Cell("–")


def marks(texts: Iterable[str], notes: dict[str, int]) -> tuple[int, ...]:
    """The numbers of `texts` among `notes`, a table's notes so far, which new ones join."""
    return tuple(notes.setdefault(text, len(notes) + 1) for text in texts)


@dataclass(frozen=True, slots=True)
class Table:
    """Every line of `lines` has one cell for each column. `notes` are numbered from 1."""

    title: str
    columns: tuple[Column, ...]
    lines: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def records(self) -> list[dict[str, float | int | str | None]]:
        """The lines as programs read them: key → value."""
        return [
            {column.key: cell.value for column, cell in zip(self.columns, line, strict=True)}
            for line in self.lines
        ]
