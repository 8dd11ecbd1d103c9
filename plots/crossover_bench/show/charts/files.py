# SPDX-License-Identifier: Apache-2.0
"""The files of charts: MACHINE.CHART.png and .svg, named alike by every command."""

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from crossover_bench.files.rows import File
from crossover_bench.show.charts.style import Chart, Pictures
from crossover_bench.words.text import slug


def stems(files: Sequence[File]) -> list[str]:
    """A part of file names for each of `files`, from its machine's name: lower case letters, digits
    and hyphens, no two alike."""
    names: list[str] = []
    for file in files:
        names.append(unused(slug(file.machine.id), names))
    return names


def write_pictures(
    pictures: Pictures, folder: Path, stem: str, taken: Collection[Path] = ()
) -> list[Path]:
    """Writes `pictures` into `folder`, which it makes; returns the paths, PNG first, of which none
    is among those `taken`. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = unused(stem, [path.stem for path in taken])
    contents = {folder / f"{stem}.png": pictures.png, folder / f"{stem}.svg": pictures.svg}
    for path, content in contents.items():
        path.write_bytes(content)
    return list(contents)


def write_charts(
    files: Sequence[File], drawn: Iterable[Sequence[Chart]], folder: Path
) -> list[Path]:
    """Writes what is `drawn` of each of `files` into `folder`, which it makes; returns the paths.

    Names are those of stems(). Raises OSError.
    """
    written: dict[Path, None] = {}
    for name, charts in zip(stems(files), drawn, strict=True):
        for chart in charts:
            stem = f"{name}.{chart.name}"
            written |= dict.fromkeys(write_pictures(chart.pictures, folder, stem, written))
    return list(written)


def unused(stem: str, taken: Collection[str]) -> str:
    """`stem`, with a number where it is among those `taken`."""
    candidate, number = stem, 1
    while candidate in taken:
        number += 1
        candidate = f"{stem}-{number}"
    return candidate
