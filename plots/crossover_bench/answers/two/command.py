# SPDX-License-Identifier: Apache-2.0
"""`two`: two commands that ./run two has measured, or functions of crossover::two."""

import argparse

from crossover_bench.answers.command import (
    add_format,
    add_paths,
    complain,
    load_answering,
    print_sections,
)
from crossover_bench.answers.two import functions
from crossover_bench.answers.two.section import build
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Context
from crossover_bench.words.text import printable, whole

DESCRIPTION = (
    f"Prints, for each file that {RUN} two has made, from which n the second command wins a step, "
    "after how many steps it has repaid its start-up, and a table of both at each n with 95 % "
    "intervals. docs/howto/two-programs.md has recipes. For each file of a program that links "
    "crossover::two, from which size which function wins (docs/howto/two-functions.md)."
)
EXAMPLE = "two results --at=5000"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument("--at", type=_size, metavar="N", help="say what holds at this n")
    add_format(parser)


def _size(text: str) -> int:
    if number := whole(text, 10):
        return number
    raise argparse.ArgumentTypeError(f"{text!r}: a whole number from 1 on is needed")


def run(options: argparse.Namespace) -> int:
    files, problems = load_answering(
        options.paths, lambda file: bool(file.commands or file.functions)
    )
    context = Context(detailed=len(files))
    of_commands, of_functions = build(files, context, options.at), functions.build(files, context)
    if sections := [*filter(None, (of_commands, of_functions))]:
        print_sections(sections, options)
    elif not problems:
        problems.append(
            f"{printable(str(options.paths[0]))}: has no two commands; {RUN} two measures them"
        )
    return complain(problems)
