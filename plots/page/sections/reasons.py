# SPDX-License-Identifier: Apache-2.0
"""Why: where the time of an epoch goes, what bounds it, what would change the crossover."""

from __future__ import annotations

from collections.abc import Sequence

from plots.analysis.crossover import Comparison
from plots.analysis.why import counterfactuals, splits
from plots.charts.why import draw_why
from plots.network import epoch_rows
from plots.page.section import Block, Context, Fold, Picture, Section
from plots.rows import File
from plots.tables.why import repayment_table, split_table, thread_table

_NOTES = (
    "The parts were measured apart from the timed epochs; what they do not sum up to is called "
    "unattributed, and negative where the profiled epochs were the slower ones.",
    "The bound is the longest of the times that arithmetic, memory, copies and launches would take "
    "at the ceilings measured in the same file; its percentage is what was reached of it.",
)


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


def _block(file: File, compared: Sequence[Comparison], pictures: object, context: Context) -> Block:
    rows = epoch_rows(file)
    sentences = [item.sentence for item in counterfactuals(file, compared)]
    threads, repaid = thread_table(file, rows), repayment_table(file, rows)
    folds = [
        Fold(f"The split and the bound of every row ({len(rows)})", (split_table(file, rows),))
    ]
    if repaid.lines:
        folds.append(Fold(f"When the GPU's start-up is repaid ({len(repaid.lines)})", (repaid,)))
    return Block(
        machine=file.machine.id,
        points=tuple(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences),
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
        tables=(threads,) if threads.lines else (),
        folds=tuple(folds),
    )
