# SPDX-License-Identifier: Apache-2.0
"""Where an operation's numbers are in what bench's layers give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

BATCH = 2  # while a network is imported; one row would have no variance


class Refused(Exception):  # noqa: N818 - a limit, not a fault
    """Why a network can't be imported, in a sentence."""


def in_short(error: Exception) -> str:
    """The words of an error in one line."""
    return " ".join(str(error).split())[:200]


class ReadsImages(Exception):  # noqa: N818 - a second try has them
    """The network reads its input as images [channels, height, width] of a sample's numbers;
    `places`: where each of these is in the input as the user described it."""

    def __init__(self, sample: Sequence[int], places: np.ndarray) -> None:
        super().__init__(sample)
        self.sample, self.places = tuple(sample), places.ravel()


class Place(Protocol):
    """An operation in another's network."""

    @property
    def name(self) -> str:
        """The name of the layer that it becomes, if no other layer has it."""

    def refused(self, what: str) -> Refused:
        """A sentence that names the operation and where it stands."""


@dataclass(frozen=True)
class Value:
    """The numbers that a layer gives, as another's code sees them after its views: `places` has
    that code's shape, and says where each number is in the layer's own result, row by row; -1 is
    what no layer gives. So any chain of views is compared with what a layer needs, number by
    number, whatever the views are called."""

    layer: str
    shape: tuple[int, ...]  # of the layer's own result
    time_first: bool  # [time, batch, ...] and not [batch, ...]
    view: np.ndarray | None = None  # None: as the layer gives it

    @property
    def places(self) -> np.ndarray:
        if self.view is not None:
            return self.view
        return np.arange(math.prod(self.shape)).reshape(self.shape)

    @property
    def plain(self) -> Value:
        """The layer's result as the layer gives it."""
        return replace(self, view=None)

    @property
    def is_plain(self) -> bool:
        return self.view is None

    @property
    def is_line(self) -> bool:
        """Whether this is an image of height 1 that the code sees without its height: [batch,
        channels, length]."""
        is_low = len(self.shape) == 4 and self.shape[2] == 1
        return is_low and self.is_seen_as(self.plain.places[:, :, 0])

    @property
    def image(self) -> Value | None:
        """The image as a layer reads it; None where this is no image, or an image in another
        order."""
        return self.plain if len(self.shape) == 4 and (self.is_plain or self.is_line) else None

    def as_line_if(self, other: Value) -> Value:
        """This image, seen as a line if the other value is a line."""
        is_line = other.is_line and len(self.shape) == 4
        return self.seen_as(self.plain.places[:, :, 0]) if is_line else self

    @property
    def is_whole(self) -> bool:
        """Whether the code sees each number once, in any order."""
        if self.view is None:
            return True
        if (self.view < 0).any():
            return False
        counts = np.bincount(self.view.ravel(), minlength=math.prod(self.shape))
        return bool((counts == 1).all())

    def seen_as(self, places: np.ndarray) -> Value:
        return self.plain if self.plain.is_seen_as(places) else replace(self, view=places)

    def is_seen_as(self, places: np.ndarray) -> bool:
        return np.array_equal(self.places, places)

    @property
    def rows(self) -> np.ndarray | None:
        """Which row of the layer (all but its last dimension) each row of the code is; None where
        the code's rows are others, or are not each row once."""
        width, places = self.shape[-1], self.places
        if places.ndim == 0 or places.shape[-1] != width:
            return None
        rows = places[..., 0] // width
        whole = (places == rows[..., None] * width + np.arange(width)).all()
        return rows if whole and self.is_whole else None

    def of_rows(self, rows: np.ndarray) -> Value:
        """This result, whose rows the code sees in this order."""
        width = self.shape[-1]
        return self.seen_as(rows[..., None] * width + np.arange(width))


def shown(shape: tuple[int, ...], batch_axis: int | None = 0) -> str:
    """[batch, 3, 32, 32]"""
    words = ["batch" if axis == batch_axis else str(size) for axis, size in enumerate(shape)]
    return f"[{', '.join(words)}]"


def broadcast_to(numbers: np.ndarray, shape: tuple[int, ...]) -> np.ndarray | None:
    """The numbers in that shape; None where they do not meet it."""
    pairs = zip(reversed(numbers.shape), reversed(shape), strict=False)
    meet = numbers.ndim <= len(shape) and all(count in (1, size) for count, size in pairs)
    return np.broadcast_to(numbers, shape) if meet else None


def non_defaults(**settings: tuple[Any, Any]) -> dict[str, Any]:
    """Of settings, each a value and its default, those whose value is another."""
    return {name: value for name, (value, default) in settings.items() if value != default}


def pair(sizes: Sequence[int], of_lines: int) -> Any:
    """One number for both directions, or [height, width]. `of_lines`: the number that lines, which
    have one direction, have in the other."""
    sizes = [of_lines, *sizes] if len(sizes) == 1 else list(sizes)
    return sizes[0] if sizes[0] == sizes[1] else sizes


def both(size: Any) -> tuple[int, int]:
    """(height, width) of what pair() gives."""
    return (size, size) if isinstance(size, int) else tuple(size)
