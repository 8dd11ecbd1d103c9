# SPDX-License-Identifier: Apache-2.0
"""Whether other programs needed the processors meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter

_MUCH = 0.25  # of a processor
_KINDS = (0, 1, 2, 5, 6, 7)  # of /proc/stat: user, nice, system, irq, softirq, steal


class Others:
    """From now on: how many processors other programs take."""

    def __init__(self) -> None:
        self._start, self._all, self._mine = perf_counter(), _all_seconds(), _my_seconds()

    def disturbed(self, threads: int) -> float:
        """How many they took in the mean, where so many threads of this one had less room for it; 0
        where they had, and where the system does not tell."""
        now = _all_seconds()
        if self._all is None or now is None:
            return 0.0
        wall = max(perf_counter() - self._start, 1e-9)
        others = (now - self._all - (_my_seconds() - self._mine)) / wall
        is_full = others + threads > (os.cpu_count() or 1)
        return others if others > _MUCH and is_full else 0.0


def _all_seconds() -> float | None:
    """Of all processors, that they were busy."""
    try:
        line = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()
        return sum(int(line[1 + kind]) for kind in _KINDS) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # no Linux
        return None


def _my_seconds() -> float:
    times = os.times()
    return times.user + times.system
