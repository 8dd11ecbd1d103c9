# SPDX-License-Identifier: Apache-2.0
"""`./run two`: any two programs, as commands with a size and a number of steps."""

import math
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from crossover_bench.peers.command import SIDES, Plan
from crossover_bench.place import PACKAGE, RUN
from crossover_bench.run.console import Failure, Parser, seconds_of

WORD = "two"
FAMILY = "--family=Command"
MEASURES = ("--n", "--steps")
_EXAMPLE = "'python cpu.py {n} {steps}' 'python gpu.py {n} {steps}'"
HELP = f"""\
usage: {RUN} two --n=FROM:TO|N,... --steps=FEW,MANY [--at=N] [--equal=COMMAND] [--limit=TIME]
                 [--repetitions=N] [--out=FILE.json] [--resume] [--no-report] [--cuda=MODE]
                 COMMAND COMMAND

Measures two commands in turn, each run in a new process: from which n does the second win a step,
and after how many steps has it repaid its start-up? A command is one line for the shell, with {{n}}
and {{steps}} where its size and its number of steps go, for example

  {RUN} two --n=1e3:1e6 --steps=10,100 {_EXAMPLE}

The difference of two step counts is the time of a step; the rest is start-up. Both commands run in
the current folder. Nothing is verified, but for what --equal says.

  --n             sizes: a range, in steps of a factor of 4 at most, or a list. Between them those
                  where the winner of a step changes are looked for
  --steps         two numbers of steps, far enough apart for the difference to show
  --at=N          measure this n as well, and say what holds there
  --equal=COMMAND compare outputs: run with two files, the standard output of each side at the same
                  n and steps; exit code 0 means equal. A size where they differ has no times
  --limit=TIME    end a run that takes longer (90s, 10m; default: 10m)
  --repetitions=N of each command at each size, 5 at least for an interval (default: 9)
  --out, --resume, --no-report, --cuda
                  as of {RUN} --help; --resume goes on with these same arguments
"""
_LARGEST = 10**9
_FACTOR = 4.0
_PASSED_ON = ("--out=", "--cuda=", "--resume", "--no-report")


@dataclass(frozen=True)
class Asked:
    """`words` are those for the rest of ./run; `at` the size that is asked for by itself."""

    words: list[str]
    at: int | None = None


def asked(words: list[str]) -> Asked:
    """What the words behind `./run two` come to. Failure where they can't be carried out."""
    parser = Parser(prog=f"{RUN} {WORD}", add_help=False, allow_abbrev=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("commands", nargs="*", default=[])
    for flag in ("--n", "--steps", "--at", "--equal"):
        parser.add_argument(flag)
    parser.add_argument("--limit", default="10m")
    parser.add_argument("--repetitions", default="9")
    if any(word.startswith("--budget") for word in words):
        raise Failure(
            "two takes no --budget, as all sizes are measured equally often, in an order that is "
            "drawn; give fewer sizes or --repetitions=5, or stop with Ctrl-C: --resume goes on",
            2,
        )
    passed_on = [word for word in words if word.startswith(_PASSED_ON)]
    given = parser.parse_args([word for word in words if word not in passed_on])
    if given.help:
        return Asked(["--help"])
    at = None if given.at is None else _whole("--at", given.at)
    cpu, gpu = _commands(given.commands)
    plan = Plan(
        cpu,
        gpu,
        sizes=_sizes(given.n, at),
        steps=_steps(given.steps),
        limit=seconds_of("--limit", given.limit),
        equal=given.equal or "",
    )
    peer = shlex.join([sys.executable, str(PACKAGE / "peers" / "command.py"), plan.word])
    repetitions = _whole("--repetitions", given.repetitions)
    return Asked(
        [
            FAMILY,
            "--refine=command",
            f"--benchmark_repetitions={repetitions}",
            "--benchmark_enable_random_interleaving",
            f"--peer={peer}",
            *passed_on,
        ],
        at,
    )


def _commands(given: list[str]) -> list[str]:
    if len(given) != len(SIDES):
        raise Failure(
            f"two compares two commands, and got {len(given)}; put each in quotes: {_EXAMPLE}",
            2,
        )
    for side, command in zip(SIDES, given, strict=True):
        for place in ("{n}", "{steps}"):
            if place not in command:
                raise Failure(
                    f"the {side} command has no {place}: {command!r}; write it where its "
                    f"{'size' if place == '{n}' else 'number of steps'} goes",
                    2,
                )
    return given


def _whole(flag: str, text: str) -> int:
    """1000, 1e3; not 1.5."""
    try:
        value = float(text)
        if value == int(value) and 1 <= value <= _LARGEST:
            return int(value)
    except (ValueError, OverflowError):
        pass
    raise Failure(f"{flag}={text}: a whole number from 1 to 1e9 is needed, such as 1000 or 1e3", 2)


def _sizes(text: str | None, at: int | None) -> tuple[int, ...]:
    if not text:
        raise Failure("two needs sizes: --n=1e3:1e6, or a list, --n=1000,5000", 2)
    first, colon, last = text.partition(":")
    if not colon:
        sizes = [_whole("--n", size) for size in text.split(",")]
    else:
        low, high = _whole("--n", first), _whole("--n", last)
        if low > high:
            raise Failure(f"--n={text}: the range is reversed; write --n={last}:{first}", 2)
        gaps = max(1, math.ceil(math.log(high / low) / math.log(_FACTOR) - 1e-9))
        sizes = [round(low * (high / low) ** (place / gaps)) for place in range(gaps + 1)]
    return tuple(sorted({*sizes, *([at] if at else [])}))


def _steps(text: str | None) -> tuple[int, int]:
    counts = [_whole("--steps", count) for count in (text or "").split(",") if count]
    if len(counts) != 2 or counts[0] >= counts[1]:
        raise Failure(
            "two needs two numbers of steps, the smaller one first, such as --steps=10,100", 2
        )
    return counts[0], counts[1]


def screen(path: Path, at: int | None) -> list[str | Path]:
    """The words for `plots` that print both answers."""
    return [WORD, path, *([] if at is None else [f"--at={at}"])]
