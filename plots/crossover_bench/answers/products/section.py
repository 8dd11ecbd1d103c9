# SPDX-License-Identifier: Apache-2.0
"""Matrix products, layers and copies by themselves: the Gemm, Layer and Copy rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from crossover_bench.curves.rates import Line, lines, rate
from crossover_bench.curves.series import device_name
from crossover_bench.files.rows import File, Row
from crossover_bench.show.charts.rates import MOST_PANELS, draw_rates, panels
from crossover_bench.show.charts.style import Chart
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import range_cell, text_cell
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.words import units
from crossover_bench.words.text import whole

_GEMM_SIZES = ("m", "n", "k")
_NUMBERS = (*_GEMM_SIZES, "width", "batch", "bytes")
_ELSEWHERE = ("family", "device", "cpu_threads")  # said beside the columns of the other axes
_DIRECTIONS = {
    "h2d": "host to device",
    "d2h": "device to host",
    "both": "both ways at once",
    "d2d": "within the device",
    "h2h": "within the host",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A family of rows whose rate hangs on their size: `sized` are the axes that say the size, and
    `size` is the row's; `counter` is what is done, in `unit` a second."""

    family: str
    name: str  # of one
    chart: str
    title: str
    size_label: str
    sized: tuple[str, ...]
    size: Callable[[Row], float]
    counter: str
    unit: str
    show_size: Callable[[float], str] = units.count

    def rows(self, file: File) -> list[Row]:
        return [row for row in file.rows if row.family == self.family and row.failure is None]

    def lines(self, file: File) -> list[Line]:
        """Of rows with these axes that are as large each way."""
        rows = [
            row
            for row in self.rows(file)
            if len({row.configuration.get(key, key) for key in self.sized}) == 1
            and self.sized[0] in row.configuration
        ]
        return lines(rows, self.size, self.sized, self.counter)


KINDS = (
    Kind(
        "Gemm",
        "square matrix product",
        "products",
        "Matrix products: arithmetic by size",
        "n of n×n",
        _GEMM_SIZES,
        # 2·n³ operations; the name of the row need not be a number.
        lambda row: round((row.counters["flops"] / 2) ** (1 / 3)),
        "flops",
        "FLOP/s",
    ),
    Kind(
        "Layer",
        "layer",
        "layers",
        "Layers: arithmetic by width",
        "inputs and outputs",
        ("width",),
        lambda row: row.counters.get("width", 1.0),
        "flops",
        "FLOP/s",
    ),
    Kind(
        "Copy",
        "copy",
        "copies",
        "Copies: bandwidth by size",
        "size of one copy",
        ("bytes",),
        lambda row: row.counters["bytes"] / row.counters["count"],
        "bytes",
        "B/s",
        units.binary_bytes,
    ),
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of those shown has such rows."""
    shown = [file for file in files[: context.detailed] if any(kind.rows(file) for kind in KINDS)]
    if not shown:
        return None
    pictures = context.draw(_draw, shown)
    return Section(
        title="Products, layers and copies",
        anchor="products",
        lead="How much arithmetic one matrix product and one layer reach by their size, and how "
        "fast data moves between host and device: what is small is all latency.",
        blocks=tuple(
            _block(file, drawn, context) for file, drawn in zip(shown, pictures, strict=True)
        ),
        notes=(
            "Warm: the same operands over and over. Cold: operands take turns, so that none is "
            "left in a cache. nn, nt, tn: which factor is stored transposed. Separate: the "
            "activation is an operation of its own; fused: the backend may join them.",
        ),
    )


def _draw(file: File) -> list[Chart]:
    charts = []
    for kind in KINDS:
        shown = panels(kind.lines(file), kind.sized)[:MOST_PANELS]
        if not shown:
            continue
        pictures = draw_rates(
            file,
            [replace(panel, title=_DIRECTIONS.get(panel.title, panel.title)) for panel in shown],
            title=kind.title,
            size_label=kind.size_label,
            rate_label="bandwidth" if kind.counter == "bytes" else "operations per second",
            unit=kind.unit,
            tick=kind.show_size,
        )
        alt = (
            f"Rate of a {kind.name} against its size, both axes logarithmic, a line for each way "
            "to compute."
        )
        charts.append(Chart(kind.chart, pictures, alt))
    return charts


def _block(file: File, drawn: Sequence[Chart], context: Context) -> Block:
    pictures, tables, charts = [], [], {chart.name: chart for chart in drawn}
    for kind in KINDS:
        if chart := charts.get(kind.chart):
            count = len(panels(kind.lines(file), kind.sized))
            few = f"{MOST_PANELS} of {count} kinds are drawn."
            pictures.append(context.picture(file, chart, few if count > MOST_PANELS else ""))
        if rows := kind.rows(file):
            table = _every(f"Every {kind.name.split()[-1]}", kind, rows)
            tables.append(table.of_rows(kind.family))
    drawings = (Block(title="Rates by size", pictures=tuple(pictures)),) if pictures else ()
    return Block(machine=file.machine.id, tables=tuple(tables), folds=drawings)


def _every(title: str, kind: Kind, rows: Sequence[Row]) -> Table:
    names = [
        axis.key
        for axis in rows[0].axes
        if axis.key not in _ELSEWHERE and any(axis.key in row.configuration for row in rows)
    ]
    columns = (
        *(Column(name, name, numeric=name in _NUMBERS) for name in names),
        Column("on", "on"),
        Column("seconds", "time", numeric=True),
        Column("range", "range", numeric=True),
        Column("per_second", "rate", numeric=True),
    )
    flags: dict[str, int] = {}
    table = []
    for row in rows:
        count = row.counters["count"]
        speed, seconds = rate(row, kind.counter), row.median / count
        table.append(
            (
                *(_field(row.configuration.get(name)) for name in names),
                text_cell(device_name(row, without=names)),
                Cell(units.seconds(seconds), seconds, marks=marks(row.warnings, flags)),
                range_cell(row, count),
                Cell(units.rate(speed, kind.unit), speed),
            )
        )
    first = ("direction", *kind.sized, "per_second", "on", "seconds")
    return Table(title, columns, tuple(table), (*flags,), first=first, folded=True)


def _field(text: str | None) -> Cell:
    if text is None:
        return NOTHING
    number = whole(text, digits=15)
    return Cell(_DIRECTIONS.get(text, text), text if number is None else number)
