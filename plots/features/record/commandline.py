# SPDX-License-Identifier: Apache-2.0
"""The command lines that measure a file, or one of its rows, again."""

import re
import shlex

from plots.file.rows import Run
from plots.text import printable

BENCH = "./build/bench"
_LONGEST = 400  # characters of a word
# Where the results went then is not where they should go now, nor is there a run to go on with; one
# row needs its own filter; and bench alone has no peers.
_LEFT_OUT = re.compile(
    r"--(benchmark_)?out(_format)?=|--benchmark_(filter|list_tests)="
    r"|--resume$|--with-peers|--(devices|layout|loop|mode|pages)="
)


def command(run: Run) -> str:
    """What was typed, for a shell: environment, program, arguments but for the results' place."""
    words = (_quoted(word) for word in run.command[1:] if not _LEFT_OUT.match(word))
    return " ".join([*_environment(run), BENCH, *words])


def template(run: Run) -> str:
    """Measures one row, with ROW in place of its name, alone."""
    return f"{command(run)} {shlex.quote('--benchmark_filter=^ROW$')}"


def _environment(run: Run) -> list[str]:
    return [f"{_quoted(name)}={_quoted(value)}" for name, value in run.environment.items()]


def _quoted(word: str) -> str:
    return shlex.quote(printable(word, _LONGEST))
