# SPDX-License-Identifier: Apache-2.0
"""Machines side by side: one table and one chart; what each file says follows in other sections."""

from collections.abc import Sequence

from plots.core.page.section import Block, Context, Fold, Picture, Section
from plots.features.machines.chart import MOST_SHOWN, draw_machines
from plots.features.machines.table import machines_table, part, verdicts
from plots.file.file_order import machine
from plots.file.rows import File

_STEM = "machines"  # of the chart's files: names of other charts have a dot
_ANSWER = ("machine", "crossover", "low", "high", "gpu")
_RECORD = ("machine", "cpu", "answer", "batch", "way", "measured", "commit", "file")


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where they are of one machine."""
    if context.side is None or len({machine(file) for file in files}) < 2:
        return None
    table = machines_table(context.side)
    keys = [column.key for column in table.columns]
    times = [key for key in keys if key.endswith("_seconds")]
    ratios = [key for key in keys if key.endswith("_ratio")]
    epochs = [key for key in ratios if key in ("epoch_cpu_ratio", "epoch_gpu_ratio")]
    record = part(table, "What was measured, and when", _RECORD)
    folds = [Fold("Processor, commit and file of each machine", (record,))]
    if len(ratios) > len(epochs):
        title = f"Geometric mean of the time over that on {context.side.baseline.machine.id}"
        every = part(table, title, ("machine", *ratios))
        folds.insert(0, Fold("Ratios of every family", (every,)))
    chart = draw_machines(context.side)
    few = (
        f"Shown: the first {MOST_SHOWN} machines of the table, the baseline among them. "
        "--sort says which are first."
    )
    caption = few if len(files) > MOST_SHOWN else ""
    return Section(
        title="Machines side by side",
        anchor="machines",
        lead="The size from which the GPU of each machine wins, and how fast each machine is.",
        blocks=(
            Block(
                points=tuple(verdicts(context.side)),
                tables=(part(table, table.title, (*_ANSWER, *times, *epochs), general=True),),
            ),
            Block(
                pictures=(Picture(chart.pictures, _STEM, chart.alt, caption),) if chart else (),
                folds=tuple(folds),
            ),
        ),
    )
