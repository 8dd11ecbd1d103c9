# SPDX-License-Identifier: Apache-2.0
"""The deterministic numbers that every implementation starts from (docs/golden.md)."""

from __future__ import annotations

import numpy as np

PARAMETERS, INPUTS, LABELS = 1, 2, 3  # streams

_STEP = np.uint64(0x9E3779B97F4A7C15)


def _finalized(z: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64, in place."""
    z ^= z >> np.uint64(30)
    z *= np.uint64(0xBF58476D1CE4E5B9)
    z ^= z >> np.uint64(27)
    z *= np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return z


def _unit_interval(places: np.ndarray) -> np.ndarray:
    """In [0, 1), exact in float32; overwrites `places`."""
    places += np.uint64(1)
    places *= _STEP
    numbers = _finalized(places) >> np.uint64(40)
    return numbers.astype(np.float64) / 2.0**24


def uniform(stream: int, first: int, count: int) -> np.ndarray:
    """float64 [count]: positions first, first + 1, ... of a stream."""
    start = (stream << 32) + first
    return _unit_interval(np.arange(start, start + count, dtype=np.uint64))


def kept_by_dropout(seed: int, step: int, count: int, probability: float) -> np.ndarray:
    """bool [count]: which elements the dropout layer of that number keeps in its step, from 1."""
    layer = (0xD1B54A32D192ED03 * (seed + 1) + step) % 2**64
    start = _finalized(np.array([layer], dtype=np.uint64))
    return _unit_interval(start + np.arange(count, dtype=np.uint64)) >= probability
