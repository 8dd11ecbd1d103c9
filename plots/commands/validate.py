# SPDX-License-Identifier: Apache-2.0
"""`validate`: checks files against the definition in results/README.md."""

from __future__ import annotations

import argparse

from plots import loading
from plots.commands.shared import add_paths, complain
from plots.text import printable

NAME = "validate"
HELP = "check files against the definition in results/README.md"
DESCRIPTION = (
    "Checks result files against the definition in results/README.md, prints a line for each, and "
    "exits with 2 if any is invalid."
)
EXAMPLE = "validate results"


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the command's arguments."""
    add_paths(parser)


def run(options: argparse.Namespace) -> int:
    """Checks every file; returns the exit code."""
    paths, problems = loading.find_files(options.paths)
    for path in paths:
        try:
            file = loading.load_file(path)
        except loading.BadFileError as error:
            problems.append(str(error))
        else:
            count = len(file.rows)
            print(f"{printable(str(path))}: valid, {count} row{'s' if count != 1 else ''}")
    return complain(problems)
