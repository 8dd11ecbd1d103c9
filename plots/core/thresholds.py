# SPDX-License-Identifier: Apache-2.0
"""The sizes from which well-known code uses a GPU, or several threads, from plots/reference."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from plots.core.published import PUBLISHED_PATH

THRESHOLDS_PATH = PUBLISHED_PATH.with_name("thresholds.json")

Between = Literal["devices", "threads"]


@dataclass(frozen=True, slots=True)
class Nearest:
    """The rows here that are nearest to what a threshold decides on: their family, and the
    threshold as a size of theirs, in the unit of Comparison.measure."""

    family: str
    size: float


@dataclass(frozen=True, slots=True)
class Threshold:
    """One size in the source of `code` that decides between CPU and GPU, or between one thread and
    several. `value` counts `quantity` of `operation`; `rule` says the same as people read it.
    `quoted` is the line of the source, found at `where` in it; `year` is that of the commit, None
    where the source does not give one.
    """

    id: str
    code: str
    between: Between
    operation: str
    quantity: str
    value: float | list[float]
    rule: str
    where: str
    quoted: str
    year: int | None
    url: str
    nearest: Nearest | None = None
    note: str = ""


def load_thresholds(path: Path = THRESHOLDS_PATH) -> list[Threshold]:
    """Every threshold in `path`; raises OSError where the file cannot be read."""
    thresholds = json.loads(path.read_text(encoding="utf-8"))["thresholds"]
    return [
        Threshold(**{**fields, "nearest": Nearest(**nearest) if nearest else None})
        for fields in thresholds
        for nearest in (fields.get("nearest"),)
    ]
