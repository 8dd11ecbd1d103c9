# SPDX-License-Identifier: Apache-2.0
"""Why: where the time of an epoch or a training step goes, what bounds it, what would change the
crossover."""

from collections.abc import Sequence
from pathlib import Path

from plots.core.charts.style import Pictures
from plots.core.network import best, networks, on_device, training_rows
from plots.core.page.columns import on_page
from plots.core.page.section import Block, Context, Fold, Picture, Section
from plots.features.why.analysis import splits
from plots.features.why.chart import CHARTS, draw_why
from plots.features.why.counterfactuals import counterfactuals
from plots.features.why.table import repayment_table, split_table, thread_table
from plots.file.families import FAMILIES, TRAINING
from plots.file.rows import File, Row
from plots.text import sentence

_NOTES = (
    "The parts were measured apart from the timed epochs and steps; what they do not sum up to is "
    "called unattributed, and negative where the profiled ones were the slower ones.",
    "The bound is the longest of the times that arithmetic, memory, copies and launches would take "
    "at the ceilings measured in the same file; its percentage is what was reached of it.",
)
_MOST = 3  # counterfactuals that are not folded


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where no row of theirs has a profile."""
    shown = {
        file.path: (file, [family for family in TRAINING if splits(training_rows(file, family))])
        for file in files[: context.detailed]
    }
    charts = [(file, family) for file, families in shown.values() for family in families]
    if not charts:
        return None
    parts: dict[Path, list[Block]] = {}
    for (file, family), pictures in zip(charts, context.map(_draw, charts), strict=True):
        parts.setdefault(file.path, []).append(_part(file, family, pictures, context))
    timed = [FAMILIES[each].a for each in TRAINING if any(each == family for _, family in charts)]
    return Section(
        title="Why",
        anchor="why",
        lead=f"Where the time of {' and '.join(timed)} goes on each device, and what would change "
        "the answer.",
        blocks=tuple(_joined(shown[path][0], own) for path, own in parts.items()),
        notes=_NOTES,
    )


def _draw(pair: tuple[File, str]) -> Pictures | None:
    return draw_why(*pair)


def _joined(file: File, parts: Sequence[Block]) -> Block:
    """All `parts` as one block on `file`."""
    return Block(
        machine=file.machine.id,
        points=tuple(point for part in parts for point in part.points),
        pictures=tuple(picture for part in parts for picture in part.pictures),
        tables=tuple(table for part in parts for table in part.tables),
        folds=tuple(fold for part in parts for fold in part.folds),
    )


def _part(file: File, family: str, pictures: Pictures | None, context: Context) -> Block:
    """What is said of the rows of one family."""
    rows, words = training_rows(file, family), FAMILIES[family]
    found = counterfactuals(file, context.comparisons(file), family)
    first = [item for item in found if item.is_sure][:_MOST]
    rest = [item for item in found if item not in first]
    threads, repaid = thread_table(file, rows), repayment_table(file, rows)
    fastest = repayment_table(file, _fastest(rows))
    times = (f"gpu_{words.short}_seconds", f"cpu_{words.short}_seconds")
    columns = ("model", f"{words.short}s", "gpu", "gpu_first_seconds", *times)
    folds = []
    if rest:
        summary = f"What else would change the crossover{words.over}, or not ({len(rest)})"
        folds.append(Fold(summary, points=tuple(sentence(item.sentence) for item in rest)))
    if threads.lines:
        table = on_page(threads, ("model",))
        folds.append(Fold.of(table, f"What more threads bring{words.beside('to')}"))
    split = on_page(split_table(file, rows), ("model", "on", f"{words.short}_seconds"))
    folds.append(Fold.of(split, f"The split and the bound of every row{words.beside('of')}"))
    if len(repaid.lines) > len(fastest.lines):
        summary = f"When every way of the GPU has repaid its start-up, in {words.one}s"
        folds.append(Fold.of(on_page(repaid, columns), summary))
    title = f"When the GPU's fastest way has repaid its start-up, in {words.one}s"
    return Block(
        points=tuple(sentence(item.sentence) for item in first),
        pictures=(
            Picture(
                pictures,
                context.stem(file, CHARTS[family]),
                alt=f"Share of each part in the time of {words.a}, one bar for each network, one "
                "panel for each way to compute. The table below has the same figures.",
            ),
        )
        if pictures
        else (),
        tables=(on_page(fastest, columns, title),) if fastest.lines else (),
        folds=tuple(folds),
    )


def _fastest(rows: Sequence[Row]) -> list[Row]:
    """All rows of the CPU, and the fastest of the GPU for each network that both have."""
    chosen = on_device(rows, "cpu")
    for members in networks(rows).values():
        gpu = on_device(members, "cuda")
        if gpu and on_device(members, "cpu"):
            chosen.append(best(gpu))
    return chosen
