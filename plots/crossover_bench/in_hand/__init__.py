# SPDX-License-Identifier: Apache-2.0
"""A module of PyTorch's, measured in the program that holds it: docs/howto/module-in-hand.md."""
