# SPDX-License-Identifier: Apache-2.0
"""Zeros around images, and around lines, which are images of height 1, or numbers of their own; and
the largest number of each channel."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossover_bench.networks import strides
from crossover_bench.networks.builder import At
from crossover_bench.networks.values import Value, both, pair


@dataclass(frozen=True)
class Padded:
    """Zeros around an image or a line, as many on both sides of a direction. No layer gives it: the
    convolution that reads it has the zeros as its padding."""

    value: Value
    sides: tuple[int, ...]
    at: At

    def as_layer(self) -> Value:
        """A layer for a reader that has no padding of zeros."""
        around = [(zeros, zeros) for zeros in self.sides]
        return _pad_layer(self.at, self.value, [(0, 0), (0, 0), *around])

    def added_to(self, padding: Any) -> Any:
        more = both(pair(self.sides, 0))
        return pair([sum(zeros) for zeros in zip(more, both(padding), strict=True)], 0)


def padded(at: At, value: Value, zeros: Sequence[int]) -> Value | Padded:
    """`zeros`: in front and behind, of the last dimension first. Below zero, numbers are cut
    off."""
    if not any(zeros):
        return value
    rank = value.places.ndim
    sides = list(zip(zeros[::2], zeros[1::2], strict=True))[::-1]
    sides = [(0, 0)] * (rank - len(sides)) + sides
    is_around = not any(map(any, sides[:2])) and all(a == b >= 0 for a, b in sides)
    if rank in (3, 4) and is_around and _axes_of(value) in (None, *_AXES.values()):
        return Padded(value, tuple(a for a, _ in sides[2:]), at)
    return _pad_layer(at, value, sides)


def padded_by_itself(at: At, value: Value, sides: Sequence[tuple[int, int]], mode: str) -> Value:
    """The value with numbers of its own around it, in any dimensions. `mode` is that of numpy.pad:
    reflect, edge or wrap."""
    for axis, (front, back) in enumerate(sides):
        count = value.places.shape[axis]
        if min(front, back) < 0:
            raise at.refused(f"its padding is {front} and {back}, and can't be below 0")
        order = np.pad(np.arange(count), (front, back), mode=mode)  # type: ignore[call-overload]
        parts = [part for part in np.split(order, [front, front + count]) if part.size]
        seen = [value.seen_as(np.take(value.places, part, axis)) for part in parts]
        value = at.build.concatenation(at, seen, axis)
    return value


_AXES = {3: (0, 1, 3), 4: (0, 1, 2, 3)}  # of an image, by the dimensions that a code has it in
_SIDES = ((), ("front", "back"), ("top", "bottom"), ("left", "right"))  # of each


def _pad_layer(at: At, value: Value, sides: Sequence[tuple[int, int]]) -> Value:
    value = at.build.slices.part(at, value)
    axes = _axes_of(value)
    known = axes or _AXES.get(value.places.ndim)
    if known is None or any(sides[known.index(0)]):
        raise at.refused("zeros can be put around images and lines, and around their channels")
    settings: dict[str, Any] = {
        name: count
        for of, axis in zip(sides, known, strict=True)
        for name, count in zip(_SIDES[axis], of, strict=False)
        if count
    }
    if axes is None or axes in _AXES.values():
        return at.build.image(at, "pad", value, **settings)
    given = at.build.layer(at, "pad", [value.plain], **settings)
    return given.seen_as(_seen(given, axes))


def _axes_of(value: Value) -> tuple[int, ...] | None:
    """Which dimension of an image each dimension of the code is, in any order."""
    if len(value.shape) == 4 and not value.time_first and value.places.ndim in _AXES:
        for axes in itertools.permutations(_AXES[value.places.ndim]):
            if (len(axes) == 4 or value.shape[2] == 1) and value.is_seen_as(_seen(value, axes)):
                return axes
    return None


def _seen(value: Value, axes: tuple[int, ...]) -> np.ndarray:
    """The places of an image with its dimensions in this order; without its height, if that is
    1."""
    if len(axes) == 4:
        return value.plain.places.transpose(axes)
    return value.plain.places[:, :, 0].transpose([min(axis, 2) for axis in axes])


def global_max(at: At, value: Value, axes: Sequence[int], keeps: bool) -> Value:
    """The maximum of each channel."""
    rank = value.places.ndim
    if rank == 3 and [axis % rank for axis in axes] == [1]:  # of a sequence, over time
        turned = value.seen_as(value.places.swapaxes(1, 2))
        largest = global_max(at, turned, [2], keeps)
        return largest.seen_as(largest.places.swapaxes(1, 2)) if keeps else largest
    if sorted(axis % rank for axis in axes or range(rank)) != list(range(2, rank)):
        axes = [axis % rank for axis in axes or range(rank)]
        of_places = strides.over(at.build, at, value, axes, kind="max_pool2d", keeps=keeps)
        if of_places is None:
            raise at.refused("the largest can be of a sample, and not of the batch")
        return of_places
    largest = value
    for window in strides.windows_of_all(value.places.shape[2:]):
        largest = at.build.image(at, "max_pool2d", largest, **window)
    places = largest.places.reshape(largest.shape[:2])
    return largest if keeps else at.build.viewed(at, largest, places)
