# SPDX-License-Identifier: Apache-2.0
"""What software, driver and link add to what a GPU computes, in each execution and placement, and
in PyTorch; and what a launch takes at least, whatever it computes, on a card's architecture.

docs/evidence/prediction.md says which sources these are, and how well they foretell.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from crossover_bench.counts.cards import Card, Overhead, overheads
from crossover_bench.counts.cost import Cost

AUTO = "auto"
EXECUTIONS = ("eager", "graph", "graph-epoch", AUTO)
OURS, PYTORCH = "ours", "pytorch"  # whose loop trains
# Where the data is while it trains; of pageable memory nobody publishes rates to go by.
PLACEMENTS = ("resident", "pinned", "pinned-async")
# Of the link's rate on paper, what a copy from pinned memory reaches at least.
_LEAST_OF_LINK = 0.5
# From this inner dimension on libraries split a small product among multiprocessors.
LONGEST = 256
# Sources on one architecture, from which they speak for it alone.
FEWEST_SOURCES = 2


@dataclass(frozen=True, slots=True)
class Way:
    """How a GPU trains: an execution, where the data is, whose loop it is, and in PyTorch what its
    attention is (attention.KINDS)."""

    execution: str
    data: str
    loop: str = OURS
    attention: str = "fused"

    @property
    def name(self) -> str:
        """The execution, and the loop where it is not ours."""
        return self.execution if self.loop == OURS else f"PyTorch, {self.execution}"

    @property
    def configuration(self) -> dict[str, str]:
        """As rows have it."""
        return {"device": "cuda", "execution": self.execution, "data": self.data}

    @property
    def counted(self) -> dict[str, str]:
        """As the way that is counted: of `auto` a graph of the epoch, which a kernel may beat."""
        execution = "graph-epoch" if self.execution == AUTO else self.execution
        return {**self.configuration, "execution": execution}


# What is predicted unless another is asked for.
WAYS = (
    *(
        Way(execution, data)
        for execution in ("eager", "graph")
        for data in ("resident", "pinned-async")
    ),
    Way(AUTO, "resident"),
)


# In PyTorch, as people run it.
PYTORCH_WAY = Way("eager", "resident", PYTORCH)


def ways_of_passes(ways: Iterable[Way]) -> tuple[Way, ...]:
    """Those of `ways` that forward passes have: eager or as a graph, where no earlier pass computes
    while a batch is copied."""
    kept = (way for way in ways if way.execution in ("eager", "graph") and way.loop == OURS)
    pinned = {"pinned-async": "pinned"}
    return tuple(dict.fromkeys(replace(way, data=pinned.get(way.data, way.data)) for way in kept))


@dataclass(frozen=True, slots=True)
class Band:
    """Seconds, or times something, at least and at most."""

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


# What clock a laptop's maker allows, times that of its entry in gpus.json: 1,470 to 2,370 MHz for
# an RTX 4060 and 1,230 to 2,175 MHz for an RTX 4070, at 35 to 115 W (NVIDIA's ranges, as
# data-check.eu and oemdrivers.com quote them), where the entries have 1,890 and 1,695.
_OF_LAPTOPS = Band(0.72, 1.28)
AS_ON_THE_SHEET = Band(1.0, 1.0)


def clock(card: Card) -> Band:
    """Between which times of its data sheet's the clock of `card` lies."""
    return _OF_LAPTOPS if card.kind == "laptop" else AS_ON_THE_SHEET


# A copy of a pass, where the host waits once for all of the pass: it added 3.0 to 7.0 µs on an H200
# (results/intel-xeon-6-207-16c, b6c7ce8); published copies take 10 µs alone.
_COPY_OF_PASS = Band(3e-6, 1e-5)


def spanned(sources: Sequence[Overhead]) -> Band:
    """The band that all of these sources span."""
    low = min(source.low_seconds for source in sources)
    return Band(low, max(source.high_seconds for source in sources))


@cache
def published(id: str) -> Band:
    """The band that all sources of one overhead span."""
    return spanned(overheads(id))


@dataclass(frozen=True, slots=True)
class Estimate:
    """`middle`, or a factor around 1, and the `spread` of its logarithm over cards, networks or
    sources, as estimated from `count` of them; the fewer, the longer the tails (Student's t)."""

    spread: float
    count: int
    middle: float = 1.0

    @property
    def half_width(self) -> float:
        """Half the width of the band that holds 90 % of those, as a logarithm."""
        from scipy.stats import t  # noqa: PLC0415 (takes long to load)

        return float(t.ppf(0.95, self.count - 1)) * self.spread


def several(sources: Sequence[Overhead]) -> Estimate:
    """What one source more than these, two at least, would say."""
    logs = np.log([source.low_seconds for source in sources])
    spread = float(logs.std(ddof=1)) * math.sqrt(1 + 1 / len(logs))
    return Estimate(spread, len(logs), math.exp(float(logs.mean())))


