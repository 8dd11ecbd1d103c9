# SPDX-License-Identifier: Apache-2.0
"""Draws seconds per epoch against the number of parameters, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots import units
from plots.analysis.curves import is_disc
from plots.charts.style import (
    GREY,
    MARKERS,
    Pictures,
    add_legend,
    annotate,
    chart,
    devices,
    line_style,
    render,
    repetitions,
    set_logarithmic_axes,
    write_titles,
)
from plots.published import Experiment
from plots.rows import File, Row
from plots.series import SeriesKey, series_key, series_labels
from plots.text import printable

_POINT_SHAPES = ("D", "s", "^", "v", "P", "X")  # one for each network outside the disc family


def draw_epochs(file: File, rows: Sequence[Row], experiments: Sequence[Experiment]) -> Pictures:
    """Draws `rows`, the Epoch rows of `file` that have a result, beside what was published.

    A point is the median over the repetitions. The range of all repetitions is shaded behind a
    line and drawn as a bar at a single point.
    """
    with chart() as (figure, axes):
        labels = {key: printable(label, 60) for key, label in series_labels(rows).items()}
        handles = _draw_disc_lines(axes, rows, labels)
        _draw_points(axes, rows, list(labels))
        _set_axes(axes, rows, experiments)
        _draw_published(axes, experiments)
        write_titles(
            axes, "Time of one training epoch by size of the network", _subtitle(file, rows)
        )
        add_legend(figure, handles)
        return render(figure)


def _draw_disc_lines(axes: Axes, rows: Sequence[Row], labels: dict[SeriesKey, str]) -> list[Line2D]:
    """Draws the disc family, a line for each series and batch size; returns the legend."""
    keys = list(labels)
    disc = sorted(filter(is_disc, rows), key=lambda row: row.counters["params"])
    batches = sorted({row.counters["batch"] for row in disc})
    handles = []
    for key, label in labels.items():
        colour, dash = line_style(keys.index(key))
        own = [row for row in disc if series_key(row) == key]
        if not own:  # single points only: their colour still needs an entry
            handles.append(Line2D([], [], color=colour, marker="D", linestyle="", label=label))
        for place, batch in enumerate(batches):
            line = [row for row in own if row.counters["batch"] == batch]
            if not line:
                continue
            params = [row.counters["params"] for row in line]
            axes.fill_between(
                params,
                [row.minimum for row in line],
                [row.maximum for row in line],
                color=colour,
                alpha=0.18,
                linewidth=0,
            )
            handles += axes.plot(
                params,
                [row.median for row in line],
                color=colour,
                linestyle=dash,
                linewidth=1.8,
                marker=MARKERS[place % len(MARKERS)],
                markersize=4.5,
                label=f"{label}, batch {batch:,.0f}" if len(batches) > 1 else label,
            )
    return handles


def _draw_points(axes: Axes, rows: Sequence[Row], keys: Sequence[SeriesKey]) -> None:
    """Networks outside the disc family: a shape for each network, named at its topmost point."""
    networks: dict[str, list[Row]] = {}
    for row in rows:
        if not is_disc(row):
            networks.setdefault(row.configuration["model"], []).append(row)
    for place, (model, points) in enumerate(sorted(networks.items())):
        for row in points:
            axes.errorbar(
                row.counters["params"],
                row.median,
                yerr=[[row.median - row.minimum], [row.maximum - row.median]],
                color=line_style(keys.index(series_key(row)))[0],
                marker=_POINT_SHAPES[place % len(_POINT_SHAPES)],
                markersize=7,
                markerfacecolor="white",
                markeredgewidth=1.6,
                elinewidth=1.2,
                linestyle="",
                zorder=4,
            )
        top = max(points, key=lambda row: row.maximum)
        annotate(
            axes,
            printable(model, 24),
            (top.counters["params"], top.maximum),
            xytext=(-7, 4),  # lines rise to the right, so the upper left is the free side
            ha="right",
            fontsize=9,
            zorder=5,
        )


def _set_axes(axes: Axes, rows: Sequence[Row], experiments: Sequence[Experiment]) -> None:
    times = [time for row in rows for time in (row.minimum, row.maximum)]
    params = [row.counters["params"] for row in rows]
    for experiment in experiments:
        times += experiment.seconds_per_epoch.values()
        params += [size for size in (experiment.params, experiment.crossover_params) if size]
    set_logarithmic_axes(axes, "trainable parameters", "wall-clock time of one epoch")
    # Starting at the same place makes charts of different machines comparable.
    axes.set_xlim(min(10, min(params) / 2), max(params) * 3)
    # The space on top holds the label of the published crossover.
    axes.set_ylim(min(times) / 2, max(times) * 6)


def _draw_published(axes: Axes, experiments: Sequence[Experiment]) -> None:
    for experiment in experiments:
        source = f"{experiment.citation.author}, {experiment.measured_on}"
        if experiment.crossover_params:
            axes.axvline(experiment.crossover_params, color=GREY, linestyle=":", linewidth=1.4)
            annotate(
                axes,
                f"published: GPU wins from {experiment.crossover_params:,} parameters\n({source})",
                (experiment.crossover_params, 0.985),
                xycoords=("data", "axes fraction"),
                xytext=(-6, 0),
                ha="right",
                va="top",
                fontsize=8.5,
                color=GREY,
            )
        times = experiment.seconds_per_epoch
        if not times:
            continue
        # The two times nearly coincide: a large hollow square around a small full diamond.
        for (device, time), (marker, size) in zip(
            times.items(), (("s", 10), ("d", 5)), strict=False
        ):
            axes.plot(
                experiment.params,
                time,
                color=GREY,
                marker=marker,
                markersize=size,
                markerfacecolor="none" if device == "CPU" else GREY,
                linestyle="",
                zorder=3,
            )
        figures = ", ".join(f"{name} {units.seconds(time, 4)}" for name, time in times.items())
        annotate(
            axes,
            f"published: {experiment.id}\n{figures}",
            (experiment.params, max(times.values())),
            xytext=(-10, 0),
            ha="right",
            va="center",
            fontsize=8.5,
            color=GREY,
        )


def _subtitle(file: File, rows: Sequence[Row]) -> list[str]:
    count = repetitions(len(row.samples) for row in rows)
    lines = [
        devices(file),
        f"points: median of {count} repetitions; shading and bars: range of all of them",
    ]
    if not file.complete:
        lines.append("from an interrupted run: rows are missing")
    return lines
