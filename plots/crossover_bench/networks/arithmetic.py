# SPDX-License-Identifier: Apache-2.0
"""PyTorch's arithmetic on results, parameters and constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from crossover_bench.networks import attention, root_mean_square, strides, trained
from crossover_bench.networks.calls import Call
from crossover_bench.networks.values import Value, broadcast_to

OF_ATTENTION = (Value, attention.Scores, attention.Scaled)


def add(call: Call) -> Any:
    call.only(alpha=1)
    left, right = call["self"], call["other"]
    for operand, other in ((left, right), (right, left)):
        if isinstance(operand, attention.Scores) and hasattr(other, "numpy"):
            return masked(call, operand, attention.hidden_by(call, other))
        is_constant = isinstance(other, (int, float)) or hasattr(other, "numpy")
        if is_constant and isinstance(operand, (Value, attention.Scaled)):
            return attention.affine(call, operand, 1.0, other)
    left, right = (
        attention.as_layers(call, operand) if isinstance(operand, OF_ATTENTION) else operand
        for operand in (left, right)
    )
    if isinstance(left, Value) and isinstance(right, Value):
        return call.build.sum(call, left, right)
    either: list[tuple[Any, Any]] = [(left, right), (right, left)]
    for partial, eps in either:
        if isinstance(partial, root_mean_square.Partial):
            return root_mean_square.after(call, partial, "add", eps)
    value = left if isinstance(left, Value) else call.value("other")
    argument = "self" if value is right else "other"
    summed, (name, table) = None, call.table(argument)
    if not call.is_calculated(argument):
        if _is_bias(call, value, name, table):
            call.shifts(value.layer, name)
            return value
        summed = trained.position_embedding(call.build, call, value, name, table)
    return summed or call.build.sum(call, value, _trained(call, "self", "other", value))


def masked(call: Call, operand: Any, hidden: np.ndarray) -> Any:
    """Scores of which the `hidden` are -inf. Another mask than attention's own is a table of
    constants that is added."""
    scores = attention.masked(call, operand, hidden)
    if scores is not None:
        return scores
    table = call.frozen(np.where(hidden, attention.HIDDEN, 0.0))
    return add(call.changed("add", self=operand, other=table, alpha=1))


def _trained(call: Call, left: str, right: str, value: Value) -> Value:
    """Whichever of both arguments is a parameter, as a result that meets the value."""
    name = left if hasattr(call[left], "seen") else right
    size = math.prod(call[name].seen.shape)
    operand = trained.operand(call, value, *call.table(name), size)
    for function in call[name].calculated:
        operand = function(operand)
    return operand


def _is_bias(call: Call, value: Value, name: Any, numbers: np.ndarray) -> bool:
    """Whether a parameter is the bias of a product, or of trained factors (strides.py): a number
    for each output, and nothing else reads them."""
    step, steps = call.build.steps.get(value.layer), call.build.steps.values()
    if step is None or step.layer.get("bias", True) or "shared" in step.layer:
        return False
    is_product = step.layer["type"] == "linear"
    is_factor = step.layer["type"] == "conv2d" and step.layer["kernel_size"] == 1
    is_read = any(value.layer in other.reads for other in steps)
    if not (is_product or is_factor) or call.is_used(name) or is_read:
        return False
    channels, pixels = value.shape[-1], 1
    if is_factor:
        channels, pixels = value.shape[1], value.shape[2] * value.shape[3]
    meets = broadcast_to(numbers, value.places.shape)
    if meets is None or numbers.size != channels:
        return False
    return bool((value.places // pixels % channels == meets).all())


def sub(call: Call) -> Any:
    """The difference of two results, or of a result and a number."""
    call.only(alpha=1)
    left, right = call["self"], call["other"]
    if call.operation == "rsub":
        left, right = right, left
    if hasattr(left, "seen") or hasattr(right, "seen"):
        is_right = hasattr(right, "seen")
        value = attention.as_layers(call, left if is_right else right)
        other = _trained(call, "self", "other", value)
        left, right = (value, other) if is_right else (other, value)
    if not isinstance(right, OF_ATTENTION):
        return attention.affine(call, left, 1.0, -right)
    if not isinstance(left, OF_ATTENTION):
        return attention.affine(call, right, -1.0, left)
    turned = attention.affine(call, right, -1.0, 0)
    return call.build.sum(call, attention.as_layers(call, left), turned)


def mul(call: Call) -> Any:
    left, right = call["self"], call["other"]
    if isinstance(left, OF_ATTENTION) and isinstance(right, OF_ATTENTION):
        left, right = (attention.as_layers(call, operand) for operand in (left, right))
        return call.build.product(call, left, right)
    for value, name in ((left, "other"), (right, "self")):
        if isinstance(value, OF_ATTENTION) and hasattr(call[name], "seen"):
            whole = attention.as_layers(call, value)
            parameter, numbers = call.table(name)
            is_whole = len(np.unique(numbers)) == math.prod(call[name].seen.shape)
            is_whole = is_whole and not call.is_calculated(name)
            product = (
                strides.scaled(call.build, call, whole, parameter, numbers) if is_whole else None
            )
            if product is None:
                product = call.build.product(call, whole, _trained(call, name, name, whole))
            return product
    if not any(isinstance(operand, root_mean_square.Partial) for operand in (left, right)):
        no_learned_factor(call)
    for partial, other, name in ((left, right, "other"), (right, left, "self")):
        if isinstance(partial, root_mean_square.Partial):
            if isinstance(other, Value):
                return root_mean_square.normalized(call, other, partial)
            return root_mean_square.weighted(call, partial, *call.parameter(name))
    values = (left, right) if isinstance(left, OF_ATTENTION) else (right, left)
    return attention.scaled(call, *values)


def no_learned_factor(call: Call) -> None:
    for operand in (call["self"], call["other"]):
        if hasattr(operand, "seen"):
            raise call.refused(f"{operand.name} is a factor that is trained, and no layer has one")


def div(call: Call) -> Any:
    for name, other in (("self", "other"), ("other", "self")):
        if hasattr(call[name], "seen") and isinstance(call[other], OF_ATTENTION):
            value = attention.as_layers(call, call[other])
            meets = _trained(call, name, name, value)
            above, below = (meets, value) if name == "self" else (value, meets)
            below = call.build.elementwise(call, "reciprocal", below)
            return call.build.product(call, above, below)
    no_learned_factor(call)
    if isinstance(call["other"], root_mean_square.Partial):
        return root_mean_square.normalized(call, call["self"], call["other"])
    if isinstance(call["other"], OF_ATTENTION):
        below = attention.as_layers(call, call["other"])
        below = call.build.elementwise(call, "reciprocal", below)
        if not isinstance(call["self"], OF_ATTENTION):
            return attention.scaled(call, below, call["self"])
        return call.build.product(call, attention.as_layers(call, call["self"]), below)
    return attention.scaled(call, call["self"], 1 / call["other"])


def of_root(done: str) -> Callable[[Call], Any]:
    def layer(call: Call) -> Any:
        if isinstance(call["self"], root_mean_square.Partial):
            return root_mean_square.after(call, call["self"], done)
        value = call.build.elementwise(call, "sqrt" if "sqrt" in done else done, call.value())
        return call.build.elementwise(call, "reciprocal", value) if done == "rsqrt" else value

    return layer


def power(call: Call) -> Any:
    """A power up to 4 by quarters, or the reciprocal of one: products, sqrt and reciprocal."""
    value, exponent = call.value(), call.arguments.get("exponent", 2)
    if np.size(exponent) != 1 or hasattr(exponent, "seen"):
        raise call.refused("its exponent is no number")
    exponent = float(np.asarray(exponent).reshape(()))
    if exponent == 2:
        return root_mean_square.Partial(value)
    quarters = 4 * abs(exponent)
    if quarters not in range(1, 17):
        raise call.refused(f"its exponent is {exponent:g}, and can be 0.25, 0.5 to 4, or below 0")
    whole, rest = divmod(int(quarters), 4)
    factors = [value] * whole
    for part in (2, 1) if rest else ():
        value = call.build.elementwise(call, "sqrt", value)
        factors += [value] if rest & part else []
    power = factors[0]
    for factor in factors[1:]:
        power = call.build.product(call, power, factor)
    return call.build.elementwise(call, "reciprocal", power) if exponent < 0 else power


def variance(call: Call) -> Value:
    """The variance, or its root, the standard deviation."""
    value = call.value()
    dim, rank = call.arguments.get("dim"), value.places.ndim
    axes = [dim] if isinstance(dim, int) else list(dim or range(rank))
    is_unbiased = call.arguments.get("unbiased", True)
    correction = call.arguments.get("correction", int(is_unbiased))
    correction = 1 if correction is None else correction
    count = math.prod(value.places.shape[axis] for axis in axes)
    if count <= correction:
        raise call.refused(f"it is of {count} numbers")
    mean = call.build.mean(call, value, axes, True)
    turned = attention.affine(call, mean, -1.0, 0)
    centred = call.build.sum(call, value, turned)
    squares = call.build.product(call, centred, centred)
    mean = call.build.mean(call, squares, axes, call.arguments.get("keepdim", False))
    spread = attention.affine(call, mean, count / (count - correction), 0)
    return call.build.elementwise(call, "sqrt", spread) if call.operation == "std" else spread
