# SPDX-License-Identifier: Apache-2.0
"""The commands of `python -m plots`, one module each.

A command's module has NAME, HELP (one line), DESCRIPTION, EXAMPLE (a command line without the
program), `configure(parser)`, which adds its arguments, and `run(options)`, which returns the exit
code. plots/core/command.py holds what commands have in common. A new command is a new module,
listed in COMMANDS.
"""

from types import ModuleType

from plots.features.advice_check import command as advice_check
from plots.features.advise import command as advise
from plots.features.check_statistics import command as check_statistics
from plots.features.compare import command as compare
from plots.features.crossover import command as crossover
from plots.features.peers import command as peers
from plots.features.predict import command as predict
from plots.features.report import command as report
from plots.features.share import command as share
from plots.features.shi import command as shi
from plots.features.site import command as site
from plots.features.training import command as times
from plots.features.two import command as two
from plots.features.validate import command as validate
from plots.features.why import command as why

COMMANDS: tuple[ModuleType, ...] = (
    validate,
    report,
    share,
    site,
    times,
    crossover,
    why,
    advise,
    advice_check,
    predict,
    compare,
    shi,
    peers,
    two,
    check_statistics,
)
