# SPDX-License-Identifier: Apache-2.0
"""How well a count of a step in PyTorch foretells its time: of networks that were measured on a
processor, each left out of the fit to the others."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from plots.core.reference import REFERENCE
from plots.core.statistics import conformal

STEPS_PATH = REFERENCE / "pytorch_steps.csv"
_COUNTS = ("launches", "flops", "bytes")


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Of each of `networks`, the largest |log(predicted / measured)| over its batches, and what it
    is in the `median` of steps. `factor` is what `coverage` of networks like these stay below."""

    networks: dict[str, float]
    median: float
    factor: float
    coverage: float


@cache
def left_out(path: Path = STEPS_PATH) -> LeftOut:
    """From the steps in `path`. Raises OSError where it cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    names = np.array([line["network"] for line in lines])
    seconds = np.array([float(line["seconds"]) for line in lines])
    counts = np.array([[float(line[key]) for key in _COUNTS] for line in lines])
    networks, errors = {}, []
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        weights = _weights(counts[~own], seconds[~own])
        off = np.abs(np.log(counts[own] @ weights / seconds[own]))
        networks[name] = float(off.max())
        errors += off.tolist()
    band, coverage = conformal(list(networks.values()))
    return LeftOut(networks, float(np.median(errors)), math.exp(band), coverage)


def _weights(counts: np.ndarray, seconds: np.ndarray) -> np.ndarray:
    """Seconds of each launch, operation and byte, none below 0: least squares of the relative
    errors."""
    from scipy.optimize import nnls  # noqa: PLC0415 (takes long to load)

    relative = counts / seconds[:, None]
    scale = relative.max(axis=0)
    found, _ = nnls(relative / scale, np.ones(len(seconds)))
    return found / scale
