# SPDX-License-Identifier: Apache-2.0
"""The graphics cards of reference/gpus.json, and what software and driver add to a step.

The file has the source of each figure, too, in `sources`.
"""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from crossover_bench.counts.reference import REFERENCE

NVIDIA = "NVIDIA"
CARDS_PATH = REFERENCE / "gpus.json"


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU as its makers describe it. What no source tells is not in `figures`, which are in the
    units that `units` of the file names."""

    id: str
    name: str
    year: int
    architecture: str
    compute_capability: str
    kind: str  # desktop, server, laptop or embedded
    figures: dict[str, float]
    note: str = ""
    maker: str = NVIDIA  # of others PyTorch's eager loop alone is predicted

    def figure(self, name: str) -> float | None:
        """One of them; None where it is unknown."""
        return self.figures.get(name)


@dataclass(frozen=True, slots=True)
class Overhead:
    """A band of seconds that something small took wherever it was measured; on a card of that
    `compute_capability` where it depends on the card."""

    id: str
    low_seconds: float
    high_seconds: float
    source: str
    note: str = ""
    compute_capability: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """Between which rates sums over several cards move their bytes over a link, from one source: in
    bytes per second of the bus bandwidth of nccl-tests; on a card of that `compute_capability`
    where it depends on the card."""

    id: str
    low_bytes_per_second: float
    high_bytes_per_second: float
    source: str
    note: str = ""
    compute_capability: str = ""


def load_cards() -> dict[str, Card]:
    """Every card of NVIDIA's by its id, in the order of the file; raises OSError where that cannot
    be read."""
    return _cards("cards")


def load_others() -> dict[str, Card]:
    """The same of cards of other makers."""
    return _cards("others")


def _cards(key: str) -> dict[str, Card]:
    cards = {}
    for card in _read(CARDS_PATH)[key]:
        figures = {name: figure["value"] for name, figure in card["figures"].items()}
        cards[card["id"]] = Card(**{**card, "figures": figures})
    return cards


def overheads(id: str) -> list[Overhead]:
    """The bands of one kind, such as launch or wait; raises as load_cards()."""
    return [Overhead(**band) for band in _read(CARDS_PATH)["overheads"] if band["id"] == id]


def load_links() -> list[Link]:
    """Every link of several cards, one for each source; raises as load_cards()."""
    return [Link(**link) for link in _read(CARDS_PATH)["links"]]


@cache
def _read(path: Path) -> dict[str, Any]:
    return dict(json.loads(path.read_text(encoding="utf-8")))
