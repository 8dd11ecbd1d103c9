# SPDX-License-Identifier: Apache-2.0
"""How fast data moves between host and device: the Copy rows."""

from collections.abc import Sequence

from plots import units
from plots.core.charts.rates import Panel, draw_rates, panels
from plots.core.charts.style import Pictures
from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Fold, Picture, Section
from plots.core.rates import Line, lines, rate
from plots.core.series import device_name
from plots.core.tables.cells import bytes_cell, range_cell, seconds_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.file.rows import File, Row

_DIRECTIONS = {
    "h2d": "host to device",
    "d2h": "device to host",
    "both": "both ways at once",
    "d2d": "within the device",
    "h2h": "within the host",
}


_SUMMARY = ("copy", "best_bytes_per_second")  # the columns that come first
_EVERY = ("direction", "bytes_per_second", "bytes", "seconds")


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of those shown has copies."""
    shown = [file for file in files[: context.detailed] if _rows(file)]
    if not shown:
        return None
    pictures = context.map(_draw, shown)
    return Section(
        title="Copies",
        anchor="copies",
        folded=True,
        lead="What it costs to bring data to a device and back: small copies are all latency, "
        "large ones all bandwidth.",
        blocks=tuple(
            _block(file, drawn, context) for file, drawn in zip(shown, pictures, strict=True)
        ),
    )


def _rows(file: File) -> list[Row]:
    return [row for row in file.rows if row.family == "Copy" and row.failure is None]


def _size(row: Row) -> float:
    """Bytes of one copy."""
    return row.counters["bytes"] / row.counters["count"]


def _lines(file: File) -> list[Line]:
    swept = [row for row in _rows(file) if "bytes" in row.configuration]
    return lines(swept, _size, ("bytes",), "bytes")


def _draw(file: File) -> Pictures | None:
    shown = [_named(panel) for panel in panels(_lines(file), ("bytes",))]
    if not shown:
        return None
    return draw_rates(
        file,
        shown,
        title="Copies: bandwidth by size",
        size_label="size of one copy",
        rate_label="bandwidth",
        unit="B/s",
        tick=units.binary_bytes,
    )


def _named(panel: Panel) -> Panel:
    direction = panel.lines[0].points[0].row.configuration["direction"]
    return Panel(_DIRECTIONS.get(direction, direction), panel.lines)


def _block(file: File, pictures: Pictures | None, context: Context) -> Block:
    rows = _rows(file)
    shown: tuple[Picture, ...] = ()
    if pictures is not None:
        shown = (
            Picture(
                pictures,
                context.stem(file, "copies"),
                alt="Bandwidth of a copy against its size, both axes logarithmic, a line for each "
                "kind of copy. The tables below have the same figures.",
            ),
        )
    return Block(
        machine=file.machine.id,
        pictures=shown,
        tables=(on_page(_summary(_lines(file)), _SUMMARY),) if shown else (),
        folds=(Fold(f"Every copy ({len(rows)})", (on_page(_every(rows), _EVERY),)),),
    )


def _summary(found: Sequence[Line]) -> Table:
    columns = (
        Column("copy", "copy"),
        Column("smallest_bytes", "smallest", numeric=True),
        Column("latency_seconds", "takes", numeric=True),
        Column("best_bytes_per_second", "highest bandwidth", numeric=True),
        Column("best_bytes", "at", numeric=True),
    )
    table = []
    for line in found:
        first = line.points[0]
        fastest = max(line.points, key=lambda point: point.median)
        seconds = first.row.median / first.row.counters["count"]
        table.append(
            (
                text_cell(line.label),
                bytes_cell(first.size),
                seconds_cell(seconds),
                Cell(units.rate(fastest.median, "B/s"), fastest.median, bold=True),
                bytes_cell(fastest.size),
            )
        )
    return Table("Latency and bandwidth, medians", columns, tuple(table))


def _every(rows: Sequence[Row]) -> Table:
    columns = (
        Column("direction", "direction"),
        Column("memory", "memory"),
        Column("mode", "mode"),
        Column("on", "on"),
        Column("model", "batch of"),
        Column("bytes", "size", numeric=True),
        Column("seconds", "time", numeric=True),
        Column("range", "range", numeric=True),
        Column("bytes_per_second", "bandwidth", numeric=True),
    )
    flags: dict[str, int] = {}
    table = []
    for row in rows:
        fields, count = row.configuration, row.counters["count"]
        direction = _DIRECTIONS.get(fields["direction"], fields["direction"])
        model = fields.get("model")
        seconds, bandwidth = row.median / count, rate(row, "bytes")
        flagged = marks(row.warnings, flags)
        network = f"{model}, {fields.get('batch', '')}" if model else ""
        table.append(
            (
                text_cell(direction),
                *(text_cell(fields.get(name)) for name in ("memory", "mode")),
                text_cell(device_name(row, without=("memory", "mode"))),
                text_cell(network) if model else NOTHING,
                Cell(units.binary_bytes(_size(row)), _size(row)),
                Cell(units.seconds(seconds), seconds, marks=flagged),
                range_cell(row, count),
                Cell(units.rate(bandwidth, "B/s"), bandwidth),
            )
        )
    return Table("Every copy", columns, tuple(table), (*flags,))
