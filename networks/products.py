# SPDX-License-Identifier: Apache-2.0
"""Products of two layers' results, and the softmax of one: of sequences as heads have them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from networks import strides
from networks.values import BATCH, Place, Value, said, shown

if TYPE_CHECKING:
    from networks.builder import Builder


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
    own = said(transpose=(transpose, False), num_heads=(heads, 1), scale=(scale, 1.0))
    given = build.layer(at, "matmul", [replace(left, view=None), replace(right, view=None)], **own)
    return given.seen_as(as_heads(given, heads).reshape(*left.places.shape[:-1], -1))


def _turned(value: Value) -> Value:
    return value.seen_as(value.places.swapaxes(-1, -2)) if value.places.ndim > 1 else value


def _copied(build: Builder, at: Place, value: Value) -> Value:
    """[batch, (heads), time, width] as a sequence that has the heads beside each other."""
    seen = value.places
    if seen.ndim not in (3, 4) or len(seen) != BATCH:
        return value
    by_time = seen if seen.ndim == 3 else seen.swapaxes(1, 2)
    time, width = by_time.shape[1], by_time.shape[2:]
    flat = value.seen_as(by_time.reshape(BATCH, time, -1))
    found = strides.rearranged(build, at, flat, (time, int(np.prod(width))))
    if found is None:
        return value
    own = found.places.reshape(BATCH, time, *width)
    return found.seen_as(own if seen.ndim == 3 else own.swapaxes(1, 2))


def softmax(build: Builder, at: Place, value: Value, causal: bool = False) -> Value:
    """Of the last dimension. `causal` of heads' scores alone."""
    value = build.sequence(at, value)
    heads = heads_of(value)
    if not heads or (value.rows is not None and not causal):
        return build.rowwise(at, "softmax", value, [])
    own = said(num_heads=(heads, 1), causal=(causal, False))
    return build.layer(at, "softmax", [replace(value, view=None)], **own).seen_as(value.places)


def dot(build: Builder, at: Place, value: Value, keeps: bool) -> Value | None:
    """The sum over the last dimension of a product of two vectors; None of anything else."""
    step = build.steps.get(value.layer)
    if step is None or step.layer["type"] != "multiply" or not value.is_plain:
        return None
    reads = [build.input if one == "input" else build.steps[one].gives for one in step.reads]
    if len(value.shape) != 2 or any(one.shape != value.shape for one in reads):
        return None
    given = build.layer(at, "matmul", reads, transpose=True)
    return given if keeps else given.seen_as(given.own[:, 0])


def heads_of(value: Value) -> int:
    """As how many heads a sequence is seen; 0: as none."""
    places = value.places
    if places.ndim not in (3, 4) or len(value.shape) not in (2, 3):
        return 0
    if len(value.shape) == 3 and not value.time_first:
        return 0
    heads = places.shape[1] if places.ndim == 4 else 1
    if value.shape[-1] % heads:
        return 0
    own = as_heads(value, heads)
    own = own if places.ndim == 4 else own[:, 0]
    return heads if value.is_seen_as(own) else 0


def as_heads(value: Value, heads: int) -> np.ndarray:
    """[batch, heads, time, width of a head]; a vector is a sequence of one place."""
    time = 1 if len(value.shape) == 2 else value.shape[0]
    return value.own.reshape(time, -1, heads, value.shape[-1] // heads).transpose(1, 2, 0, 3)
