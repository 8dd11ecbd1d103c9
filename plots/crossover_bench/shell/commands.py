# SPDX-License-Identifier: Apache-2.0
"""The commands of `crossover`, a folder of answers each.

A command's module, command.py in its folder, has DESCRIPTION, EXAMPLE (a command line without the
program), `configure(parser)`, which adds its arguments, and `run(options)`, which returns the exit
code. answers/command.py holds what commands have in common. A new command is a new module,
listed in COMMANDS; it is loaded only when it is asked for, as matplotlib and scipy take long.
"""

from importlib import import_module
from types import ModuleType

# Name, as its folder is called, with hyphens: what it does in a line.
COMMANDS = {
    "validate": "check files against the definition in results/README.md",
    "report": "write one HTML page with everything, and its charts",
    "share": "prepare a file for everybody's results: check it, leave out what is private",
    "site": "write a static site: the ladder of all machines, and a page of each",
    "times": "how long an epoch, a training step and a forward pass of each network take",
    "crossover": "find the size from which the GPU wins, and by how much",
    "why": "say where the time goes and what would change the crossover",
    "advise": "say whether a GPU is worth it for a network that nobody measured",
    "advice-check": "what pinned memory, loader workers, set_to_none and other advice brought here",
    "predict": "predict from which size a GPU that you do not have would win",
    "compare": "compare machines or commits, or combine a CPU with another machine's GPU",
    "shi": "print the table of Shi et al. 2016 with your own rows in it",
    "peers": "print what PyTorch and others take for the same work, and the ratio to ours",
    "export": "print a file's rows for compare.py, Conbench and github-action-benchmark",
    "two": "from which n the second of two commands wins, or a GPU in a Google Benchmark file",
}
_FOLDERS = {"times": "training"}  # whose names are not their commands'


def module_of(command: str) -> ModuleType:
    """The module of `command`."""
    folder = _FOLDERS.get(command, command.replace("-", "_"))
    return import_module(f"crossover_bench.answers.{folder}.command")
