# SPDX-License-Identifier: Apache-2.0
"""Where the figures that others published are."""

from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference"
# What to do where a file of that folder is missing.
RESTORE = "restore it, or install crossover-bench again"
