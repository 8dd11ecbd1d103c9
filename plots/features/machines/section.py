# SPDX-License-Identifier: Apache-2.0
"""Machines side by side: one table and one chart; what each file says follows in other sections."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots.core.charts.lines import MOST_LINES, grid
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
from plots.core.page.section import Block, Context, Section
from plots.core.statistics import log_medians
from plots.features.machines.table import crossover_text, machines_table, part, verdicts
from plots.file.file_order import machine
from plots.file.rows import File
from plots.text import counted, printable

_STEM = "machines"  # of the chart's files: names of other charts have a dot
_ANSWER = ("machine", "crossover", "low", "high", "gpu")
_RECORD = ("machine", "cpu", "answer", "batch", "way", "measured", "commit", "file")


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where they are of one machine."""
    if context.side is None or len({machine(file) for file in files}) < 2:
        return None
    table = machines_table(context.side)
    keys = [column.key for column in table.columns]
    times = [key for key in keys if key.endswith("_seconds")]
    ratios = [key for key in keys if key.endswith("_ratio")]
    epochs = [key for key in ratios if key in ("epoch_cpu_ratio", "epoch_gpu_ratio")]
    record = part(table, "Processor, commit and file of each machine", _RECORD)
    more = [record.as_folded()]
    if len(ratios) > len(epochs):
        title = f"Geometric mean of the time over that on {context.side.baseline.machine.id}"
        every = part(table, title, ("machine", *ratios))
        more.insert(0, every.as_folded())
    chart = draw_machines(context.side)
    few = (
        f"Shown: the first {MOST_SHOWN} machines of the table, the baseline among them. "
        "--sort says which are first."
    )
    caption = few if len(files) > MOST_SHOWN else ""
    return Section(
        title="Machines side by side",
        anchor="machines",
        lead="The size from which the GPU of each machine wins, and how fast each machine is.",
        blocks=(
            Block(
                points=tuple(verdicts(context.side)),
                tables=(part(table, table.title, (*_ANSWER, *times, *epochs), general=True),),
            ),
            Block(
                pictures=(replace(chart, name=_STEM, caption=caption),) if chart else (),
                tables=tuple(more),
            ),
        ),
    )


# ---- the chart: time of an epoch over the size of the network


MOST_SHOWN = 6  # machines
_COLOURS = tuple(colour for colour in COLOURS if colour != "#000000")
_OTHERS = "#B0B0B0"
_PALE = ("#808080", "#B0B0B0", "#595959")  # of another commit
_OWN = COLOURS[0]  # in a panel of its own
_KEY = "#595959"
_DASHED = (0, (4, 2))
_Line = tuple[np.ndarray, np.ndarray]  # sizes, and seconds


def draw_machines(side: SideBySide) -> Chart | None:
    """The chart of `side`; None where no machine has times of two networks of a ladder.

    The first MOST_SHOWN machines, the baseline among them, are shown, each in a panel where there
    are more than two; all others are grey in each. So are those of another commit.
    """
    drawn = {id(one): lines for one in side.standings if (lines := _lines(one))}
    if not drawn:
        return None
    machines = [one for one in side.standings if id(one) in drawn]
    pale = {id(one) for one in machines if side.is_of_two_programs(one)}
    baseline = [one for one in machines[MOST_SHOWN:] if one.file is side.baseline]
    shown = [*machines[: MOST_SHOWN - len(baseline)], *baseline]
    pictures = render(partial(_draw_all, shown, pale, drawn))
    return Chart("machines", pictures, _alt(machines))


