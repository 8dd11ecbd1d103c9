# SPDX-License-Identifier: Apache-2.0
"""Strips on one scale of size: each shows where the CPU wins, where the GPU wins, and where neither
is sure. Here they become block characters for a terminal; show/charts/strip.py draws them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from crossover_bench.curves.crossover import CPU_WINS, GPU_WINS, Crossover, SpeedUp
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.show.tables.formats import terminal_width, wrapped
from crossover_bench.words import units
from crossover_bench.words.text import printable

Side = Literal["cpu", "open", "gpu"]
_BLOCKS: dict[Side, str] = {"cpu": "█", "open": "▒", "gpu": "░"}
_WIDEST = 60  # characters of a strip
_LABEL = 34  # characters of a strip's label
_PREDICTED = "*"
_INDENT = "  "
_MARK_LINES = 2
SIDES: dict[int, Side] = {CPU_WINS: "cpu", 0: "open", GPU_WINS: "gpu"}


@dataclass(frozen=True, slots=True)
class Segment:
    """From the size `low` to `high` this `side` wins."""

    low: float
    high: float
    side: Side


@dataclass(frozen=True, slots=True)
class Mark:
    """A network at its size; `side` is who wins on this network itself, None where nobody knows."""

    name: str
    size: float
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Strip:
    """One question, such as one GPU at one batch size: its segments without gaps, the smallest
    sizes first, and networks beside the curve that it is about. `crossover` is the size from which
    the GPU wins, by the medians; None where there is none."""

    label: str
    segments: tuple[Segment, ...]
    is_predicted: bool = False
    marks: tuple[Mark, ...] = ()
    crossover: float | None = None


@dataclass(frozen=True, slots=True)
class Strips:
    """Strips under each other on one scale: `measure` as a Question has it, `title` what is asked,
    `conditions` what all strips share, `circles` what the marks are."""

    title: str
    strips: tuple[Strip, ...]
    measure: str = "parameters"
    conditions: str = ""
    quantity: Quantity = TIME
    circles: str = "other networks (docs/networks.md) at their own batch"

    def words(self, side: Side) -> str:
        """What a segment of this side means."""
        return "not decided" if side == "open" else f"{side.upper()} {self.quantity.wins}"

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest size of any strip, or of any network beside them."""
        sizes = [mark.size for mark in self.marks]
        for strip in self.strips:
            sizes += (end for segment in strip.segments for end in (segment.low, segment.high))
        return min(sizes), max(sizes)

    @property
    def marks(self) -> tuple[Mark, ...]:
        """The networks of all strips, each once, the smallest first; who wins is the first's."""
        marks: dict[tuple[str, float], Mark] = {}
        for strip in self.strips:
            for mark in strip.marks:
                marks.setdefault((mark.name, mark.size), mark)
        return tuple(sorted(marks.values(), key=lambda mark: mark.size))

    @property
    def is_predicted(self) -> bool:
        """Whether any strip is."""
        return any(strip.is_predicted for strip in self.strips)

    @property
    def sides(self) -> list[Side]:
        """What the strips show, in the order of a legend."""
        shown = {segment.side for strip in self.strips for segment in strip.segments}
        return [side for side in SIDES.values() if side in shown]


def segments_of(crossover: Crossover) -> tuple[Segment, ...]:
    """Where each side wins. Between two sizes whose winners differ it is open; around the crossover
    it is open within the interval."""
    winners = crossover.medians.winners if crossover.medians else crossover.winners
    sides = [SIDES[side] if crossover.medians is None else "open" for side in winners]
    segments = list(between(crossover.sizes, sides))
    if crossover.kind in ("once", "several", "ambiguous") and (crossover.low or crossover.high):
        low, high = crossover.low or crossover.sizes[0], crossover.high or crossover.sizes[-1]
        # What is undecided below the interval is the CPU's, unless the GPU has a part of it.
        by_winner = crossover.kind == "several" or any(size < low for size in crossover.gpu_wins)
        before = [
            Segment(known.low, min(known.high, low), known.side if by_winner else "cpu")
            for known in segments
            if known.low < low
        ]
        after = [Segment(high, crossover.sizes[-1], "gpu")] if crossover.high else []
        segments = [*before, Segment(low, high, "open"), *after]
    return _joined(segments)


