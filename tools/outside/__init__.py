# SPDX-License-Identifier: Apache-2.0
"""Test suites of others, tried on this project: `python -m tools.outside`, by .venv-peers."""
