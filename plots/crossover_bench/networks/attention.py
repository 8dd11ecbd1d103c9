# SPDX-License-Identifier: Apache-2.0
"""Attention in a graph: its own operation, or products, scale, mask and softmax. What is no
attention as bench has it becomes these, one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossover_bench.networks import products, strides
from crossover_bench.networks.builder import At
from crossover_bench.networks.values import BATCH, Value, non_defaults
from crossover_bench.networks.windows import Padded

# Operations that take scores as they are; for all others they become layers.
OF_SCORES = (
    *("add", "sub", "rsub", "matmul", "bmm", "baddbmm", "einsum", "mul", "div"),
    *("masked_fill", "softmax"),
)
HIDDEN = -1e4  # what softmax makes 0 of, beside scores of any other size


@dataclass(frozen=True)
class Scaled:
    """Queries or keys times a number. No layer gives it."""

    value: Value
    factor: float
    at: At


@dataclass(frozen=True)
class Scores:
    """A product of two results, [batch, (heads), time, time] in attention. No layer gives it
    yet."""

    query: Value
    key: Value  # transposed back, where it was a key
    scale: float = 1.0
    causal: bool = False
    are_weights: bool = False  # after the softmax
    # The first dimensions of [batch heads, time, time], or of [batch windows, heads, time, time].
    joined: tuple[int, ...] = ()

    @property
    def usual_scale(self) -> float:
        return 1 / math.sqrt(self.query.places.shape[-1])


def product(at: At, left: Any, right: Any) -> Any:
    if isinstance(left, Scores) and left.are_weights and isinstance(right, Value):
        return of_weights(at, left, apart(right))
    query, key = (
        operand if isinstance(operand, Scaled) else Scaled(as_layers(at, operand), 1.0, at)
        for operand in (left, right)
    )
    ranks = {query.value.places.ndim, key.value.places.ndim}
    if ranks not in ({3}, {4}):
        raise at.refused("two layers' results can be multiplied as sequences or heads of them")
    turned = key.value.seen_as(key.value.places.swapaxes(-1, -2))
    return scores_of(query.value, turned, scale=query.factor * key.factor)


def scores_of(query: Value, key: Value, **settings: Any) -> Scores:
    """Windows of an image, or heads, that lie in the batch are more heads of each sample."""
    parts = apart(query), apart(key)
    joined = () if parts[0] is query else query.places.shape[:-2]
    return Scores(*parts, joined=joined, **settings)


def apart(value: Value) -> Value:
    """[batch heads, time, ...], or [batch windows, heads, time, ...], as [batch, heads, ...]."""
    seen = value.places
    if len(seen) <= BATCH or len(seen) % BATCH:
        return value
    return value.seen_as(seen.reshape(BATCH, -1, *seen.shape[-2:]))


def together(value: Value, joined: tuple[int, ...]) -> Value:
    """Undoes it."""
    seen = value.places
    return value.seen_as(seen.reshape(*joined, *seen.shape[2:])) if joined else value


def scaled(at: At, operand: Any, factor: Any) -> Value | Scores | Scaled:
    """The operand times a number: scores, or queries and keys before their product."""
    numbers = np.asarray(factor)
    if numbers.dtype == object or numbers.size != 1:
        return _by_constants(at, operand, numbers, np.zeros(1))
    factor = float(numbers.reshape(()))
    if factor == 1:
        return operand
    if isinstance(operand, Scaled):
        return replace(operand, factor=operand.factor * factor)
    if isinstance(operand, Value):
        return Scaled(operand, factor, at)
    scores = _scores(at, operand)
    return replace(scores, scale=scores.scale * factor)


def affine(at: At, operand: Any, scale: float, shift: Any) -> Value:
    """scale x + shift. A factor before it becomes part of the scale."""
    shift = np.asarray(shift)
    if shift.dtype == object or shift.size != 1:
        return _by_constants(at, operand, np.full(1, scale), shift)
    shift = float(shift.reshape(()))
    if isinstance(operand, Scaled):
        scale, operand = scale * operand.factor, operand.value
    if (scale, shift) == (1, 0):
        return as_layers(at, operand)
    settings = non_defaults(scale=(scale, 1.0), shift=(shift, 0.0))
    return at.build.elementwise(at, "affine", as_layers(at, operand), **settings)


def _by_constants(at: At, operand: Any, scale: np.ndarray, shift: np.ndarray) -> Value:
    """scale x + shift, with constants for each number: a layer affine for all numbers with the same
    constants, and then they are joined again."""
    given = None
    if object not in (scale.dtype, shift.dtype):
        whole = as_layers(at, operand)
        given = _of_each(at, whole, scale.astype(float), shift.astype(float))
    if given is None:
        raise at.refused(
            "a result meets constants of its own for each number; a layer has one, and at most "
            f"{strides.MOST_PARTS} layers take their place"
        )
    return given


def _of_each(at: At, value: Value, scale: np.ndarray, shift: np.ndarray) -> Value | None:
    try:
        shape = np.broadcast_shapes(value.places.shape, scale.shape, shift.shape)
    except ValueError:
        return None
    wide = value.seen_as(np.broadcast_to(value.places, shape))
    constants = [np.broadcast_to(numbers, shape).ravel() for numbers in (scale, shift)]
    distinct, which = np.unique(np.stack(constants, -1), axis=0, return_inverse=True)
    which = which.reshape(shape)
    of, _ = strides.samples_of(wide)
    each = strides.of_each_sample(of, which)
    if each is None or len(distinct) > strides.MOST_PARTS:
        return None
    order = np.argsort(of.ravel() * len(distinct) + which.ravel(), kind="stable")
    sorted_places = wide.places.ravel()[order].reshape(BATCH, -1)
    ends = np.cumsum(np.bincount(each))
    parts = []
    for (factor, more), part in zip(distinct, np.split(sorted_places, ends[:-1], 1), strict=True):
        settings = non_defaults(scale=(float(factor), 1.0), shift=(float(more), 0.0))
        read = wide.seen_as(part)
        parts.append(at.build.elementwise(at, "affine", read, **settings) if settings else read)
    return strides.put_back(at.build.concatenation(at, parts, 1), order, shape)


def constant(at: At, mask: Any) -> np.ndarray:
    if not hasattr(mask, "numpy"):
        raise at.refused("its mask is calculated, not constant")
    numbers: np.ndarray = mask.numpy()
    return numbers


def hidden_by(at: At, mask: Any) -> np.ndarray:
    """Which scores a mask hides: it is added, or says which scores are left."""
    numbers = constant(at, mask)
    if numbers.dtype == bool:
        return ~numbers
    hidden = numbers <= HIDDEN
    if numbers[~hidden].any():
        raise at.refused(f"a mask is 0, or -inf, or {HIDDEN:g} and less")
    return hidden


def check_fill(at: At, fill: Any) -> None:
    if not np.all(np.asarray(fill) <= HIDDEN):
        raise at.refused(f"only a mask of -inf, or of {HIDDEN:g} and less, is known")


def masked(at: At, operand: Any, hidden: np.ndarray) -> Scores | None:
    """Scores with a mask that attention has itself: of none, or of all later places. None where
    it is another one. `hidden`: which are -inf."""
    scores = _scores(at, operand)
    time = scores.query.places.shape[-2]
    later = np.triu(np.ones((time, time), dtype=bool), 1)
    if not hidden.any():
        return scores
    if hidden.shape[-2:] == later.shape and (hidden == later).all():
        return replace(scores, causal=True)
    if hidden.all(-1).any():
        raise at.refused("its mask hides all places from one, whose softmax is no number")
    return None


def softmax(at: At, operand: Any, axis: int) -> Any:
    if isinstance(operand, Scores) and not operand.are_weights:
        rank = len(operand.joined) + 2 if operand.joined else operand.query.places.ndim
        if axis not in (-1, rank - 1):
            raise at.refused(f"its dimension is {axis}, and can only be the last of scores")
        return replace(operand, are_weights=True)
    value = as_layers(at, operand)
    last = value.seen_as(np.moveaxis(value.places, axis, -1))
    given = products.softmax(at.build, at, last)
    return given.seen_as(np.moveaxis(given.places, -1, axis))


def as_layers(at: At, operand: Any) -> Value:
    """Makes layers of an operand that another operation reads than attention's."""
    if isinstance(operand, Value):
        return operand
    if isinstance(operand, Scaled):
        return at.build.elementwise(operand.at, "affine", operand.value, scale=operand.factor)
    if isinstance(operand, Padded):
        return operand.as_layer()
    if not isinstance(operand, Scores):
        raise at.refused("it reads what is no layer's result")
    key = operand.key.seen_as(operand.key.places.swapaxes(-1, -2))
    given = products.matmul(at.build, at, operand.query, key, operand.scale)
    if operand.are_weights:
        given = products.softmax(at.build, at, given, operand.causal)
    elif operand.causal:
        raise at.refused("masked scores can only be read by a softmax")
    return together(given, operand.joined)


