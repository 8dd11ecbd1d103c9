# SPDX-License-Identifier: Apache-2.0
"""Pictures for a talk, 16:9 in large letters: the strip, and the time of an epoch on both devices.

Of predicted cards there are two, and no words that only this program knows.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from matplotlib.figure import Figure

from plots import units
from plots.core.charts.lines import name_ends
from plots.core.charts.strip import COLOURS, draw_strips
from plots.core.charts.style import Chart, finish, render_slide, set_logarithmic_axes, write_above
from plots.core.crossover import Comparison, Crossover
from plots.core.headline import foremost
from plots.core.machines import short_gpu, short_processor
from plots.core.replicates import log_medians
from plots.features.answer.glance import Glance
from plots.features.predict.answer import Verdict
from plots.file.families import EPOCH
from plots.file.rows import File
from plots.text import printable

_DASHES = ("-", (0, (4, 2)))
T = TypeVar("T")
_Line = tuple[str, np.ndarray, np.ndarray]  # name, sizes, seconds


def draw_slides(
    file: File, own: Glance, compared: Sequence[Comparison], found: Sequence[Verdict]
) -> list[Chart]:
    """The slides of `file`, whose glance() is `own`; as many as it has something for."""
    charts = []
    if own.strips:
        strips = own.strips.strips
        two = replace(own.strips, strips=_two(strips) if own.strips.is_predicted else strips[:2])
        charts.append(draw_strips(two, "slide-strip", render_slide))
    first = foremost(compared)
    if first and first.family == EPOCH:
        name = f"GPU: {printable(short_gpu(file.machine.gpu or 'this one'), 24)}"
        gpus = [(name, first.gpu.sizes, np.exp(log_medians(first.gpu)))]
        pairs = [first]
    else:
        pairs = [one for each in _two(found) if (one := each.comparison)]
        gpus = [
            (
                f"GPU: {printable(short_gpu(each.card.name), 24)}, predicted",
                one.gpu.sizes,
                np.array(one.gpu.samples)[:, 1],
            )
            for each in _two(found)
            if (one := each.comparison)
        ]
    if pairs:
        cpu = pairs[0].cpu
        name = printable(short_processor(file.machine.cpu.model), 24)
        curve = (f"CPU: {name}", cpu.sizes, np.exp(log_medians(cpu)))
        drawn = partial(_draw, own.sentence, curve, gpus, pairs[0].crossover)
        alt = f"Time of one epoch on the CPU and on the GPU by size of the network. {own.sentence}"
        charts.append(Chart("slide-times", render_slide(drawn), alt))
    return charts


def _two(each: Sequence[T]) -> Sequence[T]:
    """The first and the last, which differ most."""
    return each if len(each) < 3 else (each[0], each[-1])


def _draw(
    title: str, cpu: _Line, gpus: Sequence[_Line], crossover: Crossover, figure: Figure
) -> None:
    axes = figure.add_subplot()
    every = [cpu, *gpus]
    sizes = np.concatenate([line[1] for line in every])
    seconds = np.concatenate([line[2] for line in every])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes.min() / 1.6, sizes.max() * 1.6)
    axes.set_ylim(seconds.min() / 2, seconds.max() * 2)
    set_logarithmic_axes(axes, "size of the network: trainable parameters")
    lines = []
    for place, (name, own, values) in enumerate(every):
        style: dict[str, Any] = {"color": COLOURS["gpu" if place else "cpu"], "linewidth": 3}
        style["linestyle"] = _DASHES[max(0, place - 1) % len(_DASHES)]
        lines += axes.plot(own, values, label=name, **style)
    left = name_ends(axes, lines)
    low, high = axes.get_xlim()
    if crossover.low or crossover.high:
        ends = crossover.low or low, crossover.high or high
        axes.axvspan(*ends, color=COLOURS["open"], alpha=0.5, linewidth=0, zorder=0)
    write_above(axes, "time of one epoch", figure.get_figwidth() - 1)
    said = []
    if crossover.size:
        digits = 2 if "predicted" in gpus[0][0] else 3
        size = units.significant(crossover.size, digits)
        said = [f"grey: where the lines cross, at about {size} parameters"]
    finish(figure, title, said, left)
