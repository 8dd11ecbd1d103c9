# SPDX-License-Identifier: Apache-2.0
"""More than one: from which size several processes, or GPUs, train faster than one."""

from collections.abc import Sequence

from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Picture, Section
from plots.features.ranks.analysis import CALLED, by_device, more_ranks, ranks_sentence, shared
from plots.features.ranks.chart import draw_charts
from plots.features.ranks.table import shared_tables
from plots.file.rows import File

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
                    Picture(chart.pictures, context.stem(file, chart.name), alt=chart.alt)
                    for _, alike in by_device(pairs)
                    for chart in draw_charts(file, alike)[:_MOST_CHARTS]
                ),
                tables=tuple(on_page(table, _FIRST) for table in shared_tables(own)),
            )
            for file, own, pairs in found
        ),
        notes=(*_NOTES, *(_NOTES_OF[device] for device in devices if device in _NOTES_OF)),
    )
