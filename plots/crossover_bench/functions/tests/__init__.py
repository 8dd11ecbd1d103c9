# SPDX-License-Identifier: Apache-2.0
"""Tests of two(): in an environment of PyTorch, too, which has no Matplotlib."""
