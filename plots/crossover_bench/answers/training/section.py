# SPDX-License-Identifier: Apache-2.0
"""How long networks take, a section for epochs, for training steps and for forward passes: over the
size of the network, by network and batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from crossover_bench.answers.training.table import (
    SPEED_UP,
    best_table,
    every_table,
    latency_table,
    memory_table,
    without_lone,
)
from crossover_bench.curves.network import familiar, on_device, training_rows
from crossover_bench.files.families import EPOCH, FAMILIES, FORWARD, MINIBATCH
from crossover_bench.files.rows import File, Row
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.table import Table

if TYPE_CHECKING:  # matplotlib takes long to load
    from crossover_bench.show.charts.style import Chart


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a section on rows of one family says. `named` tells its rows apart: epochs are of one
    batch as a rule."""

    title: str
    anchor: str
    lead: str
    note: str
    named: tuple[str, ...] = ("network", "batch")
    caption: str = ""


_KINDS = {
    EPOCH: _Kind(
        *("Training epochs", "epochs", "How long one epoch takes, by size of the network."),
        "Median: of the wall-clock times of a whole epoch over the data. Range: from the fastest "
        "to the slowest repetition, none left out. The best of several ways is chosen by its "
        "median, which flatters it by as much as the repetitions vary.",
        named=("network",),
        caption="Grey: what others published (docs/published.md).",
    ),
    MINIBATCH: _Kind(
        *(
            "Training steps",
            "steps",
            "How long one training step takes, by network and batch size.",
        ),
        "A step is one mini-batch: forward pass, loss, backward pass and update, by the wall "
        "clock. Range: from the fastest to the slowest repetition, none left out.",
    ),
    FORWARD: _Kind(
        *("Using it", "using"),
        "To use the trained network, do you need a GPU? How long one forward pass takes, by "
        "network and batch size.",
        "A pass is the forward pass of one batch, from the batch to the outputs, by the wall "
        "clock. Where a GPU's way says pageable or pinned, the batch comes from the host and the "
        "outputs go back there; else both stay on the GPU.",
    ),
}


def epochs(files: Sequence[File], context: Context) -> Section:
    """Epochs of `files`: the chart, the best of each device, every row."""
    if section := _section(EPOCH, files, context):
        return section
    reason = "No Epoch row of this file has a result."
    shown = files[: context.detailed]
    return _titled(EPOCH, [Block(machine=file.machine.id, lead=reason) for file in shown])


def steps(files: Sequence[File], context: Context) -> Section | None:
    """Training steps of `files`; None where none of them has one."""
    return _section(MINIBATCH, files, context)


def passes(files: Sequence[File], context: Context) -> Section | None:
    """Forward passes of `files`; None where none of them has one."""
    return _section(FORWARD, files, context)


def _section(family: str, files: Sequence[File], context: Context) -> Section | None:
    """The rows of `family`, of those of `files` that have any; None where none has."""
    shown = context.showing(files, lambda file: training_rows(file, family))
    if not shown:
        return None
    kind, drawn = _KINDS[family], context.draw(partial(_draw, family=family), shown)
    blocks = [
        Block(
            machine=file.machine.id,
            pictures=tuple(context.picture(file, chart, kind.caption) for chart in charts),
            tables=tables(training_rows(file, family)),
        )
        for file, charts in zip(shown, drawn, strict=True)
    ]
    both = any(on_device(training_rows(file, family), "cuda") for file in shown)
    return _titled(family, blocks, (kind.note, *([SPEED_UP] if both else [])))


def _titled(family: str, blocks: Sequence[Block], notes: tuple[str, ...] = ()) -> Section:
    kind = _KINDS[family]
    return Section(kind.title, kind.anchor, kind.lead, tuple(blocks), notes=notes)


def _draw(file: File, family: str) -> list[Chart]:
    if family == MINIBATCH:
        return []
    # Imported here because matplotlib takes long to load.
    from crossover_bench.answers.training.chart import draw_epochs, draw_passes  # noqa: PLC0415

    return [draw_epochs(file)] if family == EPOCH else draw_passes(file)


def tables(rows: Sequence[Row]) -> tuple[Table, ...]:
    """What `rows` of one family take: the fastest way of each device, with the networks that both
    have for people; every row; and memory or latencies."""
    family = FAMILIES[rows[0].family]
    named = _KINDS[rows[0].family].named
    answer = ("speed_up", f"cpu_{family.time}", f"gpu_{family.time}", "cpu_on", "gpu_on")
    first = dict.fromkeys((*named, *answer, "params", "batch"))
    title = f"{family.title}: the fastest way of each device"
    best, short = (
        best_table(listed).led_by(*first, title=title).in_brief()
        for listed in (rows, without_lone(familiar(rows)))
    )
    more = [every_table(rows).led_by(*named, family.time, "on")]
    if rows[0].family == MINIBATCH:
        more.append(memory_table(rows).led_by("network", "batch", "on"))
    if rows[0].family == FORWARD:
        quantiles = ("latency_p50_seconds", "latency_p99_seconds")
        more.append(latency_table(rows).led_by("network", "batch", "on", *quantiles))
    every = (best.shortened(short), *(table.as_folded() for table in more))
    return tuple(table.of_rows(rows[0].family) for table in every)
