# SPDX-License-Identifier: Apache-2.0
"""Cells of the usual kinds, each of which is NOTHING for None, and tables by their columns: each
with what it shows of the subject of a line."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from crossover_bench.files.rows import File, Row
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table
from crossover_bench.words import units

Field = tuple[Column, Callable[[Any], Cell]]
Of = Callable[[Any], Any]


def table_of(
    title: str, subjects: Iterable[Any], fields: Sequence[Field], notes: Iterable[str] = ()
) -> Table:
    """A line for each of `subjects`, made from the left; `notes` are read when all lines are made,
    so that cells may add to them."""
    lines = tuple(tuple(cell(subject) for _, cell in fields) for subject in subjects)
    return Table(title, tuple(column for column, _ in fields), lines, tuple(notes))


def text_field(key: str, title: str, of: Of, group: str = "") -> Field:
    return Column(key, title, group=group), lambda subject: text_cell(of(subject))


def count_field(key: str, title: str, of: Of, group: str = "") -> Field:
    return Column(key, title, True, group), lambda subject: count_cell(of(subject))


def number_field(key: str, title: str, of: Of, group: str = "", digits: int = 3) -> Field:
    return Column(key, title, True, group), lambda subject: number_cell(of(subject), digits)


def seconds_field(key: str, title: str, of: Of, group: str = "", digits: int = 3) -> Field:
    return Column(key, title, True, group), lambda subject: seconds_cell(of(subject), digits)


def shown_field(
    key: str, title: str, of: Of, show: Callable[[float], str], group: str = ""
) -> Field:
    """A column of numbers as `show` words them."""

    def cell(subject: Any) -> Cell:
        value = of(subject)
        return NOTHING if value is None else Cell(show(value), value)

    return Column(key, title, True, group), cell


def for_programs(field: Field) -> Field:
    """`field` in JSON and CSV only."""
    column, cell = field
    return replace(column, for_programs=True), cell


def file_fields(subjects: Sequence[object]) -> tuple[Field, ...]:
    """The columns of a line's file and its machine, where several files are `subjects`."""
    if len(subjects) < 2:
        return ()
    return (
        text_field("machine", "machine", lambda of: of[0].machine.id),
        (Column("file", "file"), lambda of: Cell(of[0].path.stem, of[0].path.name)),
    )


def interval_fields(
    of: Of = lambda answer: answer, show: Callable[[float], str] = units.significant
) -> tuple[Field, Field]:
    """The columns of the 95 % interval of what has `low` and `high`."""
    return (
        shown_field("low", "from", lambda answer: of(answer).low, show, "95 %"),
        shown_field("high", "to", lambda answer: of(answer).high, show, "95 %"),
    )


def network_fields(key: str = "network", of: Of = lambda row: row) -> tuple[Field, Field, Field]:
    """The columns of the model that a row trains, its parameters, and samples in a batch."""
    return (
        text_field(key, key, lambda row: of(row).model),
        count_field("params", "parameters", lambda row: of(row).counters["params"]),
        count_field("batch", "batch", lambda row: of(row).counters["batch"]),
    )


def text_cell(words: str | None) -> Cell:
    """Words that programs read as they are."""
    return NOTHING if words is None else Cell(words, words)


def count_cell(number: float | None) -> Cell:
    """A whole number with its thousands separated; programs read it without a decimal point."""
    if number is None:
        return NOTHING
    return Cell(units.count(number), int(number) if float(number).is_integer() else number)


def number_cell(value: float | None, digits: int = 3) -> Cell:
    return NOTHING if value is None else Cell(units.significant(value, digits), value)


def seconds_cell(value: float | None, digits: int = 3) -> Cell:
    """A time of `value` seconds, in the unit that suits it."""
    return NOTHING if value is None else Cell(units.seconds(value, digits), value)


def date_cell(file: File) -> Cell:
    """The day on which `file` was measured; programs read the time, too."""
    return Cell(file.date.date().isoformat(), file.date.isoformat())


def bytes_cell(value: float | None) -> Cell:
    return NOTHING if value is None else Cell(units.binary_bytes(value), value)


def kind_cell(kind: str) -> Cell:
    """What kind of answer a crossover is."""
    return Cell({"several": "several changes", "ambiguous": "open"}.get(kind, kind), kind)


def range_cell(row: Row, count: float = 1) -> Cell:
    """From the fastest to the slowest repetition of `row`, of one of `count` things it times."""
    spread = (row.maximum - row.minimum) / count
    return Cell(units.seconds_range(row.minimum / count, row.maximum / count), spread)


def crossover_fields(title: str, of: Of = lambda answer: answer) -> tuple[Field, ...]:
    """The columns of a comparison's answer, its size under `title`, and the interval."""
    return (
        (Column("kind", "answer"), lambda answer: kind_cell(of(answer).crossover.kind)),
        shown_field("crossover", title, lambda answer: of(answer).crossover.size, units.size),
        *interval_fields(lambda answer: of(answer).crossover, units.size),
    )


FAILED = (
    text_field("row", "row", lambda row: row.name),
    text_field("outcome", "outcome", lambda row: row.failure.outcome),
    text_field("reason", "reason", lambda row: row.failure.message),
)
