# SPDX-License-Identifier: Apache-2.0
"""What makes the quotient of a quantity that grows with time, such as energy: that of the times,
and that of what a second takes on each side, such as power."""

from collections.abc import Sequence

from plots.core.crossover import SpeedUp
from plots.core.headline import way
from plots.core.tables.cells import count_cell, number_cell, text_cell
from plots.core.tables.table import Cell, Column, Table
from plots.file.rows import File, median_of
from plots.units import written


def quotient_table(file: File, found: Sequence[SpeedUp]) -> Table:
    """A line for each of `found`, one at least, in another quantity than time; `file` has the times
    of the same rows."""
    quantity, seconds = found[0].gpu.quantity, {row.index: row.median for row in file.rows}
    unit = f"{quantity.unit}_per_second"
    columns = (
        Column("model", "model"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("cpu", "CPU"),
        Column("gpu", "GPU"),
        Column("ratio", quantity.noun, numeric=True, group="CPU / GPU"),
        Column("time_ratio", "time", numeric=True, group="CPU / GPU"),
        Column("rate_ratio", quantity.rate, numeric=True, group="CPU / GPU"),
        Column(f"cpu_{unit}", "CPU", numeric=True, group=quantity.rate),
        Column(f"gpu_{unit}", "GPU", numeric=True, group=quantity.rate),
    )
    lines = []
    for one in found:
        sides = one.cpu, one.gpu
        values = [median_of(curve.samples[0]) for curve in sides]
        times = [seconds[curve.rows[0]] for curve in sides]
        rates = [value / time for value, time in zip(values, times, strict=True)]
        lines.append(
            (
                text_cell(one.model),
                count_cell(one.parameters),
                text_cell(written(one.batch)),
                text_cell(one.cpu.words.how),
                text_cell(way(one)),
                *(number_cell(cpu / gpu) for cpu, gpu in (values, times, rates)),
                *(Cell(quantity.show_rate(rate), rate) for rate in rates),
            )
        )
    made = " × ".join(f"CPU {noun} / GPU {noun}" for noun in ("time", quantity.rate))
    title = f"{quantity.quotient()} = {made}"
    return Table(f"{title}, on {file.machine.id}", columns, tuple(lines))