def _scores(at: At, operand: Any) -> Scores:
    if not isinstance(operand, Scores) or operand.are_weights:
        raise at.refused("it is known of attention's scores alone")
    return operand


def of_weights(at: At, scores: Scores, value: Value) -> Value:
    """One layer, where queries, keys and values are those of one linear layer, [time, batch, 3
    heads size]; else products and a softmax."""
    query, parts = scores.query, (scores.query, scores.key, value)
    is_usual = math.isclose(scores.scale, scores.usual_scale, rel_tol=1e-6)
    is_of_one = len({part.layer for part in parts}) == 1 and query.time_first
    heads = query.places.shape[1]
    has_heads = len(query.shape) == 3 and query.places.ndim == 4
    if is_usual and is_of_one and has_heads and query.shape[-1] % (3 * heads) == 0:
        time, batch, _ = query.shape
        thirds = query.plain.places.reshape(time, batch, 3, heads, -1).transpose(2, 1, 3, 0, 4)
        if all(map(Value.is_seen_as, parts, thirds)):
            causal = non_defaults(causal=(scores.causal, False))
            given = at.build.layer(at, "attention", [query], num_heads=heads, **causal)
            places = given.places.reshape(time, batch, heads, -1).transpose(1, 2, 0, 3)
            return together(given.seen_as(places), scores.joined)
    weights = as_layers(at, replace(scores, joined=()))
    return together(products.matmul(at.build, at, weights, value), scores.joined)
