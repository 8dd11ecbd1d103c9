# SPDX-License-Identifier: Apache-2.0
"""How far a build is, and about how long the rest of it takes."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from crossover_bench.place import ROOT

# What ninja prints of a step that has ended: how many have, of how many; and what it made.
_STEP = re.compile(r"^\[(\d+)/(\d+)\] (?:Building \w+ object (.*)\.o$)?")
# A byte of kernels, for one generation of GPUs, takes as long as so many of another source.
_OF_KERNELS = 5
_INCLUDED = re.compile(r'^#include "(/.*)"$', re.MULTILINE)
_ENOUGH = 0.2  # of the work, for its speed to say something of the rest


class Progress:
    """Of a build in `folder` whose steps ninja would print as the lines `planned`. A step's share
    of the work is the length of the source that it compiles, all that are included in a unity
    source: a few of those take most of the time."""

    def __init__(self, folder: Path, planned: Iterable[str]) -> None:
        steps = [step for step in map(_STEP.match, planned) if step]
        self._count = len(steps)
        self._lengths = {step[3]: _length(folder, step[3]) for step in steps if step[3]}
        self._shown = float("inf")  # minutes

    def words(self, lines: Sequence[str], seconds: float) -> str:
        """What there is to say `seconds` after the start, when ninja has printed `lines`. The time
        that is left only falls: where it seems to grow, nothing is said of it."""
        steps = [step for step in map(_STEP.match, lines) if step]
        ended, count = steps[-1].groups()[:2] if steps else (0, self._count)
        words = f"{ended} of {count} steps built"
        whole = sum(self._lengths.values())
        done = sum(self._lengths.get(step[3], 0) for step in steps)
        if not whole or done < _ENOUGH * whole:
            return words
        minutes = seconds * (whole - done) / done / 60
        if round(minutes) > self._shown:
            return words
        self._shown = round(minutes)
        return f"{words}, {f'about {self._shown}' if self._shown else 'less than 1'} min left"


def _length(folder: Path, made: str) -> int:
    """Of the source from which `made` is, without its ending, in the build's `folder`."""
    below = re.sub(r"CMakeFiles/[^/]+\.dir/", "", made)
    for source in (folder / made, folder / below, ROOT / below):
        try:
            text = source.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        parts = _INCLUDED.findall(text) if source == folder / made else []
        weight = _OF_KERNELS if made.endswith(".cu") else 1
        return weight * (sum(Path(part).stat().st_size for part in parts) or len(text))
    return 0
