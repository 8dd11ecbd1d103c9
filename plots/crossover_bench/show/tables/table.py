# SPDX-License-Identifier: Apache-2.0
"""A table as data: what every analysis returns and show/tables/formats.py writes out.

Text in it is still as the result file has it; each format escapes it in its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from crossover_bench.curves.statistics import spread

LONGEST = 120  # characters of a cell
LONGEST_NOTE = 400
_FEW = 12  # lines of a table that is shown whole though it is not folded
_SHOWN = 10  # of a longer one

Value = float | int | str | tuple[float, ...] | None


@dataclass(frozen=True, slots=True)
class Column:
    """`key` names the column for programs, with the unit (`cpu_seconds`); `title` is for people.

    Neighbouring columns with the same `group` stand under one heading. `numeric` aligns right.
    What is `for_programs` stands in JSON and CSV only.
    """

    key: str
    title: str
    numeric: bool = False
    group: str = ""
    for_programs: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """`text` is what people read, `value` what programs read and sort by, in SI units.

    A cell without a measurement has the text "–" and no value. `marks` are numbers of the
    table's notes, from 1. What is `faint` is grey on a page, as it does not count like the others.
    `link` is a page beside the one that the cell is on.
    """

    text: str
    value: Value = None
    bold: bool = False
    marks: tuple[int, ...] = ()
    faint: bool = False
    link: str = ""


NOTHING = Cell("–")


def marks(texts: Iterable[str], notes: dict[str, int]) -> tuple[int, ...]:
    """The numbers of `texts` among `notes`, a table's notes so far, which new ones join."""
    return tuple(notes.setdefault(text, len(notes) + 1) for text in texts)


def letters(mark: int) -> str:
    """The note of number `mark` where it stands above the line, as a digit would be read, and
    copied, as one of the value's: a to z, then aa."""
    before, last = divmod(mark - 1, 26)
    return (letters(before) if before else "") + chr(ord("a") + last)


@dataclass(frozen=True, slots=True)
class Table:
    """Every line of `lines` has one cell for each column. `notes` are numbered from 1.

    Programs read all of it. People are shown the columns whose keys are in `first` before all
    others, and no other column that says the same in every line; of a long table they are shown
    `short`, and nothing of what is `folded`, until they ask for all. What is `brief` is for a page
    that shows ten lines of it. `rows` is the family of the rows that the table is cut from, or
    "all", where a page that shows every row has no need of the rest of it.
    """

    title: str
    columns: tuple[Column, ...]
    lines: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    first: tuple[str, ...] = ()
    short: Table | None = None
    folded: bool = False
    brief: bool = False
    rows: str = ""

    def records(self) -> list[dict[str, Value]]:
        """The lines as programs read them: key → value."""
        return [
            {column.key: cell.value for column, cell in zip(self.columns, line, strict=True)}
            for line in self.lines
        ]

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing, not even in a note."""
        return not (self.lines or self.notes)

    def led_by(self, *keys: str, title: str = "") -> Table:
        """This table with the columns of these `keys` first, under `title` where one is given."""
        return replace(self, first=keys, title=title or self.title)

    def shortened(self, short: Table) -> Table:
        """This table, of which people are shown `short` at first, where that says less."""
        is_less = len(short.lines) < len(self.lines) or len(short.columns) < len(self.columns)
        return replace(self, short=short) if short.lines and is_less else self

    def as_folded(self) -> Table:
        """This table, of which people are shown nothing until they ask for all."""
        return replace(self, folded=True)

    def of_rows(self, family: str) -> Table:
        """This table, which says nothing that the rows of `family` do not say themselves."""
        return replace(self, rows=family)

    def on(self, machine: str) -> Table:
        """This table where the name of the machine stands above it."""
        title = self.title.removesuffix(f" on {machine}").removesuffix(",") if machine else ""
        return replace(self, title=title or self.title)

    def in_brief(self) -> Table:
        """This table, of which a page shows ten lines, evenly spread, where it is long."""
        return replace(self, brief=len(self.lines) > _FEW)

    def opened(self) -> Table | None:
        """What a page shows of it before anyone asks for all; None where that is nothing."""
        if self.folded:
            return None
        table = self.short or self
        if not table.brief:
            return table
        kept = spread(len(table.lines), _SHOWN)
        note = f"{len(kept)} of {len(table.lines)} lines{'' if self.rows else '; all are below'}."
        short = table.taking(kept)
        return replace(short, notes=(*short.notes, note))

    def shown(self) -> Table:
        """This table as people read it: without what is for programs, and as `first` says."""
        kept, shared = self._shared() if self.first else (range(len(self.columns)), [])
        places = {column.key: place for place, column in enumerate(self.columns)}
        order = [places[key] for key in self.first if key in places]
        order += [place for place in kept if place not in order]
        conditions = f" ({', '.join(shared)})" if shared else ""
        shown = [place for place in order if not self.columns[place].for_programs]
        return replace(self.only(shown, f"{self.title}{conditions}"), first=())

    def _shared(self) -> tuple[list[int], list[str]]:
        """The places of the columns that stay, and in words what the others say in every line."""
        kept, shared = [], []
        for place, column in enumerate(self.columns):
            texts = {(line[place].text, line[place].marks) for line in self.lines}
            stays = column.for_programs or column.key in self.first
            if stays or len(self.lines) < 2 or len(texts) > 1:
                kept.append(place)
                continue
            ((text, marks),) = texts
            if marks:
                kept.append(place)
            elif text != NOTHING.text:
                named = " ".join(filter(None, (column.group, column.title)))
                shared.append(text if text.startswith(named) else f"{named} {text}")
        return kept, shared

    def only(self, places: Sequence[int], title: str = "") -> Table:
        """The columns at `places`, in that order, under `title` where one is given."""
        return replace(
            self,
            title=title or self.title,
            columns=tuple(self.columns[place] for place in places),
            lines=tuple(tuple(line[place] for place in places) for line in self.lines),
        )

    def without(self, *keys: str, title: str = "") -> Table:
        """This table without the columns of these `keys`, under `title` where one is given."""
        kept = [at for at, column in enumerate(self.columns) if column.key not in keys]
        return self.only(kept, title)

    def taking(self, places: Sequence[int]) -> Table:
        """The lines at `places`, and the notes but for those on other lines alone."""
        lines = tuple(self.lines[place] for place in places)
        return replace(self, lines=lines).noted(self.general)

    @property
    def general(self) -> set[int]:
        """The numbers of the notes that no cell points to, as they are on all of it."""
        return set(range(1, len(self.notes) + 1)) - self._pointed

    @property
    def _pointed(self) -> set[int]:
        return {mark for line in self.lines for cell in line for mark in cell.marks}

    def noted(self, general: Iterable[int] = ()) -> Table:
        """This table with the notes that its cells point to, and the `general` ones, alone."""
        kept = sorted(self._pointed.union(general))
        numbers = {mark: place for place, mark in enumerate(kept, 1)}
        lines = tuple(
            tuple(replace(cell, marks=tuple(map(numbers.__getitem__, cell.marks))) for cell in line)
            for line in self.lines
        )
        return replace(self, lines=lines, notes=tuple(self.notes[mark - 1] for mark in kept))


Run = tuple[str, tuple[int, ...]]  # a group of columns and their places


def runs_of_columns(columns: Sequence[Column]) -> list[Run]:
    """The groups of `columns` in their order; neighbours without a group are one run."""
    places = groupby(range(len(columns)), key=lambda place: columns[place].group)
    return [(name, tuple(run)) for name, run in places]
