# SPDX-License-Identifier: Apache-2.0
"""Parameters by themselves: those that are added to a sequence, or put in front of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossover_bench.networks.builder import Builder
from crossover_bench.networks.values import Place, Value, broadcast_to


def position_embedding(
    build: Builder, at: Place, value: Value, parameter: Any, numbers: np.ndarray
) -> Value:
    """Adds a parameter to a sequence; `numbers` says which number of the parameter is added where,
    in a shape that meets the sequence's."""
    value = build.sequence(at, value)
    if value.time_first and len(value.shape) == 3:
        width, shape = value.shape[-1], value.places.shape
        time = value.places // (value.shape[1] * width)
        fits = numbers.size == value.shape[0] * width
        seen = broadcast_to(numbers, shape) if fits else None
        if seen is not None and (seen == time * width + value.places % width).all():
            given = build.layer(at, "position_embedding", [value], [parameter])
            return given.seen_as(value.places)
    raise at.refused(
        "a parameter can only be added to a sequence, as a table [time, width] of its length"
    )


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
