# SPDX-License-Identifier: Apache-2.0
"""All charts of the crossover analysis, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plots.core.charts.files import stems, write_pictures
from plots.core.charts.style import Chart
from plots.core.crossover import Comparison
from plots.core.headline import own_batch
from plots.core.speed_up import grids
from plots.features.crossover.chart import draw_crossovers
from plots.features.crossover.heat_map import draw_heat_map
from plots.file.families import TRAINING
from plots.file.rows import File


def draw_charts(file: File, comparisons: Sequence[Comparison]) -> list[Chart]:
    """A chart of time for each thing that both devices compute, training first, then the heat
    maps of speedup."""
    charts = [draw_crossovers(file, group) for group in by_work(comparisons)]
    return charts + [draw_heat_map(file, grid) for grid in grids(comparisons)]


def by_work(comparisons: Sequence[Comparison]) -> list[list[Comparison]]:
    """`comparisons` by what is computed: epochs first, those at the headline's batch before others,
    then training steps; else in their order."""
    groups: dict[tuple[tuple[str, str], ...], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault(tuple(comparison.common.items()), []).append(comparison)
    batch = own_batch(comparisons)

    def place(group: list[Comparison]) -> tuple[int, bool]:
        common = group[0].common
        if common["family"] not in TRAINING:
            return len(TRAINING), False
        return TRAINING.index(common["family"]), common.get("batch", batch) != batch

    return sorted(groups.values(), key=place)


def write_charts(found: Sequence[tuple[File, Sequence[Comparison]]], folder: Path) -> list[Path]:
    """Draws the charts of all files into `folder`, which it makes; returns the paths.

    Names are those of stems(). Raises OSError.
    """
    names = stems([file for file, _ in found])
    written: dict[Path, None] = {}
    for (file, comparisons), name in zip(found, names, strict=True):
        for chart in draw_charts(file, comparisons):
            written |= dict.fromkeys(
                write_pictures(chart.pictures, folder, f"{name}.{chart.name}", written)
            )
    return list(written)
