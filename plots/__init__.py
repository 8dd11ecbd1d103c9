# SPDX-License-Identifier: Apache-2.0
"""Reads Crossover's result files and shows what is in them; see `python -m plots --help`."""
