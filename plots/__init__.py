# SPDX-License-Identifier: Apache-2.0
"""Reads Crossover's result files and shows what is in them; see `python -m plots --help`."""

__version__ = "0.1.0"  # the project's: pyproject.toml and CMakeLists.txt take it from here
