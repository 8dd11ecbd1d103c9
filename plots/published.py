# SPDX-License-Identifier: Apache-2.0
"""The published experiments that stand beside one's own figures, from plots/reference."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

PUBLISHED_PATH = Path(__file__).with_name("reference") / "published.json"
# What to do where a file of that folder is missing.
RESTORE = "restore it, or install crossover-plots again"


@dataclass(frozen=True, slots=True)
class Citation:
    """Where a figure was published; `year` is None where the source does not give one."""

    author: str
    title: str
    year: int | None
    url: str


@dataclass(frozen=True, slots=True)
class Experiment:
    """One published comparison of CPU and GPU.

    Either `crossover_params` says from how many parameters the GPU was faster, or `seconds` hold
    the wall-clock time of `epochs` epochs on each device for a network of `params` parameters.
    """

    id: str
    title: str
    network: str
    training: str
    measured_on: str
    finding: str
    citation: Citation
    crossover_params: int | None = None
    params: int | None = None
    epochs: int | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def seconds_per_epoch(self) -> dict[str, float]:
        """Wall-clock seconds per epoch by device; empty where no times were published."""
        return {device: total / (self.epochs or 1) for device, total in self.seconds.items()}

    @property
    def speed_up(self) -> float | None:
        """CPU time over GPU time, as the experiments print it; None without both times."""
        if {"CPU", "GPU"} <= self.seconds.keys():
            return self.seconds["CPU"] / self.seconds["GPU"]
        return None


def load_published(path: Path = PUBLISHED_PATH) -> list[Experiment]:
    """Every experiment in `path`; raises OSError where the file cannot be read."""
    experiments = json.loads(path.read_text(encoding="utf-8"))["experiments"]
    return [
        Experiment(**{**fields, "citation": Citation(**fields["citation"])})
        for fields in experiments
    ]
