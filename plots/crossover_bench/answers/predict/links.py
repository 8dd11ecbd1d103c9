# SPDX-License-Identifier: Apache-2.0
"""What sums of gradients over several cards take, and what of it a step waits for: by what others
published of the link between them, or by a file's own sums; and how much slower training on several
GPUs was than that says.

docs/method/several.md defines the model.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from crossover_bench.answers.predict.data import card_of
from crossover_bench.answers.predict.simulate import around, within
from crossover_bench.answers.predict.ways import Band, Estimate, published
from crossover_bench.counts.cards import Card, load_cards, load_links
from crossover_bench.counts.cost import CostError
from crossover_bench.counts.reference import REFERENCE, lines_of
from crossover_bench.files.rows import File
from crossover_bench.words.text import printable

BUCKET_BYTES = 25 * 2**20  # as bench's --bucket, and PyTorch's DistributedDataParallel
_FLOAT_BYTES = 4  # gradients are summed in f32
# Of the time that a step computes: two of its three products of a layer are for gradients.
_BACKWARD = 2 / 3
# What --link= may name.
LINKS = {
    "nvlink": "NVLink",
    "pcie3": "PCI Express 3",
    "pcie4": "PCI Express 4",
    "pcie5": "PCI Express 5",
    "ethernet-25g": "Ethernet of 25 Gbit/s",
}
_NEWEST_PCIE = 5
_LANES = 16  # that the rates of PCI Express are of


@dataclass(frozen=True, slots=True)
class Link:
    """A sum takes `base` seconds, `step` seconds for each message of the ring, and the time of its
    bytes at `bandwidth` bytes per second. As fitted to measured sums, it is off by `error`."""

    name: str
    base: Band
    step: Band
    bandwidth: Band
    error: Estimate | None = None

    def seconds(self, ranks: int, size: float) -> np.ndarray:
        """Draws of a sum of `size` bytes over so many cards."""
        messages, moved = _ring(ranks)
        latency = within(self.base, "latency") + within(self.step, "latency") * messages
        seconds = latency + size * moved / within(self.bandwidth, "bandwidth")
        return seconds * around(self.error, "sums") if self.error else seconds


def _ring(ranks: Any) -> tuple[Any, Any]:
    """Messages one after another, as each rank's share goes around twice; and the bytes that a rank
    sends for each byte that is summed, as nccl-tests defines it."""
    return 2 * (ranks - 1), 2 * (ranks - 1) / ranks


def link_of(card: Card, asked: str = "", file: File | None = None) -> Link:
    """The link between several of `card`: the one `asked` for, else that of the sums that `file`
    measured on such cards, else the fastest that the card has. Raises CostError."""
    if not asked and file and (measured := _measured(file, card)):
        return measured
    capabilities = ("", card.compute_capability)
    links = [link for link in load_links() if link.compute_capability in capabilities]
    has_nvlink = any(link.id == "nvlink" and link.compute_capability for link in links)
    generation = card.figure("link_generation")
    fastest = f"pcie{min(int(generation), _NEWEST_PCIE)}" if generation else ""
    name = asked or ("nvlink" if has_nvlink else fastest)
    if not name:
        raise CostError(f"{card.id}: its link is not known; give --link={'|'.join(LINKS)}")
    if name not in LINKS:
        raise CostError(f"--link={printable(name, 40)}: is none of {', '.join(LINKS)}")
    if name == "nvlink" and not has_nvlink:
        others = ", ".join(other for other in LINKS if other != name)
        raise CostError(f"--link=nvlink: no source gives {card.id} one; give one of {others}")
    sources = [link for link in links if link.id == name]
    is_pcie = name.startswith("pcie")
    share = min(1.0, (card.figure("link_lanes") or _LANES) / _LANES) if is_pcie else 1.0
    low = share * min(link.low_bytes_per_second for link in sources)
    high = share * max(link.high_bytes_per_second for link in sources)
    step = published(f"step_{re.sub('[^a-z].*', '', name)}")
    return Link(LINKS[name], published("all_reduce"), step, Band(low, high))


def _measured(file: File, card: Card) -> Link | None:
    """The link as fitted to the sums over GPUs of `file`; None where it has no three on `card`."""
    if card_of(file, load_cards()) != card:
        return None
    return fitted_link(
        [
            (row.ranks, float(row.configuration["bytes"]), row.median)
            for row in file.rows
            if row.family == "Collective" and row.device != "cpu" and row.failure is None
        ]
    )


def fitted_link(sums: Sequence[tuple[int, float, float]]) -> Link | None:
    """The link that fits measured sums best, each with its ranks, bytes and seconds, and with an
    equal share of error; None for fewer than three, because two parameters fit any two."""
    if len(sums) < 3:
        return None
    from scipy.optimize import least_squares  # noqa: PLC0415 (takes long to load)

    ranks, sizes, seconds = np.array(sums, dtype=float).T
    messages, moved = _ring(ranks)
    sent = moved * sizes

    def off(values: np.ndarray) -> np.ndarray:
        step, inverse = np.exp(values)
        return np.log((step * messages + sent * inverse) / seconds)

    smallest, largest = int(np.argmin(sizes)), int(np.argmax(sizes))
    start = np.log([seconds[smallest] / messages[smallest], seconds[largest] / sent[largest]])
    best = least_squares(off, start)
    step, inverse = np.exp(best.x).tolist()
    spread = float(np.sqrt(np.sum(best.fun**2) / (len(sizes) - 2)))
    known = (Band(0.0, 0.0), Band(step, step), Band(1 / inverse, 1 / inverse))
    return Link("measured sums", *known, Estimate(spread, len(sums)))


def exposed(one_sum: Callable[[float], np.ndarray], size: float, hidden: np.ndarray) -> np.ndarray:
    """Seconds that a step waits for sums of `size` bytes, of BUCKET_BYTES at a time.

    `one_sum` says how long a sum of so many bytes takes, in draws or alone. The last bucket is
    complete when the backward pass is; the others may hide behind `hidden` seconds of the pass.
    """
    full = max(0, -int(-size // BUCKET_BYTES) - 1)
    last = one_sum(size - full * BUCKET_BYTES)
    if not full:
        return last
    return np.maximum(0.0, full * one_sum(BUCKET_BYTES) - hidden) + last


def waits(link: Link, ranks: int, params: float, seconds: np.ndarray) -> np.ndarray:
    """Draws of the time that a step of so many `seconds` waits for the sums of its gradients: they
    hide behind none to all of the backward pass."""
    hidden = _BACKWARD * seconds * within(Band(0.0, 1.0), "overlap")
    return exposed(partial(link.seconds, ranks), _FLOAT_BYTES * params, hidden)


# ---- what several GPUs lose beside the sums


@dataclass(frozen=True, slots=True)
class Scaling:
    """A network trained on a machine in batches of `batch` on each GPU, as published;
    reference/README.md has the columns. `rates` are samples per second, by GPUs."""

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

    @property
    def several(self) -> list[int]:
        """Each number of GPUs from two on."""
        return [gpus for gpus in self.rates if gpus > 1]


def load_scaling() -> list[Scaling]:
    """Every published training; raises OSError where the file cannot be read."""
    trainings: dict[tuple[str, ...], Scaling] = {}
    for line in lines_of(REFERENCE / "scaling.csv"):
        gpus, rate = int(line.pop("gpus")), float(line.pop("samples_per_second"))
        fields: dict[str, Any] = line | {key: int(line[key]) for key in ("params", "batch")}
        training = trainings.setdefault(tuple(line.values()), Scaling(**fields, rates={}))
        training.rates[gpus] = rate
    return list(trainings.values())


def modelled(training: Scaling, gpus: int) -> np.ndarray:
    """Draws of the seconds of a step on so many GPUs, from those on one."""
    alone, link = np.array(training.seconds(1)), link_of(load_cards()[training.card], training.link)
    return alone + waits(link, gpus, training.params, alone)


def lost(training: Scaling, gpus: int) -> float:
    """The logarithm of the published time over the middle of what is modelled."""
    return math.log(training.seconds(gpus) / float(np.median(modelled(training, gpus))))


def loss_of(trainings: Iterable[Scaling]) -> Estimate:
    """What several cards lose beside the sums, as in these trainings: each network on each machine
    counts once."""
    squares: dict[tuple[str, str], list[float]] = {}
    for training in trainings:
        alike = squares.setdefault((training.network, training.machine), [])
        alike += [lost(training, gpus) ** 2 for gpus in training.several]
    means = [float(np.mean(alike)) for alike in squares.values()]
    return Estimate(math.sqrt(float(np.mean(means))), len(means))


@cache
def loss() -> Estimate:
    """What several cards lose in all published trainings."""
    return loss_of(load_scaling())
