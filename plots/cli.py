# SPDX-License-Identifier: Apache-2.0
"""The commands of `python -m plots`. Exit codes: 0 all well, 2 for bad input of any kind."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from plots import rows
from plots.published import PUBLISHED_PATH, load_published
from plots.text import printable

EXIT_OK = 0
EXIT_BAD_INPUT = 2


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # One sentence instead of argparse's usage text in front of it.
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {printable(message)}; see {self.prog} --help\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command line, without the program's name; returns the exit code."""
    options = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character such as µ gets a question mark, not a traceback.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        return options.command(options)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m plots",
        description="Checks Crossover's result files and shows what is in them.",
        epilog="example: python -m plots report results -o report",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    validate = commands.add_parser(
        "validate",
        help="check files against the definition in results/README.md",
        description="Checks result files against the definition in results/README.md. Prints one "
        "line for each file; exits with 2 if any is bad.",
        epilog="example: python -m plots validate results",
    )
    _add_paths(validate)
    validate.set_defaults(command=_validate)

    report = commands.add_parser(
        "report",
        help="draw charts and write a page of tables",
        description="Writes README.md into a folder, with a chart (PNG and SVG) and a table of "
        "seconds per epoch for each machine. Of several files from one machine the newest is "
        "shown. Bad files are named and left out, and the exit code is then 2.",
        epilog="example: python -m plots report results -o report",
    )
    _add_paths(report)
    report.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("report"),
        metavar="DIR",
        help="folder to write to, made if missing (default: report)",
    )
    report.add_argument(
        "--all", action="store_true", help="show every file, not only each machine's newest"
    )
    report.add_argument(
        "--summary", action="store_true", help="print the tables as plain text as well"
    )
    report.set_defaults(command=_report)
    return parser


def _add_paths(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "paths",
        nargs="+",
        type=Path,
        metavar="PATH",
        help="result file, or folder: every *.json below it except in folders named reference",
    )


def _complain(problems: Sequence[str]) -> None:
    for problem in problems:
        print(problem, file=sys.stderr)


def _validate(options: argparse.Namespace) -> int:
    paths, problems = rows.find_files(options.paths)
    for path in paths:
        try:
            file = rows.load_file(path)
        except rows.BadFileError as error:
            problems.append(str(error))
        else:
            count = len(file.rows)
            print(f"{printable(str(path))}: valid, {count} row{'s' if count != 1 else ''}")
    _complain(problems)
    return EXIT_BAD_INPUT if problems else EXIT_OK


def _report(options: argparse.Namespace) -> int:
    # Imported here because matplotlib takes longer to load than `validate` takes to run.
    from plots.report import (  # noqa: PLC0415
        build_report,
        newest_per_machine,
        summary,
        write_report,
    )

    files, problems = rows.load_files(options.paths)
    if not options.all:
        files = newest_per_machine(files)
    if not files:
        problems.append("no report was written, because there is no valid result file")
    elif options.summary:
        print("\n\n".join(summary(file) for file in files), end="\n\n")
    try:
        contents = build_report(files, load_published()) if files else {}
        written = write_report(contents, options.output) if files else []
    except OSError as error:
        place = printable(str(error.filename or options.output))
        published = error.filename == str(PUBLISHED_PATH)
        remedy = "restore it from the repository" if published else "choose another folder with -o"
        problems.append(f"{place}: {error.strerror}, so no report was written; {remedy}")
        written = []
    for path in written:
        print(f"wrote {printable(str(path), 400)}")
    _complain(problems)
    return EXIT_BAD_INPUT if problems else EXIT_OK
