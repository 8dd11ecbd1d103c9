# SPDX-License-Identifier: Apache-2.0
"""What software, driver and link add to what a GPU computes, in each execution and placement."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from plots.core.cards import Card, overheads
from plots.core.cost import Cost

EXECUTIONS = ("eager", "graph", "graph-epoch")
# Where the data is while it trains; of pageable memory nobody publishes rates to go by.
PLACEMENTS = ("resident", "pinned", "pinned-async")
# Of the link's rate on paper, what a copy from pinned memory reaches at least.
_LEAST_OF_LINK = 0.5


@dataclass(frozen=True, slots=True)
class Way:
    """How a GPU trains: an execution, and where the data is."""

    execution: str
    data: str

    @property
    def configuration(self) -> dict[str, str]:
        """As rows have it."""
        return {"device": "cuda", "execution": self.execution, "data": self.data}


# What is predicted unless another is asked for.
WAYS = tuple(
    Way(execution, data)
    for execution in ("eager", "graph")
    for data in ("resident", "pinned-async")
)


@dataclass(frozen=True, slots=True)
class Band:
    """Seconds, at least and at most."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        """Their geometric mean; half of `high` where nothing may be needed at all."""
        return math.sqrt(self.low * self.high) if self.low else self.high / 2

    def __add__(self, other: Band) -> Band:
        return Band(self.low + other.low, self.high + other.high)

    def __mul__(self, count: float) -> Band:
        return Band(self.low * count, self.high * count)


@cache
def published(id: str) -> Band:
    """The band that all sources of one overhead span."""
    found = overheads(id)
    return Band(min(one.low_seconds for one in found), max(one.high_seconds for one in found))


@cache
def launch(execution: str) -> Band:
    """What a launch takes.

    Eagerly at least a bare launch, and at most an operation of the framework with the cheapest
    ones, which does more around it. As a node of a graph at least an empty node, and at most a bare
    launch one by one with a kernel that runs.
    """
    bare = published("launch")
    if execution == "eager":
        most = min(one.high_seconds for one in overheads("framework_operation"))
        return Band(bare.low, max(bare.high, most))
    return Band(min(published("graph_node").low, bare.low), bare.high)


def overhead(cost: Cost, card: Card, way: Way, steps: float) -> Band | str:
    """Seconds of an iteration of so many `steps` of `cost`, after which the host waits once, beside
    what `card` computes; or the reason why they are not known, a phrase."""
    work = cost.work(way.configuration)
    if work is None:
        return f"bench --cost does not count {way.execution} execution with {way.data} data"
    copies = _copies(cost, way)
    launches = work.launches / work.steps - copies
    found = published("wait")
    found += launch(way.execution) * (launches * steps)
    if way.execution != "eager":
        graphs = 1.0 if way.execution == "graph-epoch" else steps
        found += published("graph_launch") * graphs
    if not copies:
        return found
    link = card.figure("link_bytes_per_second")
    if not link:
        return "no source gives its link_bytes_per_second"
    transfer = (work.bytes_to_device or 0.0) / work.steps / link
    copied = published("small_copy") * copies + Band(transfer, transfer / _LEAST_OF_LINK)
    # At best copies that run beside the steps take no time of their own.
    least = 0.0 if way.data == "pinned-async" else copied.low
    return found + Band(least, copied.high) * steps


def _copies(cost: Cost, way: Way) -> float:
    """How many arrays a step copies to the device."""
    eager, streamed = (
        cost.work(Way("eager", data).configuration) for data in ("resident", way.data)
    )
    if eager is None or streamed is None:
        return 0.0
    return (streamed.launches - eager.launches) / eager.steps
