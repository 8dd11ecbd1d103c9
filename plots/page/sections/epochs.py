# SPDX-License-Identifier: Apache-2.0
"""Seconds per epoch over the size of the network: the chart, the best of each device, every row."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from plots.charts.epochs import draw_epochs
from plots.charts.style import Pictures
from plots.network import epoch_rows, on_device
from plots.page.section import Block, Context, Fold, Picture, Section
from plots.published import Experiment
from plots.rows import File, Row
from plots.series import series_key, without_slower_executions
from plots.tables.epochs import best_table, every_table

_NOTES = (
    "Median: of the wall-clock times of a whole epoch over the data. Range: from the fastest to "
    "the slowest repetition, none left out. A dash: not measured. The best of several ways is "
    "chosen by its median, which flatters it by as much as the repetitions vary.",
)
_MOST_SERIES = 7  # lines that a chart can hold
_FASTEST = "Of eager and graph execution only the faster is drawn; the tables have all. "
_SPEED_UP = "Speed-up: CPU time / GPU time, each the best of its device, in the same precision."


def build(files: Sequence[File], context: Context) -> Section:
    """The section on `files`, one or more."""
    shown = files[: context.detailed]
    with_rows = [file for file in shown if epoch_rows(file)]
    drawn = context.map(partial(draw, experiments=context.experiments), with_rows)
    pictures = dict(zip(map(id, with_rows), drawn, strict=True))
    both = any(on_device(epoch_rows(file), "cuda") for file in shown)
    return Section(
        title="Training epochs",
        anchor="epochs",
        lead="How long one epoch takes, by size of the network.",
        blocks=tuple(_block(file, pictures.get(id(file)), context) for file in shown),
        notes=(*_NOTES, _SPEED_UP) if both else _NOTES,
    )


def draw(file: File, experiments: Sequence[Experiment]) -> Pictures:
    """The chart of `file`; of too many lines those of the slower executions are left out."""
    return draw_epochs(file, _drawn(epoch_rows(file)), experiments)


def _drawn(rows: Sequence[Row]) -> Sequence[Row]:
    many = len({series_key(row) for row in rows}) > _MOST_SERIES
    return without_slower_executions(rows) if many else rows


def _block(file: File, pictures: Pictures | None, context: Context) -> Block:
    if pictures is None:
        return Block(machine=file.machine.id, lead="No Epoch row of this file has a result.")
    rows = epoch_rows(file)
    left_out = len(_drawn(rows)) < len(rows)
    picture = Picture(
        pictures,
        context.stem(file, "epochs"),
        alt="Seconds per epoch against the number of trainable parameters, both axes logarithmic, "
        "a line for each way to compute. The table below has the same figures.",
        caption=(_FASTEST if left_out else "") + "Grey: what others published, see below.",
    )
    return Block(
        machine=file.machine.id,
        pictures=(picture,),
        tables=(best_table(rows),),
        folds=(Fold(f"Every row of every way to compute ({len(rows)})", (every_table(rows),)),),
    )
