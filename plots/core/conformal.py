# SPDX-License-Identifier: Apache-2.0
"""The error band of predictions, from what was left out of their fit."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVEL = 0.9  # that a band is made for, where there are networks enough


def conformal(residuals: Sequence[float]) -> tuple[float, float]:
    """The residual that LEVEL of networks like these stay below, and the level that it has.

    Of n residuals the k-th smallest covers k / (n + 1) of exchangeable new ones (Vovk et al.,
    Algorithmic Learning in a Random World, 2005); the largest is the best that n can do.
    """
    ordered = sorted(residuals)
    count = len(ordered)
    rank = min(math.ceil(LEVEL * (count + 1)), count)
    return ordered[rank - 1], rank / (count + 1)
