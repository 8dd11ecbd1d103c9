# SPDX-License-Identifier: Apache-2.0
"""What exporters to ONNX take apart, or have in one piece in newer opsets: attention, GELU and RMS
normalization."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from networks import attention, root_mean_square
from networks.values import Value

if TYPE_CHECKING:
    from networks.from_onnx import Call


@dataclass(frozen=True)
class Gelu:
    """A part of a GELU, x * (1 + erf(x / sqrt(2))) * 0.5. No layer gives it."""

    of: Value
    is_shifted: bool = False  # 1 + erf
    is_gated: bool = False  # times x
    factor: float = 1.0


def _erf(call: Call) -> Gelu:
    scaled, factor = call.inputs[0], 1 / math.sqrt(2)
    is_scaled = isinstance(scaled, attention.Scaled)
    if not is_scaled or not math.isclose(scaled.factor, factor, rel_tol=1e-6):
        raise call.refused("it is known of GELU alone, x * (1 + erf(x / sqrt(2))) * 0.5")
    return Gelu(scaled.value)


def gelu_times(call: Call, partial: Gelu, factor: Any) -> Gelu | Value:
    """`factor`: x, half of it, or a half."""
    if isinstance(factor, Value):
        factor = attention.Scaled(factor, 1.0, call)
    if isinstance(factor, attention.Scaled):
        same = factor.value.layer == partial.of.layer
        if partial.is_gated or not same or not factor.value.is_seen_as(partial.of.places):
            raise call.refused("it gates another result than that whose erf it has")
        partial, factor = replace(partial, is_gated=True), factor.factor
    partial = replace(partial, factor=partial.factor * factor)
    if partial.is_shifted and partial.is_gated and partial.factor == 1 / 2:
        return call.build.elementwise(call, "gelu", partial.of)
    return partial


def add(call: Call, partial: Any, added: np.ndarray) -> Any:
    if isinstance(partial, root_mean_square.Partial):
        return root_mean_square.after(call, partial, "add", float(added))
    if isinstance(partial, Gelu):
        if partial.is_shifted or added.size != 1 or added != 1:
            raise call.refused("it is known of GELU alone, x * (1 + erf(x / sqrt(2))) * 0.5")
        return replace(partial, is_shifted=True)
    if isinstance(partial, attention.Scaled):
        return attention.affine(call, partial, 1.0, exact(added))
    return attention.masked(call, partial, attention.hidden_by_sum(call, added))


def exact(factor: Any) -> Any:
    """The number that a float32 stands for."""
    is_number = isinstance(factor, np.ndarray) and factor.size == 1
    return float(f"{float(factor.ravel()[0]):.8g}") if is_number else factor


def _where(call: Call) -> Any:
    """Scores with a mask."""
    condition, (_, chosen, other) = call.weight(0), call.inputs
    hides = isinstance(chosen, np.ndarray)
    scores, fill = (other, chosen) if hides else (chosen, call.weight(2))
    return attention.filled(call, scores, condition if hides else ~condition, fill)


def _attention(call: Call) -> Value:
    """ONNX's own attention, since opset 23."""
    call.only(softcap=0.0, q_num_heads=0, kv_num_heads=0)
    if any(given is not None for given in call.inputs[3:]):
        raise call.refused("a mask or keys of the past are given")
    parts = [call.value(index) for index in range(3)]
    causal = bool(call.get("is_causal", 0))
    return attention.of_one_call(call, *parts, causal=causal, scale=call.get("scale"))


def _of_root(done: str) -> Callable[[Call], Any]:
    return lambda call: root_mean_square.after(call, call.inputs[0], done)


def _rms_norm(call: Call) -> Value:
    call.only(axis=(-1, call.value().places.ndim - 1))
    return call.build.rowwise(call, "rms_norm", call.value(), [call.weight(1)], eps=call.epsilon)


LAYERS: dict[str, Callable[[Call], Any]] = {
    "Where": _where,
    "Softmax": lambda call: attention.softmax(call, call.inputs[0], call.get("axis", -1)),
    "Attention": _attention,
    "Pow": lambda call: root_mean_square.squares(call, call.value(), call.weight(1)),
    "Sqrt": _of_root("sqrt"),
    "Reciprocal": _of_root("reciprocal"),
    "Erf": _erf,
    "RMSNormalization": _rms_norm,
}
