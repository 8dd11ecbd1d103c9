# SPDX-License-Identifier: Apache-2.0
"""What follows from the times of rows and from a figure that the user gives of each side: its price
(counts/prices.py) or its watts (counts/data_sheets.py)."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

import numpy as np

from crossover_bench.files.rows import File, Row, median_of

SIDES = ("cpu", "gpu")


class FigureError(ValueError):
    """What is wrong with a figure that the user gives, in a sentence."""


def number(value: object, place: str, below: str) -> float:
    """A positive `value` of `place`; raises FigureError."""
    try:
        figure = float(str(value))
    except ValueError:
        figure = math.nan
    if not 0 < figure < float(below):
        raise FigureError(f"{place} is {value}, and must be a number above 0 and below {below}")
    return figure


def side_of(row: Row) -> str:
    """Which of SIDES computes it."""
    return "cpu" if row.device == "cpu" else "gpu"


def sides_of(files: Iterable[File]) -> set[str]:
    """Which of SIDES have rows with a result."""
    return {side_of(row) for file in files for row in file.own_rows if not row.failure}


def with_counters(file: File, follows: Callable[[Row], Mapping[str, np.ndarray]]) -> File:
    """`file` with counters added to each row with a result: those that `follows` returns, a value
    for each repetition."""

    def changed(row: Row) -> Row:
        added = {} if row.failure else follows(row)
        medians = {name: median_of(values) for name, values in added.items()}
        return replace(
            row, measured={**row.measured, **added}, counters={**row.counters, **medians}
        )

    return file.mapped(changed)
