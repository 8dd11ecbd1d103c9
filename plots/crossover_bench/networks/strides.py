# SPDX-License-Identifier: Apache-2.0
"""Views that no layer reads as they are: a layer as_strided copies their numbers into an order that
one does."""

from __future__ import annotations

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


def _reads_twice(sizes: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether strides that are not 0 read a number twice."""
    reached = 0
    for stride, size in sorted(zip(map(abs, strides), sizes, strict=True)):
        if stride and stride <= reached:
            return True
        reached += stride * (size - 1)
    return False


def samples_of(value: Value) -> tuple[np.ndarray, np.ndarray]:
    """Of each number that the code sees: its sample, and its place in the sample."""
    places = value.places
    if value.time_first:
        batch, width = value.shape[1], math.prod(value.shape[2:])
        return places // width % batch, places // (batch * width) * width + places % width
    sample = math.prod(value.shape[1:])
    return places // sample, places % sample


def is_one_copy(value: Value) -> bool:
    """Whether strides give what the code sees of a sample."""
    if not value.places.size or (value.places < 0).any():
        return False
    of, inner = samples_of(value)
    steps = fitted(inner.ravel()[of.ravel() == 0])
    return steps is not None and not _reads_twice(*steps)


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
    if not sample:
        is_batch_first = (
            places.ndim > 2 and len(places) == BATCH and (np.diff(of, axis=0) == 1).all()
        )
        is_natural = is_batch_first and places.ndim < 5
        sample = places.shape[1:] if is_natural else (places.size // BATCH,)
    order, sample = of_each_sample(of, inner), tuple(sample)
    if order is None or math.prod(sample) != len(order):
        return None
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
    def copied(read: Value, numbers: np.ndarray, shape: tuple[int, ...]) -> Value:
        sizes, strides = fitted(numbers) or ([1], [1])
        settings = {"shape": list(shape), "size": sizes, "stride": strides}
        settings |= non_defaults(storage_offset=(int(numbers[0]), 0))
        return build.once(at, "as_strided", read, f"{at.name}.strided", **settings)

    steps = fitted(order)
    if steps is not None and not _reads_twice(*steps):
        return copied(value, order, sample)
    parts = _runs(order)
    if not 1 < len(parts) <= MOST_PARTS:
        return None
    vectors = [copied(value, part, (len(part),)) for part in parts]
    joined = build.layer(at, "concatenate", vectors, name=f"{at.name}.joined")
    return copied(joined, np.arange(len(order)), sample)


def _runs(order: np.ndarray) -> list[np.ndarray]:
    """The order in parts of one step each, all above zero."""
    parts, first = [], 0
    while first < len(order):
        end = first + 1
        if end < len(order) and order[end] > order[first]:
            step = order[end] - order[first]
            while end < len(order) and order[end] - order[end - 1] == step:
                end += 1
        parts.append(order[first:end])
        first = end
    return parts


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
        copy = rearranged(build, at, turned, sample)
        if copy is None or copy.shape != like.shape:
            return None
        given.append(copy.seen_as(like.places))
    return given


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
