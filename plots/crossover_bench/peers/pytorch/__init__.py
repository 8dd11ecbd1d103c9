# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of the comparison: `python -m peers.pytorch --help`."""
