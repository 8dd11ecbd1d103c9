# SPDX-License-Identifier: Apache-2.0
"""The link between several cards: how long a sum over them takes, by what others published of it,
or by a file's own sums."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from plots.core.all_reduce import fit_alpha_beta, moved, steps
from plots.core.cards import Card, load_cards, load_links
from plots.core.cost import CostError
from plots.features.predict.data import card_of
from plots.features.predict.simulate import Error, unlike, within
from plots.features.predict.ways import Band, published
from plots.file.rows import File
from plots.text import printable

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
_NOTHING = Band(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Link:
    """A sum takes `base` and, for each message of the ring, `step` seconds, and the bytes that are
    moved at a `bandwidth` in bytes per second. As fitted to measured sums, all of that is off by
    `error`."""

    name: str
    base: Band
    step: Band
    bandwidth: Band
    error: Error | None = None

    def seconds(self, ranks: int, size: float) -> np.ndarray:
        """Draws of a sum of `size` bytes over so many cards."""
        latency = within(self.base, "latency") + within(self.step, "latency") * steps(ranks)
        found = latency + size * moved(ranks) / within(self.bandwidth, "bandwidth")
        return found * unlike(self.error, "sums") if self.error else found


def link_of(card: Card, asked: str = "", file: File | None = None) -> Link:
    """The link between several of `card`: the one `asked` for, else that of the sums that `file`
    measured on such cards, else the fastest that the card has. Raises CostError."""
    if not asked and file and (own := _measured(file, card)):
        return own
    name = asked or _best(card)
    if not name:
        raise CostError(f"{card.id}: its link is not known; give --link={'|'.join(LINKS)}")
    if name not in LINKS:
        raise CostError(f"--link={printable(name, 40)}: is none of {', '.join(LINKS)}")
    if name == "nvlink" and not _has_nvlink(card):
        others = ", ".join(other for other in LINKS if other != name)
        raise CostError(f"--link=nvlink: no source gives {card.id} one; give one of {others}")
    return _published(name, card)


def _published(name: str, card: Card) -> Link:
    found = [
        one
        for one in load_links()
        if one.id == name and one.compute_capability in ("", card.compute_capability)
    ]
    share = 1.0
    if name.startswith("pcie"):
        share = min(share, (card.figure("link_lanes") or _LANES) / _LANES)
    low = share * min(one.low_bytes_per_second for one in found)
    high = share * max(one.high_bytes_per_second for one in found)
    kind = re.match("[a-z]+", name)
    assert kind
    return Link(LINKS[name], published("all_reduce"), published(f"step_{kind[0]}"), Band(low, high))


def _has_nvlink(card: Card) -> bool:
    return any(
        one.id == "nvlink" and one.compute_capability == card.compute_capability
        for one in load_links()
    )


def _best(card: Card) -> str:
    generation = card.figure("link_generation")
    if _has_nvlink(card):
        return "nvlink"
    return f"pcie{min(int(generation), _NEWEST_PCIE)}" if generation else ""


def _measured(file: File, card: Card) -> Link | None:
    """As fitted to the file's own sums over GPUs, where it has three or more on that card."""
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
    """That of measured sums, each with its ranks, bytes and seconds; None with fewer than three."""
    if len(sums) < 3:
        return None
    found = fit_alpha_beta(*np.array(sums, dtype=float).T)
    error = Error(found.spread, found.count)
    step, rate = (Band(each, each) for each in (found.step, found.bandwidth))
    return Link("measured sums", _NOTHING, step, rate, error)
