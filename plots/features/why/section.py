# SPDX-License-Identifier: Apache-2.0
"""Why: where the time of an epoch or a training step goes, what bounds it, what would change the
crossover; and of what the quotient of another quantity is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from plots.core.crossover import Comparison, SpeedUp, speed_ups
from plots.core.network import training_rows
from plots.core.page.section import Block, Context, Section
from plots.features.why.analysis import counterfactuals, fastest, foremost_rows, splits
from plots.features.why.table import (
    counterfactual_table,
    engine_table,
    largest_parts,
    quotient_table,
    repayment_table,
    split_table,
    thread_table,
)
from plots.file.families import FAMILIES, TRAINING
from plots.file.rows import File
from plots.text import sentence

if TYPE_CHECKING:
    from plots.core.charts.style import Chart

_NOTES = (
    "The parts were measured apart from the timed epochs and steps; what they do not sum up to is "
    "called unattributed, and negative where the profiled ones were the slower ones.",
    "The bound is the longest of the times that arithmetic, memory, copies and launches would take "
    "at the ceilings measured in the same file; its percentage is what was reached of it.",
)
_MOST = 3  # changes that stand before the tables


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where no row of theirs has a profile."""
    shown = [
        file
        for file in files[: context.detailed]
        if any(splits(training_rows(file, family)) for family in TRAINING)
    ]
    return of_times(shown, context) if shown else None


def of_times(files: Sequence[File], context: Context) -> Section | None:
    """Where the times of `files` go; None where no row of theirs trains."""
    shown = [file for file in files if any(training_rows(file, each) for each in TRAINING)]
    if not shown:
        return None
    drawn = context.draw(draw_all, [(file, context.comparisons(file)) for file in shown])
    families = [each for each in TRAINING if any(training_rows(file, each) for file in shown)]
    timed = " and ".join(FAMILIES[each].a for each in families)
    return Section(
        title="Why",
        anchor="why",
        lead=f"Where the time of {timed} goes on each device, and what would change the answer.",
        blocks=tuple(
            _of_times(file, charts, context) for file, charts in zip(shown, drawn, strict=True)
        ),
        notes=_NOTES,
    )


def draw_all(pair: tuple[File, Sequence[Comparison]]) -> list[Chart]:
    """A chart of each family of a file that trains and was profiled; with its comparisons()."""
    # Imported here because matplotlib takes long to load.
    from plots.features.why.chart import draw_why  # noqa: PLC0415

    file, compared = pair
    return [chart for family in TRAINING if (chart := draw_why(file, family, compared))]


def _of_times(file: File, charts: Sequence[Chart], context: Context) -> Block:
    points, tables, compared = [], [], context.comparisons(file)
    for family in TRAINING:
        rows = training_rows(file, family)
        own = foremost_rows(file, compared, family)
        best, first = fastest(own), (f"{FAMILIES[family].short}s", "gpu_first_seconds")
        points += _changes(file, compared, family)
        tables += [
            split_table(file, rows).shortened(largest_parts(split_table(file, best))),
            thread_table(file, rows).shortened(thread_table(file, own)),
            counterfactual_table(file, compared, family).as_folded(),
            repayment_table(file, rows).shortened(
                repayment_table(file, best).led_by("model", *first)
            ),
            engine_table(file, rows).as_folded(),
        ]
    return Block(
        machine=file.machine.id,
        points=tuple(points),
        pictures=context.pictures(file, charts),
        tables=tuple(table for table in tables if table.lines),
        notes=_missing(file),
    )


def _missing(file: File) -> tuple[str, ...]:
    """What a GPU would add to a file without one, in a sentence."""
    trained = [row for family in TRAINING for row in training_rows(file, family)]
    if any(row.device != "cpu" for row in trained):
        return ()
    return (
        f"There is no GPU row here: {file.machine.gpu_reason or 'no GPU row has a result'}. A file "
        "with both sides would add the time of launches, copies and waits, the crossover, what "
        "resident data, CUDA graphs or more CPU threads do to it, and the number of epochs or "
        "steps that repay the GPU's start-up.",
    )


def of_quotients(file: File, own: File, context: Context) -> Section | None:
    """What makes the quotients of `own`, which is `file` in another quantity, and what changes its
    crossovers; None without a network on both devices."""
    points, tables, compared = [], [], context.comparisons(file)
    for family in TRAINING:
        found = speed_ups(own, family, compared)
        rows = {row.index for row in foremost_rows(own, compared, family)}
        best: dict[str, SpeedUp] = {}
        for one in found:
            if one.gpu.rows[0] in rows:
                best[one.model] = max(best.get(one.model, one), one, key=lambda one: one.ratio)
        if found:
            shown = sorted(best.values() or found, key=lambda one: one.parameters)
            short = quotient_table(file, shown).led_by("model", "ratio", "time_ratio", "rate_ratio")
            tables.append(quotient_table(file, found).shortened(short))
        points += _changes(own, compared, family)
        tables.append(counterfactual_table(own, compared, family).as_folded())
    if not any(table.lines for table in tables):
        return None
    noun = context.quantity.noun
    block = Block(
        machine=file.machine.id,
        title=f"what makes the {noun}",
        points=tuple(points),
        tables=tuple(tables),
        notes=(f"{noun.capitalize()} grows with time; why without --of says where that goes.",),
    )
    return Section(title="Why", anchor="why", blocks=(block,))


def _changes(file: File, compared: Sequence[Comparison], family: str) -> list[str]:
    """The changes that matter most, a sentence each."""
    found = counterfactuals(file, compared, family)
    return [sentence(item.sentence) for item in found if item.is_sure][:_MOST]
