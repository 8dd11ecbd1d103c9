# SPDX-License-Identifier: Apache-2.0
"""Products of two layers' results, and the softmax of one: of sequences as heads have them."""

from __future__ import annotations

import numpy as np

from crossover_bench.networks import strides
from crossover_bench.networks.builder import Builder
from crossover_bench.networks.values import BATCH, Place, Value, non_defaults, shown


def matmul(build: Builder, at: Place, left: Value, right: Value, scale: float = 1.0) -> Value:
    """left [batch, (heads), m, k] times right [batch, (heads), k, n]."""
    left, right = build.sequence(at, left), build.sequence(at, right)
    left = left if heads_of(left) else _copied(build, at, left)
    if heads_of(left) not in (heads_of(right), heads_of(_turned(right))):
        right = _copied(build, at, right)
    turned = _turned(right)
    heads = heads_of(left)
    transpose = heads != heads_of(right)
    if not heads or (transpose and heads != heads_of(turned)):
        raise at.refused(
            f"it multiplies {shown(left.places.shape, None)} by {shown(right.places.shape, None)}; "
            "two layers' results can be multiplied as sequences [batch, time, width], or as heads "
            "of them [batch, heads, time, width], the second transposed or not"
        )
    settings = non_defaults(transpose=(transpose, False), num_heads=(heads, 1), scale=(scale, 1.0))
    given = build.layer(at, "matmul", [left.plain, right.plain], **settings)
    return given.seen_as(as_heads(given, heads).reshape(*left.places.shape[:-1], -1))


def _turned(value: Value) -> Value:
    return value.seen_as(value.places.swapaxes(-1, -2)) if value.places.ndim > 1 else value


def _copied(build: Builder, at: Place, value: Value) -> Value:
    """A copy of [batch, (heads), time, width] as a sequence with its heads side by side."""
    seen = value.places
    if seen.ndim not in (3, 4) or len(seen) != BATCH:
        return value
    by_time = seen if seen.ndim == 3 else seen.swapaxes(1, 2)
    time, width = by_time.shape[1], by_time.shape[2:]
    flat = value.seen_as(by_time.reshape(BATCH, time, -1))
    copy = strides.rearranged(build, at, flat, (time, int(np.prod(width))))
    if copy is None:
        return value
    by_time = copy.places.reshape(BATCH, time, *width)
    return copy.seen_as(by_time if seen.ndim == 3 else by_time.swapaxes(1, 2))


def softmax(build: Builder, at: Place, value: Value, causal: bool = False) -> Value:
    """The softmax of the last dimension. `causal`: only of heads' scores."""
    value = build.sequence(at, value)
    if len(value.shape) > 2 and not value.time_first:  # rows of pixels, or of the input
        copy = strides.as_rows(build, at, value)
        if copy is None:
            raise at.refused(
                f"it reads rows of {shown(value.shape)}; softmax reads vectors, or sequences of "
                "them"
            )
        value = copy
    heads = heads_of(value)
    if not heads or (value.rows is not None and not causal):
        return build.rowwise(at, "softmax", value, [])
    settings = non_defaults(num_heads=(heads, 1), causal=(causal, False))
    return build.layer(at, "softmax", [value.plain], **settings).seen_as(value.places)


def dot(build: Builder, at: Place, value: Value, keeps: bool) -> Value | None:
    """The sum over the last dimension of a product of two vectors; None of other values."""
    step = build.steps.get(value.layer)
    if step is None or step.layer["type"] != "multiply" or not value.is_plain:
        return None
    reads = [build.input if name == "input" else build.steps[name].gives for name in step.reads]
    if len(value.shape) != 2 or any(read.shape != value.shape for read in reads):
        return None
    given = build.layer(at, "matmul", reads, transpose=True)
    return given if keeps else given.seen_as(given.plain.places[:, 0])


def heads_of(value: Value) -> int:
    """The number of heads that a sequence is seen as; 0: it is not seen as heads."""
    places = value.places
    if places.ndim not in (3, 4) or len(value.shape) not in (2, 3):
        return 0
    if len(value.shape) == 3 and not value.time_first:
        return 0
    heads = places.shape[1] if places.ndim == 4 else 1
    if value.shape[-1] % heads:
        return 0
    by_head = as_heads(value, heads)
    return heads if value.is_seen_as(by_head if places.ndim == 4 else by_head[:, 0]) else 0


def as_heads(value: Value, heads: int) -> np.ndarray:
    """[batch, heads, time, width of a head]. A vector is a sequence of one place."""
    time = 1 if len(value.shape) == 2 else value.shape[0]
    by_time = value.plain.places.reshape(time, -1, heads, value.shape[-1] // heads)
    return by_time.transpose(1, 2, 0, 3)
