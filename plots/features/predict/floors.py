# SPDX-License-Identifier: Apache-2.0
"""What a launch takes at least, whatever it computes: of its kind, on a card's architecture.

docs/method/prediction.md says which sources these are, and how well they foretell each other.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from plots.core.cards import Card, Overhead, overheads

# From this inner dimension on libraries split a small product among multiprocessors.
LONGEST = 256
# Sources on one architecture, from which they speak for it alone.
FEWEST_SOURCES = 2


@dataclass(frozen=True, slots=True)
class Several:
    """What `count` sources say of one more: their `middle` in seconds, and the `spread` of its
    logarithm, that of a prediction interval."""

    middle: float
    spread: float
    count: int


@dataclass(frozen=True, slots=True)
class Floor:
    """Of a node of a graph the seconds, `least` to `most`; of a product `inner` more for each entry
    of its inner dimension, which it walks along one after another."""

    least: float
    most: float
    inner: Several

    @property
    def node(self) -> float:
        """The middle of the band."""
        return math.sqrt(self.least * self.most)

    def seconds(self, inner: np.ndarray) -> np.ndarray:
        """Of launches of these inner dimensions, 0 where they are no product: the middle."""
        return self.node + self.inner.middle * np.minimum(inner, LONGEST)


def floor(card: Card) -> Floor:
    """That of the architecture of `card`, from the sources that measured it, or else from all."""
    return _floor(card.compute_capability)


@cache
def _floor(capability: str) -> Floor:
    nodes = overheads("graph_node")
    alike = [one for one in nodes if one.compute_capability == capability]
    own = alike if len(alike) >= FEWEST_SOURCES else nodes
    least, most = min(one.low_seconds for one in own), max(one.high_seconds for one in own)
    return Floor(least, most, several(overheads("product_inner")))


def several(found: Sequence[Overhead]) -> Several:
    """What they say together, two at least."""
    logs = np.log([one.low_seconds for one in found])
    spread = float(logs.std(ddof=1)) * math.sqrt(1 + 1 / len(logs))
    return Several(math.exp(float(logs.mean())), spread, len(logs))
