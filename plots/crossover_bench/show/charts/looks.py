# SPDX-License-Identifier: Apache-2.0
"""How each way to compute looks, the same in every chart of a file.

A CPU is blue, darker with more threads, with hollow points; a GPU has a warm colour for where its
data lies, and a dash for how it executes. tests/test_looks.py holds the colours apart for
colour-blind readers on light and on dark paper.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from crossover_bench.files.axes import Axes
from crossover_bench.words.text import whole

Dash = str | tuple[float, tuple[float, ...]]

CPU_COLOURS = ("#4B9BF9", "#4A41B6", "#271F76")
GPU_COLOURS = {
    "resident": "#B74221",
    "pageable": "#492600",
    "pinned": "#EB5497",
    "pinned-async": "#97A400",
}
DASHES: tuple[Dash, ...] = (
    "-",
    (0, (5, 2)),
    (0, (1, 1.5)),
    (0, (5, 2, 1, 2)),
    (0, (9, 2)),
)
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
# Places in DASHES:
_EXECUTIONS = {
    "graph": 0,
    "eager": 1,
    "persistent": 2,
    "graph-epoch": 3,
    "auto": 4,
    "async": 0,
    "sync": 1,
}
_OWN = {"device", "cpu_threads", "data", "memory", "execution", "mode"}  # said by colour and dash


@dataclass(frozen=True, slots=True)
class Look:
    colour: str
    dash: Dash
    marker: str
    filled: bool

    @property
    def line(self) -> dict[str, Any]:
        """What Axes.plot() wants to know."""
        return {"linestyle": self.dash, **self.points}

    @property
    def points(self) -> dict[str, Any]:
        """The same for points without a line."""
        return {
            "color": self.colour,
            "marker": self.marker,
            "markerfacecolor": self.colour if self.filled else "white",
        }


class Configured(Protocol):
    """A row, or a curve."""

    @property
    def configuration(self) -> Mapping[str, str]: ...

    @property
    def axes(self) -> Axes: ...


class Looks:
    """The look of every configuration among `rows`, which should be all rows of a file."""

    def __init__(self, rows: Iterable[Configured]) -> None:
        rows = list(rows)
        counts = {_threads(row.configuration) for row in rows if _on_cpu(row.configuration)}
        self._ranks = {count: rank for rank, count in enumerate(sorted(counts))}
        self._axes = rows[0].axes
        self._markers: dict[tuple[bool, tuple[tuple[str, str], ...]], int] = {}
        for on_cpu in (True, False):
            rests = {
                self._rest(row.configuration)
                for row in rows
                if _on_cpu(row.configuration) == on_cpu
            }
            for place, rest in enumerate(sorted(rests, key=lambda rest: (len(rest), rest))):
                self._markers[on_cpu, rest] = place

    def of(self, configuration: Mapping[str, str]) -> Look:
        """The look of `configuration`, that of a row or of a curve."""
        on_cpu = _on_cpu(configuration)
        marker = MARKERS[self._markers.get((on_cpu, self._rest(configuration)), 0) % len(MARKERS)]
        if on_cpu:
            rank = self._ranks.get(_threads(configuration), 0)
            colour = CPU_COLOURS[rank % len(CPU_COLOURS)]
            return Look(colour, DASHES[rank % len(DASHES)], marker, filled=False)
        place = configuration.get("data") or configuration.get("memory") or "resident"
        colour = GPU_COLOURS.get(place, GPU_COLOURS["resident"])
        execution = configuration.get("execution") or configuration.get("mode") or "graph"
        return Look(colour, DASHES[_EXECUTIONS.get(execution, 2)], marker, filled=True)

    def _rest(self, configuration: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
        """How it computes in what neither colour nor dash tells and is not plain."""
        return tuple(
            sorted(
                (key, value)
                for key, value in configuration.items()
                if key not in _OWN
                and key in self._axes
                and self._axes[key].role != "what"
                and value != self._axes[key].plainest
            )
        )


def _on_cpu(configuration: Mapping[str, str]) -> bool:
    return configuration.get("device") == "cpu"


def _threads(configuration: Mapping[str, str]) -> tuple[int, str]:
    text = configuration.get("cpu_threads", "")
    return whole(text) or 0, text
