# SPDX-License-Identifier: Apache-2.0
"""Draws rates over a size, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from plots import units
from plots.analysis.rates import Line
from plots.charts.style import (
    MARKERS,
    Pictures,
    add_legend,
    chart,
    line_style,
    logarithmic,
    render,
    write_titles,
)
from plots.text import printable

MOST_LINES = 12  # more can't be told apart


def draw_rates(
    lines: Sequence[Line],
    *,
    title: str,
    size_label: str,
    rate_label: str,
    unit: str,
    tick: Callable[[float], str] = units.count,
    base: int = 4,
) -> Pictures:
    """Draws `lines`, MOST_LINES at most. A point is the median over the repetitions, the shading
    their range; `unit` is that of the rates, per second, and `tick` names the sizes that are powers
    of `base`."""
    with chart(height=4.8) as (figure, axes):
        handles = []
        for place, line in enumerate(lines[:MOST_LINES]):
            colour, dash = line_style(place)
            sizes = [point.size for point in line.points]
            axes.fill_between(
                sizes,
                [point.low for point in line.points],
                [point.high for point in line.points],
                color=colour,
                alpha=0.18,
                linewidth=0,
            )
            handles += axes.plot(
                sizes,
                [point.median for point in line.points],
                color=colour,
                linestyle=dash,
                linewidth=1.8,
                marker=MARKERS[place // 7 % len(MARKERS)],
                markersize=4.5,
                label=printable(line.label, 60),
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(size_label)
        axes.set_ylabel(rate_label)
        _pad(axes.set_xlim, [point.size for line in lines for point in line.points])
        _pad(
            axes.set_ylim, [rate for line in lines for p in line.points for rate in (p.low, p.high)]
        )
        logarithmic(axes.xaxis, tick, base)
        logarithmic(axes.yaxis, lambda value: units.power_of_ten_rate(value, unit))
        axes.grid(color="#E3E3E3", linewidth=0.8)
        axes.set_axisbelow(True)
        write_titles(axes, title, ["points: median; shading: range of all repetitions"])
        add_legend(figure, handles)
        return render(figure)


def _pad(set_limits: Callable[[float, float], object], values: Sequence[float]) -> None:
    positive = [value for value in values if value > 0] or [1.0]
    # At least a decade, so that there is a tick with a name.
    low, high = min(positive) / 1.5, max(positive) * 1.5
    if high < 10 * low:
        low, high = low / 3, high * 3
    set_limits(low, high)
