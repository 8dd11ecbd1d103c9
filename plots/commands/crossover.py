# SPDX-License-Identifier: Apache-2.0
"""`crossover`: from which size on the GPU wins, and by how much."""

from __future__ import annotations

import argparse
import sys

from plots import loading
from plots.analysis.crossover import comparisons
from plots.analysis.curves import is_cpu
from plots.analysis.speed_up import speed_ups
from plots.commands.shared import add_format, add_paths, complain, named_path, print_tables
from plots.rows import File
from plots.tables.crossover import crossover_table, speed_up_table
from plots.text import printable

NAME = "crossover"
HELP = "say from which size on the GPU wins, and by how much"
DESCRIPTION = (
    "Compares CPU and GPU in each file: the size from which the GPU wins, with its 95 % interval, "
    "for each thread count and GPU configuration, and the speed-up of each network. "
    "docs/method/crossover.md says how. Bad files are named and left "
    "out, and the exit code is then 2."
)
EXAMPLE = "crossover results --charts charts"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_paths(parser)
    add_format(parser)
    parser.add_argument(
        "--charts",
        type=named_path,
        metavar="DIR",
        help="also draw charts (PNG and SVG) into this folder, made if missing",
    )


def run(options: argparse.Namespace) -> int:
    """Prints the tables and draws the charts; returns the exit code."""
    files, problems = loading.load_files(options.paths)
    crossovers = [(file, comparisons(file)) for file in files]
    ratios = [(file, speed_ups(file)) for file in files]
    tables = []
    if any(found for _, found in crossovers):
        tables.append(crossover_table([pair for pair in crossovers if pair[1]]))
    if any(found for _, found in ratios):
        tables.append(speed_up_table([pair for pair in ratios if pair[1]]))
    print_tables(tables, options)
    for (file, found), (_, networks) in zip(crossovers, ratios, strict=True):
        if not found:
            print(_nothing_to_compare(file, bool(networks)), file=sys.stderr)
    if options.charts:
        # Imported here because matplotlib takes longer to load than the tables take to make.
        from plots.charts.crossovers import write_charts  # noqa: PLC0415

        try:
            for path in write_charts(crossovers, options.charts):
                print(f"wrote {printable(str(path), 400)}", file=sys.stderr)
        except OSError as error:
            place = printable(str(error.filename or options.charts))
            problems.append(f"{place}: {error.strerror}; choose another folder with --charts")
    return complain(problems)


def _nothing_to_compare(file: File, has_networks: bool) -> str:
    """Why `file` has no crossover, and what would give one."""
    place = f"{printable(str(file.path))}: no crossover, because"
    results = [row for row in file.rows if not row.failure]
    if has_networks:
        return (
            f"{place} CPU and GPU have fewer than two sizes in common; measure disc-2 to disc-12 "
            "on both (./run without --model does)"
        )
    if any(not is_cpu(row) for row in results):
        return (
            f"{place} no row of the CPU computes the same as one of the GPU; measure both in one "
            "run"
        )
    reason = f": {printable(file.machine.gpu_reason)}" if file.machine.gpu_reason else ""
    return (
        f"{place} it has no row of a GPU{reason}; ./run on a machine with an NVIDIA GPU gives the "
        "size from which that wins, its interval, and the speed-up of each network"
    )
