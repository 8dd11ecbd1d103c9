# SPDX-License-Identifier: Apache-2.0
"""The time of a training step on a GPU, from what the step counts and what a data sheet says.

docs/method/prediction.md defines the model and justifies each of its parts.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from plots.core.cards import Card
from plots.core.cost import Cost, Operation
from plots.features.predict.floors import floor

# Which figure of a card is the ceiling of a precision's products.
CEILINGS = {
    "f32": "f32_flops",
    "tf32": "tf32_flops",
    "bf16": "bf16_flops",
    "f16": "f16_flops",
}
# Tiles of the result that a multiprocessor computes at a time, in entries, and into how many parts
# the inner dimension is split: those that libraries of products choose from.
_EDGES = (32, 64, 128)
_SPLITS = (1, 2, 4, 8, 16)
_SHORTEST = 64  # inner dimension that is worth a part of its own
# A tile of a × b entries does a·b multiply-adds for a + b loads: a / 2 for a square one. From this
# many on the multiprocessor rather than its loads is what limits it.
_BALANCE = 16.0
# Narrowness counts up to here, and is 1 at 128.
_WIDEST, _UNIT = 512, 128
# As bench --cost calls these kinds of operations.
_PRODUCT, _CONVOLUTION = "product", "convolution"


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
    Parameter("memory", math.log(0.7), 0.3, "share of the memory bandwidth"),
    Parameter("narrow", 0.0, 0.3, "exponent of width in the share of the ceiling", True),
    Parameter("matrix_units", math.log(0.6), 0.4, "the same on matrix units, times"),
    Parameter("operation", math.log(1e-5), 0.7, "seconds of a framework's operation"),
    Parameter("launch", 0.0, 0.5, "our launches and waits, times what was published of them"),
    Parameter("software", 0.0, 0.5, "published times, times ours"),
)
EXPECTED = np.array([parameter.expected for parameter in PARAMETERS])
SPREADS = np.array([parameter.spread for parameter in PARAMETERS])


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What a step asks of a card, an entry for each kind of launch, of which there are `count`.

    In seconds of one launch at the card's ceilings: `compute` with the multiprocessors as busy as
    its shape allows, `memory` at the full bandwidth. `narrow` is the logarithm of how narrow its
    product is, `inner` the product's inner dimension, 0 of what is none; `convolution` is 1 for
    those of convolutions. A launch takes at least `floor` seconds. `matrix_units` is 1 where these
    compute the products. Of a framework `operations` counts what it starts; of our own programs
    `host` are the seconds that is expected to be beside the launches.
    """

    count: np.ndarray
    compute: np.ndarray
    narrow: np.ndarray
    convolution: np.ndarray
    memory: np.ndarray
    inner: np.ndarray
    floor: np.ndarray
    matrix_units: float
    operations: float
    host: float = 0.0


