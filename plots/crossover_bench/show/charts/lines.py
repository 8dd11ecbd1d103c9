# SPDX-License-Identifier: Apache-2.0
"""Few lines in a chart: which are drawn, their names at their ends, and panels for the others."""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from crossover_bench.show.charts.style import BEHIND_TEXT, RULE, annotate, is_narrow, text_width

T = TypeVar("T")

MOST_LINES = 5  # of a chart, or of a panel
_GAP = 12.0  # points between two names
_FURTHEST = 26.0  # points that a name may stand above or below its line's end
BESIDE = 66.0  # points of a chart that its y axis takes
_WIDEST = 0.36  # share of a chart that names may take
_LEAST = 1e-60


def grid(figure: Figure, count: int, height: float) -> list[Axes]:
    """`count` axes of `height` inches with the same scales, both logarithmic, beside each other
    where there is room."""
    columns = 1 if is_narrow(figure) or count == 1 else 3 if count > 4 else 2
    rows = -(-count // columns)
    figure.set_figheight(height * rows + 0.3)
    made = list(figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat)
    for axes in made[count:]:
        axes.set_visible(False)
    for place, axes in enumerate(made[:count]):
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.grid(color=RULE, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.tick_params(labelbottom=place + columns >= count)
    return made[:count]


def name_ends(axes: Axes, lines: Iterable[Line2D]) -> list[Artist]:
    """Writes the name of each of `lines` at its right end, for which the x axis grows; returns
    those lines that a legend must name, as there is no room.

    Both axes are logarithmic and have their limits.
    """
    lines = list(lines)
    figure = axes.get_figure(root=True)
    assert figure is not None
    points = [np.asarray(line.get_xydata()) for line in lines]
    is_few = 0 < len(lines) <= MOST_LINES
    if is_narrow(figure) or not is_few or not all(map(len, points)):  # a sample for single points
        return [*lines]
    names = [str(line.get_label()) for line in lines]
    width = 72 * figure.get_figwidth() - BESIDE
    share = (max(text_width(figure, name, "legend") for name in names) + 14) / width
    ends = [(float(line[-1][0]), float(line[-1][1])) for line in points]
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    furthest = max(size for size, _ in ends)
    numbers = [left, right, low, high, *(number for end in ends for number in end)]
    # What a file may hold is beyond what such axes can grow to.
    if share > _WIDEST or not all(_LEAST < number < 1 / _LEAST for number in numbers):
        return [*lines]
    scale = (72 * figure.get_figheight() - BESIDE) / math.log(high / low)
    heights = [scale * math.log(value / low) for _, value in ends]
    places = _apart(heights)
    is_far = any(abs(place - end) > _FURTHEST for place, end in zip(places, heights, strict=True))
    if is_far or any(math.log(furthest / size) > 0.05 for size, _ in ends):
        return [*lines]
    axes.set_xlim(left, left * (max(right, furthest * 1.3) / left) ** (1 / (1 - share)))
    for line, name, end, place, height in zip(lines, names, ends, places, heights, strict=True):
        annotate(
            axes,
            name,
            end,
            xytext=(7, place - height),
            va="center",
            fontsize=9,
            color=line.get_color(),
            fontweight="bold",
            bbox={**BEHIND_TEXT, "alpha": 0},
            zorder=6,
        )
    return []


def _apart(places: Sequence[float]) -> list[float]:
    """`places` with _GAP between them at least, moved as little as keeps their order."""
    order = sorted(range(len(places)), key=places.__getitem__)
    groups: list[tuple[list[int], float]] = []  # of neighbours, and their middle
    for lowest in order:
        members, middle = [lowest], places[lowest]
        while groups:
            before, centre = groups[-1]
            if middle - centre >= _GAP * (len(members) + len(before)) / 2:
                break
            groups.pop()
            members = before + members
            middle = sum(places[member] for member in members) / len(members)
        groups.append((members, middle))
    moved = [0.0] * len(places)
    for members, middle in groups:
        for rank, member in enumerate(members):
            moved[member] = middle + _GAP * (rank - (len(members) - 1) / 2)
    return moved
