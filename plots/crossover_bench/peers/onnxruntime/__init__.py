# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's side of the comparison, of forward passes."""