@dataclass(frozen=True, slots=True)
class Floor:
    """The band of a node of a graph. A product takes `inner` more for each entry of its inner
    dimension, because it walks along these one after another."""

    node: Band
    inner: Estimate

    def seconds(self, inner: np.ndarray) -> np.ndarray:
        """The middle for launches of these inner dimensions, 0 where there is no product."""
        return self.node.middle + self.inner.middle * np.minimum(inner, LONGEST)


@cache
def floor(capability: str) -> Floor:
    """The floor of cards of this compute capability: from the sources that measured it where there
    are enough, else from all."""
    nodes = overheads("graph_node")
    alike = [node for node in nodes if node.compute_capability == capability]
    sources = alike if len(alike) >= FEWEST_SOURCES else nodes
    return Floor(spanned(sources), several(overheads("product_inner")))


def launches(cost: Cost, way: Way) -> float | None:
    """How many launches a step of `cost` starts in our loop; None where that is not counted."""
    work = cost.work(way.counted)
    return None if work is None else work.calls / work.steps - _copies(cost, way)


def launch(way: Way) -> Band:
    """What the processor takes for each launch while the device works on earlier ones: in a graph
    nothing; eagerly at most an operation of the framework with the cheapest ones, which does more
    around it."""
    if way.execution != "eager":
        return Band(0.0, 0.0)
    bare = published("launch")
    most = min(source.high_seconds for source in overheads("framework_operation"))
    return Band(bare.low, max(bare.high, most))


def overhead(cost: Cost, card: Card, way: Way, steps: float) -> tuple[Band, ...] | str:
    """Seconds of an iteration of so many `steps` of `cost`, after which the host waits once, beside
    its launches: independent parts, or the reason why they are not known, a phrase."""
    work = cost.work(way.counted)
    if work is None:
        return f"bench --cost does not count {way.execution} execution with {way.data} data"
    parts = [published("wait")]
    if way.execution != "eager":
        graphs = 1.0 if way.counted["execution"] == "graph-epoch" else steps
        parts.append(published("graph_launch") * graphs)
    copies = _copies(cost, way)
    if not copies:
        return tuple(parts)
    link = card.figure("link_bytes_per_second")
    if not link:
        return "no source gives its link_bytes_per_second"
    moved = (work.bytes_to_device or 0.0) / cost.fields["steps"]
    start = published("small_copy")
    if cost.bytes_from_device:
        copies, moved, start = copies + 1, moved + cost.bytes_from_device, _COPY_OF_PASS
    transfer = moved / link
    copied = start * copies + Band(transfer, transfer / _LEAST_OF_LINK)
    # At best copies that run beside the steps take no time of their own.
    least = 0.0 if way.data == "pinned-async" else copied.low
    return (*parts, Band(least, copied.high) * steps)


# The share of the time of a graph of the epoch that one kernel for the epoch took: of disc-2 to
# disc-11, by their parameters, on an H200 (results/intel-xeon-6-207-16c, 7050029). Other cards have
# less or more room on the chip. disc-4 to disc-7 ran there on a cluster of blocks, which cards have
# from compute capability 9.0 on. Without, all multiprocessors train disc-6 and disc-7, for longer,
# but no longer than disc-8 took so: 2.2 times their share.
PERSISTENT = (
    *((22, 0.20), (70, 0.20), (230, 0.19), (806, 0.21), (2_982, 0.23)),
    *((11_430, 0.26), (44_710, 0.47), (176_806, 0.53), (703_142, 0.64), (2_804_390, 1.00)),
)
_PERSISTENT_BAND, _WITHOUT_CLUSTERS = Band(0.75, 1.6), Band(0.75, 3.5)
_FIRST_WITH_CLUSTERS = 9.0


def persistent_band(card: Card) -> Band:
    """So many times that share one kernel may take on `card`."""
    has_clusters = float(card.compute_capability or 0) >= _FIRST_WITH_CLUSTERS
    return _PERSISTENT_BAND if has_clusters else _WITHOUT_CLUSTERS


def persistent_share(cost: Cost) -> float:
    """The share for a network of `cost`; 1 where no kernel trains it alone, because it is not a
    fully connected network in f32."""
    kinds = {"product", "elementwise", "loss", "update"}
    is_dense = all(
        operation.kind in kinds and (operation.products or operation.kind != "product")
        for operation in cost.operations
    )
    if cost.precision != "f32" or not is_dense:
        return 1.0
    sizes, shares = np.array(PERSISTENT).T
    return float(np.interp(math.log(cost.params), np.log(sizes), shares, right=1.0))


def _copies(cost: Cost, way: Way) -> float:
    """How many arrays a step copies to the device."""
    eager, streamed = (cost.work(Way("eager", data).counted) for data in ("resident", way.data))
    if eager is None or streamed is None:
        return 0.0
    return (streamed.calls - eager.calls) / eager.steps
