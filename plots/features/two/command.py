# SPDX-License-Identifier: Apache-2.0
"""`two`: two commands that ./run two has measured."""

import argparse

from plots.core.command import add_format, add_paths, complain, load_answering, print_parts
from plots.core.tables.formats import wrapped
from plots.features.two.analysis import two
from plots.features.two.section import answers, two_table
from plots.text import printable, whole

DESCRIPTION = (
    "Prints, for each file that ./run two has made, from which n the second command wins a step, "
    "after how many steps it has repaid its start-up, and a table of both at each n with 95 % "
    "intervals. docs/howto/two-programs.md has recipes."
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
    files, problems = load_answering(options.paths, lambda file: bool(file.commands))
    found = [(file, own) for file in files if (own := two(file))]
    if not (found or problems):
        problems.append(
            f"{printable(str(options.paths[0]))}: has no two commands; ./run two measures them"
        )
    parts = []
    for file, own in found:
        words = "\n".join(wrapped(one) for one in answers(file, own, options.at))
        parts.append((f"{words}\n\n", [two_table(file, own)]))
    if parts:
        print_parts(parts, options)
    return complain(problems)
