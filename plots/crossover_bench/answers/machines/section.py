# SPDX-License-Identifier: Apache-2.0
"""Machines side by side: one table and one chart; what each file says follows in other sections."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from crossover_bench.answers.machines.table import crossover_text, machines_table, part, verdicts
from crossover_bench.curves.statistics import log_medians
from crossover_bench.files.families import EPOCH
from crossover_bench.files.file_order import machine
from crossover_bench.files.rows import File
from crossover_bench.show.charts.style import (
    COLOURS,
    Chart,
    finish,
    is_narrow,
    render,
    set_logarithmic_axes,
    write_above,
)
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.study.machines import SideBySide, Standing, cpu_curve, short_gpu
from crossover_bench.words.text import counted, printable

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
        f"In colour: {MOST_SHOWN} machines, the baseline and the first of the table. --sort says "
        "which are first."
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
_KEY = "#595959"
_DASHED = (0, (4, 2))
_Line = tuple[np.ndarray, np.ndarray]  # sizes, and seconds
_Drawn = tuple[Standing, dict[str, _Line]]  # a machine, and the line of each of its devices


def draw_machines(side: SideBySide) -> Chart | None:
    """The chart of `side`; None where no machine has times of two networks of a ladder.

    The first MOST_SHOWN machines, the baseline among them, are coloured, all others grey.
    """
    every = [(standing, lines) for standing in side.standings if (lines := _lines(standing))]
    if not every:
        return None
    baseline = [drawn for drawn in every[MOST_SHOWN:] if drawn[0].file is side.baseline]
    first = MOST_SHOWN - len(baseline)
    shown = [*every[:first], *baseline]
    others = [drawn for drawn in every[first:] if drawn not in baseline]
    crossovers = "; ".join(
        f"{printable(standing.file.machine.id, 60)}: {crossover_text(standing)}"
        for standing, _ in every
    )
    alt = (
        "Every machine's seconds per epoch against the number of trainable parameters, a line for "
        "the CPU and one for the GPU, logarithmic axes. Parameters from which the GPU wins: "
        f"{crossovers}."
    )
    return Chart("machines", render(partial(_draw, side, shown, others)), alt)


def _draw(
    side: SideBySide, shown: Sequence[_Drawn], others: Sequence[_Drawn], figure: Figure
) -> None:
    figure.set_figheight(3.6 if is_narrow(figure) else 4.4)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    handles = []
    for _, lines in others:
        _draw_lines(axes, lines, _OTHERS, 0.8)
    for (standing, lines), colour in zip(shown, _COLOURS, strict=False):
        _draw_lines(axes, lines, colour, 1.8)
        _mark_crossover(axes, standing, lines, colour)
        label = _label(standing, EPOCH in side.of_other_code(standing))
        handles.append(Line2D([], [], color=colour, linewidth=2.4, label=label))
    set_logarithmic_axes(axes, "trainable parameters")
    write_above(axes, "wall-clock time of one epoch", figure.get_figwidth() - 1)
    handles += [
        Line2D([], [], color=_KEY, linestyle=_DASHED, label="CPU, best thread count"),
        Line2D([], [], color=_KEY, linestyle="-", label="GPU"),
    ]
    if others:
        label = f"thin grey: {counted(len(others), 'other machine')}"
        handles.append(Line2D([], [], color=_OTHERS, linewidth=0.8, label=label))
    over = "wall-clock time of one epoch over trainable parameters"
    lines_above = [f"{over}; medians; circle: from here on the GPU wins"]
    finish(figure, "Every machine's CPU and GPU", lines_above, handles)


def _lines(standing: Standing) -> dict[str, _Line]:
    """Device → the line of its best: of the CPU the best thread count at each size, of the GPU the
    way that the crossover is about."""
    if standing.answer:
        curves = {"cpu": standing.answer.cpu, "cuda": standing.answer.gpu}
        return {
            device: (curve.sizes, np.exp(log_medians(curve))) for device, curve in curves.items()
        }
    cpu = cpu_curve(standing.file)
    return {"cpu": cpu} if len(cpu[0]) > 1 else {}


def _draw_lines(axes: Axes, lines: dict[str, _Line], colour: str, width: float) -> None:
    for device, line in lines.items():
        style = _DASHED if device == "cpu" else "-"
        axes.plot(*line, color=colour, linewidth=width, linestyle=style)


def _mark_crossover(axes: Axes, standing: Standing, lines: dict[str, _Line], colour: str) -> None:
    size = standing.answer.crossover.size if standing.answer else None
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


def _label(standing: Standing, is_of_other_code: bool) -> str:
    answer = standing.answer
    name = printable(standing.file.machine.id, 30)
    code = " (other code)" if is_of_other_code else ""
    if answer is None:
        return f"{name}: CPU alone{code}"
    gpu = printable(short_gpu(standing.file.machine.gpu or "GPU"), 24)
    is_usual = answer.batch in ("", answer.cpu.own_batch)
    batch = "" if is_usual else f" (batch {printable(answer.batch, 12)})"
    return f"{name}, {gpu}: {crossover_text(standing)}{batch}{code}"
