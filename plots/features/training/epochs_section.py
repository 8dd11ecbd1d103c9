# SPDX-License-Identifier: Apache-2.0
"""Seconds per epoch over the size of the network: the chart, the best of each device, every row."""

from collections.abc import Sequence

from plots.core.charts.style import Pictures
from plots.core.network import epoch_rows, familiar, on_device
from plots.core.page.section import Block, Context, Fold, Picture, Section, brief, on_page
from plots.features.training.chart import best_of_devices, draw_times, lines_of
from plots.features.training.table import SPEED_UP, best_table, compared_and_alone, every_table
from plots.file.rows import File

_NOTES = (
    "Median: of the wall-clock times of a whole epoch over the data. Range: from the fastest to "
    "the slowest repetition, none left out. The best of several ways is chosen by its median, "
    "which flatters it by as much as the repetitions vary.",
)
_FEWER = "Only the fastest way of each device is drawn; the table of every row has all. "
_ANSWER = (
    *("network", "speed_up", "cpu_seconds_per_epoch", "gpu_seconds_per_epoch", "cpu_on", "gpu_on"),
    *("params", "batch"),
)
_TITLE = "Epochs: the fastest way of each device"


def build(files: Sequence[File], context: Context) -> Section:
    shown = files[: context.detailed]
    with_rows = [file for file in shown if epoch_rows(file)]
    drawn = context.map(draw, with_rows)
    pictures = dict(zip(map(id, with_rows), drawn, strict=True))
    both = any(on_device(epoch_rows(file), "cuda") for file in shown)
    return Section(
        title="Training epochs",
        anchor="epochs",
        lead="How long one epoch takes, by size of the network.",
        blocks=tuple(_block(file, pictures.get(id(file)), context) for file in shown),
        notes=(*_NOTES, SPEED_UP) if both else _NOTES,
    )


def draw(file: File) -> Pictures:
    """The chart of `file`."""
    return draw_times(file, best_of_devices(familiar(epoch_rows(file))))


def _block(file: File, pictures: Pictures | None, context: Context) -> Block:
    if pictures is None:
        return Block(machine=file.machine.id, lead="No Epoch row of this file has a result.")
    every = epoch_rows(file)
    rows = familiar(every)
    is_part = len(lines_of(best_of_devices(rows))) < len(lines_of(rows))
    picture = Picture(
        pictures,
        context.stem(file, "epochs"),
        alt="Seconds per epoch against the number of trainable parameters, both axes logarithmic, "
        "a line for each way to compute. The table below has the same figures.",
        caption=(_FEWER if is_part else "") + "Grey: what others published (docs/published.md).",
    )
    compared, alone = compared_and_alone(rows)
    main = on_page(best_table(compared or rows), _ANSWER, _TITLE)
    folds = []
    for device, own in alone.items() if compared else ():
        name = {"cpu": "CPU", "cuda": "GPU"}.get(device, device)
        precisions = ", ".join(dict.fromkeys(row.precision for row in own))
        title = f"Epochs that only the {name} has, {precisions}"
        table = on_page(best_table(own), _ANSWER, title)
        folds.append(Fold.of(table, title))
    table = on_page(every_table(every), ("network", "seconds_per_epoch", "on"))
    folds.append(Fold.of(table, "Epochs: every row of every way to compute"))
    return Block(
        machine=file.machine.id,
        pictures=(picture,),
        tables=(brief(main, "the table of every row"),),
        folds=tuple(folds),
    )