def _draw_all(
    shown: Sequence[Standing],
    pale: Collection[int],
    drawn: dict[int, dict[str, _Line]],
    figure: Figure,
) -> None:
    """Each of `shown` in a panel where its lines are too many for one; `pale` are the id() of those
    of another commit than the baseline's."""
    few = sum(len(drawn[id(one)]) for one in shown) <= MOST_LINES and len(shown) == len(drawn)
    narrow = is_narrow(figure)
    if few:
        figure.set_figheight(3.6 if narrow else 4.4)
        panels = [figure.add_subplot()]
    else:
        panels = grid(figure, len(shown), 2.0 if narrow else 2.3)
    _set_limits(panels[0], [line for lines in drawn.values() for line in lines.values()])
    handles = []
    for place, one in enumerate(shown):
        axes = panels[0] if few else panels[place]
        colours = _PALE if id(one) in pale else _COLOURS if few else (_OWN,)
        colour = colours[place % len(colours)]
        if not few:
            for other, theirs in drawn.items():
                if other != id(one):
                    _draw(axes, theirs, _OTHERS, 0.8)
            columns = 1 if narrow else 3 if len(shown) > 4 else 2
            write_above(axes, _label(one, pale), figure.get_figwidth() / columns - 0.8)
        _draw(axes, drawn[id(one)], colour, 1.8)
        _mark_crossover(axes, one, drawn[id(one)], colour)
        label = _label(one, pale)
        handles.append(Line2D([], [], color=colour, linewidth=2.4, label=label))
    if few:
        write_above(panels[0], "wall-clock time of one epoch", figure.get_figwidth() - 1)
    else:
        panels[0].set_xlabel("")
    over = "wall-clock time of one epoch over trainable parameters"
    lines = [f"{over}; medians; circle: from here on the GPU wins"]
    keys = _keys(0 if few else len(drawn) - 1)
    finish(figure, "Every machine's CPU and GPU", lines, [*(handles if few else ()), *keys])


def _set_limits(axes: Axes, lines: Sequence[_Line]) -> None:
    sizes = np.concatenate([own for own, _ in lines])
    seconds = np.concatenate([own for _, own in lines])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes.min() / 1.6, sizes.max() * 1.6)
    axes.set_ylim(seconds.min() / 1.6, seconds.max() * 1.6)
    set_logarithmic_axes(axes, "trainable parameters")


def _lines(standing: Standing) -> dict[str, _Line]:
    """Device → the line of its best: of the CPU the best thread count at each size, of the GPU the
    way that the crossover is about."""
    if standing.answer:
        curves = {"cpu": standing.answer.cpu, "cuda": standing.answer.gpu}
        return {
            device: (curve.sizes, np.exp(log_medians(curve))) for device, curve in curves.items()
        }
    own = cpu_curve(standing.file)
    return {"cpu": own} if len(own[0]) > 1 else {}


def _draw(axes: Axes, lines: dict[str, _Line], colour: str, width: float) -> None:
    for device, line in lines.items():
        axes.plot(
            *line,
            color=colour,
            linewidth=width,
            linestyle=_DASHED if device == "cpu" else "-",
            zorder=2 if colour == _OTHERS else 3,
        )


def _mark_crossover(axes: Axes, one: Standing, lines: dict[str, _Line], colour: str) -> None:
    size = one.answer.crossover.size if one.answer else None
    if size is None:
        return
    sizes, times = map(np.log, lines["cuda"])
    seconds = np.exp(np.interp(np.log(size), sizes, times))
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


def _label(one: Standing, pale: Collection[int]) -> str:
    file = one.file
    name = printable(file.machine.id, 30)
    commit = " (another commit)" if id(one) in pale else ""
    if one.answer is None:
        return f"{name}: CPU alone{commit}"
    gpu = printable(short_gpu(file.machine.gpu or "GPU"), 24)
    is_own = one.answer.batch in ("", one.answer.cpu.own_batch)
    other = "" if is_own else f" (batch {printable(one.answer.batch, 12)})"
    return f"{name}, {gpu}: {crossover_text(one)}{other}{commit}"


def _keys(others: int) -> list[Line2D]:
    """What solid, dashed and grey lines are."""
    keys = [
        Line2D([], [], color=_KEY, linestyle=_DASHED, label="CPU, best thread count"),
        Line2D([], [], color=_KEY, linestyle="-", label="GPU"),
    ]
    if others:
        label = f"thin grey: {counted(others, 'other machine')}"
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
