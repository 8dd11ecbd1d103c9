# SPDX-License-Identifier: Apache-2.0
"""What the training steps of one file need beside time: memory, and copies between layouts."""

from __future__ import annotations

from collections.abc import Sequence

from plots import units
from plots.core.network import network_label, networks
from plots.core.series import device_label
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.file.rows import Row

_COUNTERS = ("peak_bytes", "reorders", "reorder_bytes")


def memory_table(rows: Sequence[Row]) -> Table:
    """A line for each of `rows`, which are of training steps, that counts any of it."""
    groups = networks(rows)
    columns = (
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("on", "on"),
        Column("peak_bytes", "most memory", numeric=True),
        Column("reorders", "reorders", numeric=True, group="a step"),
        Column("reorder_bytes", "of bytes", numeric=True, group="a step"),
    )
    lines = tuple(
        (
            _text(network_label(key, list(groups), row.axes)),
            Cell(units.count(row.counters["batch"]), row.counters["batch"]),
            _text(device_label(row)),
            _bytes(row.counters.get("peak_bytes")),
            _count(row.counters.get("reorders")),
            _bytes(row.counters.get("reorder_bytes")),
        )
        for key, members in groups.items()
        for row in members
        if any(counter in row.counters for counter in _COUNTERS)
    )
    return Table("Memory and reorders of a training step", columns, lines)


def _text(text: str) -> Cell:
    return Cell(text, text)


def _count(number: float | None) -> Cell:
    return NOTHING if number is None else Cell(units.count(number), number)


def _bytes(number: float | None) -> Cell:
    return NOTHING if number is None else Cell(units.binary_bytes(number), number)
