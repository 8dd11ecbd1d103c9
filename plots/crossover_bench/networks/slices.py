# SPDX-License-Identifier: Apache-2.0
"""Parts of what layers give: views until a layer reads one, and then layers that slice; and several
inputs of a network as parts of one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from crossover_bench.networks.steps import Steps
from crossover_bench.networks.values import Place, Refused, Value, non_defaults

_Key = tuple[str, int, int, int]  # of a slice: what it reads, the axis, and from where to where


class Slices:
    def __init__(self, build: Steps) -> None:
        self._build = build
        self.names: dict[_Key, str] = {}  # what they are called, if not as their readers

    def part(self, at: Place, value: Value) -> Value:
        """A layer that slices the channels, columns or places that a view shows. Other values stay
        as they are."""
        if value.is_whole or not value.places.size:
            return value
        if (value.places < 0).any():
            raise at.refused("it reads the last state of a layer in the middle of a stack")
        read = np.unique(value.places)
        ends = [np.unravel_index(end, value.shape) for end in (read[0], read[-1])]
        first, last = (tuple(map(int, end)) for end in ends)
        inside = (slice(start, end + 1) for start, end in zip(first, last, strict=True))
        box = value.plain.places[tuple(inside)]
        if not np.array_equal(read, box.ravel()):
            return value
        cut = [axis for axis, size in enumerate(box.shape) if size != value.shape[axis]]
        is_image = len(value.shape) == 4 and not value.time_first
        # Images, or lines, whose pixels a code sees in their own order.
        is_in_order = value.places.ndim > 2 and (np.diff(value.places.ravel()) > 0).all()
        if is_image and {2, 3} & set(cut) and is_in_order:
            given = value.plain
            if 1 in cut:
                given = self._slice(at, given, 1, first[1], last[1] + 1)
            given = self._cut(at, given, first, last)
            return self._build.viewed(at, given, np.searchsorted(read, value.places))
        if cut == [3] and value.shape[2] == 1:  # places of a line are those of a sequence
            turned = self._build.turned(at, value)
            return self.part(at, self._build.viewed(at, turned, turned.places))
        of_rank: dict[int, set[int]] = {2: {1}, 3: {0, 2} if value.time_first else set(), 4: {1}}
        sliced = {0} if value.layer in self._build.tokens else of_rank.get(len(value.shape), set())
        if not set(cut) <= sliced:  # other axes than those in which a layer slices
            return value
        given = value.plain
        for axis in cut:
            given = self._slice(at, given, axis, first[axis], last[axis] + 1)
        return self._build.viewed(at, given, np.searchsorted(read, value.places))

    def _cut(self, at: Place, value: Value, first: tuple[int, ...], last: tuple[int, ...]) -> Value:
        """A layer that gives these rows and columns of an image."""
        height, width = value.shape[2:]
        sides = non_defaults(
            **{"left": (-first[3], 0), "right": (last[3] + 1 - width, 0)},
            **{"top": (-first[2], 0), "bottom": (last[2] + 1 - height, 0)},
        )
        return self._build.once(at, "pad", value, f"{at.name}.cut", **sides)

    def _slice(self, at: Place, value: Value, axis: int, first: int, end: int) -> Value:
        over_time = axis == 0 and value.layer not in self._build.tokens
        ends = {"from": (first, 0), "to": (end, 0)}
        settings = non_defaults(**ends, over_time=(over_time, False))
        name = self.names.get((value.layer, axis, first, end), f"{at.name}.slice")
        return self._build.once(at, "slice", value, name, **settings)

    def arguments(
        self,
        samples: Sequence[tuple[int, ...]],
        names: Sequence[str],
        batch_axis: int,
        order: np.ndarray | None = None,
    ) -> list[Value]:
        """Each input as a view of the joined input, as the network's own code sees it. `order`:
        which number of a single input each place of the joined one has."""
        whole, views, first = self._build.input, [], 0
        if order is not None:
            return [whole.seen_as(np.argsort(order).reshape(-1, *samples[0]))]
        for sample, name in zip(samples, names, strict=True):
            is_row = len(whole.shape) == 2 and not whole.time_first
            end = first + (math.prod(sample) if is_row else sample[0] if sample else 1)
            axis = 0 if whole.time_first else 1
            part = slice(first, end)
            places = whole.places[part] if whole.time_first else whole.places[:, part]
            if not whole.time_first:
                places = np.moveaxis(places.reshape(-1, *sample), 0, min(batch_axis, len(sample)))
            elif not sample:
                places = places.squeeze(axis)
            elif batch_axis == 0:
                places = places.T
            self.names["input", axis, first, end] = name
            views.append(whole.seen_as(places))
            first = end
        return views


def joined(samples: Sequence[tuple[int, ...]], are_tokens: Sequence[bool]) -> tuple[int, ...]:
    """The shape of a sample that has several inputs one behind another: tokens, columns or
    channels. A single number or token has the shape ()."""
    if len(set(are_tokens)) > 1:
        raise Refused("some inputs are tokens and others numbers; a network has inputs of one kind")
    samples = [sample or (1,) for sample in samples]
    rest = list(samples[0][1:])
    same = all(list(sample[1:]) == rest for sample in samples)
    if len(samples) > 1 and not same and not are_tokens[0]:  # all numbers in a row
        return (sum(math.prod(sample) for sample in samples),)
    if len(samples) > 1 and (not same or len(rest) > (0 if are_tokens[0] else 2)):
        shapes = " and ".join("x".join(map(str, sample)) for sample in samples)
        raise Refused(
            f"inputs of {shapes} can't stand in one row; several inputs can be tokens, vectors, or "
            "images of one height and width, or of one length"
        )
    if len(samples) > 1 and len(rest) == 1:  # images of height 1
        rest = [1, *rest]
    return (sum(sample[0] for sample in samples), *rest)
