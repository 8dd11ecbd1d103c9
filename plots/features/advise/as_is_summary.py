# SPDX-License-Identifier: Apache-2.0
"""What a file says of a module that PyTorch trained as it is, as of a network of one's own: by
PyTorch's rows alone, on cards by what the worker counted of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from plots import units
from plots.core.cards import Card, load_cards, overheads
from plots.core.cost import Cost, operation_of
from plots.core.machines import short_gpu
from plots.core.page.section import Block
from plots.core.reference import REFERENCE, lines_of
from plots.core.statistics import conformal
from plots.features.advise.advice import CPU, Adviser, Own, cost_of_row, own_network
from plots.features.advise.analysis import Prediction, from_own_rows, nearest, weights_of
from plots.features.advise.table import (
    counted_rows,
    own_block,
    own_table,
    sentence,
    where_it_wins,
)
from plots.features.predict.data import card_of
from plots.features.predict.fit import Fit
from plots.features.predict.ways import PYTORCH, Way
from plots.file.families import EPOCH, TRAINING
from plots.file.rows import File, Row
from plots.text import listed
from plots.text import sentence as as_sentence

WAY = Way("eager", "resident", PYTORCH)
_MOST_OF_MEMORY = 0.9  # of a card's, that a training gets
_PARTS = ("parameters", "optimizer", "activations")
_COUNTS = ("launches", "flops", "bytes")


@dataclass(frozen=True, slots=True)
class AsIs:
    """`own` has the fastest way of each device, `ways` are all of the CPU; `reason` is why it is
    measured as it is, `failed` are rows without a result, and `cards` what was asked about."""

    own: Own
    ways: tuple[Prediction, ...]
    reason: str
    failed: tuple[Row, ...]
    cards: tuple[Card, ...]


def modules(file: File) -> list[str]:
    """The names of those in `file`, each once whatever its sizes."""
    ladders = {rung: ladder.name for ladder in file.ladders for rung in ladder.rungs}
    found = (row.model for row in file.peers if row.as_is and row.failure is None)
    return list(dict.fromkeys(ladders.get(name, name) for name in found))


def as_is(
    file: File, name: str, cards: Sequence[Card], fit: Fit | None, batch: int | None = None
) -> AsIs | None:
    """What is known of the module `name`, in that batch or its first; None where `file` has no
    result of it."""
    every = _rows_of(file, name)
    rows = [row for row in every if row.failure is None and row.as_is]
    if not rows:
        return None
    # Where epochs were measured a step is one of theirs.
    epochs = {(row.model, row.batch) for row in rows if row.family == EPOCH}
    rows = [r for r in rows if r.family == EPOCH or (r.model, r.batch) not in epochs]
    alone = replace(file, rows=tuple(rows), peers=())

    def count(model: str, batch: int) -> Cost | None:
        alike = [r for r in rows if r.model == model and r.counters["batch"] == batch]
        return _cost_of(alike[0]) if alike else None

    own_size = [row for row in rows if row.model == name] or rows
    first = nearest(own_size, batch) if batch else own_size[0]
    cost = _cost_of(first)
    precise = replace(alone, rows=tuple(r for r in rows if r.precision == cost.precision))
    adviser = _Counted(precise, cost.precision, cards=cards, fit=fit, ways=(WAY,))
    own = own_network(precise, adviser, cost, count)
    ways = [one for one in from_own_rows(precise.rows, cost) if one.device == CPU]
    failed = tuple(row for row in every if row.failure is not None)
    return AsIs(own, tuple(ways), first.as_is, failed, tuple(adviser.cards))


def _rows_of(file: File, name: str) -> list[Row]:
    ladder = next((one.rungs for one in file.ladders if one.name == name), (name,))
    return [row for row in file.peers if row.model in ladder and row.family in TRAINING]


def cards_of(file: File, name: str, others: Sequence[Card], asked: bool = False) -> list[Card]:
    """What to predict of a module: `others`, before them the file's own card where PyTorch did not
    run there; where it did, those alone that were `asked` about."""
    own = card_of(file, load_cards())
    rest = [card for card in others if card != own]
    if any(row.device != CPU and row.failure is None for row in _rows_of(file, name)):
        return rest if asked else []
    return [*([own] if own and (own in others or not asked) else []), *rest]


# ---- how well a count of a step in PyTorch foretells its time


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Of each of `networks` that were measured on a processor, left out of the fit to the others,
    the largest |log(predicted / measured)| over its batches, and what it is in the `median` of
    steps. `factor` is what `coverage` of networks like these stay below."""

    networks: dict[str, float]
    median: float
    factor: float
    coverage: float


@cache
def left_out() -> LeftOut:
    """From the steps in pytorch_steps.csv. Raises OSError where it cannot be read."""
    lines = lines_of(REFERENCE / "pytorch_steps.csv")
    names = np.array([line["network"] for line in lines])
    seconds = np.array([float(line["seconds"]) for line in lines])
    counts = np.array([[float(line[key]) for key in _COUNTS] for line in lines])
    networks, errors = {}, []
    for name in dict.fromkeys(names.tolist()):
        own = names == name
        weights = weights_of(counts[~own], seconds[~own], np.ones(sum(~own)))
        off = np.abs(np.log(counts[own] @ weights / seconds[own]))
        networks[name] = float(off.max())
        errors += off.tolist()
    band, coverage = conformal(list(networks.values()))
    return LeftOut(networks, float(np.median(errors)), math.exp(band), coverage)


