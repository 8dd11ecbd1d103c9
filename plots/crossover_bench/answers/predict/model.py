# SPDX-License-Identifier: Apache-2.0
"""The time of a training step on a GPU, from what the step counts and what a data sheet says.

docs/evidence/prediction.md defines the model and justifies its parts.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from crossover_bench.answers.predict.ways import (
    AS_ON_THE_SHEET,
    Band,
    Way,
    clock,
    floor,
    launch,
    launches,
    overhead,
)
from crossover_bench.counts.cards import Card
from crossover_bench.counts.cost import Cost, Operation

# Which figure of a card is the ceiling of a precision's products.
CEILINGS = {
    "f32": "f32_flops",
    "tf32": "tf32_flops",
    "bf16": "bf16_flops",
    "f16": "f16_flops",
}
# What libraries of products choose from: the edges of the tile of the result that a multiprocessor
# computes at a time, in entries, and the number of parts of the inner dimension.
_EDGES = (32, 64, 128)
_SPLITS = tuple(2**power for power in range(11))
HALVES = ("bf16", "f16")
_SHORTEST = 64  # inner dimension that is worth a part of its own
# A tile of a × b entries does a·b multiply-adds for a + b loads: a / 2 for each load of a square
# tile. From this many on, the multiprocessor limits it, not the loads.
_BALANCE = 16.0
# Narrowness counts between these, and is 1 at 128; of what is narrower still, the tile is padded.
_NARROWEST, _WIDEST, _UNIT = 32, 512, 128
# A convolution takes no less than a product of this inner dimension: of one sample 6.6 to 10.8 µs
# on an H200 (results/intel-xeon-6-207-16c, 48d84c3), where the sums have 25 entries, too.
_LEAST_OF_CONVOLUTIONS = 128
# Kinds of operations, as bench --cost calls them. Reductions read or write what they reduce more
# than once, or in lines too short to fill a card.
_PRODUCT, _CONVOLUTION, _ATTENTION = "product", "convolution", "attention"
REDUCTIONS = ("normalization", "softmax", "loss")
# Watts of a board for each f32 TFLOP/s that is busy: with fewer its clock falls under load. A card
# whose power no source tells has the middle of the known ones.
_WATTS_ENOUGH, _WATTS_UNKNOWN = 20.0, 10.0


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the model: what it is expected to be, and by how much it may well be off; as
    natural logarithms, unless it `is_exponent`."""

    name: str
    expected: float
    spread: float
    meaning: str
    is_exponent: bool = False


