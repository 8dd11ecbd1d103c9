# SPDX-License-Identifier: Apache-2.0
"""The graphics cards of plots/reference/gpus.json, and what software and driver add to a step."""

import json
from dataclasses import dataclass
from typing import Any

from plots.core.reference import REFERENCE

CARDS_PATH = REFERENCE / "gpus.json"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a figure was read; `year` is that of the document, or of reading where it has none."""

    id: str
    title: str
    publisher: str
    year: int
    url: str
    quoted: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """A value in the unit that `units` of the file names.

    `derivation` says how it follows from what the source prints, and is empty where it is printed.
    """

    value: float
    source: Source
    derivation: str = ""


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU as its makers describe it. What no source tells is not in `figures`."""

    id: str
    name: str
    year: int
    architecture: str
    compute_capability: str
    kind: str  # desktop, server, laptop or embedded
    figures: dict[str, Figure]
    note: str = ""

    def figure(self, name: str) -> float | None:
        """Its value in the unit of the file; None where it is unknown."""
        figure = self.figures.get(name)
        return figure.value if figure else None


@dataclass(frozen=True, slots=True)
class Overhead:
    """A band of seconds that something small took wherever it was measured; on a card of that
    `compute_capability` where it depends on the card."""

    id: str
    low_seconds: float
    high_seconds: float
    source: Source
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
    source: Source
    note: str = ""
    compute_capability: str = ""


def load_cards() -> dict[str, Card]:
    """Every card by its id, in the order of the file; raises OSError where that cannot be read."""
    content, sources = _read()
    found = {}
    for card in content["cards"]:
        figures = {
            name: Figure(**{**figure, "source": sources[figure["source"]]})
            for name, figure in card["figures"].items()
        }
        found[card["id"]] = Card(**{**card, "figures": figures})
    return found


def overheads(id: str) -> list[Overhead]:
    """The bands of one kind, such as launch or wait; raises as load_cards()."""
    content, sources = _read()
    kind = [band for band in content["overheads"] if band["id"] == id]
    return [Overhead(**{**band, "source": sources[band["source"]]}) for band in kind]


def load_links() -> list[Link]:
    """Every link of several cards, one for each source; raises as load_cards()."""
    content, sources = _read()
    return [Link(**{**link, "source": sources[link["source"]]}) for link in content["links"]]


def _read() -> tuple[dict[str, Any], dict[str, Source]]:
    content = json.loads(CARDS_PATH.read_text(encoding="utf-8"))
    return content, {key: Source(id=key, **own) for key, own in content["sources"].items()}
