# SPDX-License-Identifier: Apache-2.0
"""`check-statistics`: the chance of a difference where there is none, as it was measured."""

import argparse
from pathlib import Path

from plots import units
from plots.core.command import add_format, complain, named_path, print_tables
from plots.core.tables.cells import text_cell
from plots.core.tables.table import Cell, Column, Table
from plots.file import loading
from plots.file.builds import SAME, other_builds
from plots.text import printable

NAME = "check-statistics"
HELP = "how often two measurements of one program are called different"
DESCRIPTION = (
    "Takes a file in which ./run --check-statistics measured one build of bench twice, in turn, "
    "and asks every question of the statistics about the two. Each difference that is found is a "
    "false one."
)
EXAMPLE = "check-statistics build/other/results/same/FILE.json"

_COLUMNS = (
    Column("question", "question"),
    Column("asked", "asked", numeric=True),
    Column("differences", "differences found", numeric=True),
    Column("share_percent", "share", numeric=True),
    Column("nominal_percent", "nominal share", numeric=True),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=named_path, metavar="FILE")
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    # Imported here because scipy takes longer to load than a refusal takes.
    from plots.features.check_statistics.analysis import ask  # noqa: PLC0415

    path: Path = options.file
    try:
        file = loading.load_file(path)
    except loading.BadFileError as error:
        return complain([str(error)])
    same = other_builds(file).get(SAME)
    asked = ask(file, same) if same else []
    if not asked:
        return complain(
            [
                f"{printable(str(path))}: has no program measured twice; "
                "./run --check-statistics measures one"
            ]
        )
    lines = [
        (
            text_cell(one.question),
            Cell(units.count(one.asked), one.asked),
            Cell(units.count(one.differences), one.differences),
            _percent(one.differences / one.asked),
            _percent(one.nominal),
        )
        for one in asked
    ]
    title = f"Differences found between two measurements of one program, on {file.machine.id}"
    print_tables([Table(title, _COLUMNS, tuple(lines))], options)
    return complain([])


def _percent(share: float) -> Cell:
    return Cell(f"{100 * share:.1f} %", 100 * share)
