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
from dataclasses import replace

import numpy as np

from plots.core.cards import Card, overheads
from plots.core.cost import Cost, Operation
from plots.features.predict.fit import Fit
from plots.features.predict.model import Demand, demand
from plots.features.predict.simulate import Times, among, device_seconds, ends, within
from plots.features.predict.ways import Band, floor, several

# Seconds of a step beside its operations, on the machine that docs/evidence/prediction.md names:
# with SGD and with Adam.
_BESIDE = Band(2.37e-4, 3.18e-4)
# How many times the bytes of our update PyTorch's moves, which has a pass for each of its terms; by
# how many arrays ours reads and writes (plots/core/mlp.py): of momentum 8 for 5, of Adam 19 for 7.
_PASSES = {5: 8 / 5, 7: 19 / 7}


def operations_of(cost: Cost) -> tuple[Operation, ...]:
    """What PyTorch would run of a step that `bench --cost` counted, where nobody counted it in
    PyTorch itself: the same but for its optimizer."""
    moved = sum(one.bytes * one.count for one in cost.operations if one.kind == "update")
    passes = _PASSES.get(round(moved / (4 * cost.params))) if cost.params else None
    return tuple(
        replace(one, bytes=one.bytes * passes) if passes and one.kind == "update" else one
        for one in cost.operations
    )


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
    step = device_seconds(asked, fit.parameters, fit.errors, floor(card.compute_capability), None)
    # The processor starts operations meanwhile; one that is slow at that is slow beside it, too.
    torch = several(overheads("torch_operation"))
    operation = among(torch, "operation")
    beside = within(_BESIDE, "intercept") * operation / torch.middle
    return np.maximum(step, beside + asked.operations * operation)
