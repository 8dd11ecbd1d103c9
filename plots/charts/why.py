# SPDX-License-Identifier: Apache-2.0
"""Draws where the time of an epoch goes: a panel for each series, a bar for each network."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from plots import units
from plots.analysis.bounds import bounds
from plots.analysis.why import PARTS, UNATTRIBUTED, Split, splits
from plots.charts.style import GREY, Pictures, devices, drawing, render
from plots.network import epoch_rows
from plots.rows import File
from plots.series import series_key, series_labels
from plots.text import printable

# Okabe and Ito's palette. What is unattributed is hatched: it is no part of the computation.
_COLOURS = {
    "launch": "#E69F00",
    "copy_to_device": "#56B4E9",
    "copy_from_device": "#F0E442",
    "product": "#0072B2",
    "elementwise": "#009E73",
    "loss": "#CC79A7",
    "update": "#D55E00",
    "synchronization": "#404040",
    UNATTRIBUTED: "#D9D9D9",
}
_PANEL_HEIGHT = 1.9  # inches
_BESIDE = 16  # bars of a panel that leave room for another beside it
_NAME = 16  # characters of a name


def draw_why(file: File) -> Pictures | None:
    """The chart of `file`; None where no Epoch row was profiled.

    A bar has the parts of an epoch in percent of their total. What is unattributed stands on top
    where it is positive and hangs below zero where it is negative, so that the bar's upper part
    ends above 100. A line across the bar is the row's bound.
    """
    found = splits(epoch_rows(file))
    if not found:
        return None
    labels = series_labels(split.row for split in found)
    bound = {index: one.percent for index, one in bounds(file).items() if one.percent is not None}
    networks = list(dict.fromkeys(map(_network, found)))  # by size, as the splits are
    columns = 1 if len(labels) < 3 or len(networks) > _BESIDE else 2
    lines = -(-len(labels) // columns)
    with drawing(8.4, 2.6 + _PANEL_HEIGHT * lines) as figure:
        grid = figure.subplots(lines, columns, squeeze=False, sharex=True, sharey=True)
        for axes, (key, label) in zip(grid.flat, labels.items(), strict=False):
            bars = [split for split in found if series_key(split.row) == key]
            _draw_panel(
                axes, label, bars, [networks.index(_network(split)) for split in bars], bound
            )
        _name_bars(grid[-1], len(labels) - columns * (lines - 1), found)
        for axes in grid[:, 0]:
            axes.set_ylabel("% of the epoch")
        _write_title(figure, file)
        _add_legend(figure, found, any(split.row.index in bound for split in found))
        return render(figure)


def _network(split: Split) -> tuple[float, str, str]:
    configuration = split.row.configuration
    return split.row.counters["params"], configuration["model"], configuration["batch"]


def _draw_panel(
    axes: Axes,
    label: str,
    bars: Sequence[Split],
    networks: Sequence[int],
    bounds_percent: dict[int, float],
) -> None:
    """Draws each of `bars` at the place of its network, with the bound of its row."""
    places = np.array(networks)
    bottom = np.zeros(len(bars))
    for part in PARTS:
        heights = np.array([_percent(split, split.parts.get(part, 0.0)) for split in bars])
        axes.bar(places, heights, bottom=bottom, width=0.8, color=_COLOURS[part])
        bottom += heights
    rest = np.array([_percent(split, split.unattributed) for split in bars])
    axes.bar(
        places,
        rest,
        bottom=np.where(rest > 0, bottom, 0.0),
        width=0.8,
        color=_COLOURS[UNATTRIBUTED],
        edgecolor="#808080",
        linewidth=0.4,
        hatch="////",
    )
    for place, split in zip(networks, bars, strict=True):
        bound = bounds_percent.get(split.row.index)
        if bound is not None:
            axes.plot([place - 0.4, place + 0.4], [bound] * 2, color="#262626", linewidth=2)
    axes.axhline(0, color="#808080", linewidth=0.8)
    axes.set_title(printable(label, 60), loc="left", fontsize=10)


def _name_bars(lowest: Sequence[Axes], used: int, found: Sequence[Split]) -> None:
    """Names the networks below the lowest line of panels, of which the first `used` hold bars."""
    one_batch = len({split.row.configuration["batch"] for split in found}) == 1
    names = {_network(split): _name(split, one_batch) for split in found}
    for place, axes in enumerate(lowest):
        axes.set_xticks(range(len(names)), list(names.values()), fontsize=8, rotation=90)
        if place >= used:  # names for the panel above an empty place
            axes.spines[:].set_visible(False)
            axes.tick_params(length=0, labelleft=False)


def _percent(split: Split, seconds: float) -> float:
    return 100 * seconds / split.total


def _name(split: Split, one_batch: bool) -> str:
    params = split.row.counters["params"]
    shown = next(
        (
            f"{units.significant(params / scale, 2)}{letter}"
            for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k"))
            if params >= scale
        ),
        f"{params:g}",
    )
    configuration = split.row.configuration
    batch = "" if one_batch else f" ×{configuration['batch'][:_NAME]}"
    return printable(f"{configuration['model'][:_NAME]}{batch}, {shown}")


def _write_title(figure: Figure, file: File) -> None:
    figure.suptitle(
        "Where the time of an epoch goes, by number of parameters",
        x=0.01,
        ha="left",
        fontsize=13,
        fontweight="bold",
    )
    figure.text(0.01, 0.01, devices(file), fontsize=9, color=GREY, va="bottom")


def _add_legend(figure: Figure, found: Sequence[Split], any_bound: bool) -> None:
    handles: list[Patch | Line2D] = [
        Patch(color=_COLOURS[part], label=label)
        for part, label in PARTS.items()
        if any(part in split.parts for split in found)
    ]
    handles.append(
        Patch(
            facecolor=_COLOURS[UNATTRIBUTED], edgecolor="#808080", hatch="////", label=UNATTRIBUTED
        )
    )
    if any_bound:
        handles.append(Line2D([], [], color="#262626", linewidth=2, label="bound"))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
