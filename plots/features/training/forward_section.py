# SPDX-License-Identifier: Apache-2.0
"""Seconds per forward pass of each network and batch size, and the latencies of single passes."""

from collections.abc import Sequence

from plots.core.network import on_device, training_rows
from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Fold, Section
from plots.features.training.table import SPEED_UP, best_table, every_table, latency_table
from plots.file.families import FORWARD
from plots.file.rows import File

_NOTES = (
    "A pass is the forward pass of one batch, from the batch to the outputs, by the wall clock. "
    "Where a GPU's way says pageable or pinned, the batch comes from the host and the outputs go "
    "back there; else both stay on the GPU.",
)
_ANSWER = (
    *("network", "batch", "speed_up", "cpu_seconds_per_pass", "gpu_seconds_per_pass"),
    *("cpu_on", "gpu_on", "params"),
)
_TITLE = "Forward passes: the fastest way of each device"


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of them has a forward pass."""
    shown = [file for file in files[: context.detailed] if training_rows(file, FORWARD)]
    if not shown:
        return None
    both = any(on_device(training_rows(file, FORWARD), "cuda") for file in shown)
    return Section(
        title="Using it",
        anchor="using",
        lead="To use the trained network, do you need a GPU? How long one forward pass takes, by "
        "network and batch size.",
        blocks=tuple(map(_block, shown)),
        notes=(*_NOTES, SPEED_UP) if both else _NOTES,
    )


def _block(file: File) -> Block:
    rows = training_rows(file, FORWARD)
    every = on_page(every_table(rows), ("network", "batch", "seconds_per_pass", "on"))
    folds = [Fold.of(every, "Forward passes: every row of every way to compute")]
    latencies = latency_table(rows)
    if latencies.lines:
        keys = ("network", "batch", "on", "latency_p50_seconds", "latency_p99_seconds")
        folds.append(Fold.of(on_page(latencies, keys), "Latency of single passes"))
    return Block(
        machine=file.machine.id,
        tables=(on_page(best_table(rows), _ANSWER, _TITLE),),
        folds=tuple(folds),
    )
