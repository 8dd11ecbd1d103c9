# SPDX-License-Identifier: Apache-2.0
"""`times`: how long epochs, training steps and forward passes take, on each device."""

import argparse

from crossover_bench.answers.command import (
    add_all,
    add_format,
    add_paths,
    complain,
    load_answering,
    print_sections,
)
from crossover_bench.answers.training.section import epochs, passes, steps
from crossover_bench.curves.network import training_rows
from crossover_bench.files.families import OF_NETWORKS
from crossover_bench.show.page.section import Context, Section
from crossover_bench.words.text import printable

DESCRIPTION = (
    "Prints the best time of each network on each device, with the range of its repetitions: of "
    "epochs, then of training steps, then of forward passes; as text of the networks that both "
    "devices have, without those that nobody trains. Behind it stand every row, memory, and the "
    "latencies of single passes. Bad files are named and left out, and the exit code is then 2."
)
EXAMPLE = "times results --format csv"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)
    add_all(parser)


def run(options: argparse.Namespace) -> int:
    files, problems = load_answering(options.paths)
    sections: list[Section] = []
    for file in files:
        if any(training_rows(file, family) for family in OF_NETWORKS):
            context = Context(draws=False)
            built = (build([file], context) for build in (epochs, steps, passes))
            sections += [section for section in built if section and any(section.every_table)]
        else:
            problems.append(f"{printable(str(file.path))}: no row of it trains or uses a network")
    print_sections(sections, options)
    return complain(problems)
