# SPDX-License-Identifier: Apache-2.0
"""What a file says of a module that PyTorch trained as it is, as of a user's own network: here by
PyTorch's rows alone, on cards by what the worker counted of a step."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from crossover_bench.answers.advise.advice import (
    CPU,
    Advice,
    Adviser,
    Network,
    OwnNetwork,
    Size,
    cost_of_row,
    own_network,
)
from crossover_bench.answers.advise.analysis import Prediction, from_own_rows, nearest, weights_of
from crossover_bench.answers.advise.table import (
    counted_rows,
    own_block,
    own_table,
    sentence,
    where_it_wins,
)
from crossover_bench.answers.predict.data import card_of
from crossover_bench.answers.predict.fit import Fit
from crossover_bench.answers.predict.ways import PYTORCH_WAY, Way
from crossover_bench.counts.cards import Card, load_cards, overheads
from crossover_bench.counts.cost import Cost, operation_of
from crossover_bench.counts.reference import REFERENCE, lines_of
from crossover_bench.curves.statistics import conformal
from crossover_bench.files.families import EPOCH, TRAINING
from crossover_bench.files.rows import File, Row
from crossover_bench.show.page.section import Block
from crossover_bench.study.machines import short_gpu
from crossover_bench.study.programs import NAMES
from crossover_bench.study.study import PYTORCH
from crossover_bench.words import units
from crossover_bench.words.text import listed
from crossover_bench.words.text import sentence as as_sentence

_MOST_OF_MEMORY = 0.9  # of a card's, that a training gets
_PARTS = ("parameters", "optimizer", "activations")
_COUNTS = ("launches", "flops", "bytes")


@dataclass(frozen=True, slots=True)
class AsIs:
    """`network` has the fastest way of each device, `ways` are all of the CPU; `reason` is why it
    is measured as it is, `failed` are rows without a result, and `cards` what was asked about."""

    network: OwnNetwork
    ways: tuple[Prediction, ...]
    reason: str
    failed: tuple[Row, ...]
    cards: tuple[Card, ...]


def modules(file: File) -> list[str]:
    """The names of those in `file`, each once whatever its sizes."""
    ladders = {rung: ladder.name for ladder in file.ladders for rung in ladder.rungs}
    names = (row.model for row in file.peers if row.as_is and row.failure is None)
    return list(dict.fromkeys(ladders.get(name, name) for name in names))


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
    rows = [row for row in rows if row.family == EPOCH or (row.model, row.batch) not in epochs]

    def count(model: str, batch: int) -> Cost | None:
        alike = (row for row in rows if row.model == model and row.counters["batch"] == batch)
        return next(map(_cost_of, alike), None)

    of_name = [row for row in rows if row.model == name] or rows
    first = nearest(of_name, batch) if batch else of_name[0]
    cost = _cost_of(first)
    precise = tuple(row for row in rows if row.precision == cost.precision)
    alone = replace(file, rows=precise, peers=())
    adviser = _Counted(alone, cost.precision, cards=cards, fit=fit, ways=(PYTORCH_WAY,))
    return AsIs(
        network=own_network(alone, adviser, cost, count),
        ways=tuple(way for way in from_own_rows(precise, cost) if way.device == CPU),
        reason=first.as_is,
        failed=tuple(row for row in every if row.failure is not None),
        cards=adviser.cards,
    )


def _rows_of(file: File, name: str) -> list[Row]:
    rungs = next((ladder.rungs for ladder in file.ladders if ladder.name == name), (name,))
    return [row for row in file.peers if row.model in rungs and row.family in TRAINING]


def cards_of(file: File, name: str, others: Sequence[Card], asked: bool = False) -> list[Card]:
    """The cards to predict a module for: `others`, first of them the file's own where PyTorch did
    not run there; where it did, `others` only if the user `asked` for them."""
    here = card_of(file, load_cards())
    rest = [card for card in others if card != here]
    if any(row.device != CPU and row.failure is None for row in _rows_of(file, name)):
        return rest if asked else []
    return [*([here] if here and (here in others or not asked) else []), *rest]


# ---- how well the counts of a step in PyTorch predict its time


@dataclass(frozen=True, slots=True)
class LeftOut:
    """How far predictions are off on a processor: of each of `networks`, left out of the fit to the
    others, the largest |log(predicted / measured)| over its batches; and the `median` of all steps.
    `coverage` of networks like these are off by less than `factor`."""

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
        out = names == name
        weights = weights_of(counts[~out], seconds[~out], np.ones(sum(~out)))
        off = np.abs(np.log(counts[out] @ weights / seconds[out]))
        networks[name] = float(off.max())
        errors += off.tolist()
    band, coverage = conformal(list(networks.values()))
    return LeftOut(networks, float(np.median(errors)), math.exp(band), coverage)


class _Counted(Adviser):
    """Makes the band of a card at least as wide as counts are off on a processor."""

    def in_pytorch(self, network: Network, ours: Advice | Size) -> None:
        """Nothing more, as all that it knows is of PyTorch's loop."""

    def _of_card(self, card: Card, way: Way, cost: Cost) -> Prediction | str:
        time = super()._of_card(card, way, cost)
        if isinstance(time, str):
            return time
        factor = left_out().factor
        low, high = min(time.low, time.middle / factor), max(time.high, time.middle * factor)
        return replace(time, low=low, high=high)


