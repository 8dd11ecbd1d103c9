# SPDX-License-Identifier: Apache-2.0
"""Views that no layer reads as they are: a layer as_strided copies their numbers into an order that
one does."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from crossover_bench.networks.steps import Steps
from crossover_bench.networks.values import BATCH, Place, Value, broadcast_to, non_defaults, pair

MOST_PARTS = 64  # of a view that no strides describe
MOST_PLACES = 255  # in a window whose largest is found


def fitted(places: np.ndarray) -> tuple[list[int], list[int]] | None:
    """Sizes and strides that give these places, row by row, from the first place on. None: no
    strides do."""
    rest = places.ravel()
    sizes: list[int] = []
    strides: list[int] = []
    while len(rest) > 1:
        step = int(rest[1] - rest[0])
        jumps = np.flatnonzero(np.diff(rest) != step)
        count = int(jumps[0]) + 1 if len(jumps) else len(rest)
        if len(rest) % count:
            return None
        rows = rest.reshape(-1, count)
        if not (rows == rows[:, :1] + step * np.arange(count)).all():
            return None
        sizes.insert(0, count)
        strides.insert(0, step)
        rest = rows[:, 0]
    return (sizes, strides) if sizes else ([1], [1])


def samples_of(value: Value) -> tuple[np.ndarray, np.ndarray]:
    """Of each number that the code sees: its sample, and its place in the sample."""
    places = value.places
    if value.time_first:
        batch, width = value.shape[1], math.prod(value.shape[2:])
        return places // width % batch, places // (batch * width) * width + places % width
    sample = math.prod(value.shape[1:])
    return places // sample, places % sample


def placed(value: Value, inner: np.ndarray, samples: np.ndarray) -> np.ndarray:
    """Undoes it: where the numbers at `inner` of these samples are."""
    if value.time_first:
        batch, width = value.shape[1], math.prod(value.shape[2:])
        return inner // width * (batch * width) + samples * width + inner % width
    return inner + samples * math.prod(value.shape[1:])


def is_one_copy(value: Value) -> bool:
    """Whether strides give what the code sees of a sample."""
    if not value.places.size or (value.places < 0).any():
        return False
    of, inner = samples_of(value)
    return fitted(inner.ravel()[of.ravel() == 0]) is not None


def rearranged(
    build: Steps, at: Place, value: Value, sample: Sequence[int] | None = None
) -> Value | None:
    """`value` as a layer gives it with samples of this shape, in the order that the code sees:
    (width,) of a vector, (time, width) of a sequence, (channels, height, width) of an image;
    without a shape the most similar one. The code sees it as before. None where samples differ."""
    places = value.places
    if value.layer in build.tokens or not places.size or (places < 0).any():
        return None
    if value.time_first and len(value.shape) != 3:
        return None
    # bench's layers read [batch, height, width] as an image alone, and no volumes.
    if len(value.shape) > 4 or (len(value.shape) == 3 and not value.time_first):
        return None
    of, inner = samples_of(value)
    is_batch_first = places.ndim > 2 and len(places) == BATCH and (np.diff(of, axis=0) == 1).all()
    if not sample:
        is_natural = is_batch_first and places.ndim < 5
        sample = places.shape[1:] if is_natural else (places.size // BATCH,)
    order, sample = of_each_sample(of, inner), tuple(sample)
    if order is None or math.prod(sample) != len(order):
        return None
    if is_batch_first:
        order = order.reshape(places.shape[1:])
    given = _strided(build, at, value.plain, order, sample)
    if given is None:
        return None
    seen = given.places.swapaxes(0, 1) if given.time_first else given.places
    return put_back(given.seen_as(seen), np.argsort(of.ravel(), kind="stable"), places.shape)


def of_each_sample(of: np.ndarray, numbers: np.ndarray) -> np.ndarray | None:
    """The numbers of each sample, one after another; None where samples differ."""
    first, *others = (numbers.ravel()[of.ravel() == sample] for sample in range(BATCH))
    return first if all(np.array_equal(other, first) for other in others) else None


def put_back(value: Value, order: np.ndarray, shape: tuple[int, ...]) -> Value:
    """Undoes an order: what was taken from this shape in this order has its place again."""
    seen = np.empty(math.prod(shape), dtype=np.int64)
    seen[order] = value.places.ravel()
    return value.seen_as(seen.reshape(shape))


def _strided(
    build: Steps, at: Place, value: Value, order: np.ndarray, sample: tuple[int, ...]
) -> Value | None:
    """The numbers of each sample in this order. Where no strides give it, in parts: as few as the
    dimensions of `order` allow."""
    numbers = order.ravel()
    if (steps := fitted(numbers)) is not None:
        settings = {"shape": list(sample), "size": steps[0], "stride": steps[1]}
        settings |= non_defaults(storage_offset=(int(numbers[0]), 0))
        return build.once(at, "as_strided", value, f"{at.name}.strided", **settings)
    if _count_of_parts(order, MOST_PARTS) > MOST_PARTS:
        return _strided(build, at, value, numbers, sample) if order.ndim > 1 else None
    axis, cuts = _fewest_cuts(order)
    first = np.moveaxis(order, axis, 0)
    parts = [_strided(build, at, value, part, (part.size,)) for part in np.split(first, cuts)]
    vectors = [part for part in parts if part is not None]
    joined = build.layer(at, "concatenate", vectors, name=f"{at.name}.joined")
    places = np.arange(order.size).reshape(first.shape)
    return _strided(build, at, joined, np.moveaxis(places, 0, axis), sample)


def _count_of_parts(order: np.ndarray, most: int) -> int:
    """At most one more than `most`."""
    if fitted(order.ravel()) is not None:
        return 1
    axis, cuts = _fewest_cuts(order)
    count = 0
    for part in np.split(np.moveaxis(order, axis, 0), cuts):
        count += 1 if len(cuts) >= most else _count_of_parts(part, most - count)
        if count > most:
            break
    return count


def _fewest_cuts(order: np.ndarray) -> tuple[int, list[int]]:
    """The dimension, and where it is cut so that steps along each part are one number, the same
    everywhere."""
    cuts = {axis: places for axis in range(order.ndim) if (places := _cuts(order, axis))}
    axis = min(cuts, key=lambda axis: len(cuts[axis]))
    return axis, cuts[axis]


def _cuts(order: np.ndarray, axis: int) -> list[int]:
    steps = np.diff(np.moveaxis(order, axis, 0).reshape(order.shape[axis], -1), axis=0)
    is_one = (steps == steps[:, :1]).all(1)
    cuts, first = [], 0
    for place in range(len(steps)):
        if place >= first and (not is_one[place] or steps[place, 0] != steps[first, 0]):
            first = place + 1
            cuts.append(first)
    return cuts


def _has_rows_of_samples(value: Value) -> bool:
    is_known = value.places.ndim > 1 and bool((value.places >= 0).all())
    of, _ = samples_of(value)
    return is_known and bool((of == of[..., :1]).all())


def as_image(build: Steps, at: Place, value: Value) -> Value | None:
    shape = value.places.shape
    if len(shape) not in (3, 4) or shape[0] != BATCH:
        return None
    sample = shape[1:] if len(shape) == 4 else (shape[1], 1, shape[2])
    image = rearranged(build, at, value, sample)
    return image if image and image.image else None


def as_rows(build: Steps, at: Place, value: Value) -> Value | None:
    """Rows of one sample each, in any order."""
    if not _has_rows_of_samples(value):
        return None
    width = value.places.shape[-1]
    rows = value.places.size // width // BATCH
    copy = rearranged(build, at, value, (width,) if rows == 1 else (rows, width))
    return copy if copy is not None and copy.rows is not None else None


def broadcast(build: Steps, at: Place, parts: Sequence[Value]) -> list[Value] | None:
    """Values that meet in one shape, each as a layer gives it in the same form, and all seen
    alike."""
    try:
        shape = np.broadcast_shapes(*(part.places.shape for part in parts))
    except ValueError:
        return None
    wide = [part.seen_as(np.broadcast_to(part.places, shape)) for part in parts]
    whole = [part for part in wide if part.is_whole and part.layer not in build.tokens]
    if not whole:
        copies = [copy for part in wide if (copy := rearranged(build, at, part)) is not None]
        return copies if len(copies) == len(wide) else None
    like = whole[0]
    order = np.argsort(like.places.ravel())
    given: list[Value] = []
    for part in wide:
        turned = part.seen_as(part.places.ravel()[order].reshape(like.shape))
        is_alike = part.shape == like.shape and part.time_first == like.time_first
        if is_alike and turned.is_plain:
            given.append(part)
            continue
        sample = like.shape[1:] if not like.time_first else (like.shape[0], like.shape[2])
        if not is_one_copy(turned) and (apart := by_distances(build, at, part)) is not None:
            turned = apart.seen_as(apart.places.ravel()[order].reshape(like.shape))
        copy = rearranged(build, at, turned, sample)
        if copy is None or copy.shape != like.shape:
            return None
        given.append(copy.seen_as(like.places))
    return given


def by_distances(build: Steps, at: Place, value: Value) -> Value | None:
    """[batch, ..., places, others] of which each number depends on how far both places of a grid
    are apart, seen as a copy that has each distance once. None of other values."""
    *_, rows, columns = shape = value.places.shape
    of, inner = samples_of(value)
    order = of_each_sample(of, inner) if len(shape) > 2 and shape[0] == BATCH else None
    if order is None:
        return None
    for grid, other in itertools.product(_grids(rows), _grids(columns)):
        down, across = (
            -(-theirs // ours) * np.arange(ours)[:, None] + np.arange(theirs)[::-1]
            for ours, theirs in zip(grid, other, strict=True)
        )
        apart = (slice(None), down[:, None, :, None], across[:, None, :])
        numbers = order.reshape(-1, *grid, *other)
        table = np.full((len(numbers), down.max() + 1, across.max() + 1), -1)
        table[apart] = numbers
        if (table >= 0).all() and np.array_equal(table[apart], numbers):
            samples = np.arange(BATCH).reshape(-1, 1, 1, 1)
            seen = value.seen_as(placed(value, table, samples))
            copy = rearranged(build, at, seen, (table.size,))
            if copy is not None:
                places = copy.places.reshape(BATCH, *table.shape)
                return copy.seen_as(places[(slice(None), *apart)].reshape(shape))
    return None


def _grids(count: int) -> list[tuple[int, int]]:
    """Heights and widths of so many places, squares first."""
    sides = [(side, count // side) for side in range(1, count + 1) if count % side == 0]
    return sorted(sides, key=lambda sizes: abs(sizes[0] - sizes[1]))


def joined(build: Steps, at: Place, parts: Sequence[Value], axis: int) -> Value | None:
    """The parts one behind another in any dimension, which is the first of what is copied: so
    strides give the whole in any order."""
    parts = [part.seen_as(np.moveaxis(part.places, axis, 0)) for part in parts]
    copies = (rearranged(build, at, part, (part.places.size // BATCH,)) for part in parts)
    vectors = [copy for copy in copies if copy is not None]
    if len(vectors) < len(parts):
        return None
    whole = sum(vector.shape[1] for vector in vectors)
    before, seen = 0, []
    for vector in vectors:
        width = vector.shape[1]
        seen.append(vector.places // width * whole + before + vector.places % width)
        before += width
    given = build.layer(at, "concatenate", [vector.plain for vector in vectors])
    return given.seen_as(np.moveaxis(np.concatenate(seen), 0, axis))


def windows_of_all(sizes: Sequence[int]) -> list[dict[str, Any]]:
    """Windows of pools, one behind another, that make one place of so many."""
    if math.prod(sizes) <= MOST_PLACES:
        return [{"kernel_size": pair(sizes, 1)}]
    windows: list[dict[str, Any]] = []
    for axis in reversed(range(len(sizes))):
        extent = sizes[axis]
        while extent > 1:
            size = extent if extent <= MOST_PLACES else math.isqrt(extent - 1) + 1
            window = [size if other == axis else 1 for other in range(len(sizes))]
            is_cut = non_defaults(ceil_mode=(extent % size > 0, False))
            windows.append({"kernel_size": pair(window, 1), **is_cut})
            extent = -(-extent // size)
    return windows


def over(
    build: Steps, at: Place, value: Value, axes: Sequence[int], *, kind: str, keeps: bool
) -> Value | None:
    """A mean or a maximum over any dimensions but the batch."""
    rank = value.places.ndim
    last = np.moveaxis(value.places, axes, range(rank - len(axes), rank))
    rest = last.shape[: rank - len(axes)]
    rows = value.seen_as(last.reshape(*rest, -1))
    width = rows.places.shape[-1]
    if not _has_rows_of_samples(rows):
        return None
    lines = rearranged(build, at, rows, (rows.places.size // width // BATCH, 1, width))
    if lines is None:
        return None
    places = lines.places[..., 0] // width
    windows = [{}] if kind == "global_avg_pool2d" else windows_of_all([width])
    given = lines
    for window in windows:
        given = build.layer(at, kind, [given.plain], **window)
    return given.seen_as(np.expand_dims(places, tuple(axes)) if keeps else places)


def scaled(
    build: Steps, at: Place, value: Value, parameter: Any, numbers: np.ndarray
) -> Value | None:
    """The value times trained factors, one for each channel, row or place, or one for all: a
    convolution of one pixel with a group for each. `numbers`: which factor each number meets."""
    meets, (of, _) = broadcast_to(numbers, value.places.shape), samples_of(value)
    if meets is None or (factors := of_each_sample(of, meets)) is None:
        return None
    counts = np.bincount(factors)
    if (counts != counts[0]).any():
        return None
    settings: dict[str, Any] = {"out_channels": len(counts), "kernel_size": 1, "bias": False}
    settings |= non_defaults(groups=(len(counts), 1))
    if len(value.shape) == 4 and value.shape[1] == len(counts) and value.is_whole:
        pixels = math.prod(value.shape[2:])
        if (value.places // pixels % len(counts) == meets).all():
            given = build.layer(at, "conv2d", [value.plain], [parameter], **settings)
            return given.seen_as(value.places)
    order = np.argsort(of.ravel() * len(counts) + meets.ravel(), kind="stable")
    channels = value.seen_as(value.places.ravel()[order].reshape(BATCH, len(counts), -1))
    image = channels if channels.image is not None else as_image(build, at, channels)
    if image is None:
        return None
    given = build.layer(at, "conv2d", [image.plain], [parameter], **settings)
    return put_back(given, order, value.places.shape)
