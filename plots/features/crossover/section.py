# SPDX-License-Identifier: Apache-2.0
"""From which size on the GPU wins: charts, crossovers with their intervals, speedups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plots.core.crossover import Comparison, speed_ups
from plots.core.headline import by_work, foremost
from plots.core.page.section import Block, Context, Section
from plots.features.crossover.table import how_much_table, ratio_title, where_table
from plots.file.families import EPOCH, FAMILIES, OF_NETWORKS, TRAINING
from plots.file.rows import File

if TYPE_CHECKING:
    from plots.core.charts.style import Chart

_NOTE = (
    "The crossover is the smallest size from which the GPU {wins} at all larger measured sizes. "
    "Its 95 % interval is a bootstrap of the instances and repetitions of this run, and knows "
    "nothing of what differs between runs. docs/method/crossover.md defines each word."
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of them compares a CPU with a GPU."""
    shown = [file for file in files[: context.detailed] if compares(file, context)]
    if not shown:
        return None
    pairs = [(file, context.comparisons(file)) for file in shown]
    charts = context.draw(_draw, pairs)
    return Section(
        title="Crossover",
        anchor="crossover",
        lead=f"The size from which the GPU {context.quantity.wins}, against the best number of CPU "
        "threads, and by how much. An interval reaches over all sizes at which the repetitions "
        "leave the answer open.",
        blocks=tuple(
            _block(file, found, own, context)
            for (file, found), own in zip(pairs, charts, strict=True)
        ),
        notes=(_NOTE.format(wins=context.quantity.wins), f"{ratio_title(context.quantity)}."),
    )


def compares(file: File, context: Context) -> bool:
    """Whether `file` has anything that both devices compute."""
    found = context.comparisons(file)
    return bool(found) or any(speed_ups(file, family, found) for family in OF_NETWORKS)


def _draw(pair: tuple[File, Sequence[Comparison]]) -> list[Chart]:
    """A chart of epochs, and one of training steps: of each what comes first in by_work()."""
    # Imported here because matplotlib takes long to load.
    from plots.core.charts.crossover import draw_crossovers  # noqa: PLC0415

    file, found = pair
    first: dict[str, list[Comparison]] = {}
    for group in by_work(found):
        first.setdefault(group[0].family, group)
    return [draw_crossovers(file, first[family]) for family in TRAINING if family in first]


def _block(
    file: File, found: Sequence[Comparison], charts: Sequence[Chart], context: Context
) -> Block:
    tables = []
    ordered = [one for group in by_work(found) for one in group]
    for family in FAMILIES:
        if own := [one for one in ordered if one.family == family]:
            tables.append(where_table(file, own))
        if family in OF_NETWORKS and (ratios := speed_ups(file, family, found)):
            first = foremost(found) if family == EPOCH else None
            tables.append(how_much_table(file, first, ratios))
    return Block(
        machine=file.machine.id,
        pictures=context.pictures(file, charts),
        tables=tuple(tables),
    )
