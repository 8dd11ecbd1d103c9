# SPDX-License-Identifier: Apache-2.0
"""Reads the command line of `crossover COMMAND` (shell/command.py).

shell/commands.py lists what the commands do.

Exit codes: 0 all well, 1 `compare --fail-on-slower` found something slower, 2 bad input of any
kind or an output that cannot be written, 130 stopped by Ctrl-C.
"""

import argparse
import difflib
import logging
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn, TextIO

from crossover_bench import __version__
from crossover_bench.answers.command import EXIT_BAD_INPUT, EXIT_OK, EXIT_STOPPED, WrongUsageError
from crossover_bench.files.losses import words_of
from crossover_bench.shell.commands import COMMANDS, module_of
from crossover_bench.shell.completion import bash
from crossover_bench.words.text import printable

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

COMPLETION = "--print-completion"
PROGRAM = "crossover"  # as pyproject.toml names the command


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        # One sentence instead of argparse's usage text in front of it.
        self.exit(EXIT_BAD_INPUT, f"{self.prog}: {printable(message)}; see {self.prog} --help\n")

    def _print_message(self, message: str, file: "SupportsWrite[str] | None" = None) -> None:
        (file or sys.stderr).write(message)  # argparse would hide a failure


def main(arguments: Sequence[str] | None = None, others: Sequence[str] = ()) -> int:
    """Runs one command line, without the program's name; returns the exit code. The program has
    `others` among its commands, which are not of here."""
    _prepare_streams()
    # Without a home that can be written it says so, at length, and goes on by itself.
    logging.getLogger("matplotlib").addFilter(lambda record: record.levelno >= logging.ERROR)
    try:
        try:
            return _run(sys.argv[1:] if arguments is None else arguments, others)
        finally:
            sys.stdout.flush()  # here, and not when Python ends, where it would be a traceback
    except BrokenPipeError:  # the reader, such as head, has seen enough
        _discard(sys.stdout)
        return EXIT_OK
    except OSError as error:
        place = printable(str(error.filename or "standard output"))
        _say(f"{place}: {error.strerror or error}; the output is not complete")
        _discard(sys.stdout)
        return EXIT_BAD_INPUT
    except WrongUsageError as error:
        _say(printable(str(error), 600))
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        _say("stopped by Ctrl-C")
        return EXIT_STOPPED
    except Exception as error:  # a fault of ours; readers of files have had their say
        _say(f"this program fails ({words_of(error)}); report this with the command and its files")
        return EXIT_BAD_INPUT


def _run(words: Sequence[str], others: Sequence[str]) -> int:
    if list(words) == [COMPLETION]:
        print(bash(_each_parser()), end="")
        return EXIT_OK
    _check_command(words, others)
    options = _parser(words).parse_args(words)
    exit_code: int = options.run(options)
    return exit_code


def _prepare_streams() -> None:
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started this
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
        elif hasattr(stream, "reconfigure"):
            # A terminal that lacks a character such as µ gets a question mark, not a traceback.
            stream.reconfigure(errors="replace")


def _say(sentence: str) -> None:
    try:
        print(f"{PROGRAM}: {sentence}", file=sys.stderr, flush=True)
    except OSError:  # it is full as well; the exit code tells
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Lets Python flush `stream` at its end without another error."""
    with suppress(OSError, ValueError):  # not a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _check_command(words: Sequence[str], others: Sequence[str]) -> None:
    """Raises WrongUsageError where the first word is no command, with the nearest one."""
    asked = words[0] if words else "-"
    if not asked.startswith("-") and asked not in COMMANDS:
        near = difflib.get_close_matches(asked, [*COMMANDS, *others], 1)
        meant = f"; did you mean {near[0]}?" if near else ""
        raise WrongUsageError(
            f"there is no command {printable(asked, 40)!r}{meant or ';'} {PROGRAM} --help lists all"
        )


def _parser(words: Sequence[str]) -> argparse.ArgumentParser:
    """The parser of the command that `words` ask for, with a line on each of the others."""
    parser = _Parser(
        prog=PROGRAM,
        description="Checks Crossover's result files and shows what is in them.",
        epilog=f"example: {PROGRAM} report results -o report",
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    asked = next((word for word in words if not word.startswith("-")), "")
    for name, line in COMMANDS.items():
        subparser = commands.add_parser(name, help=line)
        if name == asked:
            command = module_of(name)
            subparser.description = command.DESCRIPTION
            subparser.epilog = f"example: {PROGRAM} {command.EXAMPLE}"
            command.configure(subparser)
            subparser.set_defaults(run=command.run)
    return parser


def _each_parser() -> dict[str, argparse.ArgumentParser]:
    """By its command's name, with all of its flags."""
    parsers = {}
    for name in COMMANDS:
        parsers[name] = argparse.ArgumentParser()
        module_of(name).configure(parsers[name])
    return parsers
