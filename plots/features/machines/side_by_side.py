# SPDX-License-Identifier: Apache-2.0
"""The part of `compare` that sets machines side by side."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from plots.core.command import charts_missing, tell_written
from plots.core.machines import SideBySide, side_by_side
from plots.file.file_order import gpus_first, machine, newest_per_machine
from plots.file.rows import File


def are_machines(files: Sequence[File]) -> bool:
    """Whether `files` are of several machines; one measured without its GPU is no other machine."""
    gpus = {file.machine.gpu for file in files if file.machine.gpu}
    return len({file.machine.id for file in files}) > 1 or len(gpus) > 1


def shown_side_by_side(
    files: Sequence[File], baseline: File | None, options: argparse.Namespace
) -> SideBySide:
    """The newest file of each machine, or with --all every file, as --sort has them.

    The ratios are to the machine of `baseline`; without one, to the newest with a GPU.
    """
    shown, older = (list(files), []) if options.all else newest_per_machine(files)
    wanted = [file for file in shown if file is baseline]
    wanted += [file for file in shown if baseline and machine(file) == machine(baseline)]
    return side_by_side(
        shown,
        older=older,
        baseline=(wanted or gpus_first(shown))[0],
        sort=options.sort,
        refuse=not options.anyway,
    )


def draw(side: SideBySide, folder: Path) -> list[str]:
    """Writes the chart of all machines; returns what is wrong, a sentence each."""
    # Imported here because matplotlib takes long to load.
    from plots.core.charts.files import write_pictures  # noqa: PLC0415
    from plots.features.machines.chart import draw_machines  # noqa: PLC0415

    chart = draw_machines(side)
    if chart is None:
        return ["no chart was drawn, as no machine has times of two disc networks"]
    try:
        tell_written(write_pictures(chart.pictures, folder, chart.name))
    except OSError as error:
        return [charts_missing(error, folder)]
    return []
