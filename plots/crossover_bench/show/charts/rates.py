# SPDX-License-Identifier: Apache-2.0
"""Draws rates over a size, both axes logarithmic: a panel for each kind of work, in which each way
to compute has the look that it has in every chart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from crossover_bench.curves.rates import Line
from crossover_bench.curves.series import device_name
from crossover_bench.files.axes import Items
from crossover_bench.files.rows import File, Row
from crossover_bench.show.charts.lines import grid
from crossover_bench.show.charts.looks import Looks
from crossover_bench.show.charts.style import (
    Pictures,
    devices,
    finish,
    is_narrow,
    logarithmic,
    name_sizes,
    render,
    write_above,
)
from crossover_bench.words import units
from crossover_bench.words.text import printable

MOST_PANELS = 4
_HEIGHT = {1: 3.4, 2: 2.6}  # inches of a panel, by how many stand beside each other


@dataclass(frozen=True, slots=True)
class Panel:
    """The `lines` of one kind of work, which `title` names; they differ in how and where."""

    title: str
    lines: tuple[Line, ...]


def panels(lines: Sequence[Line], sized: Sequence[str]) -> list[Panel]:
    """A panel for each kind of work among `lines`, whose sizes are in the fields `sized`: those
    measured on most devices first, then the plainest."""
    kinds: dict[Items, list[Line]] = {}
    for line in lines:
        row = line.points[0].row
        kinds.setdefault(row.axes.what(row.configuration, (*sized, "family")), []).append(line)
    varying = {
        key
        for kind in kinds
        for key, value in kind
        if any(dict(other).get(key) != value for other in kinds)
    }
    return [
        Panel(
            ", ".join(members[0].points[0].row.axes.words({k: v for k, v in kind if k in varying})),
            tuple(members),
        )
        for kind, members in sorted(kinds.items(), key=lambda item: _rank(dict(item[0]), item[1]))
    ]


def _rank(kind: dict[str, str], lines: Sequence[Line]) -> tuple[object, ...]:
    axes = lines[0].points[0].row.axes
    on = {line.points[0].row.device for line in lines}
    places = [
        axis.values.index(value) if value in axis.values else len(axis.values)
        for axis, value in axes.of(kind)
    ]
    return -len(on), places, sorted(kind.items())


def draw_rates(
    file: File,
    shown: Sequence[Panel],
    *,
    title: str,
    size_label: str,
    rate_label: str,
    unit: str,
    tick: Callable[[float], str] = units.count,
) -> Pictures:
    """Draws `shown`, rows of `file`, one panel at least. A point is the median over the
    repetitions, the shading their range; `unit` is that of the rates, per second, and `tick` names
    the sizes."""
    lines = [devices(file), f"{rate_label}; points: median, shading: range of all repetitions"]
    sizes = [point.size for panel in shown for line in panel.lines for point in line.points]

    def draw(figure: Figure) -> None:
        used = _draw_panels(figure, shown, Looks(file.rows), unit)
        name_sizes(used[0], sizes, tick)
        for axes in used:
            axes.set_xlabel(size_label if axes.xaxis.get_tick_params()["labelbottom"] else "")
        handles: dict[str, Line2D] = {}  # one of the lines of each way to compute
        for line in (line for axes in used for line in axes.lines):
            handles.setdefault(str(line.get_label()), line)
        finish(figure, title, lines, list(handles.values()))

    return render(draw)


def _draw_panels(figure: Figure, shown: Sequence[Panel], looks: Looks, unit: str) -> list[Axes]:
    """Draws each of `shown` on axes of its own; returns these. The lowest ones name the sizes."""
    columns = 1 if is_narrow(figure) or len(shown) == 1 else 2
    used = grid(figure, len(shown), _HEIGHT[columns] if len(shown) == 1 or columns > 1 else 2.3)
    points = [point for panel in shown for line in panel.lines for point in line.points]
    _pad(used[0].set_xlim, [point.size for point in points])
    _pad(used[0].set_ylim, [rate for point in points for rate in (point.low, point.high)])
    logarithmic(used[0].yaxis, lambda value: units.power_of_ten_rate(value, unit))
    for axes, panel in zip(used, shown, strict=True):
        for line in panel.lines:
            _draw_line(axes, line, looks)
        write_above(axes, printable(panel.title, 60), figure.get_figwidth() / columns - 1)
    return used


def _draw_line(axes: Axes, line: Line, looks: Looks) -> None:
    row = line.points[0].row
    look = looks.of(row.configuration)
    sizes = [point.size for point in line.points]
    axes.fill_between(
        sizes,
        [point.low for point in line.points],
        [point.high for point in line.points],
        color=look.colour,
        alpha=0.18,
        linewidth=0,
    )
    axes.plot(
        sizes,
        [point.median for point in line.points],
        linewidth=1.8,
        markersize=4.5,
        label=printable(way(row), 60),
        **look.line,
    )


def way(row: Row) -> str:
    """How and where `row` computes, with its precision where that is not plain."""
    words = [device_name(row)]
    words += [
        axis.word(value)
        for axis, value in row.axes.of(row.configuration, "alike")
        if value != axis.plainest
    ]
    return ", ".join(words)


def _pad(set_limits: Callable[[float, float], object], values: Sequence[float]) -> None:
    positive = [value for value in values if value > 0] or [1.0]
    # At least a decade, so that there is a tick with a name.
    low, high = min(positive) / 1.5, max(positive) * 1.5
    if high < 10 * low:
        low, high = low / 3, high * 3
    set_limits(low, high)
