# SPDX-License-Identifier: Apache-2.0
"""The command lines that measure a file, or one of its rows, again."""

import re
import shlex

from crossover_bench.files.rows import Run
from crossover_bench.words.text import printable

BENCH = "./build/bench"
_LONGEST = 400  # characters of a word
# Results should not go to the place of then, and there is no run to resume; one row needs its own
# filter; and bench alone has no peers.
_LEFT_OUT = re.compile(
    r"--(benchmark_)?out(_format)?=|--benchmark_(filter|list_tests)="
    r"|--resume$|--with-peers|--(peers-share|beside|devices|layout|loop|mode|pages|script)="
)


# A file may be anybody's: what is copied from it starts no program, and loads and writes no file.
_STARTS = re.compile(r"(--(?:meter|peer)=).*", re.DOTALL)


def command(run: Run) -> str:
    """What was typed, for a shell: environment, program, arguments but for the results' place."""
    set_to = (
        f"{_quoted(name)}={_quoted(value)}"
        for name, value in run.environment.items()
        if "/" not in value and name.isidentifier()
    )
    words = (
        _quoted(_STARTS.sub(r"\1COMMAND", word))
        for word in run.command[1:]
        if not _LEFT_OUT.match(word)
    )
    return " ".join([*set_to, BENCH, *words])


def template(run: Run) -> str:
    """Measures one row, with ROW in place of its name, alone."""
    return f"{command(run)} {shlex.quote('--benchmark_filter=^ROW$')}"


def _quoted(word: str) -> str:
    return shlex.quote(printable(word, _LONGEST))