def between(sizes: Sequence[float], sides: Sequence[Side]) -> tuple[Segment, ...]:
    """Where each side wins, of those that win at `sizes`; open between two that differ."""
    ends = pairwise(zip(sizes, sides, strict=True))
    return _joined(
        Segment(low, high, left if left == right else "open") for (low, left), (high, right) in ends
    )


def _joined(segments: Iterable[Segment]) -> tuple[Segment, ...]:
    """`segments` with neighbours of one side made one, without those of no width."""
    kept: list[Segment] = []
    for each in segments:
        if kept and kept[-1].side == each.side:
            kept[-1] = Segment(kept[-1].low, each.high, each.side)
        elif each.high > each.low:
            kept.append(each)
    return tuple(kept)


def side_of(speed_up: SpeedUp) -> Side:
    """Who wins on one network."""
    return speed_up.winner or "open"


def shares(strips: Strips) -> list[list[tuple[float, float, Side]]]:
    """The segments of each strip as shares of the logarithmic scale: 0 is its left end."""
    low, high = np.log(strips.ends)
    span = (high - low) or 1.0

    def share(size: float) -> float:
        return float((np.log(size) - low) / span)

    return [
        [(share(segment.low), share(segment.high), segment.side) for segment in strip.segments]
        for strip in strips.strips
    ]


def strip_text(strips: Strips) -> str:
    """`strips` under each other, each a line; then the scale with its networks, and the legend."""
    labels = [_label(strip) for strip in strips.strips]
    room = max(map(len, labels)) + 2 if any(labels) else 0
    width = max(10, min(_WIDEST, terminal_width() - room - 2 * len(_INDENT)))
    conditions = f" ({strips.conditions})" if strips.conditions else ""
    lines = [wrapped(printable(f"{strips.title}{conditions}"), _INDENT, "")]
    for label, segments in zip(labels, shares(strips), strict=True):
        lines.append(f"{_INDENT}{label:<{room}}{_bar(segments, width)}")
    lines += [f"{_INDENT}{' ' * room}{line}" for line in _scale(strips, width)]
    legend = "  ".join(f"{_BLOCKS[side]} {strips.words(side)}" for side in strips.sides)
    predicted = f"  {_PREDICTED} predicted, not measured" if strips.is_predicted else ""
    lines.append(f"{_INDENT}{legend}{predicted}")
    return "\n".join(line.rstrip() for line in lines)


def _label(strip: Strip) -> str:
    label = printable(strip.label, 200) + (f" {_PREDICTED}" if strip.is_predicted else "")
    return label if len(label) <= _LABEL else f"{label[: _LABEL // 2]}…{label[-_LABEL // 2 + 1 :]}"


def _bar(segments: list[tuple[float, float, Side]], width: int) -> str:
    """Each character is what holds in its middle."""
    text = ""
    for place in range(width):
        middle = (place + 0.5) / width
        sides = [side for low, high, side in segments if low <= middle <= high]
        text += _BLOCKS[sides[0]] if sides else " "
    return text


def _scale(strips: Strips, width: int) -> list[str]:
    """The ends of the scale; above it the networks that have room in two lines."""
    low, high = strips.ends
    first, last = units.short_count(low), f"{units.short_count(high)} {strips.measure}"
    span = math.log(high / low) or 1.0
    lines = [[" "] * width for _ in range(_MARK_LINES)]
    for mark in strips.marks:
        place = round((width - 1) * math.log(mark.size / low) / span)
        any(_write(line, mark, place) for line in lines)
    ends = f"{first}{' ' * max(1, width - len(first) - len(last))}{last}"
    return [*filter(None, ("".join(line).rstrip() for line in lines)), ends]


def _write(line: list[str], mark: Mark, place: int) -> bool:
    """Writes the name of `mark` beside an arrow at its place, if that is free."""
    name = printable(mark.name, 16)
    for text, start in ((f"↑{name}", place), (f"{name}↑", place - len(name))):
        end = start + len(text)
        if start < 0 or end > len(line) or "".join(line[max(0, start - 1) : end + 1]).strip():
            continue
        line[start:end] = text
        return True
    return False
