# SPDX-License-Identifier: Apache-2.0
"""Draws time against size on both devices, and where the GPU overtakes the CPU; and with that all
charts of the crossover analysis."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from crossover_bench.curves.crossover import Comparison
from crossover_bench.curves.crossover_words import crossover_words, sized, what
from crossover_bench.curves.curves import Curve
from crossover_bench.curves.headline import by_work
from crossover_bench.curves.problem import Answer
from crossover_bench.curves.problem_words import sides
from crossover_bench.curves.statistics import log_medians
from crossover_bench.files.families import FAMILIES
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import File, median_of
from crossover_bench.show.charts.lines import MOST_LINES, name_ends
from crossover_bench.show.charts.looks import Looks
from crossover_bench.show.charts.strip import AXES
from crossover_bench.show.charts.style import (
    Chart,
    annotate,
    devices,
    finish,
    is_narrow,
    name_points,
    name_sizes,
    render,
    repetitions,
    set_logarithmic_axes,
    write_above,
)
from crossover_bench.words import units
from crossover_bench.words.text import printable, slug


def draw_charts(file: File, comparisons: Sequence[Comparison]) -> list[Chart]:
    """A chart of time for each thing that both devices compute, training first."""
    return [draw_crossovers(file, group) for group in by_work(comparisons)]


def draw_crossovers(file: File, comparisons: Sequence[Comparison], title: str = "") -> Chart:
    """Draws `comparisons` of `file`, which have all of `common` in common; `title` is that of other
    sides than a CPU and a GPU.

    A point is the median over the repetitions. An upright line marks the crossover of each GPU
    curve with the best thread count; its 95 % interval is shaded.
    """
    common, drawn = comparisons[0].common, _drawn(comparisons)
    decisive = [each for each in comparisons if each.cpu.candidates]
    beside = "" if title else " with the best threads"
    left_out = len(decisive) - sum(bool(each.cpu.candidates) for each in drawn)
    of_devices = f"{FAMILIES[comparisons[0].family].title}: where the GPU overtakes the CPU"
    told = _Told(
        title or of_devices,
        tuple(_lines(file, drawn, left_out, beside)),
        Looks(file.own_rows),
        {row.counters.get("params"): row.model for row in file.rows if row.ladder},
    )
    pictures = render(partial(_draw, drawn, told))
    name = slug("-".join(["crossover", *common.values()]), 100)
    return Chart(name, pictures, _alt(comparisons[0], decisive))


def draw_problem(answer: Answer) -> Chart:
    """Draws the ways of a problem as draw_crossovers() draws those of a file."""
    compared = [
        replace(each, crossover=each.crossover.medians or each.crossover)
        for each in answer.compared
    ]
    drawn = list(compared)
    if len(answer.cpus) + len(drawn) <= MOST_LINES + 1:
        drawn += [replace(drawn[0], cpu=curve) for curve in answer.cpus]
    else:
        drawn = [answer.first]
    curves = [*answer.cpus, *(each.gpu for each in answer.compared)]
    first, second = sides(answer)
    beside = "the CPU's fastest way" if len(answer.cpus) > 1 else first
    told = _Told(
        f"{printable(answer.problem.title, 80)}: where {second} overtakes {first}",
        (_points(drawn), f"upright: crossover with {beside}{_SHADED}"),
        Looks(curves),
    )
    name = slug("-".join(["crossover", answer.problem.title]), 100)
    alt = _alt(answer.first, compared, beside)
    return Chart(name, render(partial(_draw, drawn, told)), alt)


_SHADED = "; shaded: its 95 % interval"


@dataclass(frozen=True, slots=True)
class _Told:
    """What a chart says beside its curves: `title` and `lines` above, how curves look, and the
    networks of sizes."""

    title: str
    lines: tuple[str, ...]
    looks: Looks
    models: Mapping[float | None, str] = field(default_factory=dict)


def _drawn(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """All of `comparisons` where few lines draw them; else the one of the fastest way of the GPU
    with the best thread count."""
    decisive = [each for each in comparisons if each.cpu.candidates]
    if len({id(each.cpu) for each in comparisons}) + len(decisive) <= MOST_LINES + 1:
        return list(comparisons)
    sign = decisive[0].gpu.quantity.cost(1)
    return [min(decisive, key=lambda each: sign * float(np.mean(log_medians(each.gpu))))]


def _draw(drawn: Sequence[Comparison], told: _Told, figure: Figure) -> None:
    narrow = is_narrow(figure)
    figure.set_figheight(3.6 if narrow else 4.4)
    axes = figure.add_subplot()
    looks, measure = told.looks, drawn[0].measure
    _set_limits(axes, drawn)
    # Each thread count, or where these are not drawn the best of them.
    cpus = {each.cpu: None for each in drawn if not each.cpu.candidates}
    cpus = cpus or {each.cpu: None for each in drawn}
    decisive = [each for each in drawn if each.cpu.candidates]
    lines, gpus = (
        [_draw_curve(axes, curve, looks, _names(told.models, curve, measure)) for curve in curves]
        for curves in (cpus, [each.gpu for each in decisive])
    )
    left = name_ends(axes, [*lines, *gpus])
    for place, each in enumerate(decisive):
        _mark_crossover(axes, each, place, looks)
    write_above(axes, _timed(drawn), figure.get_figwidth() - 1)
    finish(figure, told.title, told.lines, left)


def _draw_curve(axes: Axes, curve: Curve, looks: Looks, names: Iterator[str]) -> Line2D:
    (line,) = axes.plot(
        curve.sizes,
        np.exp(log_medians(curve)),
        linewidth=1.8,
        markersize=4.5,
        label=printable(curve.label, 60),
        **looks.of(curve.configuration).line,
    )
    name_points(line, names)
    return line


def _names(models: Mapping[float | None, str], curve: Curve, measure: str) -> Iterator[str]:
    """What a reader who points at a point of `curve` is told."""
    for size, samples in zip(curve.sizes.tolist(), curve.samples, strict=True):
        what = sized(units.count(size), measure)
        model = f"{models[size]}, " if measure == "parameters" and size in models else ""
        yield f"{model}{what}: {curve.quantity.show(median_of(samples))}, {curve.label}"


def _mark_crossover(axes: Axes, comparison: Comparison, place: int, looks: Looks) -> None:
    crossover = comparison.crossover
    colour = looks.of(comparison.gpu.configuration).colour
    left, right = axes.get_xlim()
    if crossover.low or crossover.high:
        axes.axvspan(
            crossover.low or left, crossover.high or right, color=colour, alpha=0.18, linewidth=0
        )
    for crossing in crossover.crossings:
        axes.axvline(crossing, color=colour, linewidth=1.2)
    if crossover.size:
        on_the_left = crossover.size > (left * right**2) ** (1 / 3)
        annotate(
            axes,
            units.size(crossover.size),
            (crossover.size, 0.965 - 0.055 * (place % 6)),  # numbers of near crossings stay apart
            xycoords=("data", "axes fraction"),
            xytext=(-4 if on_the_left else 4, 0),
            ha="right" if on_the_left else "left",
            color=colour,
            fontsize=9,
            fontweight="bold",
            zorder=5,
        )


def _set_limits(axes: Axes, comparisons: Sequence[Comparison]) -> None:
    curves = [curve for each in comparisons for curve in (each.cpu, each.gpu)]
    sizes = np.concatenate([curve.sizes for curve in curves])
    times = np.exp(np.concatenate([log_medians(curve) for curve in curves]))
    measure = comparisons[0].measure
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes.min() / 1.6, sizes.max() * 1.6)
    # The numbers of the crossovers stand on top, beside each other's lines.
    axes.set_ylim(times.min() / 2, times.max() * (times.max() / times.min()) ** 0.3 * 2)
    set_logarithmic_axes(
        axes, AXES.get(measure, printable(measure, 60)), comparisons[0].gpu.quantity
    )
    if measure != "parameters":
        name_sizes(axes, sizes.tolist(), units.count)


def _timed(comparisons: Sequence[Comparison]) -> str:
    first = comparisons[0]
    noun = "wall-clock time" if first.gpu.quantity is TIME else first.gpu.quantity.noun
    return f"{noun} of one {printable(what(first.common, first.gpu.axes), 60)}"


def _conditions(comparison: Comparison) -> str:
    common = comparison.common
    parts = [f"batch {common['batch']}"] if "batch" in common else []
    parts += [common["precision"]] if "precision" in common else []
    return printable(", ".join(parts), 60)


def _lines(file: File, comparisons: Sequence[Comparison], left_out: int, beside: str) -> list[str]:
    lines = [
        devices(file),
        f"{_conditions(comparisons[0])}; {_points(comparisons)}",
        f"upright: crossover{beside}{_SHADED}",
    ]
    if left_out:
        lines.append("only the fastest way of each device is drawn; the table has all")
    if not file.complete:
        lines.append(f"from a run that was {file.ended}: rows are missing")
    return lines


def _points(comparisons: Sequence[Comparison]) -> str:
    count = repetitions(
        len(samples)
        for each in comparisons
        for curve in (each.cpu, each.gpu)
        for samples in curve.samples
    )
    return f"points: median of {count} repetitions"


def _alt(
    first: Comparison, decisive: Sequence[Comparison], beside: str = "the CPU's best thread count"
) -> str:
    findings = "; ".join(
        f"{printable(each.gpu.label, 60)}: {crossover_words(each.crossover)}" for each in decisive
    )
    size = AXES.get(first.measure, printable(first.measure, 60))
    over = ", ".join(filter(None, [size, _conditions(first)]))
    return (
        f"{_timed([first]).capitalize()} against {over}, on CPU and GPU, logarithmic axes. "
        f"Crossover with {beside}: {findings}."
    )
