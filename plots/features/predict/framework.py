# SPDX-License-Identifier: Apache-2.0
"""A training step in PyTorch's eager loop: what it starts, and how long that takes on a card.

Whoever counts a step in PyTorch itself, as a dispatch mode does, hands its operations to
`predict_step`: an `Operation` (plots/core/cost.py) for each kind of call that a step makes, with

- `kind`: "product" and "convolution" with the shapes of their `products` (those of a batched one as
  its `count`), or "product" without shapes of a fused attention; "normalization", "softmax" and
  "loss", which reduce; "update" of an optimizer; any other, such as "elementwise" or "copy", is
  traffic of memory alone;
- `flops` and `bytes`, that it reads and writes; views move none;
- `launches`: how many operations Python or the backward pass starts for it, views included;
- `count`: how many such calls there are.

What each step takes beside its operations (the gradients set to nothing, the start of the backward
pass, the optimizer's own Python) is added here, so it is not to be counted.
"""

from collections.abc import Sequence

import numpy as np

from plots.core.cards import Card, overheads
from plots.core.cost import Cost, Operation
from plots.features.predict.fit import Fit
from plots.features.predict.floors import floor, several
from plots.features.predict.model import Demand, Stack, demand
from plots.features.predict.simulate import Times, among, device_seconds, ends
from plots.features.predict.ways import Band


def predict_step(
    fit: Fit, operations: Sequence[Operation], precision: str, card: Card
) -> Times | str:
    """The seconds of a step of these operations with data on the card, or the reason why they are
    not known, a phrase."""
    found = step_draws(fit, operations, precision, card)
    return found if isinstance(found, str) else ends(found)


def step_draws(
    fit: Fit, operations: Sequence[Operation], precision: str, card: Card
) -> np.ndarray | str:
    """The same in each draw."""
    asked = demand(Cost("step", precision, 1, 0.0, 0.0, {}, tuple(operations)), card)
    if not isinstance(asked, Demand):
        return asked
    work = Stack([asked]).work(fit.parameters)[0]
    step = device_seconds(asked, work, fit.error(precision), floor(card), Band(0.0, 0.0))
    operation = among(several(overheads("torch_operation")), "operation")
    return np.maximum(step, asked.operations * operation)
