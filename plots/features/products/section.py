# SPDX-License-Identifier: Apache-2.0
"""Matrix products and layers by themselves: the Gemm and Layer rows."""

from collections.abc import Sequence

from plots import units
from plots.core.charts.rates import MOST_PANELS, draw_rates, panels
from plots.core.charts.style import Pictures
from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Fold, Picture, Section
from plots.core.rates import Line, lines, rate
from plots.core.series import device_name
from plots.core.tables.cells import count_cell, range_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.file.rows import File, Row
from plots.text import whole

_GEMM_SIZES = ("m", "n", "k")
_FEW = 8  # lines of a table that is not folded
_ELSEWHERE = ("family", "device", "cpu_threads")  # said beside the columns of the other axes


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of those shown has such rows."""
    shown = [file for file in files[: context.detailed] if _rows(file, "Gemm", "Layer")]
    if not shown:
        return None
    pictures = context.map(_draw, shown)
    return Section(
        title="Products and layers",
        anchor="products",
        folded=True,
        lead="How much arithmetic one matrix product, and one layer, reaches by its size.",
        blocks=tuple(
            _block(file, drawn, context) for file, drawn in zip(shown, pictures, strict=True)
        ),
        notes=(
            "Warm: the same operands over and over. Cold: operands take turns, so that none is "
            "left in a cache. nn, nt, tn: which factor is stored transposed. Separate: the "
            "activation is an operation of its own; fused: the backend may join them.",
        ),
    )


def _rows(file: File, *families: str) -> list[Row]:
    return [row for row in file.rows if row.family in families and row.failure is None]


def _square_lines(file: File) -> list[Line]:
    squares = [
        row
        for row in _rows(file, "Gemm")
        if len({row.configuration[name] for name in _GEMM_SIZES}) == 1
    ]
    # 2·n³ operations; the name of the row need not be a number.
    return lines(
        squares, lambda row: round((row.counters["flops"] / 2) ** (1 / 3)), _GEMM_SIZES, "flops"
    )


def _layer_lines(file: File) -> list[Line]:
    return lines(
        _rows(file, "Layer"), lambda row: row.counters.get("width", 1.0), ("width",), "flops"
    )


def _draw(file: File) -> tuple[Pictures | None, Pictures | None]:
    return (
        _chart(
            file,
            _square_lines(file),
            _GEMM_SIZES,
            title="Matrix products: arithmetic by size",
            size_label="n of n×n",
        ),
        _chart(
            file,
            _layer_lines(file),
            ("width",),
            title="Layers: arithmetic by width",
            size_label="inputs and outputs",
        ),
    )


def _chart(
    file: File, drawn: Sequence[Line], sized: Sequence[str], *, title: str, size_label: str
) -> Pictures | None:
    if not drawn:
        return None
    return draw_rates(
        file,
        panels(drawn, sized)[:MOST_PANELS],
        title=title,
        size_label=size_label,
        rate_label="operations per second",
        unit="FLOP/s",
    )


def _block(file: File, drawn: tuple[Pictures | None, Pictures | None], context: Context) -> Block:
    kinds = (
        ("products", "a square matrix product", "its size", _square_lines(file), _GEMM_SIZES),
        ("layers", "a layer", "its width", _layer_lines(file), ("width",)),
    )
    pictures, tables, folds = [], [], []
    for (name, what, over, found, sized), picture in zip(kinds, drawn, strict=True):
        if picture is None:
            continue
        count = len(panels(found, sized))
        few = f"{MOST_PANELS} of {count} kinds are drawn; the table below has all."
        pictures.append(
            Picture(
                picture,
                context.stem(file, name),
                alt=f"Floating-point operations per second of {what} against {over}, both axes "
                "logarithmic, a line for each way to compute. The tables below have the figures.",
                caption=few if count > MOST_PANELS else "",
            )
        )
        table = _summary(f"Highest rate of {what}", found)
        if len(found) > _FEW:
            folds.append(Fold(f"{table.title} ({len(found)})", (table,)))
        else:
            tables.append(table)
    gemm, layer = _rows(file, "Gemm"), _rows(file, "Layer")
    if gemm:
        folds.append(Fold(f"Every product ({len(gemm)})", (_page("Every product", gemm),)))
    if layer:
        folds.append(Fold(f"Every layer ({len(layer)})", (_page("Every layer", layer),)))
    return Block(
        machine=file.machine.id, pictures=tuple(pictures), tables=tuple(tables), folds=tuple(folds)
    )


def _summary(title: str, found: Sequence[Line]) -> Table:
    columns = (
        Column("kind", "kind"),
        Column("best_flops_per_second", "highest rate", numeric=True),
        Column("size", "at", numeric=True),
        Column("smallest_flops_per_second", "at the smallest", numeric=True),
    )
    table = []
    for line in found:
        fastest = max(line.points, key=lambda point: point.median)
        first = line.points[0].median
        table.append(
            (
                text_cell(line.label),
                Cell(units.rate(fastest.median, "FLOP/s"), fastest.median, bold=True),
                count_cell(fastest.size),
                Cell(units.rate(first, "FLOP/s"), first),
            )
        )
    return Table(title, columns, tuple(table))


def _page(title: str, rows: Sequence[Row]) -> Table:
    sizes = [
        key for key in (*_GEMM_SIZES, "width") if any(key in row.configuration for row in rows)
    ]
    return on_page(_every(title, rows), (*sizes, "flops_per_second", "on", "seconds"))


def _every(title: str, rows: Sequence[Row]) -> Table:
    names = [
        axis.key
        for axis in rows[0].axes
        if axis.key not in _ELSEWHERE and any(axis.key in row.configuration for row in rows)
    ]
    columns = (
        *(Column(name, name, numeric=name in (*_GEMM_SIZES, "width", "batch")) for name in names),
        Column("on", "on"),
        Column("seconds", "time", numeric=True),
        Column("range", "range", numeric=True),
        Column("flops_per_second", "rate", numeric=True),
    )
    flags: dict[str, int] = {}
    table = []
    for row in rows:
        count = row.counters["count"]
        seconds, speed = row.median / count, rate(row, "flops")
        flagged = marks(row.warnings, flags)
        table.append(
            (
                *(_field(row.configuration.get(name)) for name in names),
                Cell(where := device_name(row, without=names), where),
                Cell(units.seconds(seconds), seconds, marks=flagged),
                range_cell(row, count),
                Cell(units.rate(speed, "FLOP/s"), speed),
            )
        )
    return Table(title, columns, tuple(table), (*flags,))


def _field(text: str | None) -> Cell:
    if text is None:
        return NOTHING
    number = whole(text, digits=15)
    return Cell(text, text if number is None else number)
