# SPDX-License-Identifier: Apache-2.0
"""What the machine can do at best, the Peak rows, and how near to it networks come."""

from collections.abc import Sequence
from dataclasses import replace

from crossover_bench.answers.ceilings.chart import draw_rooflines
from crossover_bench.curves.series import device_name
from crossover_bench.files.rows import File, Row
from crossover_bench.place import RUN
from crossover_bench.show.charts.style import Chart
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import seconds_cell, text_cell
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.words import units

_QUANTITIES = {
    "fma": "multiply-adds on registers",
    "matrix": "large matrix product",
    "triad": "memory, a = b + 3·c",
    "copy": "copy of a large block",
    "fork-join": "start and end of a parallel loop",
    "launch": "one empty kernel, waited for",
    "launches": "one of many empty kernels",
    "graph-node": "one node of a graph",
    "synchronization": "waiting for an idle GPU",
}
_ROOFLINE = (
    "Left of the ridge, where the slope of memory meets a level of arithmetic, memory bounds a "
    "row; right of it arithmetic does. A dot above the slope has its data in a cache. One far "
    "below all lines waits for launches, copies or threads."
)
_RATES = {"flops", "bytes"}


def build(files: Sequence[File], context: Context) -> Section:
    shown = files[: context.detailed]
    drawn = context.draw(draw_rooflines, shown)
    return Section(
        title="Ceilings",
        anchor="ceilings",
        lead="What each device does at best, measured before everything else. Every other row is "
        "held against these. The best repetition counts.",
        blocks=tuple(
            _block(file, context.pictures(file, charts))
            for file, charts in zip(shown, drawn, strict=True)
        ),
        notes=(_ROOFLINE,) if any(drawn) else (),
    )


def _block(file: File, pictures: tuple[Chart, ...]) -> Block:
    rows = [row for row in file.rows if row.family == "Peak" and row.failure is None]
    if not rows:
        return Block(
            machine=file.machine.id,
            lead=f"This file has no ceilings. {RUN} --family=Peak,Epoch measures them.",
        )
    return Block(
        machine=file.machine.id,
        pictures=pictures,
        tables=(_table(rows).led_by("ceiling", "best", "median", "on").as_folded(),),
    )


def _table(rows: Sequence[Row]) -> Table:
    """Arithmetic first, then memory and copies, then what takes time alone."""
    columns = (
        Column("ceiling", "ceiling"),
        Column("on", "on"),
        Column("best", "best", numeric=True),
        Column("median", "median", numeric=True),
        Column("unit", "unit", for_programs=True),
        Column("device_seconds", "by the GPU's clock", numeric=True),
        Column("repetitions", "repetitions", numeric=True),
    )
    flags: dict[str, int] = {}
    lines = []
    for counter, unit in (("flops", "FLOP/s"), ("bytes", "B/s"), ("", "s")):
        for row in rows:
            if counter not in (*row.counters, "") or (not counter and _RATES & row.counters.keys()):
                continue
            configuration = row.configuration
            quantity = configuration["quantity"]
            what = [_QUANTITIES.get(quantity, quantity)]
            what += row.axes.words(configuration, roles=["alike"])
            what += row.axes.words(configuration, roles=["what"], without=["family", "quantity"])
            best, median = (
                _cell(row, seconds, counter, unit) for seconds in (row.minimum, row.median)
            )
            device = row.counters.get("device_seconds")
            lines.append(
                (
                    text_cell(", ".join(what)),
                    text_cell(device_name(row)),
                    replace(best, bold=True, marks=marks(row.warnings, flags)),
                    median,
                    text_cell(unit),
                    seconds_cell(device) if device else NOTHING,
                    Cell(str(len(row.samples)), len(row.samples)),
                )
            )
    table = Table("Ceilings", columns, tuple(lines), (*flags,))
    clock = any("device_seconds" in row.counters for row in rows)
    return table if clock else table.without("device_seconds")


def _cell(row: Row, seconds: float, counter: str, unit: str) -> Cell:
    if not counter:
        return seconds_cell(seconds / row.counters["count"])
    rate = row.counters[counter] / seconds
    return Cell(units.rate(rate, unit), rate)
