# SPDX-License-Identifier: Apache-2.0
"""`shi`: the table of Shi et al. 2016, with one's own rows in it."""

from __future__ import annotations

import argparse

from plots import loading
from plots.analysis.shi import SHI_PATH, load_shi, shi_table
from plots.commands.shared import add_format, complain, named_path, print_tables
from plots.published import RESTORE
from plots.text import printable

NAME = "shi"
HELP = "print the table of Shi et al. 2016 with your own rows in it"
DESCRIPTION = (
    "Prints Table 7 of Shi et al. 2016, the seconds per mini-batch of seven networks in five "
    "frameworks, with your rows of the same networks (bench --model=fcn-r,fcn-s). Without a file, "
    "prints the published table alone."
)
EXAMPLE = "shi results --format=latex"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    parser.add_argument(
        "paths",
        nargs="*",
        type=named_path,
        metavar="PATH",
        help="result file or folder; of each machine the newest file with such rows counts",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the table; returns the exit code."""
    files, problems = loading.load_files(options.paths)
    try:
        figures = load_shi()
    except OSError as error:
        fault = f"{printable(str(SHI_PATH))}: {error.strerror}; {RESTORE}"
        return complain([*problems, fault])
    print_tables([shi_table(figures, files)], options)
    return complain(problems)
