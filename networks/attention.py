# SPDX-License-Identifier: Apache-2.0
"""Attention in a graph of PyTorch's: its own operation, or products, scale, mask and softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from networks.builder import said
from networks.values import Value

if TYPE_CHECKING:
    from networks.from_torch import Call


@dataclass(frozen=True)
class Scores:
    """What is between the two products, and no layer's result: [batch, heads, time, time]."""

    query: Value
    key: Value
    scale: float = 1.0
    causal: bool = False
    are_weights: bool = False  # after the softmax

    @property
    def usual_scale(self) -> float:
        return 1 / math.sqrt(self.query.places.shape[-1])


def of_one_call(call: Call) -> Value:
    call.only(attn_mask=None, dropout_p=0.0, enable_gqa=False)
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    scores = Scores(query, key, causal=bool(call["is_causal"]))
    if call["scale"] is not None:
        call.only(scale=scores.usual_scale)
    return _attention(call, scores, value)


def product(call: Call) -> Any:
    left = call["self"]
    if isinstance(left, Scores) and left.are_weights:
        if not math.isclose(left.scale, left.usual_scale):
            raise call.refused(f"scores are scaled by {left.scale}, not by 1 / sqrt(head size)")
        return _attention(call, left, call.value("other"))
    query, key = call.value("self"), call.value("other")
    if query.places.ndim != 4 or key.places.ndim != 4:
        raise call.refused("products of two results are known of attention's heads alone")
    return Scores(query, key.seen_as(key.places.swapaxes(2, 3)))


def scaled(call: Call) -> Scores:
    scores, factor = _scores(call), call["other"]
    if isinstance(factor, Value) or torch.as_tensor(factor).numel() != 1:
        raise call.refused("scores can only be scaled by a number")
    factor = float(factor)
    return replace(scores, scale=scores.scale * (factor if call.operation == "mul" else 1 / factor))


def masked(call: Call) -> Scores:
    scores, mask = _scores(call), call["mask"]
    time = scores.query.places.shape[2]
    later = torch.ones(time, time, dtype=torch.bool).triu(1)
    if call["value"] != -math.inf or not torch.equal(mask.reshape(mask.shape[-2:]), later):
        raise call.refused("only a mask of -inf for all later places is known")
    return replace(scores, causal=True)


def softmax(call: Call) -> Scores:
    scores = _scores(call)
    if call["dim"] not in (-1, 3):
        raise call.refused(f"dim is {call['dim']}, and can only be the last")
    return replace(scores, are_weights=True)


def _scores(call: Call) -> Scores:
    found = call["self"]
    if not isinstance(found, Scores) or found.are_weights:
        raise call.refused("it is known of attention's scores alone")
    return found


def _attention(call: Call, scores: Scores, value: Value) -> Value:
    """Queries, keys and values are to be those of one linear layer, [time, batch, 3 heads size]."""
    query, parts = scores.query, (scores.query, scores.key, value)
    if len({part.layer for part in parts}) == 1 and query.time_first and len(query.shape) == 3:
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
    raise call.refused(
        "query, key and value are to be the thirds of one linear layer's result, in this order, "
        "each as heads of a sequence"
    )
