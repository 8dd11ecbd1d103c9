# SPDX-License-Identifier: Apache-2.0
"""Draws seconds per epoch against the number of parameters, both axes logarithmic."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from plots import units
from plots.published import Experiment
from plots.rows import File, Row
from plots.series import SeriesKey, series_key, series_labels
from plots.text import printable

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow (too pale
# on white). Dashes of another length than the palette's keep more than seven lines apart.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
_DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
_POINT_SHAPES = ("D", "s", "^", "v", "P", "X")  # one for each network outside the disc family
_BATCH_SHAPES = ("o", "s", "D", "^", "v", "P", "X")  # one for each batch size of the disc family
_GREY = "#595959"
_HALO = [withStroke(linewidth=3, foreground="white")]  # keeps text readable on a line
_LEGEND_WIDTH = 96  # characters that fit beside each other; the sample of a line takes 10
_DISC = re.compile(r"disc-[0-9]+")

_STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": "#808080",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a dollar sign in a file is a dollar sign
    "svg.hashsalt": "crossover",  # the same file always gives the same picture, byte for byte
    "svg.fonttype": "path",
}


@dataclass(frozen=True, slots=True)
class Pictures:
    """One chart as the bytes of a PNG and of an SVG file."""

    png: bytes
    svg: bytes


@dataclass(frozen=True, slots=True)
class _Style:
    colour: str
    dash: str | tuple[float, tuple[float, ...]]


def draw_epochs(file: File, rows: Sequence[Row], experiments: Sequence[Experiment]) -> Pictures:
    """Draws `rows`, the Epoch rows of `file` that have a result, beside what was published.

    A point is the median over the repetitions. The range of all repetitions is shaded behind a
    line and drawn as a bar at a single point.
    """
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # A name may hold characters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        labels = {key: printable(label, 60) for key, label in series_labels(rows).items()}
        figure = Figure(layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        handles = _draw_disc_lines(axes, rows, labels)
        _draw_points(axes, rows, list(labels))
        _set_axes(axes, rows, experiments)
        _draw_published(axes, experiments)
        _write_titles(axes, file, rows)
        _add_legend(figure, handles)
        return Pictures(
            png=_render(figure, "png", {"Software": None}),
            svg=_render(figure, "svg", {"Date": None, "Creator": None}),
        )


def _add_legend(figure: Figure, handles: Sequence[Line2D]) -> None:
    """Puts the legend below the axes, where it covers no data, and makes the figure fit it."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = min(len(handles), max(1, min(3, _LEGEND_WIDTH // (longest + 10))))
    lines = -(-len(handles) // columns)
    figure.set_size_inches(8.4, 5.8 + 0.22 * lines)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=3.2,
    )


def _render(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=160, metadata=metadata)
    return buffer.getvalue()


def _is_disc(row: Row) -> bool:
    return _DISC.fullmatch(row.configuration["model"]) is not None


def _style(keys: Sequence[SeriesKey], key: SeriesKey) -> _Style:
    place = keys.index(key)
    return _Style(_COLOURS[place % len(_COLOURS)], _DASHES[place % len(_DASHES)])


def _draw_disc_lines(axes: Axes, rows: Sequence[Row], labels: dict[SeriesKey, str]) -> list[Line2D]:
    """Draws the disc family, a line for each series and batch size; returns the legend."""
    keys = list(labels)
    disc = sorted(filter(_is_disc, rows), key=lambda row: row.counters["params"])
    batches = sorted({row.counters["batch"] for row in disc})
    handles = []
    for key, label in labels.items():
        style = _style(keys, key)
        own = [row for row in disc if series_key(row) == key]
        if not own:  # single points only: their colour still needs an entry
            handles.append(
                Line2D([], [], color=style.colour, marker="D", linestyle="", label=label)
            )
        for place, batch in enumerate(batches):
            line = [row for row in own if row.counters["batch"] == batch]
            if not line:
                continue
            params = [row.counters["params"] for row in line]
            axes.fill_between(
                params,
                [row.minimum for row in line],
                [row.maximum for row in line],
                color=style.colour,
                alpha=0.18,
                linewidth=0,
            )
            handles += axes.plot(
                params,
                [row.median for row in line],
                color=style.colour,
                linestyle=style.dash,
                linewidth=1.8,
                marker=_BATCH_SHAPES[place % len(_BATCH_SHAPES)],
                markersize=4.5,
                label=f"{label}, batch {batch:,.0f}" if len(batches) > 1 else label,
            )
    return handles


