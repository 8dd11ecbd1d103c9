# SPDX-License-Identifier: Apache-2.0
"""PyTorch's functions of each number, as layers of bench's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from crossover_bench.networks import attention, comparisons
from crossover_bench.networks.calls import Call
from crossover_bench.networks.values import Value, non_defaults
from crossover_bench.peers.pytorch.layers import LAYERS


def _elementwise(kind: str) -> Callable[[Call], Value]:
    """A function of each number, with numbers of its own."""
    numbers = LAYERS[kind].numbers or {}

    def layer(call: Call) -> Value:
        settings = {name: (float(call[name]), default) for name, default in numbers.items()}
        return call.build.elementwise(call, kind, call.value(), **non_defaults(**settings))

    return layer


def _leaky_relu(call: Call) -> Value:
    if call["negative_slope"] < 0:
        raise call.refused(f"negative_slope is {call['negative_slope']}, and can't be below 0")
    if call["negative_slope"] == 0:
        return call.build.elementwise(call, "relu", call.value())
    return _elementwise("leaky_relu")(call)


def _elu(call: Call) -> Value:
    """ELU, or SELU, which is ELU with a factor behind it."""
    alpha, scale = float(call.arguments.get("alpha", 1)), 1.0
    if call.operation == "selu":
        alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    else:
        call.only(scale=1, input_scale=1)
    if alpha <= 0:
        raise call.refused(f"alpha is {alpha}, and can only be above 0")
    value = call.build.elementwise(call, "elu", call.value(), **non_defaults(alpha=(alpha, 1.0)))
    return attention.affine(call, value, scale, 0)


def _softplus(call: Call) -> Value:
    """With a threshold as PyTorch has it, above which x is taken for itself."""
    call.only(threshold=20)
    scaled = attention.affine(call, call.value(), float(call["beta"]), 0)
    given = call.build.elementwise(call, "softplus", scaled)
    return attention.affine(call, given, 1 / float(call["beta"]), 0)


def _mish(call: Call) -> Value:
    value = call.value()
    gate = call.build.elementwise(call, "softplus", value)
    return call.build.product(call, value, call.build.elementwise(call, "tanh", gate))


def _log_sigmoid(call: Call) -> Value:
    turned = attention.affine(call, call.value(), -1.0, 0)
    return attention.affine(call, call.build.elementwise(call, "softplus", turned), -1.0, 0)


_LARGEST = float(np.finfo(np.float32).max)  # a bound that holds nothing


def _held(call: Call) -> Value:
    """Limits numbers to a range, as hardtanh and clamp do."""
    given = call.arguments
    bounds = [given.get(name, given.get(f"{name}_val")) for name in ("min", "max")]
    if bounds == [0, None]:
        return call.build.elementwise(call, "relu", call.value())
    least, most = (
        _LARGEST * sign if b is None else b for b, sign in zip(bounds, (-1, 1), strict=True)
    )
    if not all(isinstance(bound, (int, float)) for bound in (least, most)) or least >= most:
        raise call.refused(
            f"it holds numbers between {least} and {most}, and these can only be two numbers, "
            "the smaller first"
        )
    least, most = max(float(least), -_LARGEST), min(float(most), _LARGEST)
    if (least, most) == (-_LARGEST, _LARGEST):
        return call.value()
    if (least, most) == (0, 6):
        return call.build.elementwise(call, "relu6", call.value())
    settings = non_defaults(min_val=(least, -1.0), max_val=(most, 1.0))
    return call.build.elementwise(call, "hardtanh", call.value(), **settings)


def _larger(call: Call) -> Value:
    """The larger of two results, or the smaller: the first, and what the other has more or less."""
    sign = 1.0 if call.operation == "maximum" else -1.0
    left, right = (attention.as_layers(call, call[name]) for name in ("self", "other"))
    less = attention.affine(call, left, -sign, 0)
    more = attention.affine(call, right, sign, 0)
    more = call.build.elementwise(call, "relu", call.build.sum(call, more, less))
    return call.build.sum(call, left, attention.affine(call, more, sign, 0))


def _gelu(call: Call) -> Value:
    kind = "gelu_tanh" if call["approximate"] == "tanh" else "gelu"
    return call.build.elementwise(call, kind, call.value())


def _cos(call: Call) -> Value:
    turned = attention.affine(call, call.value(), 1.0, math.pi / 2)
    return call.build.elementwise(call, "sin", turned)


def _celu(call: Call) -> Value:
    alpha = float(call["alpha"])
    given = call.build.elementwise(call, "elu", attention.affine(call, call.value(), 1 / alpha, 0))
    return attention.affine(call, given, alpha, 0)


def _shrunk(call: Call) -> Value:
    """Softshrink is x without what a range holds of it; hardshrink, x where it is beyond."""
    value, most = call.value(), float(call["lambd"])
    if call.operation == "softshrink":
        bounds = non_defaults(min_val=(-most, -1.0), max_val=(most, 1.0))
        held = call.build.elementwise(call, "hardtanh", value, **bounds)
        return call.build.sum(call, value, attention.affine(call, held, -1.0, 0))
    size = call.build.elementwise(call, "abs", value)
    return call.build.product(call, value, comparisons.is_above(call, size, most))


def _above_threshold(call: Call) -> Value:
    condition = comparisons.is_above(call, call.value(), float(call["threshold"]))
    return comparisons.chosen(call, condition, call.value(), call["value"])


FUNCTIONS: dict[str, Callable[[Call], Any]] = {
    # Several layers, as long as peers/pytorch/layers.py has none of this name.
    "mish": _mish,
    "log_sigmoid": _log_sigmoid,
    "cos": _cos,
    "celu": _celu,
    **dict.fromkeys(("softshrink", "hardshrink"), _shrunk),
    "threshold": _above_threshold,
    **{name: _elementwise(name) for name, entry in LAYERS.items() if entry.numbers is not None},
    "gelu": _gelu,
    **dict.fromkeys(("hardtanh", "clamp", "clamp_min", "clamp_max"), _held),
    **dict.fromkeys(("maximum", "minimum"), _larger),
    "leaky_relu": _leaky_relu,
    **dict.fromkeys(("elu", "selu"), _elu),
    "softplus": _softplus,
    "neg": lambda call: attention.affine(call, call.value(), -1.0, 0),
}
