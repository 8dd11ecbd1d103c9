# SPDX-License-Identifier: Apache-2.0
"""Attention in a graph of PyTorch's: its own operation, or products, scale, mask and softmax. What
is no attention as bench has it becomes these, one by one."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from networks import products
from networks.builder import said
from networks.values import Value

if TYPE_CHECKING:
    from networks.from_torch import Call


# Operations that take scores as they are; for all others they become layers.
OF_SCORES = ("matmul", "bmm", "mul", "div", "masked_fill", "softmax")


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


def of_one_call(call: Call) -> Value:
    call.only(attn_mask=None, dropout_p=0.0, enable_gqa=False)
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    scores = Scores(query, key, causal=bool(call["is_causal"]), are_weights=True)
    scale = scores.usual_scale if call["scale"] is None else call["scale"]
    return _attention(call, replace(scores, scale=scale), value)


def product(call: Call) -> Any:
    left, right = list(call.arguments)[:2]
    scores = call[left]
    if isinstance(scores, Scores) and scores.are_weights and isinstance(call[right], Value):
        return _attention(call, scores, call[right])
    query, key = (
        as_layers(call, call[one]) if isinstance(call[one], Scores) else call.value(one)
        for one in (left, right)
    )
    if query.places.ndim != key.places.ndim or query.places.ndim not in (3, 4):
        raise call.refused("two layers' results can be multiplied as sequences or heads of them")
    return Scores(query, key.seen_as(key.places.swapaxes(-1, -2)))


def scaled(call: Call) -> Scores:
    scores, factor = _scores(call), call["other"]
    if isinstance(factor, Value) or torch.as_tensor(factor).numel() != 1:
        raise call.refused("scores can only be scaled by a number")
    factor = float(factor)
    return replace(scores, scale=scores.scale * (factor if call.operation == "mul" else 1 / factor))


def masked(call: Call) -> Scores:
    scores, mask = _scores(call), call["mask"]
    time = scores.query.places.shape[-2]
    later = torch.ones(time, time, dtype=torch.bool).triu(1)
    if call["value"] != -math.inf or not torch.equal(mask.reshape(mask.shape[-2:]), later):
        raise call.refused("only a mask of -inf for all later places is known")
    return replace(scores, causal=True)


def softmax(call: Call) -> Any:
    found = call["self"]
    rank = (found.query if isinstance(found, Scores) else call.value()).places.ndim
    if call["dim"] not in (-1, rank - 1):
        raise call.refused(f"dim is {call['dim']}, and can only be the last")
    if isinstance(found, Scores) and not found.are_weights:
        return replace(found, are_weights=True)
    value = as_layers(call, found) if isinstance(found, Scores) else call.value()
    return products.softmax(call.build, call, value)


def as_layers(call: Call, scores: Scores) -> Value:
    """What has no place in an attention layer, for another that reads it."""
    key = scores.key.seen_as(scores.key.places.swapaxes(-1, -2))
    given = products.matmul(call.build, call, scores.query, key, scores.scale)
    if scores.are_weights:
        return products.softmax(call.build, call, given, scores.causal)
    if scores.causal:
        raise call.refused("masked scores can only be read by a softmax")
    return given


def _scores(call: Call) -> Scores:
    found = call["self"]
    if not isinstance(found, Scores) or found.are_weights:
        raise call.refused("it is known of attention's scores alone")
    return found


def _attention(call: Call, scores: Scores, value: Value) -> Value:
    """Queries, keys and values are to be those of one linear layer, [time, batch, 3 heads size]."""
    query, parts = scores.query, (scores.query, scores.key, value)
    is_usual = math.isclose(scores.scale, scores.usual_scale) and query.places.ndim == 4
    is_one = len({part.layer for part in parts}) == 1 and query.time_first
    if is_usual and is_one and len(query.shape) == 3:
        time, batch, wide = query.shape
        heads = query.places.shape[1]
        own = query.own.reshape(time, batch, 3, heads, -1) if wide % (3 * heads) == 0 else None
        thirds = [] if own is None else own.transpose(2, 1, 3, 0, 4)
        if len(thirds) and all(map(Value.is_seen_as, parts, thirds)):
            sizes = {"num_heads": heads, **said(causal=(scores.causal, False))}
            given = call.build.layer(call, "attention", [query], **sizes)
            return given.seen_as(
                given.own.reshape(time, batch, heads, -1).transpose(1, 2, 0, 3),
            )
    return products.matmul(call.build, call, as_layers(call, scores), value)
