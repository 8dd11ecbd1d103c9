# SPDX-License-Identifier: Apache-2.0
"""Reads the command line of `python -m plots`, installed as crossover-plots.

plots/commands has what the commands do.

Exit codes: 0 all well, 1 `compare --fail-on-slower` found something slower, 2 bad input of any
kind.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from plots import __version__
from plots.commands import COMMANDS
from plots.commands.shared import EXIT_BAD_INPUT, EXIT_OK
from plots.text import printable

INSTALLED = "crossover-plots"  # as pyproject.toml names the command


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
        return options.run(options)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OK


def _program() -> str:
    """What the user typed to start this."""
    installed = Path(sys.argv[0]).stem == INSTALLED
    return INSTALLED if installed else "python -m plots"


def _parser() -> argparse.ArgumentParser:
    program = _program()
    parser = _Parser(
        prog=program,
        description="Checks Crossover's result files and shows what is in them.",
        epilog=f"example: {program} report results -o report",
    )
    parser.add_argument("--version", action="version", version=f"crossover-plots {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(
            command.NAME,
            help=command.HELP,
            description=command.DESCRIPTION,
            epilog=f"example: {program} {command.EXAMPLE}",
        )
        command.configure(own)
        own.set_defaults(run=command.run)
    return parser
