# SPDX-License-Identifier: Apache-2.0
"""From which size on the GPU wins: charts, crossovers with their intervals, speed-ups."""

from __future__ import annotations

from collections.abc import Sequence

from plots.analysis.crossover import Comparison
from plots.analysis.speed_up import grids, speed_ups
from plots.charts.crossover import draw_crossovers
from plots.charts.heat_map import draw_heat_map
from plots.charts.style import Chart
from plots.page.section import Block, Context, Fold, Picture, Section
from plots.rows import File
from plots.tables.crossover import crossover_table, speed_up_table

_MOST_HEAT_MAPS = 2  # of a machine; `python -m plots crossover --charts` draws all
_NOTES = (
    "The crossover is the smallest size from which the GPU wins at all larger measured sizes. Its "
    "95 % interval is a bootstrap of the repetitions of this run, and knows nothing of what "
    "differs between runs. docs/method/crossover.md defines each word.",
    "SPEED UP = CPU time / GPU time.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none of them compares a CPU with a GPU."""
    shown = [file for file in files[: context.detailed] if context.comparisons(file)]
    if not shown:
        return None
    pairs = [(file, context.comparisons(file)) for file in shown]
    charts = context.map(_draw, pairs)
    return Section(
        title="Crossover",
        anchor="crossover",
        lead="From which size on the GPU wins, against the best number of CPU threads, and by how "
        "much. An interval reaches over all sizes at which the repetitions leave the answer open.",
        blocks=tuple(
            _block(file, found, own, context)
            for (file, found), own in zip(pairs, charts, strict=True)
        ),
        notes=_NOTES,
    )


def _draw(pair: tuple[File, Sequence[Comparison]]) -> list[Chart]:
    """A chart of each family of rows, of what comes first in the file, and the heat maps."""
    file, found = pair
    first: dict[str, list[Comparison]] = {}
    for comparison in found:
        own = first.setdefault(comparison.common["family"], [])
        if not own or own[0].common == comparison.common:
            own.append(comparison)
    charts = [draw_crossovers(file, own) for own in first.values()]
    epochs = first.get("Epoch", [])
    maps = [draw_heat_map(file, grid) for grid in grids(found)[:_MOST_HEAT_MAPS]]
    return [*charts, *maps] if epochs else charts


def _block(
    file: File, found: Sequence[Comparison], charts: Sequence[Chart], context: Context
) -> Block:
    epochs, others = _of_family(found, True), _of_family(found, False)
    every = crossover_table([(file, epochs)])
    best = crossover_table([(file, [one for one in epochs if one.cpu.candidates])])
    ratios = speed_ups(file)
    folds = []
    if best.lines:
        folds.append(Fold(f"Against each number of threads ({len(every.lines)})", (every,)))
    if ratios:
        folds.append(
            Fold(f"Speed-up of every network ({len(ratios)})", (speed_up_table([(file, ratios)]),))
        )
    if others:
        folds.append(
            Fold(
                f"Crossovers of products and layers ({len(others)})",
                (crossover_table([(file, others)]),),
            )
        )
    return Block(
        machine=file.machine.id,
        pictures=tuple(
            Picture(chart.pictures, context.stem(file, chart.name), alt=chart.alt)
            for chart in charts
        ),
        tables=(best if best.lines else every,) if epochs else (),
        folds=tuple(folds),
    )


def _of_family(found: Sequence[Comparison], epochs: bool) -> list[Comparison]:
    return [one for one in found if (one.common["family"] == "Epoch") == epochs]
