# SPDX-License-Identifier: Apache-2.0
"""`advice-check`: what the usual advice for fast training brought on one's own machine."""

import argparse

from plots.core.command import add_format, add_paths, complain, load_answering, print_tables
from plots.text import printable

NAME = "advice-check"
HELP = "what pinned memory, loader workers, set_to_none and other advice brought here"
DESCRIPTION = (
    "Lists what guides to fast training advise, and what each piece of advice brought in a file: "
    "of its Epoch and Minibatch rows those that differ in nothing else. Advice without such rows "
    "is listed with the flags that measure it."
)
EXAMPLE = "advice-check results"
_NOTHING = (
    "no two rows differ only in what guides advise; measure some, as with ./run "
    "--execution=eager --zero=keep,overwrite"
)


def configure(parser: argparse.ArgumentParser) -> None:
    add_paths(parser)
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    # Imported here because scipy takes longer to load than a refusal takes.
    from plots.features.advice_check.analysis import check_advice, is_any_measured  # noqa: PLC0415
    from plots.features.advice_check.table import advice_tables  # noqa: PLC0415

    files, problems = load_answering(
        options.paths, lambda file: is_any_measured(check_advice(file))
    )
    tables = []
    for file in files:
        found = check_advice(file)
        if is_any_measured(found):
            tables += advice_tables(file, found)
        else:
            problems.append(f"{printable(str(file.path))}: {_NOTHING}")
    if not (tables or problems):
        problems.append(f"{printable(str(options.paths[0]))}: {_NOTHING}")
    if tables:
        print_tables(tables, options)
    return complain(problems)
