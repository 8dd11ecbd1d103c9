# SPDX-License-Identifier: Apache-2.0
"""How the GPU was while it was measured: clock, temperature and power of each repetition."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path

from crossover_bench.files.rows import File, Row
from crossover_bench.show.charts.style import (
    RULE,
    Chart,
    devices,
    finish,
    is_narrow,
    render,
    write_above,
)
from crossover_bench.show.page.section import Block, Context, Section

_HELD_BACK = "held back: "  # of the warning that GpuWatch::doubts() writes (bench/rows/watches.cpp)
_CLOCK = "sm_clock_mhz_after"
_LINE, _HELD = "#D55E00", "#F3C9A5"
_NOTES = (
    "Each point is one repetition; rows stand in the order of the file. Clock and temperature are "
    "the driver's, right after the repetition. Power is the energy of a repetition over its time.",
)


@dataclass(frozen=True, slots=True)
class _Strip:
    """`values` are of all repetitions, NaN where the driver did not tell."""

    name: str
    unit: str
    values: np.ndarray

    def __str__(self) -> str:
        """The median, and the range of what differs."""
        low, middle, high = np.nanquantile(self.values, (0, 0.5, 1)).round().astype(int)
        if low == high:
            return f"{self.name}: {low} {self.unit}."
        return f"{self.name}: median {middle} {self.unit}, {low} to {high}."


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where no driver told of a GPU."""
    shown = [(file, _strips(file)) for file in files[: context.detailed]]
    shown = [(file, strips) for file, strips in shown if strips]
    if not shown:
        return None
    return Section(
        title="The GPU meanwhile",
        anchor="conditions",
        lead="How fast and how warm the GPU ran while it was measured. A clock that falls explains "
        "times that grow.",
        blocks=tuple(_block(file, strips, context) for file, strips in shown),
        notes=_NOTES,
    )


def _block(file: File, strips: Sequence[_Strip], context: Context) -> Block:
    rows = _rows(file)
    held = [row for row in rows if _held_back(row)]
    reasons = ", ".join(sorted({reason for row in held for reason in _held_back(row)}))
    why = f": {reasons}" if reasons else ""
    points = (
        *map(str, strips),
        f"The driver held clocks back in {len(held) or 'none'} of {len(rows)} rows{why}.",
    )
    alt = f"{' '.join(points)} Drawn over the repetitions of all rows on the GPU."
    chart = Chart("conditions", render(partial(_draw, file, rows, strips)), alt)
    picture = context.picture(file, chart)
    return Block(machine=file.machine.id, points=points, pictures=(picture,))


def _rows(file: File) -> list[Row]:
    return [row for row in file.own_rows if row.samples.size and _CLOCK in row.measured]


def _strips(file: File) -> list[_Strip]:
    rows = _rows(file)
    if not rows:
        return []
    seconds = np.concatenate([row.samples for row in rows])
    strips = [
        _Strip("Clock", "MHz", _each(rows, _CLOCK)),
        _Strip("Temperature", "°C", _each(rows, "temperature_celsius_after")),
        _Strip("Power", "W", _each(rows, "joules_gpu") / seconds),
    ]
    return [strip for strip in strips if np.isfinite(strip.values).any()]


def _each(rows: Sequence[Row], counter: str) -> np.ndarray:
    """Of each repetition. Where all of a row have the same value the file has it once."""

    def values(row: Row) -> np.ndarray:
        counts = row.measured.get(counter, np.array([np.nan]))
        return np.resize(counts, row.samples.size) if counts.size == 1 else counts

    return np.concatenate(list(map(values, rows)))


def _held_back(row: Row) -> list[str]:
    """Why the driver held clocks back."""
    held = [text.partition(_HELD_BACK)[2] for text in row.warnings if _HELD_BACK in text]
    return [reason for reasons in held for reason in reasons.split(", ")]


def _draw_points(axes: Axes, x: np.ndarray, y: np.ndarray) -> None:
    """Dots as one path of short strokes with round ends: thousands of markers make a large file."""
    known = np.isfinite(y)
    start = np.column_stack([x[known], y[known]])
    end = start + np.array([0.01, 0.0])
    stroke = np.stack([start, end], axis=1).reshape(-1, 2)
    codes = np.tile([Path.MOVETO, Path.LINETO], len(start))
    dots = Path(stroke, codes)
    dots.should_simplify = False
    axes.add_patch(PathPatch(dots, fill=False, edgecolor=_LINE, linewidth=2.2, capstyle="round"))


def _draw(file: File, rows: Sequence[Row], strips: Sequence[_Strip], figure: Figure) -> None:
    figure.set_figheight(0.95 * len(strips) + 0.4)
    ends = np.cumsum([len(row.samples) for row in rows])
    held = [place for place, row in enumerate(rows) if _held_back(row)]
    every: list[Axes] = [*figure.subplots(len(strips), 1, sharex=True, squeeze=False)[:, 0]]
    for axes, strip in zip(every, strips, strict=True):
        for place in held:
            axes.axvspan(ends[place - 1] if place else 0, ends[place], color=_HELD, linewidth=0)
        places = np.arange(len(strip.values)) + 0.5
        _draw_points(axes, places, strip.values)
        low, high = np.nanmin(strip.values), np.nanmax(strip.values)
        margin = max(0.1 * (high - low), 0.02 * high)
        axes.set_ylim(low - margin, high + margin)
        axes.set_xlim(0, len(strip.values))
        axes.locator_params(axis="y", nbins=3)
        axes.grid(axis="y", color=RULE, linewidth=0.8)
        axes.set_axisbelow(True)
        write_above(axes, f"{strip.name} [{strip.unit}]", figure.get_figwidth() - 1)
    every[-1].set_xlabel("repetitions, row by row")
    every[-1].locator_params(axis="x", nbins=5 if is_narrow(figure) else 10)
    patches = [Patch(color=_HELD, label="the driver held clocks back")] if held else []
    line = f"{devices(file)} · {len(ends)} rows"
    finish(figure, "The GPU while it was measured", [line], patches)
