# SPDX-License-Identifier: Apache-2.0
"""What the families of rows are called, and which of them train networks.

Peak and Copy have no entry: they are probes, on no curve, with sections of their own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Words:
    """`one` is what an iteration (of operations, one of them) is called, `title` begins a heading;
    `short` is what columns of its time are called, and their keys."""

    one: str
    title: str
    short: str

    @property
    def a(self) -> str:
        """`one` with its article."""
        return f"{'an' if self.one[0] in 'aeiou' else 'a'} {self.one}"


EPOCH, MINIBATCH = "Epoch", "Minibatch"

# In the order in which they are shown.
FAMILIES = {
    EPOCH: Words("epoch", "Epochs", "epoch"),
    MINIBATCH: Words("training step", "Training steps", "step"),
    "Gemm": Words("product", "Matrix products", "product"),
    "Layer": Words("layer", "Layers", "layer"),
}
TRAINING = (EPOCH, MINIBATCH)  # whose rows train a network
