# SPDX-License-Identifier: Apache-2.0
"""Draws all machines in one chart: time of an epoch over the size of the network, CPU and GPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots.core.charts.style import (
    COLOURS,
    Chart,
    finish,
    is_narrow,
    render,
    set_logarithmic_axes,
    write_above,
)
from plots.core.machines import SideBySide, Standing, cpu_curve, short_gpu
from plots.core.replicates import log_medians
from plots.features.machines.table import crossover_text
from plots.text import counted, printable

MOST_COLOURED = 6  # machines; the lines of more can't be told apart
_COLOURS = tuple(colour for colour in COLOURS if colour != "#000000")
_OTHERS = "#B0B0B0"
_KEY = "#595959"
_DASHED = (0, (4, 2))


@dataclass(frozen=True, slots=True)
class _Line:
    sizes: np.ndarray
    seconds: np.ndarray


def draw_machines(side: SideBySide) -> Chart | None:
    """The chart of `side`; None where no machine has times of two networks of a ladder.

    The first MOST_COLOURED machines, the baseline among them, have colours; all others are grey.
    """
    drawn = {id(one): lines for one in side.standings if (lines := _lines(one))}
    if not drawn:
        return None
    machines = [one for one in side.standings if id(one) in drawn]
    coloured = _coloured(machines, side)
    others = [one for one in machines if one not in coloured]
    pictures = render(partial(_draw_all, coloured, others, drawn))
    return Chart("machines", pictures, _alt(machines))


def _draw_all(
    coloured: Sequence[Standing],
    others: Sequence[Standing],
    drawn: dict[int, dict[str, _Line]],
    figure: Figure,
) -> None:
    narrow = is_narrow(figure)
    figure.set_figheight(3.6 if narrow else 4.4)
    axes = figure.add_subplot()
    _set_limits(axes, [line for lines in drawn.values() for line in lines.values()])
    for one in others:
        _draw(axes, drawn[id(one)], _OTHERS, 0.8)
    handles = []
    for one, colour in zip(coloured, _COLOURS, strict=False):
        _draw(axes, drawn[id(one)], colour, 1.8)
        _mark_crossover(axes, one, drawn[id(one)], colour)
        handles.append(Line2D([], [], color=colour, linewidth=2.4, label=_label(one)))
    handles += _keys(others)
    write_above(axes, "wall-clock time of one epoch", figure.get_figwidth() - 1)
    lines = ["medians of the repetitions; circle: from here on the GPU wins"]
    finish(figure, "Every machine's CPU and GPU", lines, handles)


def _set_limits(axes: Axes, lines: Sequence[_Line]) -> None:
    sizes = np.concatenate([line.sizes for line in lines])
    seconds = np.concatenate([line.seconds for line in lines])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes.min() / 1.6, sizes.max() * 1.6)
    axes.set_ylim(seconds.min() / 1.6, seconds.max() * 1.6)
    set_logarithmic_axes(axes, "trainable parameters")


def _coloured(machines: Sequence[Standing], side: SideBySide) -> list[Standing]:
    first = list(machines[:MOST_COLOURED])
    baseline = [one for one in machines if one.file is side.baseline and one not in first]
    return [*first[: MOST_COLOURED - len(baseline)], *baseline]


def _lines(standing: Standing) -> dict[str, _Line]:
    """Device → the line of its best: of the CPU the best thread count at each size, of the GPU the
    way that the crossover is about."""
    if standing.answer:
        curves = {"cpu": standing.answer.cpu, "cuda": standing.answer.gpu}
        return {
            device: _Line(curve.sizes, np.exp(log_medians(curve)))
            for device, curve in curves.items()
        }
    own = cpu_curve(standing.file)
    return {"cpu": _Line(*own)} if len(own[0]) > 1 else {}


def _draw(axes: Axes, lines: dict[str, _Line], colour: str, width: float) -> None:
    for device, line in lines.items():
        axes.plot(
            line.sizes,
            line.seconds,
            color=colour,
            linewidth=width,
            linestyle=_DASHED if device == "cpu" else "-",
            zorder=2 if colour == _OTHERS else 3,
        )


def _mark_crossover(axes: Axes, one: Standing, lines: dict[str, _Line], colour: str) -> None:
    size = one.answer.crossover.size if one.answer else None
    if size is None:
        return
    gpu = lines["cuda"]
    seconds = np.exp(np.interp(np.log(size), np.log(gpu.sizes), np.log(gpu.seconds)))
    axes.plot(
        size,
        seconds,
        color=colour,
        marker="o",
        markersize=8,
        markerfacecolor="white",
        markeredgewidth=2,
        linestyle="",
        zorder=4,
    )


def _label(one: Standing) -> str:
    file = one.file
    name = printable(file.machine.id, 30)
    if one.answer is None:
        return f"{name}: CPU alone"
    gpu = printable(short_gpu(file.machine.gpu or "GPU"), 24)
    is_own = one.answer.batch in ("", one.answer.cpu.own_batch)
    other = "" if is_own else f" (batch {printable(one.answer.batch, 12)})"
    return f"{name}, {gpu}: {crossover_text(one)}{other}"


def _keys(others: Sequence[Standing]) -> list[Line2D]:
    """What solid, dashed and grey lines are."""
    keys = [
        Line2D([], [], color=_KEY, linestyle=_DASHED, label="CPU, best thread count"),
        Line2D([], [], color=_KEY, linestyle="-", label="GPU"),
    ]
    if others:
        label = counted(len(others), "more machine")
        keys.append(Line2D([], [], color=_OTHERS, linewidth=0.8, label=label))
    return keys


def _alt(machines: Sequence[Standing]) -> str:
    said = "; ".join(
        f"{printable(one.file.machine.id, 60)}: {crossover_text(one)}" for one in machines
    )
    return (
        "Every machine's seconds per epoch against the number of trainable parameters, a line for "
        "the CPU and one for the GPU, logarithmic axes. Parameters from which the GPU wins: "
        f"{said}."
    )
