# SPDX-License-Identifier: Apache-2.0
"""Where the time goes, drawn: a panel for each way to compute, a bar for a network."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from crossover_bench.answers.why.analysis import (
    PARTS,
    UNATTRIBUTED,
    Split,
    fastest,
    foremost_rows,
    splits,
)
from crossover_bench.counts.bounds import bounds
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.families import EPOCH, FAMILIES, MINIBATCH
from crossover_bench.files.rows import File
from crossover_bench.show.charts.style import (
    INK,
    RULE,
    Chart,
    devices,
    finish,
    render,
    text_width,
    write_above,
)
from crossover_bench.study.study import Study
from crossover_bench.words import units
from crossover_bench.words.text import printable

# Readers who see no red or no green tell them apart, too. What is unattributed is hatched: it is no
# part of the computation.
COLOURS = {
    "launch": "#F7A861",
    "copy_to_device": "#59BAF1",
    "copy_from_device": "#298CD8",
    "kernel": "#010400",
    "product": "#00009F",
    "convolution": "#6048FC",
    "normalization": "#54E4FC",
    "pooling": "#C0F0A8",
    "elementwise": "#476A00",
    "reorder": "#FCD818",
    "loss": "#C87C57",
    "update": "#6C0048",
    "synchronization": "#916885",
    "communication": "#764277",
    UNATTRIBUTED: "#D9D9D9",
}
_CHARTS = {EPOCH: "why", MINIBATCH: "why-steps"}  # family → name
_BOUND: dict[str, Any] = {
    **{"color": INK, "marker": "D", "markersize": 5, "linestyle": ""},
    **{"markeredgecolor": "white", "markeredgewidth": 0.9},
}
_BAR = 0.2  # inches
_NAME = 16  # characters of a name


def draw_why(study: Study, family: str = EPOCH) -> Chart | None:
    """The chart of the rows of `family`, one of TRAINING, that people are shown first: the fastest
    of each device; None where none was profiled.

    A bar has the parts of an iteration in percent of their total. What is unattributed stands at
    its end where it is positive and left of zero where it is negative, so that the bar then ends
    beyond 100. A diamond is the row's bound.
    """
    shown = splits(fastest(foremost_rows(study, family)))
    if not shown:
        return None
    alt = (
        f"Share of each part in the time of {FAMILIES[family].a}, one bar for each network, one "
        "panel for each device. The table below has the same figures."
    )
    return Chart(_CHARTS[family], render(partial(_draw, study.file, shown)), alt)


def _draw(file: File, shown: Sequence[Split], figure: Figure) -> None:
    family = FAMILIES[shown[0].row.family]
    panels = {
        name: bars
        for device, name in DEVICES.items()
        if (bars := [split for split in shown if split.row.device == device])
    }
    percents = {index: bound.percent for index, bound in bounds(file).items()}
    bound = {index: percent for index, percent in percents.items() if percent is not None}
    networks = list(dict.fromkeys(map(_network, shown)))  # by size, as the splits are
    figure.set_figheight(0.9 + _BAR * len(networks))
    grid = figure.subplots(1, len(panels), squeeze=False, sharex=True, sharey=True)[0]
    one_batch = len({split.row.batch for split in shown}) == 1
    names = {_network(split): _name(split, one_batch) for split in shown}
    taken = max(text_width(figure, name, "legend") for name in names.values()) / 72 + 0.3
    room = (figure.get_figwidth() - taken) / len(panels) - 0.15
    for axes, (name, bars) in zip(grid, panels.items(), strict=True):
        _draw_panel(axes, bars, [networks.index(_network(split)) for split in bars], bound)
        write_above(axes, f"{name}, fastest way of each network", room)
        axes.set_xlabel(f"% of the {family.short}")
    _set_axes(grid[0], shown, [names[network] for network in networks], bound)
    notes = [f"networks by number of parameters{'' if one_batch else '; ×: batch size'}"]
    if any(split.row.index in bound for split in shown):
        notes[0] += "; diamond: what the bound alone would take"
    if any(split.unattributed < 0 for split in shown):
        notes.append("left of 0: the profiled ones were that much slower")
    title = f"{family.title}: where the time goes"
    finish(figure, title, [devices(file), *notes], _legend(shown, bound))


def _network(split: Split) -> tuple[float, str, str]:
    configuration = split.row.configuration
    return split.row.counters["params"], configuration["model"], configuration["batch"]


def _draw_panel(
    axes: Axes, bars: Sequence[Split], networks: Sequence[int], percents: dict[int, float]
) -> None:
    """Draws each of `bars` at the place of its network, with the bound of its row."""
    places = np.array(networks)
    left = np.zeros(len(bars))
    for part in PARTS:
        widths = np.array([_percent(split, split.parts.get(part, 0.0)) for split in bars])
        if widths.any():
            axes.barh(places, widths, left=left, height=0.8, color=COLOURS[part])
        left += widths
    rest = np.array([_percent(split, split.unattributed) for split in bars])
    axes.barh(
        places,
        rest,
        left=np.where(rest > 0, left, 0.0),
        height=0.8,
        color=COLOURS[UNATTRIBUTED],
        edgecolor="#808080",
        linewidth=0.4,
        hatch="////",
    )
    bounded = [
        (percents[split.row.index], place)
        for place, split in zip(networks, bars, strict=True)
        if split.row.index in percents
    ]
    if bounded:
        axes.plot(*zip(*bounded, strict=True), zorder=4, **_BOUND)
    axes.axvline(0, color="#808080", linewidth=0.8)


def _set_axes(
    axes: Axes, shown: Sequence[Split], names: Sequence[str], percents: dict[int, float]
) -> None:
    """Writes the `names`, the first on top, and makes room for every bar and every bound."""
    axes.set_yticks(range(len(names)), names, fontsize=8.5)
    axes.set_ylim(len(names) - 0.4, -0.6)
    rests = [_percent(split, split.unattributed) for split in shown]
    reached = [percents[split.row.index] for split in shown if split.row.index in percents]
    low = min(0.0, *rests)
    high = max(100.0, 100.0 - min(rests), *reached)
    margin = 0.04 * (high - low)
    axes.set_xlim(low - (margin if low < 0 else 0), high + margin)
    for each in axes.figure.axes:
        each.grid(axis="x", color=RULE, linewidth=0.8)
        each.set_axisbelow(True)
        each.tick_params(axis="y", length=0)


def _percent(split: Split, seconds: float) -> float:
    return 100 * seconds / split.total


def _name(split: Split, one_batch: bool) -> str:
    size = units.short_count(float(f"{split.row.counters['params']:.2g}"))
    configuration = split.row.configuration
    batch = "" if one_batch else f" ×{configuration['batch'][:_NAME]}"
    return printable(f"{configuration['model'][:_NAME]}{batch}, {size}")


def _legend(shown: Sequence[Split], percents: dict[int, float]) -> list[Artist]:
    handles: list[Artist] = [
        Patch(color=COLOURS[part], label=label)
        for part, label in PARTS.items()
        if any(part in split.parts for split in shown)
    ]
    handles.append(
        Patch(
            facecolor=COLOURS[UNATTRIBUTED], edgecolor="#808080", hatch="////", label=UNATTRIBUTED
        )
    )
    if any(split.row.index in percents for split in shown):
        handles.append(Line2D([], [], label="bound", **_BOUND))
    return handles
