# SPDX-License-Identifier: Apache-2.0
"""What exporters to ONNX take apart, or have in one piece in newer opsets: attention, GELU and RMS
normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from networks import attention, gelu, root_mean_square
from networks.values import Value

if TYPE_CHECKING:
    from networks.from_onnx import Call


def add(call: Call, partial: Any, added: np.ndarray) -> Any:
    if isinstance(partial, root_mean_square.Partial):
        return root_mean_square.after(call, partial, "add", float(added))
    if isinstance(partial, gelu.Partial):
        return gelu.plus(call, partial, float(added))
    if isinstance(partial, attention.Scaled):
        return attention.affine(call, partial, 1.0, exact(added))
    hidden = np.isneginf(added) | (added <= np.finfo(np.float32).min)
    if added[~hidden].any():
        raise call.refused("a mask is 0 or -inf")
    return attention.masked(call, partial, hidden)


def exact(factor: Any) -> Any:
    """The number that a float32 stands for."""
    is_number = isinstance(factor, np.ndarray) and factor.size == 1
    return float(f"{float(factor.ravel()[0]):.8g}") if is_number else factor


def _where(call: Call) -> Any:
    """Scores, but where a mask is -inf."""
    condition, one, other = call.weight(0), call.inputs[1], call.inputs[2]
    hides = isinstance(one, np.ndarray)
    scores, fill = (other, one) if hides else (one, call.weight(2))
    if not np.isneginf(fill).all():
        raise call.refused("only a mask of -inf is known")
    return attention.masked(call, scores, condition if hides else ~condition)


def _softmax(call: Call) -> Any:
    return attention.softmax(call, call.inputs[0], call.get("axis", -1))


def _attention(call: Call) -> Value:
    """ONNX's own, since opset 23."""
    call.only(softcap=0.0, q_num_heads=0, kv_num_heads=0)
    if any(one is not None for one in call.inputs[3:]):
        raise call.refused("a mask or keys of the past are given")
    parts = [call.value(index) for index in range(3)]
    causal = bool(call.get("is_causal", 0))
    return attention.of_one_call(call, *parts, causal=causal, scale=call.get("scale"))


def _power(call: Call) -> Any:
    return root_mean_square.squares(call, call.value(), call.weight(1))


def _of_root(done: str) -> Callable[[Call], Any]:
    return lambda call: root_mean_square.after(call, call.inputs[0], done)


def _rms_norm(call: Call) -> Value:
    call.only(axis=(-1, call.value().places.ndim - 1))
    return call.build.rowwise(call, "rms_norm", call.value(), [call.weight(1)], eps=call.epsilon)


LAYERS: dict[str, Callable[[Call], Any]] = {
    "Where": _where,
    "Softmax": _softmax,
    "Attention": _attention,
    "Pow": _power,
    "Sqrt": _of_root("sqrt"),
    "Reciprocal": _of_root("reciprocal"),
    "Erf": lambda call: gelu.erf(call, call.inputs[0]),
    "RMSNormalization": _rms_norm,
}
