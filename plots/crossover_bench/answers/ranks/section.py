# SPDX-License-Identifier: Apache-2.0
"""More than one: from which size several processes, or GPUs, train faster than one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from crossover_bench.answers.ranks.analysis import (
    CALLED,
    by_device,
    more_ranks,
    ranks_sentence,
    ranks_tables,
    shared,
    shared_tables,
    shares_a_gpu,
)
from crossover_bench.curves.crossover import Comparison
from crossover_bench.files.families import FAMILIES
from crossover_bench.files.rows import File
from crossover_bench.place import RUN_OF_CHECKOUT
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.words.text import slug

if TYPE_CHECKING:
    from crossover_bench.show.charts.style import Chart

_MOST_CHARTS = 2  # of a device; `crossover crossover --ranks --charts` draws all
_FIRST = ("speed_up", "efficiency", "communication")
_NOTES = (
    "Several ranks are processes that each take a share of every batch and sum their gradients "
    "over MPI before each update; they are verified as one process that trains the whole batch. "
    "One process is the fastest of its executions and numbers of threads. Efficiency: speedup over "
    "one process with the threads of one rank, for each rank. Expected: that process's time "
    "divided by the ranks, and the sums by themselves. docs/method/several.md defines each.",
)
_NOTES_OF = {
    "cuda": "On GPUs each rank has one of its own, and NCCL sums. One GPU is the fastest of its "
    "ways to train, wherever its data lies."
}


def build(files: Sequence[File], context: Context, weak: bool = False) -> Section | None:
    """The section on `files`; None where none has rows of several ranks. `weak`: of ranks that have
    a batch each."""
    shown = [
        (file, networks)
        for file in files[: context.detailed]
        if (networks := [each for each in shared(file, weak) if each.alone or not weak])
    ]
    if not shown:
        return None
    devices = [device for device, _ in by_device([*chain(*(networks for _, networks in shown))])]
    several = " and ".join(CALLED[device].several for device in devices)
    pairs_of = [(file, more_ranks(file, weak)) for file, _ in shown]
    drawn = context.draw(partial(_draw, most=_MOST_CHARTS), pairs_of)
    blocks = []
    for (file, networks), (_, pairs), charts in zip(shown, pairs_of, drawn, strict=True):
        tables = [table.led_by(*_FIRST) for table in shared_tables(networks)]
        tables += [table.as_folded() for table in ranks_tables(file, pairs)]
        blocks.append(
            Block(
                machine=file.machine.id,
                points=tuple(map(ranks_sentence, pairs)),
                pictures=context.pictures(file, charts),
                tables=tuple(tables),
            )
        )
    return Section(
        title="More than one",
        anchor="ranks",
        lead=f"From which size of the network {several} train faster than one.",
        blocks=tuple(blocks),
        notes=(*_NOTES, *(_NOTES_OF[device] for device in devices if device in _NOTES_OF)),
    )


def draw_all(file: File, weak: bool = False) -> list[Chart]:
    """A chart of each batch size, precision and so on of each device."""
    return _draw((file, more_ranks(file, weak)))


def _draw(pair: tuple[File, Sequence[Comparison]], most: int | None = None) -> list[Chart]:
    """A chart for all numbers of ranks, at `most` so many for a device."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.show.charts.crossover import draw_crossovers  # noqa: PLC0415

    file, compared = pair
    charts = []
    for device, of_device in by_device(compared):
        called = CALLED[device]
        groups: dict[tuple[str, ...], list[Comparison]] = {}
        for comparison in of_device:
            groups.setdefault(tuple(comparison.common.values()), []).append(comparison)
        for common, group in list(groups.items())[:most]:
            family = FAMILIES[group[0].family].title
            title = f"{family}: several {called.many} beside one {called.single}"
            alt = " ".join([f"{title}, time over size.", *map(ranks_sentence, group)])
            name = slug("-".join([called.many, *common]), 100)
            charts.append(replace(draw_crossovers(file, group, title), name=name, alt=alt))
    return charts


def lacking(file: File, weak: bool = False) -> str:
    """Why there is no section on `file`, and what gives one."""
    but = ", but on some that share a GPU" if any(map(shares_a_gpu, file.rows)) else ""
    each = ", which have as large a batch each as one process has" if weak else ""
    batches = " --batch=100,200" if weak else ""
    return (
        f"no network was trained on several ranks{but}{each}; {RUN_OF_CHECKOUT} "
        "--family=Collective,Epoch "
        f"--ranks=1,2 --threads=1,2{batches} does it"
    )