class _Counted(Adviser):
    """Whose bands of cards are as wide at least as a count is off on a processor."""

    def _of_card(self, card: Card, way: Way, cost: Cost) -> Prediction | str:
        found = super()._of_card(card, way, cost)
        if isinstance(found, str):
            return found
        ends = found.middle / left_out().factor, found.middle * left_out().factor
        return replace(found, low=min(found.low, ends[0]), high=max(found.high, ends[1]))


def _cost_of(row: Row) -> Cost:
    """What the worker counted of the module of `row`; of older rows nothing."""
    batch = row.counters["batch"]
    counted = row.cost or {"operations": (), "memory_bytes": {}}
    operations = tuple(map(operation_of, counted["operations"]))
    rows = int(row.counters["rows"] if row.family == EPOCH else batch)
    steps = max(1, -(-rows // int(batch)))
    flops, size, launches = (
        steps * sum(getattr(one, key) * one.count for one in operations)
        for key in ("flops", "bytes", "launches")
    )
    epoch = {
        **{"flops": flops, "bytes": size, "products": 0, "bytes_to_device": 0},
        "device_launches": {"cuda": {WAY.execution: {WAY.data: launches}}},
    }
    cost = cost_of_row(row, rows, epoch, operations)
    memory = counted["memory_bytes"]
    planned = {"memory_bytes": memory, "device_bytes": {CPU: {"bytes": memory.get("peak")}}}
    return replace(cost, fields=cost.fields | planned)


# ---- in words


def module_block(found: AsIs, epochs: int = 1) -> Block:
    """All that is known of it, with a line for each way of the CPU; of a step where nobody said
    what an epoch of it is."""
    own = found.own
    why = f"{own.cost.model} is measured in PyTorch as it is (program: pytorch): {found.reason}."
    others = (one for one in found.ways if not own.cpu or one.label != own.cpu.label)
    by_step = own.cost.fields["steps"] == 1
    what = f"A step of {counted_rows(own.cost.batch)}" if by_step else ""
    table = own_table(replace(own, peers=tuple(others)), epochs, "a step" if by_step else "")
    lead = sentence(own, 1 if by_step else epochs, what)
    return own_block(own, [why, *sentences(found)], table, lead)


def sentences(found: AsIs) -> list[str]:
    """From where on a GPU wins, what a step consists of, its memory, and what the times are
    worth."""
    return [*where_it_wins(found.own), *_step(found), *_memory(found), *_worth(found)]


def _step(found: AsIs) -> Iterator[str]:
    cost = found.own.cost
    launches = sum(one.launches * one.count for one in cost.operations if one.kind != "view")
    started = sum(one.launches * one.count for one in cost.operations)
    if not launches:
        return
    flops = sum(one.flops * one.count for one in cost.operations)
    published = overheads("torch_operation")
    low, high = (
        units.seconds(started * end, 2)
        for end in (
            min(one.low_seconds for one in published),
            max(one.high_seconds for one in published),
        )
    )
    yield (
        f"A step starts {launches:,.0f} operations on a GPU, which compute "
        f"{units.short_count(flops)} FLOP, and makes {started - launches:,.0f} views; to start "
        f"these alone takes Python {low} to {high}."
    )


def _memory(found: AsIs) -> Iterator[str]:
    cost = found.own.cost
    memory = cost.fields["memory_bytes"]
    if not memory:
        return
    parts = listed(
        [f"{units.binary_bytes(memory[key])} {key}" for key in _PARTS if memory.get(key)]
    )
    peak = units.binary_bytes(memory["peak"])
    said = f"Memory: {peak} at batch {cost.batch:,.0f}, of these {parts}"
    fixed = 2 * memory["parameters"] + memory["optimizer"]  # gradients are as large
    each = max(memory["peak"] - fixed, 1) / cost.batch
    most = [
        f"{units.significant(max((room - fixed) / each, 0), 2)} on the {short_gpu(card.name)}"
        for card in found.cards
        if (room := _MOST_OF_MEMORY * (card.figure("memory_bytes") or 0))
    ]
    yield as_sentence(f"{said}; the largest batch is about {listed(most)}" if most else said)


def _worth(found: AsIs) -> Iterator[str]:
    if any(one.row is None for one in found.own.gpus):
        yield (
            "Predicted are steps of PyTorch's eager loop on cards that nobody measured, from what "
            "was counted, in a range for 90 % of them (docs/method/modules.md#what-is-counted)."
        )
    reasons: dict[str, list[float]] = {}
    for failure in (row.failure for row in found.failed if row.failure):
        times = reasons.setdefault(failure.message, [])
        times += [] if failure.seconds is None else [failure.seconds]
    for reason, times in reasons.items():
        took = ", ".join(units.seconds(one, 2) for one in times)
        what = f"Not verified, so it counts nowhere: {took}" if took else "Without a result"
        yield f"{what} ({reason})."