class Stack:
    """Many demands at once."""

    def __init__(self, demands: Sequence[Demand]) -> None:
        most = max(len(each.compute) for each in demands)

        def padded(name: str) -> np.ndarray:
            rows = [getattr(each, name) for each in demands]
            return np.array([np.pad(row, (0, most - len(row))) for row in rows])

        self._count, self._floor = padded("count"), padded("floor")
        self._compute, self._narrow = padded("compute"), padded("narrow")
        self._convolution, self._memory = padded("convolution"), padded("memory")
        self._rest = np.array([[each.operations, each.host] for each in demands])
        self._matrix_units = np.array([each.matrix_units for each in demands])
        self._framework = np.array([float(each.operations > 0) for each in demands])

    def work(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds that one launch of each kind computes, without its floor: a line each."""
        return self._products(parameters) + self._memory * np.exp(-parameters[2])

    def device_seconds(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds of each in which the device works or is about to."""
        return (self._count * np.maximum(self._least(parameters), self.work(parameters))).sum(1)

    def parts(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds of each that are launches at their floors, arithmetic, and memory traffic: a line
        each."""
        least, products = self._least(parameters), self._products(parameters)
        works = self._count * (self.work(parameters) >= least)
        memory = self._memory * np.exp(-parameters[2])
        found = ((self._count - works) * least, works * products, works * memory)
        return np.array([one.sum(axis=1) for one in found]).T

    def log_seconds(self, parameters: np.ndarray) -> np.ndarray:
        """The logarithm of the seconds of each."""
        total = self.device_seconds(parameters) + self._others(parameters).sum(axis=1)
        return np.log(total) + parameters[7] * self._framework

    def jacobian(self, parameters: np.ndarray) -> np.ndarray:
        """By how much log_seconds() grows with each parameter: a line for each demand."""
        others = self._others(parameters)
        least = self._least(parameters)
        works = self._count * (self.work(parameters) >= least)
        products = works * self._products(parameters)
        memory = (works * self._memory).sum(axis=1) * np.exp(-parameters[2])
        waits = ((self._count - works) * least).sum(axis=1) * (1 - self._framework)
        compute = products.sum(axis=1)
        convolved = (products * self._convolution).sum(axis=1)
        total = self.device_seconds(parameters) + others.sum(axis=1)
        columns = [
            convolved - compute,
            -convolved,
            -memory,
            -(products * self._narrow).sum(axis=1),
            -compute * self._matrix_units,
            others[:, 0],
            others[:, 1] + waits,
            total * self._framework,
        ]
        return np.array(columns).T / total[:, None]

    def _products(self, parameters: np.ndarray) -> np.ndarray:
        product, convolution, _, narrow, matrix_units, *_ = parameters
        efficiency = product + (convolution - product) * self._convolution + narrow * self._narrow
        return self._compute * np.exp(-efficiency - matrix_units * self._matrix_units[:, None])

    def _least(self, parameters: np.ndarray) -> np.ndarray:
        """The floors: our launches may take more or less than published ones."""
        ours = 1 - self._framework
        return self._floor * np.exp(parameters[6] * ours)[:, None]

    def _others(self, parameters: np.ndarray) -> np.ndarray:
        return self._rest * np.exp(parameters[5:7])


def ceiling(card: Card, precision: str) -> float | None:
    """Operations per second that `card` can do at best in the products of `precision`."""
    return card.figure(CEILINGS[precision])


def demand(cost: Cost, card: Card, launches: float | None = None) -> Demand | str:
    """What a step of `cost` asks of `card`, or why that is not known, a phrase.

    Of our own programs, which start so many `launches` a step; of a framework's without them.
    """
    peak = ceiling(card, cost.precision)
    bandwidth = card.figure("memory_bytes_per_second")
    if not cost.operations:
        return "bench --cost does not list its operations"
    if not peak or not bandwidth:
        missing = CEILINGS[cost.precision] if not peak else "memory_bytes_per_second"
        return f"no source gives its {missing}"
    multiprocessors = int(card.figure("multiprocessors") or 0)
    kinds: dict[tuple[float, ...], float] = defaultdict(float)
    bytes_of_others = 0.0
    for operation in cost.operations:
        own = [one for one in operation.products if min(one.m, one.n, one.k) > 0]
        if not own and operation.kind == _PRODUCT and operation.flops:
            kinds[_unshaped(operation, card, bandwidth)] += operation.count
            continue
        if not own:
            bytes_of_others += operation.bytes * operation.count
            continue
        share = operation.bytes / sum(one.count for one in own) / bandwidth
        for one in own:
            shape = (one.m, one.n, one.k)
            seconds = 2.0 * one.m * one.n * one.k / peak / busy(*shape, multiprocessors)
            narrow = math.log(min(*shape, _WIDEST) / _UNIT)
            convolution = float(operation.kind == _CONVOLUTION)
            kinds[seconds, narrow, convolution, share, one.k] += one.count * operation.count
    operations = sum(each.launches * each.count for each in cost.operations)
    others = (operations if launches is None else launches) - sum(kinds.values())
    if others > 0 or bytes_of_others:
        others = max(others, 1.0)
        kinds[0.0, 0.0, 0.0, bytes_of_others / others / bandwidth, 0.0] += others
    compute, narrow, convolution, memory, inner = np.array(list(kinds)).T
    return Demand(
        count=np.array(list(kinds.values())),
        compute=compute,
        narrow=narrow,
        convolution=convolution,
        memory=memory,
        inner=inner,
        floor=floor(card).seconds(inner),
        matrix_units=float(cost.precision != "f32"),
        operations=operations if launches is None else 0.0,
    )


def _unshaped(operation: Operation, card: Card, bandwidth: float) -> tuple[float, ...]:
    """One launch of products whose shapes are not told, as those of attention: kernels of ours,
    which use no matrix units in any precision, on a card that they fill."""
    seconds = operation.flops / (ceiling(card, "f32") or math.inf)
    return seconds, 0.0, 0.0, operation.bytes / bandwidth, 0.0


@lru_cache(maxsize=65536)
def busy(m: int, n: int, k: int, multiprocessors: int) -> float:
    """The largest share of a card's arithmetic that a product m × k by k × n can use, in (0, 1].

    The result is cut into tiles, which are padded where it is smaller; multiprocessors take one
    each in turns, of which the last may leave some idle; small tiles are limited by their loads.
    With 0 multiprocessors, where their number is unknown, none is ever idle.
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
