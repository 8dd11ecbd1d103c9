# SPDX-License-Identifier: Apache-2.0
"""How long networks take on the page, a section each: seconds per epoch over their size, seconds
per training step and per forward pass by network and batch."""

from collections.abc import Sequence

from plots.core.charts.style import Chart
from plots.core.network import epoch_rows, familiar, on_device, step_rows, training_rows
from plots.core.page.section import Block, Context, Section
from plots.core.tables.table import Table
from plots.features.training.chart import (
    best_of_devices,
    draw_latencies,
    draw_throughput,
    draw_times,
    is_in_plainest_precision,
    lines_of,
)
from plots.features.training.table import (
    SPEED_UP,
    best_table,
    compared_and_alone,
    every_table,
    latency_table,
    memory_table,
)
from plots.file.families import EPOCH, FAMILIES, FORWARD, MINIBATCH
from plots.file.rows import File, Row

_NOTES = {
    EPOCH: "Median: of the wall-clock times of a whole epoch over the data. Range: from the "
    "fastest to the slowest repetition, none left out. The best of several ways is chosen by its "
    "median, which flatters it by as much as the repetitions vary.",
    MINIBATCH: "A step is one mini-batch: forward pass, loss, backward pass and update, by the "
    "wall clock. Range: from the fastest to the slowest repetition, none left out.",
    FORWARD: "A pass is the forward pass of one batch, from the batch to the outputs, by the wall "
    "clock. Where a GPU's way says pageable or pinned, the batch comes from the host and the "
    "outputs go back there; else both stay on the GPU.",
}
# What tells its rows apart: epochs are of one batch as a rule.
_NAMED = {EPOCH: ("network",), MINIBATCH: ("network", "batch"), FORWARD: ("network", "batch")}
_FEWER = "Only the fastest way of each device is drawn; the table of every row has all. "
_EPOCHS = (
    "Seconds per epoch against the number of trainable parameters, both axes logarithmic, a line "
    "for each way to compute. The table below has the same figures."
)
_PASSES = (
    "Seconds per forward pass of the smallest batch against the number of trainable parameters, "
    "both axes logarithmic, a line for each way to compute. The table below has the same figures."
)


def epochs(files: Sequence[File], context: Context) -> Section:
    """Epochs of `files`: the chart, the best of each device, every row."""
    shown = files[: context.detailed]
    with_rows = [file for file in shown if epoch_rows(file)]
    drawn = context.draw(_draw_epochs, with_rows)
    charts = dict(zip(map(id, with_rows), drawn, strict=True))
    return Section(
        title="Training epochs",
        anchor="epochs",
        lead="How long one epoch takes, by size of the network.",
        blocks=tuple(_of_epochs(file, charts.get(id(file), ()), context) for file in shown),
        notes=_notes(shown, EPOCH),
    )


def _draw_epochs(file: File) -> list[Chart]:
    pictures = draw_times(file, best_of_devices(familiar(epoch_rows(file))))
    return [Chart("epochs", pictures, _EPOCHS)]


def _of_epochs(file: File, charts: Sequence[Chart], context: Context) -> Block:
    if not epoch_rows(file):
        return Block(machine=file.machine.id, lead="No Epoch row of this file has a result.")
    every = epoch_rows(file)
    rows = familiar(every)
    is_part = len(lines_of(best_of_devices(rows))) < len(lines_of(rows))
    caption = (_FEWER if is_part else "") + "Grey: what others published (docs/published.md)."
    compared, alone = compared_and_alone(rows)
    tables = [_short(compared or rows)]
    for device, own in alone.items() if compared else ():
        name = {"cpu": "CPU", "cuda": "GPU"}.get(device, device)
        precisions = ", ".join(dict.fromkeys(row.precision for row in own))
        title = f"Epochs that only the {name} has, {precisions}"
        tables.append(_best(own, title).as_folded())
    return Block(
        machine=file.machine.id,
        pictures=tuple(context.picture(file, chart, caption) for chart in charts),
        tables=(*tables, _every(every)),
    )


def steps(files: Sequence[File], context: Context) -> Section | None:
    """Training steps of `files`; None where none of them has one."""
    shown = [file for file in files[: context.detailed] if step_rows(file)]
    if not shown:
        return None
    return Section(
        title="Training steps",
        anchor="steps",
        lead="How long one training step takes, by network and batch size.",
        blocks=tuple(map(_of_steps, shown)),
        notes=_notes(shown, MINIBATCH),
    )


def _of_steps(file: File) -> Block:
    rows = step_rows(file)
    memory = memory_table(rows).led_by("network", "batch", "on").as_folded()
    return Block(machine=file.machine.id, tables=(_short(rows), _every(rows), memory))


def passes(files: Sequence[File], context: Context) -> Section | None:
    """Forward passes of `files`; None where none of them has one."""
    shown = [file for file in files[: context.detailed] if training_rows(file, FORWARD)]
    if not shown:
        return None
    drawn = context.draw(draw_passes, shown)
    return Section(
        title="Using it",
        anchor="using",
        lead="To use the trained network, do you need a GPU? How long one forward pass takes, by "
        "network and batch size.",
        blocks=tuple(
            _of_passes(file, charts, context) for file, charts in zip(shown, drawn, strict=True)
        ),
        notes=_notes(shown, FORWARD),
    )


def draw_passes(file: File) -> list[Chart]:
    """The charts of the passes of `file`: of times, and where there are any of throughput and of
    latencies. Times are of the smallest batch, at which whoever asks waits for one answer."""
    rows = training_rows(file, FORWARD)
    plain = [row for row in rows if is_in_plainest_precision(row)]
    batch = min(row.counters["batch"] for row in rows)
    single = [row for row in rows if row.counters["batch"] == batch]
    single = [row for row in single if is_in_plainest_precision(row)] or single
    times = Chart("passes", draw_times(file, best_of_devices(single)), _PASSES)
    return [times, *filter(None, [draw_throughput(file, plain), draw_latencies(file, single)])]


def _of_passes(file: File, charts: Sequence[Chart], context: Context) -> Block:
    rows = training_rows(file, FORWARD)
    latencies = latency_table(rows).led_by(
        "network", "batch", "on", "latency_p50_seconds", "latency_p99_seconds"
    )
    return Block(
        machine=file.machine.id,
        pictures=context.pictures(file, charts),
        tables=(_short(rows), _every(rows), latencies.as_folded()),
    )


def _notes(shown: Sequence[File], family: str) -> tuple[str, ...]:
    both = any(on_device(training_rows(file, family), "cuda") for file in shown)
    return (_NOTES[family], *([SPEED_UP] if both else []))


def _best(rows: Sequence[Row], title: str) -> Table:
    """best_table() of `rows`, the answer first."""
    time = FAMILIES[rows[0].family].time
    answer = ("speed_up", f"cpu_{time}", f"gpu_{time}", "cpu_on", "gpu_on", "params", "batch")
    first = dict.fromkeys((*_NAMED[rows[0].family], *answer))
    return best_table(rows).led_by(*first, title=title)


def _short(rows: Sequence[Row]) -> Table:
    title = f"{FAMILIES[rows[0].family].title}: the fastest way of each device"
    return _best(rows, title).in_brief()


def _every(rows: Sequence[Row]) -> Table:
    family = FAMILIES[rows[0].family]
    table = every_table(rows).led_by(*_NAMED[rows[0].family], family.time, "on")
    return table.as_folded()
