# SPDX-License-Identifier: Apache-2.0
"""`times`: how long epochs, training steps and forward passes take, on each device."""

import argparse

from plots.core.command import (
    add_all,
    add_format,
    add_paths,
    complain,
    load_answering,
    print_tables,
)
from plots.core.network import familiar, training_rows
from plots.core.tables.table import Table
from plots.features.training.table import best_table, every_table, latency_table
from plots.file.families import FORWARD, OF_NETWORKS
from plots.text import printable

DESCRIPTION = (
    "Prints the best time of each network on each device, with the range of its repetitions: of "
    "epochs, then of training steps, then of forward passes, whose latencies follow; as text "
    "without networks that nobody trains. --all prints every row. Bad files are named and left "
    "out, and the exit code is then 2."
)
EXAMPLE = "times results --format csv"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)
    add_all(parser, "every row instead: each way to compute, on each number of threads")


def run(options: argparse.Namespace) -> int:
    files, problems = load_answering(options.paths)
    tables: list[Table] = []
    for file in files:
        found = [rows for family in OF_NETWORKS if (rows := training_rows(file, family))]
        if not found:
            problems.append(f"{printable(str(file.path))}: no row of it trains or uses a network")
        own = []
        for every in found:
            rows = familiar(every) if options.format == "text" and not options.all else every
            own.append(every_table(rows) if options.all else best_table(rows))
        if found and found[-1][0].family == FORWARD:
            own.append(latency_table(found[-1]))
        for table in own:
            where = f", on {printable(file.machine.id, 60)}" if len(files) > 1 else ""
            places = range(len(table.columns))
            tables.append(table.only(places, f"{table.title}{where}"))
    print_tables(tables, options)
    return complain(problems)
