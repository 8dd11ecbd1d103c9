# SPDX-License-Identifier: Apache-2.0
"""The command `crossover`, of an installed copy and in .venv/bin: what measures, and the commands
that read result files, under one name."""

import importlib.util
import os
import sys

from crossover_bench.run import environment, results, run, two
from crossover_bench.run.console import guarded, say

NAME = "crossover"
_CHECK = "--check"
FIRST_MINUTE = "--budget=54s"  # and some seconds for the answer
HELP = """\
usage: crossover                measure for a minute, and answer: from what size is a GPU worth it?
       crossover run ...        measure more, a network of your own, two programs: run --help
       crossover --check        what works on this machine, and what its GPU needs
       crossover networks ...   import a network of your own, or show one: networks --help
       crossover --print-completion   what bash sources to complete all this
       crossover COMMAND ...    read result files:

"""


def main() -> int:
    words = sys.argv[1:]
    if not words:
        return guarded(NAME, first_minute)
    if words[0] in ("run", _CHECK) or _measures_two(words):
        asked = words[1:] if words[0] == "run" else words
        return guarded(f"{NAME} run", lambda _: run.main(asked))
    if words[0] == "networks":
        return _networks(words[1:])
    # NumPy and the like: what measures is to start without them.
    from crossover_bench.answers import command  # noqa: PLC0415
    from crossover_bench.shell import cli, commands  # noqa: PLC0415

    if words[0] in ("-h", "--help"):
        lines = [f"  {name:<18}{text}" for name, text in commands.COMMANDS.items()]
        return guarded(NAME, lambda _: print(HELP + "\n".join(lines), flush=True) or 0)
    if results.RESULTS.is_dir():
        command.KNOWN.append(results.RESULTS)
    return cli.main(words, ("run", "networks"))


def _measures_two(words: list[str]) -> bool:
    """Whether `crossover two` has words of what measures two commands, not of what reads a file."""
    return words[0] == two.WORD and any(word.startswith(two.MEASURES) for word in words)


def _networks(words: list[str]) -> int:
    """Where this Python has no PyTorch, by that which --with-peers has installed."""
    python = environment.PEERS.python
    if importlib.util.find_spec("torch") is None and python.exists():
        sys.stdout.flush()
        command = [str(python), "-m", "crossover_bench.networks", *words]
        os.execve(python, command, environment.variables(own_paths=True))
    from crossover_bench.networks.__main__ import main as networks  # noqa: PLC0415

    return networks(words)


def first_minute(_: list[str]) -> int:
    code = run.main([FIRST_MINUTE])
    if code in (0, 1):  # 1: some row has no result
        sys.stdout.flush()
        say(
            "\nThis was a minute's answer; the full one: crossover run --resume goes on with the "
            "rows that are left, and crossover --help lists what else there is"
        )
    return code
