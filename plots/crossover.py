# SPDX-License-Identifier: Apache-2.0
"""From which size on the GPU wins, and how sure that is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from plots.rows import File

Kind = Literal["always", "never", "once", "several", "ambiguous"]


@dataclass(frozen=True, slots=True)
class Curve:
    """The times of one way to compute, over a growing problem.

    `sizes` increase strictly; `samples[i]` are the seconds measured at `sizes[i]`, one for each
    repetition. `configuration` says how and where (series_key() of the rows as a dictionary);
    for the best of all thread counts, `cpu_threads` is "best".
    """

    label: str
    configuration: dict[str, str]
    sizes: np.ndarray
    samples: tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class Crossover:
    """The answer for one pair of curves.

    `size` is the smallest size from which the GPU wins at all larger measured sizes, interpolated
    on logarithmic axes; None where there is none. [`low`, `high`] is its 95 % interval; `high` is
    None where the interval reaches beyond the largest size, `low` where it reaches below the
    smallest. `crossings` are all sizes where the faster device changes, in order. `words` is the
    answer as people read it: "from 703,000 parameters (500,000 to 900,000)", "GPU always".
    """

    kind: Kind
    size: float | None
    low: float | None
    high: float | None
    crossings: tuple[float, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pair of curves over the sizes that both have, and its crossover.

    `common` is what both have in common: family, batch, precision and whatever else the family
    has. `measure` names the sizes: "parameters", "size" (of a square product), "width".
    """

    common: dict[str, str]
    measure: str
    cpu: Curve
    gpu: Curve
    crossover: Crossover


def find_crossover(cpu: Curve, gpu: Curve, measure: str = "parameters") -> Crossover:
    """Compares two curves at the sizes that both have; the same input gives the same answer."""
    raise NotImplementedError


def comparisons(file: File) -> list[Comparison]:
    """Every CPU curve of `file` (each thread count, and the best of all) against every GPU curve
    that computes the same, in the order of the file."""
    raise NotImplementedError
