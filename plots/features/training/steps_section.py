# SPDX-License-Identifier: Apache-2.0
"""Seconds per training step of each network and batch size: the best of each device, every row."""

from collections.abc import Sequence

from plots.core.network import on_device, step_rows
from plots.core.page.section import Block, Context, Fold, Section, brief, on_page
from plots.features.training.table import SPEED_UP, best_table, every_table, memory_table
from plots.file.rows import File

_NOTES = (
    "A step is one mini-batch: forward pass, loss, backward pass and update, by the wall clock. "
    "Range: from the fastest to the slowest repetition, none left out.",
)
_ANSWER = (
    *("network", "batch", "speed_up", "cpu_seconds_per_step", "gpu_seconds_per_step"),
    *("cpu_on", "gpu_on", "params"),
)
_TITLE = "Training steps: the fastest way of each device"


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of them has a training step."""
    shown = [file for file in files[: context.detailed] if step_rows(file)]
    if not shown:
        return None
    both = any(on_device(step_rows(file), "cuda") for file in shown)
    return Section(
        title="Training steps",
        anchor="steps",
        lead="How long one training step takes, by network and batch size.",
        blocks=tuple(map(_block, shown)),
        notes=(*_NOTES, SPEED_UP) if both else _NOTES,
    )


def _block(file: File) -> Block:
    rows = step_rows(file)
    every = on_page(every_table(rows), ("network", "batch", "seconds_per_step", "on"))
    folds = [Fold.of(every, "Training steps: every row of every way to compute")]
    memory = memory_table(rows)
    if memory.lines:
        table = on_page(memory, ("network", "batch", "on"))
        folds.append(Fold.of(table, "Memory and reorders of training steps"))
    return Block(
        machine=file.machine.id,
        tables=(brief(on_page(best_table(rows), _ANSWER, _TITLE), "the table of every row"),),
        folds=tuple(folds),
    )
