# SPDX-License-Identifier: Apache-2.0
"""Several ranks beside one process, drawn over the size of the network."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure

from plots.core.charts.lines import name_ends
from plots.core.charts.looks import CPU_COLOURS, DASHES, GPU_COLOURS, MARKERS
from plots.core.charts.strip import AXES
from plots.core.charts.style import (
    Chart,
    devices,
    finish,
    is_narrow,
    render,
    repetitions,
    set_logarithmic_axes,
    write_above,
)
from plots.core.crossover import Comparison
from plots.core.statistics import log_medians
from plots.features.ranks.analysis import CALLED, ranks_sentence, unlike
from plots.file.families import FAMILIES
from plots.file.rows import File
from plots.text import printable, slug

_COLOURS = {"cpu": CPU_COLOURS, "cuda": tuple(GPU_COLOURS.values())}


def draw_charts(file: File, found: Sequence[Comparison]) -> list[Chart]:
    """A chart of each batch size, precision, device and so on."""
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for one in found:
        groups.setdefault((one.device, *one.common.items()), []).append(one)
    return [draw_ranks(file, group) for group in groups.values()]


def draw_ranks(file: File, found: Sequence[Comparison]) -> Chart:
    """Draws `found` of `file`, which differ in the number of ranks alone."""
    called = CALLED[found[0].device]
    pictures = render(partial(_draw, file, found))
    name = slug("-".join([called.many, *found[0].common.values()]), 100)
    said = " ".join(map(ranks_sentence, found))
    sides = f"one {called.one} and on several {called.many}"
    return Chart(name, pictures, f"Time over size on {sides}. {said}")


def _draw(file: File, found: Sequence[Comparison], figure: Figure) -> None:
    figure.set_figheight(3.6 if is_narrow(figure) else 4.4)
    axes = figure.add_subplot()
    first, called = found[0], CALLED[found[0].device]
    family, colours = FAMILIES[first.family], _COLOURS[first.device]
    curves = [(first.cpu, first.sides[0]), *((each.gpu, each.sides[1]) for each in found)]
    lines = []
    for place, (curve, label) in enumerate(curves):
        lines += axes.plot(
            curve.sizes,
            np.exp(log_medians(curve)),
            label=label,
            linewidth=1.8,
            markersize=4.5,
            color=colours[place % len(colours)],
            linestyle=DASHES[place % len(DASHES)],
            marker=MARKERS[place % len(MARKERS)],
            markerfacecolor="none",
        )
    set_logarithmic_axes(axes, AXES[first.measure])
    left = name_ends(axes, lines)
    write_above(axes, f"wall-clock time of one {family.one}", figure.get_figwidth() - 1)
    counts = (len(samples) for curve, _ in curves for samples in curve.samples)
    what = [first.networks, *([f"batch {first.batch}"] if first.batch else [])]
    what += [axis.word(value) for axis, value in unlike(first.cpu.axes, first.common)]
    finish(
        figure,
        f"{family.title}: several {called.many} beside one {called.one}",
        [
            devices(file),
            f"points: median of {repetitions(counts)} repetitions",
            printable(", ".join(what), 60),
        ],
        left,
    )
