# SPDX-License-Identifier: Apache-2.0
"""The graphics cards that can be predicted, as a table."""

from __future__ import annotations

from collections.abc import Mapping

from plots import units
from plots.core.cards import Card
from plots.core.tables.table import NOTHING, Cell, Column, Table

_RATES = {
    "f32_flops": ("f32", "FLOP/s"),
    "tf32_flops": ("tf32", "FLOP/s"),
    "bf16_flops": ("bf16", "FLOP/s"),
    "f16_flops": ("f16", "FLOP/s"),
    "memory_bytes_per_second": ("memory", "B/s"),
    "link_bytes_per_second": ("link", "B/s"),
}


def cards_table(cards: Mapping[str, Card]) -> Table:
    """A line for each card: what a data sheet says of it; a dash where no source says it."""
    columns = (
        Column("card", "--gpu="),
        Column("name", "name"),
        Column("year", "year", numeric=True),
        Column("kind", "kind"),
        *(Column(key, title, numeric=True) for key, (title, _) in _RATES.items()),
        Column("memory_bytes", "memory size", numeric=True),
        Column("multiprocessors", "multiprocessors", numeric=True),
    )
    return Table("Graphics cards", columns, tuple(map(_line, cards.values())))


def _line(card: Card) -> tuple[Cell, ...]:
    rates = {key: card.figure(key) for key in _RATES}
    memory, multiprocessors = card.figure("memory_bytes"), card.figure("multiprocessors")
    return (
        Cell(card.id, card.id),
        Cell(card.name, card.name),
        Cell(str(card.year), card.year),
        Cell(card.kind, card.kind),
        *(
            Cell(units.rate(rate, _RATES[key][1]), rate) if rate else NOTHING
            for key, rate in rates.items()
        ),
        Cell(units.binary_bytes(memory), memory) if memory else NOTHING,
        Cell(units.count(multiprocessors), multiprocessors) if multiprocessors else NOTHING,
    )
