# SPDX-License-Identifier: Apache-2.0
"""Draws the speedup over size and batch size, with the line on which both devices are equal."""

from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots import units
from plots.core.charts.style import (
    BEHIND_TEXT,
    INK,
    WIDE,
    Chart,
    devices,
    finish,
    is_narrow,
    render,
    write_above,
)
from plots.core.crossover_words import what
from plots.core.speed_up import Grid
from plots.file.rows import File
from plots.text import printable, slug

_NOT_MEASURED = "#E3E3E3"
# The cells keep their colours on a dark page, so what stands on them does: these two are no colours
# that the page replaces.
_LIGHT, _DARK = "#FDFDFD", "#020202"
_BEHIND_TEXT = {**BEHIND_TEXT, "facecolor": _LIGHT}
# As the CPU's and the GPU's lines are in every other chart, but for a bit, so that a dark page does
# not replace them.
_COLOURS = LinearSegmentedColormap.from_list("CPU to GPU", ["#4A41B5", "#F4F4F4", "#B74222"])


def draw_heat_map(file: File, grid: Grid) -> Chart:
    """Draws `grid`, a cell for each size and batch size, with the speedup written in it.

    The line of speedup 1 is interpolated between the cells' centres on a logarithmic scale.
    """
    name = slug("-".join(["speedup", *grid.common.values(), grid.gpu_label]), 100)
    return Chart(name, render(partial(_draw, file, grid)), _alt(grid))


def _draw(file: File, grid: Grid, figure: Figure) -> None:
    lines, columns = grid.ratios.shape
    narrow = is_narrow(figure)
    if narrow:  # more lines fit on a phone than columns do
        figure.set_figheight(1.0 + 0.3 * columns)
    else:
        figure.set_figheight(1.0 + 0.5 * lines)
    axes = figure.add_subplot()
    ratios = grid.ratios.T if narrow else grid.ratios
    logs = np.ma.masked_invalid(np.log2(ratios))
    extent = max(1.0, float(np.abs(logs).max()))
    axes.set_facecolor(_NOT_MEASURED)
    axes.pcolormesh(logs, cmap=_COLOURS, norm=TwoSlopeNorm(0, -extent, extent), edgecolors="white")
    _write_ratios(axes, ratios, extent)
    handles = []
    if logs.min() < 0 < logs.max():
        _draw_contour(axes, logs)
        handles.append(Line2D([], [], color=INK, linewidth=2.2, label="equally fast"))
    _set_axes(axes, grid, narrow)
    finish(figure, "Epochs: how much faster the GPU is", _lines(file, grid), handles)


def _write_ratios(axes: Axes, ratios: np.ndarray, extent: float) -> None:
    for (line, column), ratio in np.ndenumerate(ratios):
        measured = np.isfinite(ratio)
        colour_depth = abs(np.log2(ratio)) / extent if measured else 0.0
        axes.text(
            column + 0.5,
            line + 0.5,
            units.significant(ratio, 2) if measured else "–",
            ha="center",
            va="center",
            fontsize=9,
            color=_LIGHT if colour_depth > 0.6 else _DARK,
            # The line of equal speed passes through pale cells only.
            bbox=_BEHIND_TEXT if colour_depth < 0.25 else None,
            zorder=4,
        )


def _draw_contour(axes: Axes, logs: np.ma.MaskedArray) -> None:
    lines, columns = logs.shape
    # The outer cells' values are held up to their edges, so that the line crosses whole cells.
    padded = np.ma.masked_invalid(np.pad(logs.filled(np.nan), 1, mode="edge"))
    across = np.array([0, *np.arange(columns) + 0.5, columns])
    upwards = np.array([0, *np.arange(lines) + 0.5, lines])
    axes.contour(across, upwards, padded, levels=[0.0], colors=_DARK, linewidths=2.2)


def _set_axes(axes: Axes, grid: Grid, narrow: bool) -> None:
    names = {"parameters": "trainable parameters", "width": "width of the layer"}
    sizes = [units.short_count(size) for size in grid.sizes]
    batches = [f"{batch:,}" for batch in grid.batches]
    across, upwards = (batches, sizes) if narrow else (sizes, batches)
    labels = ["batch size", names.get(grid.measure, grid.measure)]
    axes.set_xlabel(labels[not narrow])
    axes.set_xticks(np.arange(len(across)) + 0.5, across)
    axes.set_yticks(np.arange(len(upwards)) + 0.5, upwards)
    axes.tick_params(length=0)
    write_above(axes, labels[narrow], WIDE)


def _ratio(ratio: float) -> str:
    return units.significant(ratio, 2)


def _lines(file: File, grid: Grid) -> list[str]:
    conditions = f"{what(grid.common, grid.axes)}, {grid.common.get('precision', '')}".rstrip(", ")
    return [
        devices(file),
        f"{printable(conditions, 60)}; {printable(grid.gpu_label, 60)} against "
        f"{printable(grid.cpu_label, 60)}",
        "SPEEDUP = CPU time / GPU time; blue: the CPU is faster, red: the GPU",
    ]


def _alt(grid: Grid) -> str:
    measured = np.isfinite(grid.ratios)
    wins = int(np.count_nonzero(grid.ratios[measured] > 1))
    extremes = []
    for name, find in (("largest", np.nanargmax), ("smallest", np.nanargmin)):
        line, column = np.unravel_index(find(grid.ratios), grid.ratios.shape)
        extremes.append(
            f"the {name} speedup is {_ratio(grid.ratios[line, column])}, at "
            f"{units.count(grid.sizes[column])} {grid.measure} and batch "
            f"{grid.batches[line]:,}"
        )
    return (
        f"Speedup of {printable(grid.gpu_label, 60)} over {printable(grid.cpu_label, 60)} by "
        f"{grid.measure} and batch size, {printable(what(grid.common, grid.axes), 60)}: the GPU is "
        f"faster at {wins} of {np.count_nonzero(measured)} combinations; {'; '.join(extremes)}."
    )
