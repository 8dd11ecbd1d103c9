# SPDX-License-Identifier: Apache-2.0
"""The flags on files of other programs' benchmarks, which all commands that read such files take:
whose a row is, which number is the size, and which rows are a copy."""

import argparse
import re
from collections.abc import Sequence
from pathlib import Path

from crossover_bench.answers.command import WrongUsageError
from crossover_bench.answers.two import threshold
from crossover_bench.answers.two.sides import Wanted
from crossover_bench.words.text import printable

OF_ROWS = ("cpu", "gpu", "size", "once")


def add_wanted(parser: argparse.ArgumentParser) -> None:
    """Adds the flags that wanted() reads."""
    of_rows = parser.add_argument_group("files of Google Benchmark or nvbench")
    for side, example in (("cpu", "Serial|OpenMP"), ("gpu", "Cuda")):
        of_rows.add_argument(
            f"--{side}",
            type=_pattern,
            metavar="REGEX",
            help=f"the {side.upper()}'s rows, by their names, or by those of files, such as "
            f"'{example}'; what it matches is cut from names, and rows with the same rest do the "
            "same work",
        )
    of_rows.add_argument(
        "--size",
        default="",
        metavar="NAME|K",
        help="which number of names is the size: its name, or 1 for the first without one",
    )
    of_rows.add_argument(
        "--once",
        type=_pattern,
        metavar="REGEX",
        help="rows of a copy, measured apart: their time at each size is added to the GPU's, for a "
        "second answer",
    )


def add_threshold(parser: argparse.ArgumentParser, help: str) -> None:
    """Adds --threshold, a file of sizes."""
    parser.add_argument("--threshold", type=_threshold, metavar="FILE.h|.json", help=help)


def wanted(options: argparse.Namespace) -> Wanted:
    """What the flags say."""
    return Wanted(options.cpu, options.gpu, options.size, options.once)


def refuse(
    options: argparse.Namespace,
    command: str,
    flags: Sequence[str] = OF_ROWS,
    whose: str = "that Google Benchmark or nvbench has written",
) -> None:
    """Raises WrongUsageError where one of `flags` is there, as no file is one of those."""
    if flag := next((flag for flag in flags if getattr(options, flag)), ""):
        named: Sequence[Path] = options.paths
        which = f"{printable(str(named[0]))} has no such" if named else "there is none"
        raise WrongUsageError(
            f"{command}: --{flag} is of files {whose}, and {which}; name one, or leave it out"
        )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        if text:
            return re.compile(text)
        fault = "it is empty"
    except (re.error, RecursionError, OverflowError) as error:
        fault = str(error)
    raise argparse.ArgumentTypeError(f"{printable(text, 60)!r} is no regular expression: {fault}")


def _threshold(text: str) -> Path:
    if not text.endswith(threshold.ENDINGS):
        raise argparse.ArgumentTypeError(
            f"{printable(text, 60)!r} must end in {' or '.join(threshold.ENDINGS)}"
        )
    return Path(text)