PARAMETERS = (
    Parameter("product", math.log(0.8), 0.3, "share of the ceiling in products, 128 wide"),
    Parameter("convolution", math.log(0.8), 0.3, "share of the ceiling in convolutions, 128 wide"),
    Parameter("memory", math.log(0.8), 0.2, "share of the memory bandwidth"),
    Parameter("narrow", 0.0, 0.3, "exponent of width in the share of the ceiling", True),
    Parameter("matrix_units", math.log(0.8), 0.4, "the same on matrix units, times"),
    Parameter("operation", math.log(1e-5), 0.7, "seconds of a framework's operation"),
    # 1.4 to 1.7 in graphs of disc-2 to disc-11 on an H200 (results/intel-xeon-6-207-16c): a product
    # of cuBLASLt's takes 5 µs there, however small, where published nodes take 1.3 to 2.4; of one
    # row, in forward passes of one sample, it takes 2.
    Parameter("launch", math.log(1.6), 0.3, "our launches, times what was published of them"),
    Parameter("software", 0.0, 0.5, "published times, times ours"),
    Parameter("reduction", math.log(0.6), 0.3, "share of the bandwidth where a kernel reduces"),
    Parameter("power", 0.3, 0.3, "exponent of watts for each FLOP/s in the share", True),
    Parameter("rate", 0.0, 0.3, "exponent of how many times f32 the matrix units do", True),
    Parameter("attention", math.log(0.5), 0.4, "share of the ceiling in fused attention"),
)
EXPECTED = np.array([parameter.expected for parameter in PARAMETERS])
SPREADS = np.array([parameter.spread for parameter in PARAMETERS])
_PLACES = {parameter.name: place for place, parameter in enumerate(PARAMETERS)}
_MEMORY, _REDUCTION = _PLACES["memory"], _PLACES["reduction"]
LAUNCH_SPREAD = float(SPREADS[_PLACES["launch"]])
_OPERATION, _LAUNCH, _SOFTWARE = _PLACES["operation"], _PLACES["launch"], _PLACES["software"]


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What a step asks of a card: an entry for each kind of launch, of which there are `count`.

    These are seconds of one launch at the card's ceilings: `compute` with the multiprocessors as
    busy as its shape allows, `memory` and `reduction` at the full bandwidth. The logarithm of the
    share of the ceiling is `efficiency`, a line for each launch with an entry for each parameter,
    times the parameters. `inner` is the product's inner dimension, 0 for one row or for what is no
    product. A launch takes at least `floor` seconds. Of a framework, `operations` counts what it
    starts; of our own programs, `host` is the expected seconds beside the launches. Where all
    products are of one row, our launches take what was published of them. `clock` is between which
    times of its data sheet's the card's lies.
    """

    count: np.ndarray
    compute: np.ndarray
    efficiency: np.ndarray
    memory: np.ndarray
    reduction: np.ndarray
    inner: np.ndarray
    floor: np.ndarray
    operations: float
    host: float = 0.0
    is_of_one_row: bool = False
    clock: Band = AS_ON_THE_SHEET


class Stack:
    """Many demands at once."""

    def __init__(self, demands: Sequence[Demand]) -> None:
        most = max(len(each.compute) for each in demands)

        def padded(name: str) -> np.ndarray:
            rows = [getattr(each, name) for each in demands]
            table = np.zeros((len(rows), most, *rows[0].shape[1:]))
            for to, row in zip(table, rows, strict=True):
                to[: len(row)] = row
            return table

        self._count, self._floor = padded("count"), padded("floor")
        self._compute, self._efficiency = padded("compute"), padded("efficiency")
        self._memory, self._reduction = padded("memory"), padded("reduction")
        self._rest = np.array([[each.operations, each.host] for each in demands])
        self._framework = np.array([float(each.operations > 0) for each in demands])
        ours = [not each.operations and not each.is_of_one_row for each in demands]
        self._ours = np.array(ours, dtype=float)

    def arithmetic(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds that one launch of each kind computes: a line each."""
        return self._compute * np.exp(-self._efficiency @ parameters)

    def traffic(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds that one launch of each kind reads and writes: a line each."""
        moved, waited = self._traffic(parameters)
        return moved + waited

    def work(self, parameters: np.ndarray) -> np.ndarray:
        """Both, without the floor of a launch: a line each."""
        return self.arithmetic(parameters) + self.traffic(parameters)

    def device_seconds(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds of each demand in which the device works or is about to."""
        return (self._count * np.maximum(self._least(parameters), self.work(parameters))).sum(1)

    def parts(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds of each that are launches at their floors, arithmetic, and memory traffic: a line
        each."""
        least, works = self._least(parameters), self._works(parameters)
        at_floor = ((self._count - works) * least).sum(axis=1)
        arithmetic = (works * self.arithmetic(parameters)).sum(axis=1)
        return np.array([at_floor, arithmetic, (works * self.traffic(parameters)).sum(axis=1)]).T

    def log_seconds(self, parameters: np.ndarray) -> np.ndarray:
        """The logarithm of the seconds of each."""
        total = self.device_seconds(parameters) + self._others(parameters).sum(axis=1)
        return np.log(total) + parameters[_SOFTWARE] * self._framework

    def jacobian(self, parameters: np.ndarray) -> np.ndarray:
        """By how much log_seconds() grows with each parameter: a line for each demand."""
        others, works = self._others(parameters), self._works(parameters)
        total = self.device_seconds(parameters) + others.sum(axis=1)
        least = ((self._count - works) * self._least(parameters)).sum(axis=1)
        arithmetic = works * self.arithmetic(parameters)
        slopes = -np.einsum("dk,dkp->dp", arithmetic, self._efficiency)
        for place, seconds in zip((_MEMORY, _REDUCTION), self._traffic(parameters), strict=True):
            slopes[:, place] -= (works * seconds).sum(axis=1)
        slopes[:, _OPERATION] += others[:, 0]
        slopes[:, _LAUNCH] += others[:, 1] + least * self._ours
        slopes[:, _SOFTWARE] += total * self._framework
        return slopes / total[:, None]

    def _traffic(self, parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return (
            self._memory * np.exp(-parameters[_MEMORY]),
            self._reduction * np.exp(-parameters[_REDUCTION]),
        )

    def _works(self, parameters: np.ndarray) -> np.ndarray:
        """How many of each kind take longer than their floor."""
        return self._count * (self.work(parameters) >= self._least(parameters))

    def _least(self, parameters: np.ndarray) -> np.ndarray:
        """The floors: our launches may take more or less than published ones."""
        return self._floor * np.exp(parameters[_LAUNCH] * self._ours)[:, None]

    def _others(self, parameters: np.ndarray) -> np.ndarray:
        return self._rest * np.exp(parameters[[_OPERATION, _LAUNCH]])


def our_launches(parameters: np.ndarray) -> float:
    """How many times as long as published ones our launches take."""
    return math.exp(parameters[_LAUNCH])


def ceiling(card: Card, precision: str) -> float | None:
    """Operations per second that `card` can do at best in the products of `precision`."""
    return card.figure(CEILINGS[precision])


def our_demand(
    cost: Cost, card: Card, way: Way, steps: float
) -> tuple[Demand, tuple[Band, ...]] | str:
    """What a step of ours asks in an iteration of so many `steps`, where each launch takes at least
    as long as starting it; and the overhead() of such an iteration."""
    asked = demand(cost.operations, cost.precision, card, launches(cost, way))
    beside = overhead(cost, card, way, steps)
    if isinstance(asked, str) or isinstance(beside, str):
        return asked if isinstance(asked, str) else str(beside)
    least = np.maximum(asked.floor, launch(way).middle) if launch(way).high else asked.floor
    return replace(asked, floor=least, host=sum(band.middle for band in beside) / steps), beside


def demand(
    operations: Sequence[Operation], precision: str, card: Card, launches: float | None = None
) -> Demand | str:
    """What a step of `operations` asks of `card`, or why that is not known, a phrase.

    With `launches`, the number that a step starts, it is of our own programs; without, of a
    framework's.
    """
    peak = ceiling(card, precision)
    bandwidth = card.figure("memory_bytes_per_second")
    if not operations:
        return "bench --cost does not list its operations"
    if not peak or not bandwidth:
        missing = CEILINGS[precision] if not peak else "memory_bytes_per_second"
        return f"no source gives its {missing}"
    multiprocessors = int(card.figure("multiprocessors") or 0)
    kinds: dict[tuple[str, float, float, float, float, float], float] = defaultdict(float)
    moved = {True: 0.0, False: 0.0}  # bytes of what is no product, by whether it reduces
    for operation in operations:
        products = [each for each in operation.products if min(each.m, each.n, each.k) > 0]
        if not products and operation.kind == _PRODUCT and operation.flops:
            # In 16 bits a library's, on the matrix units; else a kernel of ours, without.
            rate = peak if precision in HALVES else ceiling(card, "f32") or math.inf
            seconds, share = operation.flops / rate, operation.bytes / bandwidth
            kinds[_ATTENTION, seconds, 0.0, 0.0, share, 0.0] += operation.count
        elif not products:
            moved[operation.kind in REDUCTIONS] += operation.bytes * operation.count
        for product in products:
            shape = m, n, k = product.m, product.n, product.k
            share = busy(*shape, multiprocessors)
            seconds = 2.0 * m * n * k / peak / share
            narrow = math.log(max(min(*shape, _WIDEST), _NARROWEST) / _UNIT)
            power = math.log(min(power_of(card) / share, _WATTS_ENOUGH) / _WATTS_ENOUGH)
            moved_each = operation.bytes / sum(each.count for each in products) / bandwidth
            # Of one row a library takes the entries of the inner dimension side by side.
            walked = k if m > 1 else 0.0
            if operation.kind == _CONVOLUTION:
                walked = max(k, _LEAST_OF_CONVOLUTIONS)
            key = (operation.kind, seconds, narrow, power, moved_each, walked)
            kinds[key] += product.count * operation.count
    started = sum(each.launches * each.count for each in operations)
    others = (started if launches is None else launches) - sum(kinds.values())
    if others > 0 or any(moved.values()):
        others = max(others, 1.0)
        kinds["", 0.0, 0.0, 0.0, moved[False] / others / bandwidth, 0.0] += others
    names, compute, narrows, powers, memory, inner = map(np.array, zip(*kinds, strict=True))
    rate = peak / (ceiling(card, "f32") or peak) if precision != "f32" else 0.0
    reduction = np.where(names == "", moved[True] / max(others, 1.0) / bandwidth, 0.0)
    return Demand(
        count=np.array(list(kinds.values())),
        compute=compute,
        efficiency=_efficiency(names, narrows, powers, rate),
        memory=memory,
        reduction=reduction,
        inner=inner,
        floor=floor(card.compute_capability).seconds(inner),
        operations=started if launches is None else 0.0,
        is_of_one_row=all(product.m == 1 for each in operations for product in each.products),
        clock=clock(card),
    )


def power_of(card: Card) -> float:
    """Watts of the board for each f32 TFLOP/s."""
    watts, f32 = card.figure("watts"), ceiling(card, "f32")
    return watts / f32 * 1e12 if watts and f32 else _WATTS_UNKNOWN


def _efficiency(
    names: np.ndarray, narrow: np.ndarray, power: np.ndarray, rate: float
) -> np.ndarray:
    """The `efficiency` of a Demand of launches with these names. `rate` is how many times the peak
    in f32 the matrix units have, 0 where these are not used."""
    shaped = (names == _PRODUCT) | (names == _CONVOLUTION)
    on_units = shaped * float(rate > 0)
    columns = {
        "product": names == _PRODUCT,
        "convolution": names == _CONVOLUTION,
        "narrow": narrow,
        "matrix_units": on_units,
        "rate": on_units * math.log(rate or 1.0),
        "power": power,
        "attention": names == _ATTENTION,
    }
    efficiency = np.zeros((len(names), len(PARAMETERS)))
    for name, column in columns.items():
        efficiency[:, _PLACES[name]] = column
    return efficiency


@lru_cache(maxsize=65536)
def busy(m: int, n: int, k: int, multiprocessors: int) -> float:
    """The largest share of a card's arithmetic that a product m × k by k × n can use, in (0, 1].

    The result is cut into tiles, which are padded where it is smaller. The multiprocessors take one
    tile each, in turns; the last turn may leave some idle. Loads limit small tiles. With 0
    multiprocessors, where their number is unknown, none is ever idle.
    """
    best = 0.0
    for a in _EDGES:
        for b in _EDGES:
            rows, columns = -(-m // a), -(-n // b)
            filled = (m * n) / (rows * a * columns * b)
            intensity = a * b / (a + b)
            for split in _SPLITS:
                if split > 1 and k < split * _SHORTEST:
                    break
                tiles = rows * columns * split
                turns = -(-tiles // multiprocessors) if multiprocessors else 0
                idle = tiles / (turns * multiprocessors) if turns else 1.0
                best = max(best, filled * idle * intensity / (intensity + _BALANCE))
    return best
