# SPDX-License-Identifier: Apache-2.0
"""Networks of others as bench's JSON (docs/networks.md): `crossover networks --help`."""
