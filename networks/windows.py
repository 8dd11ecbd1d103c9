# SPDX-License-Identifier: Apache-2.0
"""Windows over images, and over lines, which are images of height 1, as the layers' JSON has
them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from networks.values import Place, Value

if TYPE_CHECKING:
    from networks.builder import Builder

MOST_PLACES = 255  # in a window whose largest is found


@dataclass(frozen=True)
class Padded:
    """Zeros around an image or a line, as many on both sides of a direction, and no layer's result:
    the convolution that reads it has them as its padding."""

    value: Value
    sides: tuple[int, ...]
    at: Place

    def added_to(self, padding: Any) -> Any:
        more = both(pair(self.sides, 0))
        return pair([one + of for one, of in zip(more, both(padding), strict=True)], 0)


def padded(at: Place, value: Value, zeros: Sequence[int]) -> Value | Padded:
    """`zeros` are in front and behind, of the last direction first."""
    if not any(zeros):
        return value
    sides = list(zip(zeros[::2], zeros[1::2], strict=True))[::-1]
    directions = value.places.ndim - 2
    if len(sides) > directions or any(a != b or a < 0 for a, b in sides):
        raise at.refused(
            f"it adds {list(zeros)} zeros; as many on both sides of an image or a line can be added"
        )
    return Padded(value, (*[0] * (directions - len(sides)), *(a for a, _ in sides)), at)


def pair(sizes: Sequence[int], of_lines: int) -> Any:
    """A number for both directions, or [height, width]; `of_lines` is what lines, which have one
    direction, have in the other."""
    sizes = [of_lines, *sizes] if len(sizes) == 1 else list(sizes)
    return sizes[0] if sizes[0] == sizes[1] else sizes


def both(size: Any) -> tuple[int, int]:
    """(height, width) of what pair() gives."""
    return (size, size) if isinstance(size, int) else tuple(size)


def global_max(build: Builder, at: Place, value: Value, axes: Sequence[int], keeps: bool) -> Value:
    """The largest of each channel."""
    rank = value.places.ndim
    if rank == 3 and [axis % rank for axis in axes] == [1]:  # of a sequence, over time
        turned = value.seen_as(value.places.swapaxes(1, 2))
        found = global_max(build, at, turned, [2], keeps)
        return found.seen_as(found.places.swapaxes(1, 2)) if keeps else found
    if sorted(axis % rank for axis in axes or range(rank)) != list(range(2, rank)):
        raise at.refused("the largest can be that of an image's channels")
    size = pair(value.places.shape[2:], 1)
    found = build.image(at, "max_pool2d", value, kernel_size=size)
    return found if keeps else build.viewed(at, found, found.places.reshape(found.shape[:2]))


def check_window(at: Place, kind: str, own: dict[str, Any]) -> None:
    size, padding = both(own["kernel_size"]), both(own.get("padding", 0))
    extents = [d * (k - 1) + 1 for d, k in zip(both(own.get("dilation", 1)), size, strict=True)]
    if any(p >= extent for p, extent in zip(padding, extents, strict=True)):
        raise at.refused(f"padding is {own['padding']}, and can only be below {pair(extents, 1)}")
    more, stride = both(own.get("output_padding", 0)), both(own.get("stride", 1))
    if any(one >= step for one, step in zip(more, stride, strict=True)):
        raise at.refused(
            f"output_padding is {own['output_padding']}, and can only be below the stride"
        )
    if kind == "max_pool2d" and math.prod(size) > MOST_PLACES:
        raise at.refused(f"its windows have {math.prod(size)} places; {MOST_PLACES} are the most")
