# SPDX-License-Identifier: Apache-2.0
"""Tables of what plots/analysis finds, and the formats they are written in."""
