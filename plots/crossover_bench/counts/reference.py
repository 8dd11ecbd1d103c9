# SPDX-License-Identifier: Apache-2.0
"""The figures that others published."""

import csv
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference"
# What to do where a file of that folder is missing.
RESTORE = "restore it, or install crossover-bench again"


def lines_of(path: Path) -> list[dict[str, str]]:
    """Each line of a file in CSV by its columns; raises OSError where it cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
