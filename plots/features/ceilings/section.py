# SPDX-License-Identifier: Apache-2.0
"""What the machine can do at best: the Peak rows."""

from collections.abc import Callable, Sequence

from plots import units
from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Section
from plots.core.series import device_name
from plots.core.tables.cells import seconds_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.file.rows import File, Row

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


def build(files: Sequence[File], context: Context) -> Section:
    return Section(
        title="Ceilings",
        anchor="ceilings",
        folded=True,
        lead="What each device does at best, measured before everything else. Every other row is "
        "held against these. The best repetition counts.",
        blocks=tuple(_block(file) for file in files[: context.detailed]),
    )


def _block(file: File) -> Block:
    rows = [row for row in file.rows if row.family == "Peak" and row.failure is None]
    if not rows:
        return Block(
            machine=file.machine.id,
            lead="This file has no ceilings. ./run --family=Peak,Epoch measures them.",
        )
    kinds: list[tuple[str, str, str, Callable[[Row], bool]]] = [
        ("Arithmetic", "flops", "FLOP/s", lambda row: "flops" in row.counters),
        ("Memory and copies", "bytes", "B/s", lambda row: "bytes" in row.counters),
    ]
    tables = [
        _rates(title, [row for row in rows if belongs(row)], counter, unit)
        for title, counter, unit, belongs in kinds
    ]
    others = [row for row in rows if not {"flops", "bytes"} & row.counters.keys()]
    tables.append(_latencies(others))
    return Block(
        machine=file.machine.id, tables=tuple(_page(table) for table in tables if table.lines)
    )


def _page(table: Table) -> Table:
    return on_page(table, ("ceiling", "best_per_second", "best_seconds", "on"))


def _rates(title: str, rows: Sequence[Row], counter: str, unit: str) -> Table:
    columns = (
        Column("ceiling", "ceiling"),
        Column("on", "on"),
        Column("best_per_second", "best", numeric=True),
        Column("median_per_second", "median", numeric=True),
        Column("repetitions", "repetitions", numeric=True),
    )
    flags: dict[str, int] = {}
    lines = []
    for row in rows:
        amount = row.counters[counter]
        best, median = amount / row.minimum, amount / row.median
        flagged = marks(row.warnings, flags)
        lines.append(
            (
                *_names(row),
                Cell(units.rate(best, unit), best, bold=True, marks=flagged),
                Cell(units.rate(median, unit), median),
                Cell(str(len(row.samples)), len(row.samples)),
            )
        )
    return Table(title, columns, tuple(lines), (*flags,))


def _latencies(rows: Sequence[Row]) -> Table:
    columns: tuple[Column, ...] = (
        Column("ceiling", "what it costs"),
        Column("on", "on"),
        Column("best_seconds", "best", numeric=True),
        Column("median_seconds", "median", numeric=True),
        Column("device_seconds", "by the GPU's clock", numeric=True),
        Column("repetitions", "repetitions", numeric=True),
    )
    clock = any("device_seconds" in row.counters for row in rows)
    flags: dict[str, int] = {}
    lines = []
    for row in rows:
        count = row.counters["count"]
        best, median = row.minimum / count, row.median / count
        device = row.counters.get("device_seconds")
        flagged = marks(row.warnings, flags)
        cells = [
            *_names(row),
            Cell(units.seconds(best), best, bold=True, marks=flagged),
            seconds_cell(median),
            seconds_cell(device) if device else NOTHING,
            Cell(str(len(row.samples)), len(row.samples)),
        ]
        lines.append(tuple(cells if clock else [*cells[:4], cells[5]]))
    if not clock:
        columns = columns[:4] + columns[5:]
    return Table("Latencies", columns, tuple(lines), (*flags,))


def _names(row: Row) -> tuple[Cell, Cell]:
    configuration = row.configuration
    quantity = configuration["quantity"]
    details = row.axes.words(configuration, roles=["alike"])
    details += row.axes.words(configuration, roles=["what"], without=["family", "quantity"])
    what = ", ".join([_QUANTITIES.get(quantity, quantity), *details])
    where = device_name(row)
    return text_cell(what), text_cell(where)