def _draw_points(axes: Axes, rows: Sequence[Row], keys: Sequence[SeriesKey]) -> None:
    """Networks outside the disc family: a shape for each network, named at its topmost point."""
    networks: dict[str, list[Row]] = {}
    for row in rows:
        if not _is_disc(row):
            networks.setdefault(row.configuration["model"], []).append(row)
    for place, (model, points) in enumerate(sorted(networks.items())):
        for row in points:
            axes.errorbar(
                row.counters["params"],
                row.median,
                yerr=[[row.median - row.minimum], [row.maximum - row.median]],
                color=_style(keys, series_key(row)).colour,
                marker=_POINT_SHAPES[place % len(_POINT_SHAPES)],
                markersize=7,
                markerfacecolor="white",
                markeredgewidth=1.6,
                elinewidth=1.2,
                linestyle="",
                zorder=4,
            )
        top = max(points, key=lambda row: row.maximum)
        _annotate(
            axes,
            printable(model, 24),
            (top.counters["params"], top.maximum),
            xytext=(-7, 4),  # lines rise to the right, so the upper left is the free side
            ha="right",
            fontsize=9,
            zorder=5,
        )


def _annotate(axes: Axes, text: str, place: tuple[float, float], **options: Any) -> None:
    # Outside the layout, so that no text however long can squeeze the axes.
    axes.annotate(
        text, place, textcoords="offset points", path_effects=_HALO, **options
    ).set_in_layout(False)


def _set_axes(axes: Axes, rows: Sequence[Row], experiments: Sequence[Experiment]) -> None:
    times = [time for row in rows for time in (row.minimum, row.maximum)]
    params = [row.counters["params"] for row in rows]
    for experiment in experiments:
        times += experiment.seconds_per_epoch.values()
        params += [size for size in (experiment.params, experiment.crossover_params) if size]
    axes.set_xscale("log")
    axes.set_yscale("log")
    # Starting at the same place makes charts of different machines comparable.
    axes.set_xlim(min(10, min(params) / 2), max(params) * 3)
    # The space on top holds the label of the published crossover.
    axes.set_ylim(min(times) / 2, max(times) * 6)
    axes.set_xlabel("trainable parameters")
    axes.set_ylabel("wall-clock time of one epoch")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: units.power_of_ten_count(value)))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: units.power_of_ten_seconds(value))
    )
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=20))
        axis.set_minor_locator(NullLocator())
    axes.grid(color="#E3E3E3", linewidth=0.8)
    axes.set_axisbelow(True)


def _draw_published(axes: Axes, experiments: Sequence[Experiment]) -> None:
    for experiment in experiments:
        source = f"{experiment.citation.author}, {experiment.measured_on}"
        if experiment.crossover_params:
            axes.axvline(experiment.crossover_params, color=_GREY, linestyle=":", linewidth=1.4)
            _annotate(
                axes,
                f"published: GPU wins from {experiment.crossover_params:,} parameters\n({source})",
                (experiment.crossover_params, 0.985),
                xycoords=("data", "axes fraction"),
                xytext=(-6, 0),
                ha="right",
                va="top",
                fontsize=8.5,
                color=_GREY,
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
                color=_GREY,
                marker=marker,
                markersize=size,
                markerfacecolor="none" if device == "CPU" else _GREY,
                linestyle="",
                zorder=3,
            )
        figures = ", ".join(f"{name} {units.seconds(time, 4)}" for name, time in times.items())
        _annotate(
            axes,
            f"published: {experiment.id}\n{figures}",
            (experiment.params, max(times.values())),
            xytext=(-10, 0),
            ha="right",
            va="center",
            fontsize=8.5,
            color=_GREY,
        )


def _write_titles(axes: Axes, file: File, rows: Sequence[Row]) -> None:
    cpu = file.machine.cpu
    devices = [f"{printable(cpu.model, 40)}, {cpu.cores} core{'s' if cpu.cores != 1 else ''}"]
    if file.machine.gpu:
        devices.append(printable(file.machine.gpu, 40))
    fewest = min(len(row.samples) for row in rows)
    most = max(len(row.samples) for row in rows)
    count = str(most) if fewest == most else f"{fewest} to {most}"
    lines = [
        " · ".join(devices),
        f"points: median of {count} repetitions; shading and bars: range of all of them",
    ]
    if not file.complete:
        lines.append("from an interrupted run: rows are missing")
    _annotate(
        axes,
        "\n".join(lines),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7),
        fontsize=9,
        color=_GREY,
        linespacing=1.35,
    )
    axes.set_title(
        "Time of one training epoch by size of the network",
        loc="left",
        pad=14 + 13 * len(lines),
        fontsize=13,
        fontweight="bold",
    )
