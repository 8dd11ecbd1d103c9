# SPDX-License-Identifier: Apache-2.0
"""Parameters by themselves: those that are added to a result or multiply it, or are put in front of
a sequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossover_bench.networks.builder import At, Builder
from crossover_bench.networks.strides import rearranged, samples_of
from crossover_bench.networks.values import BATCH, Place, Value, broadcast_to, shown


def position_embedding(
    build: Builder, at: Place, value: Value, parameter: Any, numbers: np.ndarray
) -> Value | None:
    """Adds a parameter to a sequence; `numbers` says which number of the parameter is added where.
    None where these are not a table [time, width] of the sequence's length."""
    value = build.sequence(at, value)
    if value.time_first and len(value.shape) == 3:
        width, shape = value.shape[-1], value.places.shape
        time = value.places // (value.shape[1] * width)
        fits = numbers.size == value.shape[0] * width
        seen = broadcast_to(numbers, shape) if fits else None
        if seen is not None and (seen == time * width + value.places % width).all():
            given = build.layer(at, "position_embedding", [value], [parameter])
            return given.seen_as(value.places)
    return None


def operand(at: At, like: Value, parameter: Any, numbers: np.ndarray, size: int) -> Value:
    """A parameter of so many numbers as a result, which meets `like` in its arithmetic: a table
    added to zeros, one row of it for each sample. `numbers` says which of its numbers is where."""
    try:
        shape = np.broadcast_shapes(like.places.shape, numbers.shape)
    except ValueError as error:
        shapes = f"{shown(numbers.shape, None)} and {shown(like.places.shape, None)}"
        raise at.refused(f"a parameter and a result, {shapes}, do not meet") from error
    table = row(at, like, parameter, size)
    of, _ = samples_of(like.seen_as(np.broadcast_to(like.places, shape)))
    return table.seen_as(of * size + np.broadcast_to(numbers, shape))


def row(at: At, like: Value, parameter: Any, size: int) -> Value:
    """A parameter's numbers, a row of them for each sample of `like`."""
    return at.build.layer(at, "position_embedding", [zeros(at, like, size)], [parameter])


def zeros(at: At, like: Value, size: int) -> Value:
    """A row of so many zeros for each sample of `like`, as a sequence of one place."""
    of, _ = samples_of(like.plain)
    first = np.array([like.plain.places[of == sample][0] for sample in range(BATCH)])
    repeated = like.seen_as(np.broadcast_to(first[:, None, None], (BATCH, 1, size)))
    numbers = rearranged(at.build, at, repeated, (1, size))
    if numbers is None:
        raise at.refused(f"a parameter can't meet what {like.layer} gives")
    return at.build.elementwise(at, "affine", numbers, scale=0.0).plain


def class_token(
    build: Builder, at: Place, parameter: Any, token: np.ndarray, value: Value, *, axis: int
) -> Value:
    """Puts a parameter's numbers at `token` in front of a sequence in time."""
    if value.time_first and len(value.shape) == 3:
        _, batch, width = value.shape
        for axes in ((0, 1, 2), (1, 0, 2)):  # time first, as bench has it, or the batch
            columns = np.broadcast_to(np.arange(width), (1, batch, width)).transpose(axes)
            if (
                value.is_seen_as(value.plain.places.transpose(axes))
                and axis % 3 == axes.index(0)
                and np.array_equal(token, columns)
            ):
                given = build.layer(at, "class_token", [value.plain], [parameter])
                return given.seen_as(given.places.transpose(axes))
    raise at.refused(
        "a parameter can only be put in front of a sequence, in time, as one vector [width] "
        "for all samples"
    )
