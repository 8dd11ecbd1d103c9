# SPDX-License-Identifier: Apache-2.0
"""rms_norm by hand, x * rsqrt(mean(x^2) + eps) * weight, or as exporters to ONNX write it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crossover_bench.networks.builder import At
from crossover_bench.networks.values import Value


@dataclass(frozen=True)
class Partial:
    """A part of an rms_norm. No layer gives it."""

    of: Value
    stage: str = "squares"
    eps: float = 0.0

    @property
    def epsilon(self) -> float:
        """The epsilon as it was written before it became a float32."""
        return float(f"{self.eps:.6g}")


_NEXT = {  # by what is done to it
    "mean": ("squares", "mean"),
    "add": ("mean", "sum"),
    "sqrt": ("sum", "root"),
    "rsqrt": ("sum", "inverse"),
    "reciprocal": ("root", "inverse"),
}


def goes_on(partial: Partial, operation: str, arguments: list[Any]) -> bool:
    """Whether an operation with these arguments is the next step of an rms_norm. If not, the steps
    so far become layers."""
    stage, others = partial.stage, [read for read in arguments if read is not partial]
    other: Any = others[0] if others else None
    if operation == "mean":
        return stage == "squares" and others[:2] == [[-1], True]
    if operation == "add":
        return stage == "mean" and np.ndim(other) == 0 and not isinstance(other, Partial)
    if operation in _NEXT:
        return stage == _NEXT[operation][0]
    if operation == "mul" and stage == "normalized":
        return hasattr(other, "seen") and other.seen.shape == partial.of.shape[-1:]
    is_divisor = operation == "div" and arguments[1] is partial and stage == "root"
    is_factor = operation == "mul" and stage == "inverse"
    same = isinstance(other, Value) and other.layer == partial.of.layer
    return (is_divisor or is_factor) and same and bool(other.is_seen_as(partial.of.places))


def as_layers(at: At, partial: Partial) -> Value:
    """The steps so far as layers."""
    build, value = at.build, partial.of
    if partial.stage == "normalized":
        eps = partial.epsilon
        return build.rowwise(at, "rms_norm", value, [], eps=eps, elementwise_affine=False)
    value = build.product(at, value, value)
    if partial.stage != "squares":
        value = build.mean(at, value, [-1], True)
    if partial.eps:
        value = build.elementwise(at, "affine", value, shift=partial.eps)
    if partial.stage in ("root", "inverse"):
        value = build.elementwise(at, "sqrt", value)
    return build.elementwise(at, "reciprocal", value) if partial.stage == "inverse" else value


def after(at: At, partial: Any, done: str, eps: float = 0.0) -> Partial:
    """`done`: mean (over the last dimension, which is kept), add (of eps), sqrt, rsqrt or
    reciprocal."""
    stage, following = _NEXT[done]
    if not isinstance(partial, Partial) or partial.stage != stage:
        raise at.refused("it is known of rms_norm alone, x * rsqrt(mean(x^2) + eps) * weight")
    return replace(partial, stage=following, eps=partial.eps + eps)


def normalized(at: At, value: Any, partial: Partial) -> Partial:
    """x times its inverse root, or divided by its root."""
    same = isinstance(value, Value) and value.layer == partial.of.layer
    if not same or not value.is_seen_as(partial.of.places):
        raise at.refused("it normalizes another result than that whose squares it has")
    return replace(partial, stage="normalized")


def weighted(at: At, partial: Partial, parameter: Any) -> Value:
    """`parameter`: [width], its path or its numbers."""
    if partial.stage != "normalized":
        raise at.refused("it is known of rms_norm alone, x * rsqrt(mean(x^2) + eps) * weight")
    return at.build.rowwise(at, "rms_norm", partial.of, [parameter], eps=partial.epsilon)
