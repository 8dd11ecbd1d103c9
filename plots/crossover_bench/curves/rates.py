# SPDX-License-Identifier: Apache-2.0
"""Rates over a size: the rows of the families Copy, Gemm and Layer as lines of a chart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from crossover_bench.curves.series import SeriesKey, cpu_first, device_name
from crossover_bench.files.families import FAMILIES
from crossover_bench.files.rows import Row

_DEVICE = ("device", "cpu_threads")  # what a label begins with


@dataclass(frozen=True, slots=True)
class Point:
    """At `size`, the median rate per second and, of all repetitions, the smallest and largest."""

    size: float
    median: float
    low: float
    high: float
    row: Row


@dataclass(frozen=True, slots=True)
class Line:
    """Rows that differ in size alone, in the order of their sizes."""

    label: str
    points: tuple[Point, ...]


def lines(
    rows: Sequence[Row], size: Callable[[Row], float], sized: Sequence[str], counter: str
) -> list[Line]:
    """The lines through `rows`, CPU first.

    `size` gives a row's size, which the fields `sized` of its configuration state. `counter` is
    what one operation does, `flops` or `bytes`. A label has the device, and those fields that are
    not the same in all rows."""
    groups: dict[SeriesKey, list[Row]] = {}
    for row in rows:
        key = tuple(
            (name, value)
            for name, value in row.configuration.items()
            if name != "family" and name not in sized
        )
        groups.setdefault(tuple(sorted(key)), []).append(row)
    varying = {
        name
        for key in groups
        for name, value in key
        if name not in _DEVICE and any(dict(other).get(name) != value for other in groups)
    }

    def point(row: Row) -> Point:
        amount = _amount(row, counter)
        rates = (amount / row.median, amount / row.maximum, amount / row.minimum)
        return Point(size(row), *rates, row)

    def line(key: SeriesKey) -> Line:
        members = sorted(groups[key], key=size)
        axes, configuration = members[0].axes, members[0].configuration
        label = [device_name(members[0], without=configuration.keys() - _DEVICE)]
        label += [axes[name].word(value) for name, value in key if name in varying]
        return Line(", ".join(label), tuple(map(point, members)))

    return [line(key) for key in sorted(groups, key=cpu_first)]


def rate(row: Row, counter: str) -> float:
    """What `row` does in a second, by the median of its samples."""
    return _amount(row, counter) / row.median


def _amount(row: Row, counter: str) -> float:
    # Counters of Peak and Copy are per iteration, those of Gemm and Layer per operation.
    return row.counters[counter] * (row.count if row.family in FAMILIES else 1.0)
