# SPDX-License-Identifier: Apache-2.0
"""More than one: from which size several processes, or GPUs, train faster than one."""

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
from plots.core.page.section import Block, Context, Section, on_page
from plots.core.statistics import log_medians
from plots.features.ranks.analysis import (
    CALLED,
    by_device,
    more_ranks,
    ranks_sentence,
    shared,
    shared_tables,
    unlike,
)
from plots.file.families import FAMILIES
from plots.file.rows import File
from plots.text import printable, slug

_MOST_CHARTS = 2  # of a device; `python -m plots crossover --ranks --charts` draws all
_FIRST = ("speed_up", "efficiency", "communication")
_NOTES = (
    "Several ranks are processes that each take a share of every batch and sum their gradients "
    "over MPI before each update; they are verified as one process that trains the whole batch. "
    "One process is the fastest of its executions and numbers of threads. Efficiency: speedup over "
    "one process with the threads of one rank, for each rank. Expected: that process's time "
    "divided by the ranks, and the sums by themselves. docs/method/ranks.md defines each.",
)
_NOTES_OF = {
    "cuda": "On GPUs each rank has one of its own, and NCCL sums. One GPU is the fastest of its "
    "ways to train, wherever its data lies."
}


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has rows of several ranks."""
    found = [(file, shared(file), more_ranks(file)) for file in files[: context.detailed]]
    found = [(file, own, pairs) for file, own, pairs in found if own]
    if not found:
        return None
    devices = [device for device, _ in by_device([one for _, own, _ in found for one in own])]
    several = " and ".join(CALLED[device].several for device in devices)
    return Section(
        title="More than one",
        anchor="ranks",
        lead=f"From which size of the network {several} train faster than one.",
        blocks=tuple(
            Block(
                machine=file.machine.id,
                points=tuple(map(ranks_sentence, pairs)),
                pictures=tuple(
                    context.picture(file, chart)
                    for _, alike in by_device(pairs)
                    for chart in draw_charts(file, alike)[:_MOST_CHARTS]
                ),
                tables=tuple(on_page(table, _FIRST) for table in shared_tables(own)),
            )
            for file, own, pairs in found
        ),
        notes=(*_NOTES, *(_NOTES_OF[device] for device in devices if device in _NOTES_OF)),
    )


# ---- the chart: several ranks beside one process, over size


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
