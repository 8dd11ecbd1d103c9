# SPDX-License-Identifier: Apache-2.0
"""GELU as exporters to ONNX before opset 20 write it: x * (1 + erf(x / sqrt(2))) * 0.5."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from networks.attention import Scaled
from networks.values import Value

if TYPE_CHECKING:
    from networks.attention import At


@dataclass(frozen=True)
class Partial:
    """How far it has come, and no layer's result."""

    of: Value
    is_shifted: bool = False  # 1 + erf
    is_gated: bool = False  # times x
    factor: float = 1.0


def erf(at: At, found: Any) -> Partial:
    if not isinstance(found, Scaled) or not math.isclose(
        found.factor, 1 / math.sqrt(2), rel_tol=1e-6
    ):
        raise at.refused("it is known of GELU alone, x * (1 + erf(x / sqrt(2))) * 0.5")
    return Partial(found.value)


def plus(at: At, partial: Partial, added: float) -> Partial:
    if partial.is_shifted or added != 1:
        raise at.refused("it is known of GELU alone, x * (1 + erf(x / sqrt(2))) * 0.5")
    return replace(partial, is_shifted=True)


def times(at: At, partial: Partial, factor: Any) -> Partial | Value:
    """`factor`: x, half of it, or a half."""
    if isinstance(factor, Value):
        factor = Scaled(factor, 1.0)
    if isinstance(factor, Scaled):
        same = factor.value.layer == partial.of.layer
        if partial.is_gated or not same or not factor.value.is_seen_as(partial.of.places):
            raise at.refused("it gates another result than that whose erf it has")
        partial, factor = replace(partial, is_gated=True), factor.factor
    partial = replace(partial, factor=partial.factor * factor)
    if partial.is_shifted and partial.is_gated and partial.factor == 1 / 2:
        return at.build.elementwise(at, "gelu", partial.of)
    return partial
