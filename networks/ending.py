# SPDX-License-Identifier: Apache-2.0
"""The last layer of a network that gives images."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from networks.builder import LOSSES, Builder
from networks.values import Refused, Value


@dataclass(frozen=True)
class Ending:
    """Where a layer stands that the network's loss asks for."""

    name: str = "pixels"

    def refused(self, what: str) -> Refused:
        return Refused(f"the network's output: {what}")


def ended(build: Builder, value: Value, loss_function: str) -> Value:
    """An image that a network gives, as its loss reads it: a row for each pixel, which has a label,
    or all numbers of a sample in a row. All else as it is."""
    is_image = len(value.shape) == 4 and not value.time_first and value.layer != "input"
    if not is_image or not np.array_equal(value.places.ravel(), value.own.ravel()):
        return value
    places, plain = value.places.shape, [replace(value, view=None)]
    if LOSSES[loss_function] == "cross_entropy":
        if value.image is None:
            return value
        rows = build.layer(Ending(), "to_sequence", plain)
        return rows.seen_as(rows.own.transpose(1, 2, 0).reshape(places))
    flat = build.layer(Ending(), "flatten", plain)
    return flat.seen_as(flat.own.reshape(places))
