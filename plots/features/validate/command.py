# SPDX-License-Identifier: Apache-2.0
"""`validate`: checks files against the definition in results/README.md."""

import argparse

from plots.core.command import add_paths, complain
from plots.file import fitness, loading
from plots.file.refusal import BadFileError
from plots.text import printable

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
    for path in paths:
        try:
            file = loading.load_file(path)
        except BadFileError as error:
            problems.append(str(error))
            continue
        if not options.strict:
            count = len(file.own_rows) + len(file.peers) + len(file.commands)
            print(f"{printable(str(path))}: valid, {count} row{'s' if count != 1 else ''}")
        elif faults := fitness.faults(file):
            problems.append(f"{printable(str(path))}: not fit to be committed: {'; '.join(faults)}")
        else:
            print(f"{printable(str(path))}: fit to be committed: {fitness.praise(file)}")
    return complain(problems)
