# SPDX-License-Identifier: Apache-2.0
"""What the sums of gradients over several ranks take, and what of it a step waits for.

docs/method/ranks.md, "Predicted", defines the model.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

BUCKET_BYTES = 25 * 2**20  # as bench's --bucket, and PyTorch's DistributedDataParallel
FLOAT_BYTES = 4  # gradients are summed in f32
# Of the time that a step computes: two of its three products of a layer are for gradients.
BACKWARD = 2 / 3


def steps(ranks: int) -> int:
    """Messages one after another in a ring: each rank's share goes around twice."""
    return 2 * (ranks - 1)


def moved(ranks: int) -> float:
    """Bytes that each rank sends for each byte that is summed, as nccl-tests defines it."""
    return 2 * (ranks - 1) / ranks


def exposed(one_sum: Callable[[float], np.ndarray], size: float, hidden: np.ndarray) -> np.ndarray:
    """Seconds that a step waits for sums of `size` bytes, by BUCKET_BYTES at a time.

    `one_sum` says how long a sum of so many bytes takes, in draws or alone. All but the last
    bucket, which is complete when the backward pass is, may hide behind `hidden` seconds of it.
    """
    full = max(0, -int(-size // BUCKET_BYTES) - 1)
    last = one_sum(size - full * BUCKET_BYTES)
    if not full:
        return last
    return np.maximum(0.0, full * one_sum(BUCKET_BYTES) - hidden) + last


@dataclass(frozen=True, slots=True)
class AlphaBeta:
    """A sum of n bytes on R ranks takes step · steps(R) + n · moved(R) / bandwidth, as fitted to
    measured sums; `spread` is the root mean square of the logarithms by which `count` of them are
    off. In seconds and bytes per second."""

    step: float
    bandwidth: float
    spread: float
    count: int


def fit_alpha_beta(ranks: np.ndarray, sizes: np.ndarray, seconds: np.ndarray) -> AlphaBeta:
    """The one that fits these sums best, each with an equal share of error; of three at least, as
    two parameters fit any two."""
    from scipy.optimize import least_squares  # noqa: PLC0415 (takes long to load)

    messages = 2.0 * (ranks - 1)
    sent = messages / ranks * sizes

    def off(values: np.ndarray) -> np.ndarray:
        step, inverse = np.exp(values)
        return np.log((step * messages + sent * inverse) / seconds)

    smallest, largest = int(np.argmin(sizes)), int(np.argmax(sizes))
    start = np.log([seconds[smallest] / messages[smallest], seconds[largest] / sent[largest]])
    found = least_squares(off, start)
    step, inverse = np.exp(found.x).tolist()
    spread = float(np.sqrt(np.sum(found.fun**2) / (len(sizes) - 2)))
    return AlphaBeta(step, 1 / inverse, spread, len(sizes))
