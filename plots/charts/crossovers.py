# SPDX-License-Identifier: Apache-2.0
"""All charts of the crossover analysis, and their files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from plots.analysis.crossover import Comparison
from plots.analysis.speed_up import grids
from plots.charts.crossover import draw_crossovers
from plots.charts.heat_map import draw_heat_map
from plots.charts.style import Chart
from plots.rows import File
from plots.text import slug


def draw_charts(file: File, comparisons: Sequence[Comparison]) -> list[Chart]:
    """A chart of time for each thing that both devices compute, then the heat maps of speed-up."""
    groups: dict[tuple[tuple[str, str], ...], list[Comparison]] = {}
    for comparison in comparisons:
        groups.setdefault(tuple(comparison.common.items()), []).append(comparison)
    charts = [draw_crossovers(file, group) for group in groups.values()]
    return charts + [draw_heat_map(file, grid) for grid in grids(comparisons)]


def write_charts(found: Sequence[tuple[File, Sequence[Comparison]]], folder: Path) -> list[Path]:
    """Draws the charts of all files into `folder`, which it makes; returns the paths.

    Names are made of letters, digits and hyphens whatever the files hold. Raises OSError.
    """
    written: dict[Path, None] = {}
    for file, comparisons in found:
        for chart in draw_charts(file, comparisons):
            stem = _unused(f"{slug(file.machine.id)}-{chart.name}", folder, written)
            folder.mkdir(parents=True, exist_ok=True)
            for ending, content in (("png", chart.pictures.png), ("svg", chart.pictures.svg)):
                path = folder / f"{stem}.{ending}"
                path.write_bytes(content)
                written[path] = None
    return list(written)


def _unused(stem: str, folder: Path, written: dict[Path, None]) -> str:
    candidate, number = stem, 1
    while folder / f"{candidate}.png" in written:
        number += 1
        candidate = f"{stem}-{number}"
    return candidate
