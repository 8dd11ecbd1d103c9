# SPDX-License-Identifier: Apache-2.0
"""JAX's side of the comparison: `python -m peers.jax --help`."""
