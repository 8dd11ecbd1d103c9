# SPDX-License-Identifier: Apache-2.0
"""Cells of the usual kinds, each of which is NOTHING for None."""

from plots import units
from plots.core.tables.table import NOTHING, Cell
from plots.file.rows import Row


def text_cell(words: str | None) -> Cell:
    """Words that programs read as they are."""
    return NOTHING if words is None else Cell(words, words)


def count_cell(number: float | None) -> Cell:
    """A whole number with its thousands separated; programs read it without a decimal point."""
    if number is None:
        return NOTHING
    return Cell(units.count(number), int(number) if float(number).is_integer() else number)


def number_cell(value: float | None, digits: int = 3) -> Cell:
    """A number of so many significant digits."""
    return NOTHING if value is None else Cell(units.significant(value, digits), value)


def seconds_cell(value: float | None, digits: int = 3) -> Cell:
    """A time of `value` seconds, in the unit that suits it."""
    return NOTHING if value is None else Cell(units.seconds(value, digits), value)


def bytes_cell(value: float | None) -> Cell:
    """An amount of memory of `value` bytes."""
    return NOTHING if value is None else Cell(units.binary_bytes(value), value)


def kind_cell(kind: str) -> Cell:
    """What kind of answer a crossover is."""
    return Cell({"several": "several changes", "ambiguous": "open"}.get(kind, kind), kind)


def network_cells(row: Row) -> tuple[Cell, Cell, Cell]:
    """The model that `row` trains, its parameters, and samples in a batch."""
    params, batch = row.counters["params"], row.counters["batch"]
    return text_cell(row.model), count_cell(params), count_cell(batch)


def range_cell(row: Row, count: float = 1) -> Cell:
    """From the fastest to the slowest repetition of `row`, of one of `count` things it times."""
    spread = (row.maximum - row.minimum) / count
    return Cell(units.seconds_range(row.minimum / count, row.maximum / count), spread)
