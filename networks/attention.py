# SPDX-License-Identifier: Apache-2.0
"""Attention in a graph: its own operation, or products, scale, mask and softmax. What is no
attention as bench has it becomes these, one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from networks import products
from networks.builder import said
from networks.values import Place, Value

if TYPE_CHECKING:
    from networks.builder import Builder


# Operations that take scores as they are; for all others they become layers.
OF_SCORES = ("matmul", "bmm", "mul", "div", "masked_fill", "softmax")


class At(Place, Protocol):
    build: Builder


@dataclass(frozen=True)
class Scaled:
    """Queries or keys times a number, and no layer's result."""

    value: Value
    factor: float


@dataclass(frozen=True)
class Scores:
    """A product of two results, and no layer's yet: [batch, (heads), time, time] in attention."""

    query: Value
    key: Value  # transposed back, where it was a key
    scale: float = 1.0
    causal: bool = False
    are_weights: bool = False  # after the softmax

    @property
    def usual_scale(self) -> float:
        return 1 / math.sqrt(self.query.places.shape[-1])


def of_one_call(
    at: At, query: Value, key: Value, value: Value, *, causal: bool, scale: float | None
) -> Value:
    scores = Scores(query, key, causal=causal, are_weights=True)
    return _attention(at, replace(scores, scale=scale or scores.usual_scale), value)


def product(at: At, left: Any, right: Any) -> Any:
    if isinstance(left, Scores) and left.are_weights and isinstance(right, Value):
        return _attention(at, left, right)
    query, key = (
        one if isinstance(one, Scaled) else Scaled(as_layers(at, one), 1.0) for one in (left, right)
    )
    ranks = {query.value.places.ndim, key.value.places.ndim}
    if ranks not in ({3}, {4}):
        raise at.refused("two layers' results can be multiplied as sequences or heads of them")
    turned = key.value.seen_as(key.value.places.swapaxes(-1, -2))
    return Scores(query.value, turned, query.factor * key.factor)


def scaled(at: At, found: Any, factor: Any) -> Scores | Scaled:
    """By a number: scores, or queries and keys before their product."""
    if isinstance(factor, Value) or np.size(factor) != 1:
        raise at.refused("scores can only be scaled by a number")
    factor = float(np.asarray(factor).reshape(()))
    if isinstance(found, Scaled):
        return replace(found, factor=found.factor * factor)
    if isinstance(found, Value):
        return Scaled(found, factor)
    scores = _scores(at, found)
    return replace(scores, scale=scores.scale * factor)


def masked(at: At, found: Any, hidden: np.ndarray) -> Scores:
    """`hidden`: which scores are -inf."""
    scores = _scores(at, found)
    time = scores.query.places.shape[-2]
    later = np.triu(np.ones((time, time), dtype=bool), 1)
    if hidden.size != later.size or not np.array_equal(hidden.reshape(later.shape), later):
        raise at.refused("only a mask of -inf for all later places is known")
    return replace(scores, causal=True)


def softmax(at: At, found: Any, axis: int) -> Any:
    rank = (found.query if isinstance(found, Scores) else as_layers(at, found)).places.ndim
    if axis not in (-1, rank - 1):
        raise at.refused(f"its dimension is {axis}, and can only be the last")
    if isinstance(found, Scores) and not found.are_weights:
        return replace(found, are_weights=True)
    return products.softmax(at.build, at, as_layers(at, found))


def as_layers(at: At, found: Any) -> Value:
    """What has no place in an attention layer, for another that reads it."""
    if isinstance(found, Value):
        return found
    if isinstance(found, Scaled):
        raise at.refused("it reads a result times a number, which attention's products alone do")
    if not isinstance(found, Scores):
        raise at.refused("it reads what is no layer's result")
    key = found.key.seen_as(found.key.places.swapaxes(-1, -2))
    given = products.matmul(at.build, at, found.query, key, found.scale)
    if found.are_weights:
        return products.softmax(at.build, at, given, found.causal)
    if found.causal:
        raise at.refused("masked scores can only be read by a softmax")
    return given


def _scores(at: At, found: Any) -> Scores:
    if not isinstance(found, Scores) or found.are_weights:
        raise at.refused("it is known of attention's scores alone")
    return found


def _attention(at: At, scores: Scores, value: Value) -> Value:
    """Queries, keys and values are to be those of one linear layer, [time, batch, 3 heads size]."""
    query, parts = scores.query, (scores.query, scores.key, value)
    is_usual = math.isclose(scores.scale, scores.usual_scale, rel_tol=1e-6)
    is_one = len({part.layer for part in parts}) == 1 and query.time_first
    if is_usual and is_one and len(query.shape) == 3 and query.places.ndim == 4:
        time, batch, wide = query.shape
        heads = query.places.shape[1]
        own = query.own.reshape(time, batch, 3, heads, -1) if wide % (3 * heads) == 0 else None
        thirds = [] if own is None else own.transpose(2, 1, 3, 0, 4)
        if len(thirds) and all(map(Value.is_seen_as, parts, thirds)):
            sizes = {"num_heads": heads, **said(causal=(scores.causal, False))}
            given = at.build.layer(at, "attention", [query], **sizes)
            return given.seen_as(
                given.own.reshape(time, batch, heads, -1).transpose(1, 2, 0, 3),
            )
    return products.matmul(at.build, at, as_layers(at, scores), value)
