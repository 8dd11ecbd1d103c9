# SPDX-License-Identifier: Apache-2.0
"""Why: where the time of an epoch goes, what bounds it, what would change the crossover."""

from __future__ import annotations

from collections.abc import Sequence

from plots.analysis.counterfactuals import Counterfactual, counterfactuals
from plots.analysis.crossover import Comparison
from plots.analysis.why import splits
from plots.charts.style import Pictures
from plots.charts.why import draw_why
from plots.network import best, epoch_rows, networks, on_device
from plots.page.columns import on_page
from plots.page.section import Block, Context, Fold, Picture, Section
from plots.rows import File, Row
from plots.tables.why import repayment_table, split_table, thread_table

_NOTES = (
    "The parts were measured apart from the timed epochs; what they do not sum up to is called "
    "unattributed, and negative where the profiled epochs were the slower ones.",
    "The bound is the longest of the times that arithmetic, memory, copies and launches would take "
    "at the ceilings measured in the same file; its percentage is what was reached of it.",
)
_MOST = 3  # counterfactuals that are not folded
_REPAID = ("model", "epochs", "gpu", "gpu_first_seconds", "gpu_epoch_seconds", "cpu_epoch_seconds")
_SPLIT = ("model", "on", "epoch_seconds")


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where no row of theirs has a profile."""
    shown = [file for file in files[: context.detailed] if splits(epoch_rows(file))]
    if not shown:
        return None
    drawn = context.map(draw_why, shown)
    return Section(
        title="Why",
        anchor="why",
        lead="Where the time of an epoch goes on each device, and what would change the answer.",
        blocks=tuple(
            _block(file, context.comparisons(file), pictures, context)
            for file, pictures in zip(shown, drawn, strict=True)
        ),
        notes=_NOTES,
    )


def _block(
    file: File, compared: Sequence[Comparison], pictures: Pictures | None, context: Context
) -> Block:
    rows = epoch_rows(file)
    found = counterfactuals(file, compared)
    first = [item for item in found if item.is_sure][:_MOST]
    rest = [item for item in found if item not in first]
    threads, repaid = thread_table(file, rows), repayment_table(file, rows)
    fastest = repayment_table(file, _fastest(rows))
    folds = []
    if rest:
        summary = f"What else would change the crossover, or not ({len(rest)})"
        folds.append(Fold(summary, points=tuple(map(_sentence, rest))))
    if threads.lines:
        table = on_page(threads, ("model",))
        folds.append(Fold(f"What more threads bring ({len(threads.lines)})", (table,)))
    split = on_page(split_table(file, rows), _SPLIT)
    folds.append(Fold(f"The split and the bound of every row ({len(rows)})", (split,)))
    if len(repaid.lines) > len(fastest.lines):
        summary = f"When every way of the GPU has repaid its start-up ({len(repaid.lines)})"
        folds.append(Fold(summary, (on_page(repaid, _REPAID),)))
    return Block(
        machine=file.machine.id,
        points=tuple(map(_sentence, first)),
        pictures=(
            Picture(
                pictures,
                context.stem(file, "why"),
                alt="Share of each part in the time of an epoch, one bar for each network, one "
                "panel for each way to compute. The table below has the same figures.",
            ),
        )
        if pictures
        else (),
        tables=(on_page(fastest, _REPAID, "When the GPU's fastest way has repaid its start-up"),)
        if fastest.lines
        else (),
        folds=tuple(folds),
    )


def _sentence(item: Counterfactual) -> str:
    return f"{item.sentence[:1].upper()}{item.sentence[1:]}."


def _fastest(rows: Sequence[Row]) -> list[Row]:
    """All rows of the CPU, and the fastest of the GPU for each network that both have."""
    chosen = on_device(rows, "cpu")
    for members in networks(rows).values():
        gpu = on_device(members, "cuda")
        if gpu and on_device(members, "cpu"):
            chosen.append(best(gpu))
    return chosen
