# SPDX-License-Identifier: Apache-2.0
"""Comparisons, whose results are 0 and 1, and what chooses by them. No gradient goes through."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from crossover_bench.networks import arithmetic, attention
from crossover_bench.networks.calls import Call
from crossover_bench.networks.values import Value

_STEEP = 1e30  # times this, each difference that a float has is beyond 1


def compared(call: Call) -> Value:
    """A difference, above 0 or not: what is held between 0 and 1 of it many times over."""
    difference = attention.as_layers(call, arithmetic.sub(call.changed("sub", alpha=1)))
    if call.operation in ("eq", "ne"):
        both = _held(call, difference, _STEEP, 1), _held(call, difference, -_STEEP, 1)
        equal = call.build.product(call, *both)
        return equal if call.operation == "eq" else _not(call, equal)
    slope = -_STEEP if call.operation in ("lt", "le") else _STEEP
    return _held(call, difference, slope, float(call.operation in ("ge", "le")))


def is_above(call: Call, value: Value, bound: float) -> Value:
    return _held(call, attention.affine(call, value, 1.0, -bound), _STEEP, 0.0)


def _held(call: Call, difference: Value, slope: float, at_0: float) -> Value:
    steep = attention.affine(call, difference, slope, at_0)
    return call.build.elementwise(call, "hardtanh", steep, min_val=0.0)


def negated(call: Call) -> Value:
    return _not(call, call.value())


def _not(call: Call, condition: Value) -> Value:
    return attention.affine(call, condition, -1.0, 1)


def chosen(call: Call, condition: Value, chosen: Any, other: Any) -> Value:
    """`chosen` where the condition is 1, else `other`."""
    parts = []
    for gate, operand in (
        (condition, chosen),
        (_not(call, condition), other),
    ):
        if isinstance(operand, (int, float)) and not math.isfinite(operand):
            raise call.refused(f"it chooses {operand}, and a product with 0 is not 0 then")
        if not isinstance(operand, (int, float)) or operand:
            both = {"self": gate, "other": operand}
            parts.append(attention.as_layers(call, arithmetic.mul(call.changed("mul", **both))))
    if not parts:
        return attention.affine(call, condition, 0.0, 0)
    return call.build.sum(call, *parts) if len(parts) == 2 else parts[0]


def floor(call: Call) -> Value:
    """Of uniform random numbers with another added, as stochastic depth has it: they reach one
    whole number."""
    least, most = call.bounds or (0.0, math.inf)
    whole = math.floor(least)
    if most > whole + 2:
        raise call.refused("it is known of numbers between 0 and 1 that it draws itself")
    reached = compared(call.changed("ge", other=whole + 1.0))
    return attention.affine(call, reached, 1.0, whole)


def prelu(call: Call) -> Value:
    """x, or x times a trained factor where that is below 0."""
    value = call.value()
    factor = call["weight"]
    if hasattr(factor, "seen") and factor.seen.places.size > 1:  # one for each channel
        places = factor.seen.places.reshape(-1, *[1] * (value.places.ndim - 2))
        factor = replace(factor, seen=factor.seen.seen_as(places))
    above = call.build.elementwise(call, "relu", value)
    turned = attention.affine(call, value, -1.0, 0)
    below = call.build.elementwise(call, "relu", turned)
    scaled = arithmetic.mul(call.changed("mul", self=below, other=factor))
    return call.build.sum(call, above, attention.affine(call, scaled, -1.0, 0))
