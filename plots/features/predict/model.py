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
from plots.core.cost import Cost

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
    Parameter("launch", 0.0, 0.5, "our launches, times what was published of launches"),
    Parameter("software", 0.0, 0.5, "published times, times ours"),
)
EXPECTED = np.array([parameter.expected for parameter in PARAMETERS])
SPREADS = np.array([parameter.spread for parameter in PARAMETERS])


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """What a step asks of a card, in seconds at the card's ceilings.

    `compute` are those of products that are equally narrow, at the ceiling of arithmetic with the
    multiprocessors as busy as their shapes allow; `narrow` is the logarithm of how narrow they are,
    and `convolution` is 1 for those of convolutions. `memory` are those at the full bandwidth.
    `matrix_units` is 1 where these compute the products. Of a framework `operations` counts what
    it starts; of our own programs `launches` are the seconds that launches are expected to take.
    """

    compute: np.ndarray
    narrow: np.ndarray
    convolution: np.ndarray
    memory: float
    matrix_units: float
    operations: float
    launches: float = 0.0


class Stack:
    """Many demands at once."""

    def __init__(self, demands: Sequence[Demand]) -> None:
        most = max(len(each.compute) for each in demands)

        def padded(name: str) -> np.ndarray:
            rows = [getattr(each, name) for each in demands]
            return np.array([np.pad(row, (0, most - len(row))) for row in rows])

        self._compute, self._narrow = padded("compute"), padded("narrow")
        self._convolution = padded("convolution")
        self._rest = np.array([[each.memory, each.operations, each.launches] for each in demands])
        self._matrix_units = np.array([each.matrix_units for each in demands])
        self._framework = np.array([float(each.operations > 0) for each in demands])

    def device_seconds(self, parameters: np.ndarray) -> np.ndarray:
        """Seconds of each without launching anything."""
        return self._products(parameters).sum(axis=1) + self._others(parameters)[:, 0]

    def log_seconds(self, parameters: np.ndarray) -> np.ndarray:
        """The logarithm of the seconds of each."""
        software = parameters[7] * self._framework
        total = self._products(parameters).sum(axis=1) + self._others(parameters).sum(axis=1)
        return np.log(total) + software

    def jacobian(self, parameters: np.ndarray) -> np.ndarray:
        """By how much log_seconds() grows with each parameter: a line for each demand."""
        products, others = self._products(parameters), self._others(parameters)
        compute = products.sum(axis=1)
        convolved = (products * self._convolution).sum(axis=1)
        total = compute + others.sum(axis=1)
        columns = [
            convolved - compute,
            -convolved,
            -others[:, 0],
            -(products * self._narrow).sum(axis=1),
            -compute * self._matrix_units,
            others[:, 1],
            others[:, 2],
            total * self._framework,
        ]
        return np.array(columns).T / total[:, None]

    def _products(self, parameters: np.ndarray) -> np.ndarray:
        product, convolution, _, narrow, matrix_units, *_ = parameters
        efficiency = product + (convolution - product) * self._convolution + narrow * self._narrow
        return self._compute * np.exp(-efficiency - matrix_units * self._matrix_units[:, None])

    def _others(self, parameters: np.ndarray) -> np.ndarray:
        _, _, memory, _, _, operation, launch, _ = parameters
        return self._rest * np.exp([-memory, operation, launch])


def ceiling(card: Card, precision: str) -> float | None:
    """Operations per second that `card` can do at best in the products of `precision`."""
    return card.figure(CEILINGS[precision])


def demand(cost: Cost, card: Card) -> Demand | str:
    """What a framework's step of `cost` asks of `card`, or why that is not known, a phrase."""
    peak = ceiling(card, cost.precision)
    bandwidth = card.figure("memory_bytes_per_second")
    if not cost.operations:
        return "bench --cost does not list its operations"
    if not peak or not bandwidth:
        missing = CEILINGS[cost.precision] if not peak else "memory_bytes_per_second"
        return f"no source gives its {missing}"
    multiprocessors = int(card.figure("multiprocessors") or 0)
    compute: dict[tuple[bool, int], float] = defaultdict(float)
    for operation in cost.operations:
        for one in operation.products:
            shape = (one.m, one.n, one.k)
            if min(shape) < 1:
                continue
            flops = 2.0 * one.m * one.n * one.k * one.count * operation.count
            kind = (operation.kind == "convolution", min(*shape, _WIDEST))
            compute[kind] += flops / peak / busy(*shape, multiprocessors)
    kinds = sorted(compute)
    return Demand(
        compute=np.array([compute[kind] for kind in kinds]),
        narrow=np.log([narrow / _UNIT for _, narrow in kinds]),
        convolution=np.array([float(convolution) for convolution, _ in kinds]),
        memory=sum(each.bytes * each.count for each in cost.operations) / bandwidth,
        matrix_units=float(cost.precision != "f32"),
        operations=sum(each.launches * each.count for each in cost.operations),
    )


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
