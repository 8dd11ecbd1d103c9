# SPDX-License-Identifier: Apache-2.0
"""Which lines of epochs a chart shows first, and small charts of every way to compute."""

import math
from collections.abc import Sequence
from functools import partial

from matplotlib.figure import Figure

from plots import units
from plots.core.charts.lines import MOST_LINES, grid, in_fives
from plots.core.charts.looks import Looks
from plots.core.charts.style import (
    Pictures,
    devices,
    finish,
    is_narrow,
    logarithmic,
    render,
    write_above,
)
from plots.core.series import SeriesKey, series_key, series_labels
from plots.file.rows import File, Row
from plots.text import printable

_MOST_PANELS = 24
_CONTEXT = "#B0B0B0"
_NAMES = {"cpu": "CPU", "cuda": "GPU"}
_Line = list[Row]  # of one ladder, by size


def lines_of(rows: Sequence[Row]) -> list[_Line]:
    """A line for each way, ladder and batch among `rows`."""
    found: dict[tuple[SeriesKey, str, float], _Line] = {}
    for row in sorted(rows, key=lambda row: row.counters["params"]):
        if row.ladder:
            key = (series_key(row), row.ladder.name, row.counters["batch"])
            found.setdefault(key, []).append(row)
    return list(found.values())


def best_of_devices(rows: Sequence[Row]) -> list[Row]:
    """All of `rows` where MOST_LINES draw them; else those of each device's fastest way, at each
    ladder's own batch and in the plainest precision where there are any."""
    if len(lines_of(rows)) <= MOST_LINES:
        return list(rows)
    plain = [row for row in rows if _is_plain(row)] or list(rows)
    kept = set()
    for device in dict.fromkeys(row.device for row in plain):
        own = lines_of([row for row in plain if row.device == device])
        common = set.intersection(*({row.model for row in line} for line in own)) if own else set()
        ways = [
            (sum(math.log(row.median) for row in line if row.model in common), series_key(line[0]))
            for line in own
        ]
        kept |= {min(ways)[1]} if ways else set()
    return [row for row in plain if series_key(row) in kept] or plain


def _is_plain(row: Row) -> bool:
    axis = row.axes["precision"]
    own = row.ladder is None or row.batch == row.ladder.batch
    return own and row.axes.value(row.configuration, "precision") == axis.plainest


def draw_ways(file: File, rows: Sequence[Row], shown: Sequence[Row]) -> Pictures:
    """Draws every line of `rows`, which are of `file`, few in a panel; those `shown` in the chart
    before are grey in each."""
    return render(partial(_draw, file, rows, lines_of(shown)))


def _draw(file: File, rows: Sequence[Row], context: Sequence[_Line], figure: Figure) -> None:
    labels = {key: printable(label, 60) for key, label in series_labels(rows).items()}
    looks = Looks(file.rows)
    panels = in_fives(
        lines_of(rows),
        [
            lambda line: line[0].batch,
            lambda line: line[0].device,
            lambda line: line[0].precision,
            lambda line: line[0].configuration.get("data"),
        ],
    )
    drawn = panels[:_MOST_PANELS]
    made = grid(figure, len(drawn), 2.0 if is_narrow(figure) else 2.2)
    handles = {}
    for axes, panel in zip(made, drawn, strict=True):
        for line in context:
            axes.plot(*_points(line), color=_CONTEXT, linewidth=2.4, zorder=1)
        for line in panel:
            label = labels[series_key(line[0])]
            (handle,) = axes.plot(
                *_points(line),
                linewidth=1.5,
                markersize=3.5,
                label=label,
                **looks.of(line[0].configuration).line,
            )
            handles.setdefault(label, handle)
        room = figure.get_figwidth() / (1 if is_narrow(figure) else 3) - 0.8
        write_above(axes, _title(panel), room)
    logarithmic(made[0].xaxis, units.power_of_ten_count)
    logarithmic(made[0].yaxis, units.power_of_ten_seconds)
    lines = [
        devices(file),
        "wall-clock time of one epoch over trainable parameters; points: medians",
        "grey: the lines of the chart above",
    ]
    if len(panels) > len(drawn):
        lines.append(f"{len(drawn)} of {len(panels)} panels; the table has all rows")
    finish(figure, "Epochs: every way to compute", lines, list(handles.values()))


def _points(line: _Line) -> tuple[list[float], list[float]]:
    return [row.counters["params"] for row in line], [row.median for row in line]


def _title(panel: Sequence[_Line]) -> str:
    """What the lines of `panel` have in common."""
    said = [
        ("", {_NAMES.get(line[0].device, line[0].device) for line in panel}),
        ("batch ", {line[0].batch for line in panel}),
        ("", {line[0].precision for line in panel}),
        ("", {line[0].configuration.get("data") or "" for line in panel}),
    ]
    words = [f"{name}{values.pop()}" for name, values in said if len(values) == 1]
    return printable(", ".join(filter(None, words)), 60)
