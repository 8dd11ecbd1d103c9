# SPDX-License-Identifier: Apache-2.0
"""Copies of a network that train at once, as a table."""

from collections.abc import Sequence

from plots.core.tables.cells import count_cell, network_cells, number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.copies.analysis import Copies
from plots.file.quantities import TIME
from plots.file.rows import File, Row

_DEVICES = ("CPU", "GPU")


def copies_table(file: File, found: Sequence[Copies]) -> Table:
    """One line for each network and number of copies; of devices that trained any. All rows are in
    one quantity."""
    quantity = found[0].row.quantity
    has = [any(one.cpu for one in found), any(one.gpu for one in found)]
    columns = [
        Column("network", "network"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("copies", "copies", numeric=True),
    ]
    for device, is_there in zip(_DEVICES, has, strict=True):
        if is_there:
            key = device.lower()
            columns += [
                Column(f"{key}_{quantity.unit}", "all", numeric=True, group=device),
                Column(f"{key}_{quantity.unit}_a_copy", "a copy", numeric=True, group=device),
                Column(f"{key}_how", "how", group=device),
            ]
    if all(has):
        title = "speedup" if quantity is TIME else quantity.quotient()
        columns.append(Column("speedup", title, numeric=True))
    lines = []
    for one in found:
        line = [*network_cells(one.row), count_cell(one.copies)]
        for row, is_there in zip((one.cpu, one.gpu), has, strict=True):
            line += _cells(row, one.copies) if is_there else ()
        lines.append((*line, number_cell(one.ratio)) if all(has) else tuple(line))
    return Table(
        f"Copies of a network trained at once: {quantity.noun} of one epoch, on {file.machine.id}",
        tuple(columns),
        tuple(lines),
    )


def _cells(row: Row | None, copies: int) -> tuple[Cell, ...]:
    if row is None:
        return NOTHING, NOTHING, NOTHING
    return (
        *(Cell(row.quantity.show(value), value) for value in (row.median, row.median / copies)),
        text_cell(row.axes.label(dict(row.axes.how(row.configuration))).there),
    )
