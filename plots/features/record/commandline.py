# SPDX-License-Identifier: Apache-2.0
"""The command lines that measure a file, and each of its rows, again."""

import re
import shlex

from plots.file.families import TRAINING
from plots.file.rows import Row, Run
from plots.text import printable

BENCH = "./build/bench"
_LONGEST = 400  # characters of a word
# Where the results went then is not where they should go now, nor is there a run to go on with; one
# row needs its own filter; and bench alone has no peers.
_LEFT_OUT = re.compile(
    r"--(benchmark_)?out(_format)?=|--benchmark_(filter|list_tests)="
    r"|--resume$|--with-peers|--(devices|layout|loop|mode|pages)="
)
# What is special in a regular expression. Google Benchmark's is POSIX's or ECMAScript's.
_SPECIAL = re.compile(r"([\\^$.|?*+()\[\]{}])")


def command(run: Run) -> str:
    """What was typed, for a shell: environment, program, arguments but for the results' place."""
    words = (_quoted(word) for word in run.command[1:] if not _LEFT_OUT.match(word))
    return " ".join([*_environment(run), BENCH, *words])


def again(run: Run, row: Row) -> str:
    """Measures `row` alone: the arguments of the run, which planned it, and a filter.

    Which executions of the CPU a sweep has is another in another version, so that the row says its.
    """
    name = _SPECIAL.sub(r"\\\1", printable(row.name, _LONGEST))
    words = [command(run)]
    own = row.configuration
    said = any(word.startswith("--execution=") for word in run.command)
    if own.get("device") == "cpu" and row.family in TRAINING and not said:
        words.append(_quoted(f"--execution={own['execution']}"))
    return " ".join([*words, shlex.quote(f"--benchmark_filter=^{name}$")])


def template(run: Run) -> str:
    """again() for any row, with ROW in place of its name."""
    return f"{command(run)} {shlex.quote('--benchmark_filter=^ROW$')}"


def _environment(run: Run) -> list[str]:
    return [f"{_quoted(name)}={_quoted(value)}" for name, value in run.environment.items()]


def _quoted(word: str) -> str:
    return shlex.quote(printable(word, _LONGEST))
