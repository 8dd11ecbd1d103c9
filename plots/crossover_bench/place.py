# SPDX-License-Identifier: Apache-2.0
"""Where this copy of the package is, and what one types there for its commands."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
IS_CHECKOUT = (PACKAGE.parents[1] / "CMakeLists.txt").exists()
# What has build/, docs/ and the like. An installed copy brings them in the package.
ROOT = PACKAGE.parents[1] if IS_CHECKOUT else PACKAGE
# A folder in which Python finds this package, and nothing that is installed beside it.
ALONE = PACKAGE / "alone"

CROSSOVER = ".venv/bin/crossover" if IS_CHECKOUT else "crossover"
RUN = "./run" if IS_CHECKOUT else "crossover run"
RUN_OF_CHECKOUT = "./run" if IS_CHECKOUT else "a checkout's ./run"  # what builds
