# SPDX-License-Identifier: Apache-2.0
"""What the rows of result files mean: crossovers, speedups, reasons, comparisons, predictions."""
