# SPDX-License-Identifier: Apache-2.0
"""The commands of `python -m plots`, one module each.

A command's module has NAME, HELP (one line), DESCRIPTION, EXAMPLE (a command line without the
program), `configure(parser)`, which adds its arguments, and `run(options)`, which returns the exit
code. plots/commands/shared.py holds what commands have in common. A new command is a new module,
listed in COMMANDS.
"""

from __future__ import annotations

from types import ModuleType

from plots.commands import (
    advise,
    compare,
    convert,
    crossover,
    peers,
    predict,
    report,
    shi,
    validate,
    why,
)

COMMANDS: tuple[ModuleType, ...] = (
    validate,
    convert,
    report,
    crossover,
    why,
    advise,
    predict,
    compare,
    shi,
    peers,
)
