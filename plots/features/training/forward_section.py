# SPDX-License-Identifier: Apache-2.0
"""Seconds per forward pass of each network and batch size, and the latencies of single passes."""

from collections.abc import Sequence

from plots.core.charts.style import Chart
from plots.core.network import on_device, training_rows
from plots.core.page.section import Block, Context, Fold, Picture, Section, brief, on_page
from plots.features.training.chart import (
    best_of_devices,
    draw_latencies,
    draw_throughput,
    draw_times,
    is_in_plainest_precision,
)
from plots.features.training.table import SPEED_UP, best_table, every_table, latency_table
from plots.file.families import FORWARD
from plots.file.rows import File, Row

_NOTES = (
    "A pass is the forward pass of one batch, from the batch to the outputs, by the wall clock. "
    "Where a GPU's way says pageable or pinned, the batch comes from the host and the outputs go "
    "back there; else both stay on the GPU.",
)
_ANSWER = (
    *("network", "batch", "speed_up", "cpu_seconds_per_pass", "gpu_seconds_per_pass"),
    *("cpu_on", "gpu_on", "params"),
)
_ALT = (
    "Seconds per forward pass of the smallest batch against the number of trainable parameters, "
    "both axes logarithmic, a line for each way to compute. The table below has the same figures."
)
_TITLE = "Forward passes: the fastest way of each device"


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of them has a forward pass."""
    shown = [file for file in files[: context.detailed] if training_rows(file, FORWARD)]
    if not shown:
        return None
    drawn = context.map(draw, shown)
    both = any(on_device(training_rows(file, FORWARD), "cuda") for file in shown)
    return Section(
        title="Using it",
        anchor="using",
        lead="To use the trained network, do you need a GPU? How long one forward pass takes, by "
        "network and batch size.",
        blocks=tuple(
            _block(file, charts, context) for file, charts in zip(shown, drawn, strict=True)
        ),
        notes=(*_NOTES, SPEED_UP) if both else _NOTES,
    )


def draw(file: File) -> list[Chart]:
    """The charts of `file`: of times, and where there are any of throughput and of latencies."""
    single = _of_smallest_batch(file)
    plain = [row for row in training_rows(file, FORWARD) if is_in_plainest_precision(row)]
    times = Chart("passes", draw_times(file, best_of_devices(single)), _ALT)
    return [times, *filter(None, [draw_throughput(file, plain), draw_latencies(file, single)])]


def _of_smallest_batch(file: File) -> list[Row]:
    """At which whoever asks waits for one answer; in the plainest precision that there is."""
    rows = training_rows(file, FORWARD)
    batch = min(row.counters["batch"] for row in rows)
    own = [row for row in rows if row.counters["batch"] == batch]
    return [row for row in own if is_in_plainest_precision(row)] or own


def _block(file: File, charts: Sequence[Chart], context: Context) -> Block:
    rows = training_rows(file, FORWARD)
    every = on_page(every_table(rows), ("network", "batch", "seconds_per_pass", "on"))
    folds = [Fold.of(every, "Forward passes: every row of every way to compute")]
    latencies = latency_table(rows)
    if latencies.lines:
        keys = ("network", "batch", "on", "latency_p50_seconds", "latency_p99_seconds")
        folds.append(Fold.of(on_page(latencies, keys), "Latency of single passes"))
    return Block(
        machine=file.machine.id,
        pictures=tuple(
            Picture(one.pictures, context.stem(file, one.name), one.alt) for one in charts
        ),
        tables=(brief(on_page(best_table(rows), _ANSWER, _TITLE), "the table of every row"),),
        folds=tuple(folds),
    )
