# SPDX-License-Identifier: Apache-2.0
"""What keeps a run from answering for its machine, which a complete default or full sweep does.

./run asks as well, with a Python that may have no NumPy.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from crossover_bench.words.text import counted, printable

FEWEST_REPETITIONS = 9
SWEEPS = ("default", "full")
_OTHER_SWEEP = f"measure with --sweep={' or '.join(SWEEPS)}"
STANDINGS = range(3)  # of shortcomings, the worst first

# What may stand on bench's command line: where results go, and what leaves the sweep whole.
_ALLOWED = re.compile(
    r"--(with-peers|peers-share|beside|layout|loop|mode|pages|script|devices|sweep|cuda|out|memory-limit|planned-memory|patience|budget|resume|benchmark_(?!filter)[a-z_]+|v)(=.*)?",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Shortcoming:
    """A phrase, such as "its sweep is quick", and its remedy. The smaller `standing`, the less such
    a run says of its machine."""

    fault: str
    remedy: str
    standing: int

    @property
    def is_partial(self) -> bool:
        """Whether other rows than a sweep's were asked for."""
        return self.standing == 0

    @property
    def is_of_sweep(self) -> bool:
        """Whether it is the sweep's alone, which has other rows, or fewer."""
        return self.remedy == _OTHER_SWEEP


def own_words(command: Sequence[str]) -> list[str]:
    """What of the command line `command` decides which rows there are, where the sweep does not."""
    return [word for word in command[1:] if not _ALLOWED.fullmatch(word)]


def shortcomings(
    *, command: Sequence[str], data: str, ended: str, sweep: str, repetitions: int
) -> Iterator[Shortcoming]:
    """Those of a run with that command line and that data; `ended`: what it was, if rows are
    missing, such as "not finished". None where it answers for its machine."""
    if flags := printable(" ".join(own_words(command))):
        yield Shortcoming(f"flags chose its rows ({flags})", "leave them out", 0)
    if data not in ("", "generated"):
        trained = f"it trains on {printable(data)}"
        yield Shortcoming(trained, "measure with the generated data", 0)
    if ended:
        yield Shortcoming(f"it was {ended}, so rows are missing", "go on with --resume", 1)
    if sweep not in SWEEPS:
        yield Shortcoming(f"its sweep is {printable(sweep)}", _OTHER_SWEEP, 2)
    if repetitions < FEWEST_REPETITIONS:
        few = f"it has {counted(repetitions, 'repetition')}"
        yield Shortcoming(few, f"measure with {FEWEST_REPETITIONS} or more", 2)
