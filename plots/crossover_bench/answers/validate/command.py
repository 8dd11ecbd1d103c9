# SPDX-License-Identifier: Apache-2.0
"""`validate`: checks files against the definition in results/README.md."""

import argparse
import os
from collections.abc import Iterable
from pathlib import Path

from crossover_bench.answers.command import add_paths, complain
from crossover_bench.files import fitness, loading
from crossover_bench.files.refusal import BadFileError
from crossover_bench.words.text import printable

DESCRIPTION = (
    "Checks result files against the definition in results/README.md, prints a line for each, and "
    "exits with 2 if any is invalid. --strict also says whether each is fit to be committed under "
    "results/, or why not, and exits with 2 if any is not."
)
EXAMPLE = "validate results"


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    parser.add_argument(
        "--strict",
        action="store_true",
        help="also check what results/README.md asks of a file that is to be committed",
    )


def run(options: argparse.Namespace) -> int:
    paths, problems = loading.find_files(options.paths)
    for path in _unfinished(options.paths):
        sentence = f"{printable(str(path))}: of a run that did not finish, and read by no command"
        if options.strict:
            problems.append(f"{sentence}: delete it, or go on with it where it was measured")
        else:
            print(sentence)
    for path in paths:
        try:
            file = loading.load_file(path)
        except BadFileError as error:
            problems.append(str(error))
            continue
        if not options.strict:
            count = len(file.own_rows) + len(file.peers) + len(file.commands) + len(file.functions)
            print(f"{printable(str(path))}: valid, {count} row{'s' if count != 1 else ''}")
        elif faults := fitness.faults(file):
            problems.append(f"{printable(str(path))}: not fit to be committed: {'; '.join(faults)}")
        else:
            print(f"{printable(str(path))}: fit to be committed: {fitness.praise(file)}")
    return complain(problems)


def _unfinished(paths: Iterable[Path]) -> list[Path]:
    """What lies in folders as bench leaves it beside a file that it is not yet to replace."""
    folders = (path for path in paths if os.path.isdir(path))  # of a long name, too
    return sorted({path for folder in folders for path in folder.rglob("*.partial")})