def _cost_of(row: Row) -> Cost:
    """What the worker counted of the module of `row`; of older rows nothing."""
    batch = row.counters["batch"]
    counted = row.cost or {"operations": (), "memory_bytes": {}}
    operations = tuple(map(operation_of, counted["operations"]))
    rows = int(row.counters["rows"] if row.family == EPOCH else batch)
    steps = max(1, -(-rows // int(batch)))
    flops, size, launches = (
        steps * sum(getattr(operation, key) * operation.count for operation in operations)
        for key in ("flops", "bytes", "launches")
    )
    epoch = {
        **{"flops": flops, "bytes": size, "products": 0, "bytes_to_device": 0},
        "device_launches": {"cuda": {PYTORCH_WAY.execution: {PYTORCH_WAY.data: launches}}},
    }
    cost = cost_of_row(row, rows, epoch, operations)
    memory = counted["memory_bytes"]
    planned = {"memory_bytes": memory, "device_bytes": {CPU: {"bytes": memory.get("peak")}}}
    return replace(cost, fields=cost.fields | planned)


# ---- in words


def module_block(module: AsIs, epochs: int = 1) -> Block:
    """All that is known of it, with a line for each way of the CPU; of a step where nobody said
    what an epoch of it is."""
    network = module.network
    cost, cpu = network.cost, network.cpu
    why = f"{cost.model} is measured in PyTorch as it is (program: pytorch): {module.reason}."
    others = tuple(way for way in module.ways if not cpu or way.label != cpu.label)
    by_step = cost.fields["steps"] == 1
    what = f"A step of {counted_rows(cost.batch)}" if by_step else ""
    table = own_table(replace(network, peers=others), epochs, "a step" if by_step else "")
    lead = sentence(network, 1 if by_step else epochs, what, NAMES[PYTORCH][0])
    return own_block(network, [why, *sentences(module)], table, lead)


def sentences(module: AsIs) -> list[str]:
    """From where on a GPU wins, what a step consists of, its memory, and what the times are
    worth."""
    cost = module.network.cost
    wins = where_it_wins(module.network)
    return [*wins, *_step(cost), *_memory(cost, module.cards), *_worth(module)]


def _step(cost: Cost) -> Iterator[str]:
    starts = [(operation, operation.launches * operation.count) for operation in cost.operations]
    started = sum(count for _, count in starts)
    launches = sum(count for operation, count in starts if operation.kind != "view")
    if not launches:
        return
    flops = sum(operation.flops * operation.count for operation in cost.operations)
    published = overheads("torch_operation")
    low = units.seconds(started * min(source.low_seconds for source in published), 2)
    high = units.seconds(started * max(source.high_seconds for source in published), 2)
    yield (
        f"A step starts {launches:,.0f} operations on a GPU, which compute "
        f"{units.short_count(flops)} FLOP, and makes {started - launches:,.0f} views; to start "
        f"these alone takes Python {low} to {high}."
    )


def _memory(cost: Cost, cards: Sequence[Card]) -> Iterator[str]:
    memory = cost.fields["memory_bytes"]
    if not memory:
        return
    parts = listed(
        [f"{units.binary_bytes(memory[key])} {key}" for key in _PARTS if memory.get(key)]
    )
    peak = units.binary_bytes(memory["peak"])
    taken = f"Memory: {peak} at batch {cost.batch:,.0f}, of these {parts}"
    fixed = 2 * memory["parameters"] + memory["optimizer"]  # gradients are as large
    each = max(memory["peak"] - fixed, 1) / cost.batch
    most = [
        f"{units.significant(max((room - fixed) / each, 0), 2)} on the {short_gpu(card.name)}"
        for card in cards
        if (room := _MOST_OF_MEMORY * (card.figure("memory_bytes") or 0))
    ]
    yield as_sentence(f"{taken}; the largest batch is about {listed(most)}" if most else taken)


def _worth(module: AsIs) -> Iterator[str]:
    if any(gpu.row is None for gpu in module.network.gpus):
        yield (
            "Predicted are steps of PyTorch's eager loop on cards that nobody measured, from what "
            "was counted, in a range for 90 % of them (docs/method/peers.md#what-is-counted)."
        )
    reasons: dict[str, list[float]] = {}
    for failure in (row.failure for row in module.failed if row.failure):
        times = reasons.setdefault(failure.message, [])
        times += [] if failure.seconds is None else [failure.seconds]
    for reason, times in reasons.items():
        took = ", ".join(units.seconds(time, 2) for time in times)
        what = f"Not verified, so it counts nowhere: {took}" if took else "Without a result"
        yield f"{what} ({reason})."
