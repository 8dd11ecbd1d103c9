# SPDX-License-Identifier: Apache-2.0
"""How much faster others trained on several GPUs, from plots/reference, and how much slower that
was than the model of sums says."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from plots.core.all_reduce import BACKWARD, FLOAT_BYTES, exposed
from plots.core.cards import load_cards
from plots.core.reference import REFERENCE
from plots.features.predict.links import Link, link_of
from plots.features.predict.simulate import Error, within
from plots.features.predict.ways import Band

SCALING_PATH = REFERENCE / "scaling.csv"


@dataclass(frozen=True, slots=True)
class Scaling:
    """A network trained on a machine in batches of `batch` on each GPU, as published;
    plots/reference/README.md has the columns. `rates` are samples per second, by GPUs."""

    network: str
    params: int
    batch: int
    card: str
    machine: str
    link: str
    summed_by: str
    rates: dict[int, float]

    def seconds(self, gpus: int) -> float:
        """Of a step on so many GPUs, each of which has a batch of its own."""
        return gpus * self.batch / self.rates[gpus]

    def gain(self, gpus: int) -> float:
        """How many times as fast so many GPUs train as one."""
        return self.rates[gpus] / self.rates[1]

    @property
    def several(self) -> list[int]:
        """Each number of GPUs from two on."""
        return [gpus for gpus in self.rates if gpus > 1]


def load_scaling(path: Path = SCALING_PATH) -> list[Scaling]:
    """Every training in `path`; raises OSError where the file cannot be read."""
    found: dict[tuple[str, ...], Scaling] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for line in csv.DictReader(file):
            gpus, rate = int(line.pop("gpus")), float(line.pop("samples_per_second"))
            fields: dict[str, Any] = line | {key: int(line[key]) for key in ("params", "batch")}
            one = found.setdefault(tuple(line.values()), Scaling(**fields, rates={}))
            one.rates[gpus] = rate
    return list(found.values())


def waits(link: Link, ranks: int, size: float, seconds: np.ndarray) -> np.ndarray:
    """Draws of the time that a step of so many `seconds` waits for its sums of `size` bytes: none
    to all of the backward pass hides them."""
    hidden = BACKWARD * seconds * within(Band(0.0, 1.0), "overlap")
    return exposed(partial(link.seconds, ranks), size, hidden)


def modelled(one: Scaling, gpus: int) -> np.ndarray:
    """Draws of the seconds of a step on so many GPUs, from those on one."""
    alone = np.array(one.seconds(1))
    link = link_of(load_cards()[one.card], one.link)
    return alone + waits(link, gpus, FLOAT_BYTES * one.params, alone)


def lost(one: Scaling, gpus: int) -> float:
    """The logarithm of the published time over the middle of what is modelled."""
    return math.log(one.seconds(gpus) / float(np.median(modelled(one, gpus))))


def loss_of(found: Iterable[Scaling]) -> Error:
    """What several cards lose beside the sums, as these did: each network on each machine counts
    once."""
    squares: dict[tuple[str, str], list[float]] = {}
    for one in found:
        own = squares.setdefault((one.network, one.machine), [])
        own += [lost(one, gpus) ** 2 for gpus in one.several]
    means = [float(np.mean(own)) for own in squares.values()]
    return Error(math.sqrt(float(np.mean(means))), len(means))


@cache
def loss() -> Error:
    """As all that were published did."""
    return loss_of(load_scaling())


def others(one: Scaling, found: Sequence[Scaling]) -> list[Scaling]:
    """Those of another network on another machine."""
    return [
        other for other in found if other.network != one.network and other.machine != one.machine
    ]
