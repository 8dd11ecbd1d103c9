# SPDX-License-Identifier: Apache-2.0
"""More than one: from which size several processes train faster than one."""

from collections.abc import Sequence

from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Picture, Section
from plots.features.ranks.analysis import more_ranks, ranks_sentence, shared
from plots.features.ranks.chart import draw_charts
from plots.features.ranks.table import shared_table
from plots.file.rows import File

_MOST_CHARTS = 2  # `python -m plots crossover --ranks --charts` draws all
_FIRST = ("speed_up", "efficiency", "communication")
_NOTES = (
    "Several ranks are processes that each take a share of every batch and sum their gradients "
    "over MPI before each update; they are verified as one process that trains the whole batch. "
    "One process is the fastest of its executions and numbers of threads. Efficiency: speedup over "
    "one process with the threads of one rank, for each rank. Expected: that process's time "
    "divided by the ranks, and the sums by themselves. docs/method/ranks.md defines each.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has rows of several ranks."""
    found = [(file, shared(file), more_ranks(file)) for file in files[: context.detailed]]
    found = [(file, own, pairs) for file, own, pairs in found if own]
    if not found:
        return None
    return Section(
        title="More than one",
        anchor="ranks",
        lead="From which size of the network several processes train faster than one.",
        blocks=tuple(
            Block(
                machine=file.machine.id,
                points=tuple(map(ranks_sentence, pairs)),
                pictures=tuple(
                    Picture(chart.pictures, context.stem(file, chart.name), alt=chart.alt)
                    for chart in draw_charts(file, pairs)[:_MOST_CHARTS]
                ),
                tables=(on_page(shared_table(own), _FIRST),),
            )
            for file, own, pairs in found
        ),
        notes=_NOTES,
    )
