# SPDX-License-Identifier: Apache-2.0
"""Strips as lines of block characters for a terminal."""

import math

from plots import units
from plots.core.strip import Mark, Side, Strip, Strips, shares
from plots.core.tables.plain import terminal_width, wrapped
from plots.text import printable

_BLOCKS: dict[Side, str] = {"cpu": "█", "open": "▒", "gpu": "░"}
_WIDEST = 60  # characters of a strip
_LABEL = 30  # characters of a strip's label
_PREDICTED = "*"
_INDENT = "  "
_MARK_LINES = 2


def strip_text(strips: Strips) -> str:
    """`strips` under each other, each a line; then the scale with its networks, and the legend."""
    labels = [_label(one) for one in strips.strips]
    room = max(map(len, labels)) + 2 if any(labels) else 0
    width = max(10, min(_WIDEST, terminal_width() - room - 2 * len(_INDENT)))
    said = f" ({strips.conditions})" if strips.conditions else ""
    lines = [wrapped(printable(f"{strips.title}{said}"), _INDENT, "")]
    for label, own in zip(labels, shares(strips), strict=True):
        lines.append(f"{_INDENT}{label:<{room}}{_bar(own, width)}")
    lines += [f"{_INDENT}{' ' * room}{line}" for line in _scale(strips, width)]
    legend = "  ".join(f"{_BLOCKS[side]} {strips.words(side)}" for side in strips.sides)
    predicted = f"  {_PREDICTED} predicted, not measured" if strips.is_predicted else ""
    lines.append(f"{_INDENT}{legend}{predicted}")
    return "\n".join(line.rstrip() for line in lines)


def _label(one: Strip) -> str:
    label = printable(one.label, 200) + (f" {_PREDICTED}" if one.is_predicted else "")
    return label if len(label) <= _LABEL else f"{label[: _LABEL // 2]}…{label[-_LABEL // 2 + 1 :]}"


def _bar(segments: list[tuple[float, float, Side]], width: int) -> str:
    """Each character is what holds in its middle."""
    text = ""
    for place in range(width):
        middle = (place + 0.5) / width
        own = [side for low, high, side in segments if low <= middle <= high]
        text += _BLOCKS[own[0]] if own else " "
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
    return [*(said for line in lines if (said := "".join(line).rstrip())), ends]


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
