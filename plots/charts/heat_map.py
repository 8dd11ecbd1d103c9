# SPDX-License-Identifier: Apache-2.0
"""Draws the speed-up over size and batch size, with the line on which both devices are equal."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots import units
from plots.analysis.speed_up import Grid
from plots.charts.style import BEHIND_TEXT, GREY, Chart, chart, devices, render, write_titles
from plots.rows import File
from plots.tables.crossover import what
from plots.text import printable, slug

_COLOURS = "PuOr_r"  # purple where the CPU wins, orange where the GPU does; colour-blind-safe
_NOT_MEASURED = "#E3E3E3"
# The cells keep their colours on a dark page, so what stands on them does: these two are no colours
# that the page replaces.
_LIGHT, _DARK = "#FDFDFD", "#020202"
_BEHIND_TEXT = {**BEHIND_TEXT, "facecolor": _LIGHT}


def draw_heat_map(file: File, grid: Grid) -> Chart:
    """Draws `grid`, a cell for each size and batch size, with the speed-up written in it.

    The line of speed-up 1 is interpolated between the cells' centres on a logarithmic scale.
    """
    with chart() as (figure, axes):
        logs = np.ma.masked_invalid(np.log2(grid.ratios))
        extent = max(1.0, float(np.abs(logs).max()))
        axes.set_facecolor(_NOT_MEASURED)
        axes.pcolormesh(
            logs, cmap=_COLOURS, norm=TwoSlopeNorm(0, -extent, extent), edgecolors="white"
        )
        _write_ratios(axes, grid.ratios, extent)
        if logs.min() < 0 < logs.max():
            _draw_contour(axes, logs)
        _set_axes(axes, grid)
        write_titles(axes, "How much faster the GPU is, by size and batch", _lines(file, grid))
        _set_size(figure, grid)
        pictures = render(figure)
    name = slug("-".join(["speed-up", *grid.common.values(), grid.gpu_label]), 100)
    return Chart(name, pictures, _alt(grid))


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
    axes.legend(
        handles=[Line2D([], [], color=GREY, linewidth=2.2, label="equally fast")],
        loc="lower right",
        bbox_to_anchor=(1, 1),
        frameon=False,
    )


def _set_axes(axes: Axes, grid: Grid) -> None:
    names = {"parameters": "trainable parameters", "width": "width of the layer"}
    axes.set_xlabel(names.get(grid.measure, grid.measure))
    axes.set_ylabel("batch size")
    axes.set_xticks(
        np.arange(len(grid.sizes)) + 0.5, [units.short_count(size) for size in grid.sizes]
    )
    axes.set_yticks(np.arange(len(grid.batches)) + 0.5, [f"{batch:,}" for batch in grid.batches])
    axes.tick_params(length=0)


def _set_size(figure: Figure, grid: Grid) -> None:
    lines, columns = grid.ratios.shape
    figure.set_size_inches(max(6.4, 2.6 + 0.62 * columns), 2.4 + 0.5 * lines)


def _ratio(ratio: float) -> str:
    return units.significant(ratio, 2)


def _lines(file: File, grid: Grid) -> list[str]:
    conditions = f"{what(grid.common, grid.axes)}, {grid.common.get('precision', '')}".rstrip(", ")
    return [
        devices(file),
        f"{printable(conditions, 60)}; {printable(grid.gpu_label, 60)} against "
        f"{printable(grid.cpu_label, 60)}",
        "SPEED UP = CPU time / GPU time; purple: the CPU is faster, orange: the GPU",
    ]


def _alt(grid: Grid) -> str:
    measured = np.isfinite(grid.ratios)
    wins = int(np.count_nonzero(grid.ratios[measured] > 1))
    extremes = []
    for name, find in (("largest", np.nanargmax), ("smallest", np.nanargmin)):
        line, column = np.unravel_index(find(grid.ratios), grid.ratios.shape)
        extremes.append(
            f"the {name} speed-up is {_ratio(grid.ratios[line, column])}, at "
            f"{units.count(grid.sizes[column])} {grid.measure} and batch "
            f"{grid.batches[line]:,}"
        )
    return (
        f"Speed-up of {printable(grid.gpu_label, 60)} over {printable(grid.cpu_label, 60)} by "
        f"{grid.measure} and batch size, {printable(what(grid.common, grid.axes), 60)}: the GPU is "
        f"faster at {wins} of {np.count_nonzero(measured)} combinations; {'; '.join(extremes)}."
    )
