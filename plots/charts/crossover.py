# SPDX-License-Identifier: Apache-2.0
"""Draws time against size on both devices, and where the GPU overtakes the CPU."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter

from plots import units
from plots.analysis.crossover import Comparison
from plots.analysis.curves import Curve
from plots.analysis.replicates import log_medians
from plots.charts.style import (
    COLOURS,
    DASHES,
    MARKERS,
    Chart,
    add_legend,
    annotate,
    chart,
    devices,
    render,
    repetitions,
    set_logarithmic_axes,
    write_titles,
)
from plots.rows import File
from plots.tables.crossover import what
from plots.text import printable, slug

_CPU_COLOUR = "#333333"  # the CPU's lines differ by dash, the GPU's by colour
_GPU_COLOURS = tuple(colour for colour in COLOURS if colour != "#000000")
_MOST_TICKS = 12
_SIZES = {
    "parameters": "trainable parameters",
    "size": "rows and columns of the square matrices",
    "width": "width of the layer",
}


def draw_crossovers(file: File, comparisons: Sequence[Comparison]) -> Chart:
    """Draws `comparisons` of `file`, which have all of `common` in common.

    A point is the median over the repetitions. An upright line marks the crossover of each GPU
    curve with the best thread count; its 95 % interval is shaded.
    """
    with chart() as (figure, axes):
        decisive = [each for each in comparisons if each.cpu.candidates]
        handles = _draw_cpus(axes, comparisons)
        measure = comparisons[0].measure
        set_logarithmic_axes(axes, _SIZES[measure], f"wall-clock time of one {_timed(comparisons)}")
        _set_limits(axes, comparisons)
        for place, comparison in enumerate(decisive):
            handles.append(_draw_gpu(axes, comparison, place))
        write_titles(axes, "Where the GPU overtakes the CPU", _lines(file, comparisons))
        add_legend(figure, handles)
        pictures = render(figure)
    common = comparisons[0].common
    name = slug("-".join(["crossover", *common.values()]), 100)
    return Chart(name, pictures, _alt(comparisons[0], decisive))


def _draw_cpus(axes: Axes, comparisons: Sequence[Comparison]) -> list[Artist]:
    cpus = {each.cpu: None for each in comparisons if not each.cpu.candidates}
    handles: list[Artist] = []
    for place, curve in enumerate(cpus):
        handles += _draw(
            axes,
            curve,
            color=_CPU_COLOUR,
            linestyle=DASHES[place % len(DASHES)],
            marker=MARKERS[place % len(MARKERS)],
            markerfacecolor="white",
            label=printable(curve.label, 60),
        )
    return handles


def _draw(axes: Axes, curve: Curve, **options: object) -> list[Line2D]:
    medians = np.exp(log_medians(curve))
    return axes.plot(curve.sizes, medians, linewidth=1.8, markersize=4.5, **options)


def _draw_gpu(axes: Axes, comparison: Comparison, place: int) -> Line2D:
    crossover = comparison.crossover
    colour = _GPU_COLOURS[place % len(_GPU_COLOURS)]
    (line,) = _draw(
        axes,
        comparison.gpu,
        color=colour,
        linestyle=DASHES[place // len(_GPU_COLOURS) % len(DASHES)],
        marker="o",
        label=f"{printable(comparison.gpu.label, 60)}: {crossover.words}",
    )
    if crossover.low or crossover.high:
        left, right = axes.get_xlim()
        axes.axvspan(
            crossover.low or left, crossover.high or right, color=colour, alpha=0.18, linewidth=0
        )
    for crossing in crossover.crossings:
        axes.axvline(crossing, color=colour, linewidth=1.2)
    if crossover.size:
        annotate(
            axes,
            units.significant(crossover.size),
            (crossover.size, 0.965 - 0.04 * (place % 8)),  # numbers of near crossings stay apart
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            color=colour,
            fontsize=9,
            fontweight="bold",
            zorder=5,
        )
    return line


def _set_limits(axes: Axes, comparisons: Sequence[Comparison]) -> None:
    curves = [curve for each in comparisons for curve in (each.cpu, each.gpu)]
    sizes = np.concatenate([curve.sizes for curve in curves])
    times = np.exp(np.concatenate([log_medians(curve) for curve in curves]))
    axes.set_xlim(sizes.min() / 1.6, sizes.max() * 1.6)
    axes.set_ylim(times.min() / 2, times.max() * 6)  # the numbers of the crossovers stand on top
    ticks = np.unique(sizes)
    if comparisons[0].measure != "parameters" and len(ticks) <= _MOST_TICKS:
        axes.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: units.count(size)))


def _timed(comparisons: Sequence[Comparison]) -> str:
    return printable(what(comparisons[0].common, comparisons[0].gpu.axes), 60)


def _conditions(comparison: Comparison) -> str:
    common = comparison.common
    parts = [f"batch {common['batch']}"] if "batch" in common else []
    parts += [common["precision"]] if "precision" in common else []
    return printable(", ".join(parts), 60)


def _lines(file: File, comparisons: Sequence[Comparison]) -> list[str]:
    count = repetitions(
        len(samples)
        for each in comparisons
        for curve in (each.cpu, each.gpu)
        for samples in curve.samples
    )
    lines = [
        devices(file),
        f"{_conditions(comparisons[0])}; points: median of {count} repetitions",
        "upright line: crossover with the best thread count; shaded: its 95 % interval",
    ]
    if not file.complete:
        lines.append("from an interrupted run: rows are missing")
    return lines


def _alt(first: Comparison, decisive: Sequence[Comparison]) -> str:
    findings = "; ".join(
        f"{printable(each.gpu.label, 60)}: {each.crossover.words}" for each in decisive
    )
    return (
        f"Wall-clock time of one {_timed([first])} against "
        f"{_SIZES[first.measure]}, {_conditions(first)}, on CPU and GPU, logarithmic axes. "
        f"Crossover with the CPU's best thread count: {findings}."
    )
