# SPDX-License-Identifier: Apache-2.0
"""What a file and the predictions say of a network of one's own, as data: the fastest way of each
device, of each other program and of each card, at the batch that counts and in every size."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from plots.core.bounds import bounds
from plots.core.cost import Cost, Operation
from plots.features.advise.advice import CPU, GPU, Adviser, Network, fastest, winner
from plots.features.advise.analysis import Prediction, from_own_rows, nearest
from plots.features.predict.analysis import predict_limits
from plots.features.predict.ways import WAYS
from plots.features.why.analysis import PARTS, splits
from plots.file.axes import OWN
from plots.file.families import TRAINING
from plots.file.rows import Bound, File, Row
from plots.text import counted

_HOW = ("compiler", "torch_device")  # what names a way of another program

# What a size of it costs: by its name in the file and its batch; None where that is not known.
Count = Callable[[str, int], Cost | None]


@dataclass(frozen=True, slots=True)
class Size:
    """One size of the network in one batch: the fastest of the CPU, of the file's GPU and of each
    card, and of each other program there."""

    cost: Cost
    cpu: Prediction | None
    gpus: tuple[Prediction, ...]
    peers: tuple[Prediction, ...] = ()

    @property
    def known(self) -> tuple[Prediction, ...]:
        """All of them, the CPU first."""
        return (*([self.cpu] if self.cpu else []), *self.peers, *self.gpus)

    def winner(self, device: str) -> str | None:
        """Of the CPU and that GPU: cpu, gpu or None."""
        return winner(self.cpu, next((one for one in self.gpus if one.device == device), None))


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a device: `shares` of its time by name, the largest first; of the measured CPU
    also its bound."""

    shares: tuple[tuple[str, float], ...]
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class Own(Size):
    """The network at the batch that counts; `sizes` has every size and batch that was measured, the
    smallest first."""

    sizes: tuple[Size, ...] = ()
    cpu_limit: Limit | None = None
    gpu_limit: Limit | None = None
    reasons: tuple[str, ...] = ()  # why something is not predicted, sentences
    rows: int = 0  # of it, of all sizes
    disturbed: int = 0  # of these by other programs

    @property
    def batches(self) -> list[tuple[float, Size]]:
        """The sizes of this network, by their batch."""
        return [(one.cost.batch, one) for one in self.sizes if one.cost.model == self.cost.model]

    @property
    def widths(self) -> list[tuple[float, Size]]:
        """Those in this batch, by their parameters."""
        return [(one.cost.params, one) for one in self.sizes if one.cost.batch == self.cost.batch]


def own_network(file: File, adviser: Adviser, cost: Cost, count: Count) -> Own:
    """What is known of the network of `cost`, whose name is that of its rows or their ladder."""
    advice = adviser.advice(Network(cost))
    rows = rows_of(file, cost.model)
    sizes = []
    for model, batch in {(row.model, int(row.counters["batch"])) for row in rows}:
        if own := count(model, batch):
            found = adviser.advice(Network(own))
            sizes += [Size(own, found.cpu, found.gpus, _peers(file, own))] if found.cpu else []
    sizes.sort(key=lambda one: (one.cost.params, one.cost.batch))
    return Own(
        cost=cost,
        cpu=advice.cpu,
        gpus=advice.gpus,
        peers=_peers(file, cost),
        sizes=tuple(sizes),
        cpu_limit=_measured_limit(file, advice.cpu),
        gpu_limit=_gpu_limit(file, adviser, cost, advice.gpus),
        reasons=tuple(advice.reasons_said()),
        rows=len(rows),
        disturbed=sum(row.is_disturbed for row in rows),
    )


def own_networks(file: File) -> list[str]:
    """The names of the networks in files that were measured, each once whatever its sizes."""
    words = [word.partition("=") for word in file.run.command]
    if not any(flag == "--network" for flag, _, _ in words):
        return []
    named = {name for flag, _, names in words if flag == "--model" for name in names.split(",")}
    ladders = {rung: ladder.name for ladder in file.ladders for rung in ladder.rungs}
    found = (ladders.get(name, name) for name in file.networks if name not in named)
    return [name for name in dict.fromkeys(found) if rows_of(file, name)]


def rows_of(file: File, name: str) -> list[Row]:
    """Those of `file` that trained a network, in any of its sizes."""
    sizes = re.compile(rf"{re.escape(name)}(x[0-9.]+)?")
    return [row for row in _trained(file.rows) if sizes.fullmatch(row.model)]


def nearest_batch(file: File, own: Cost) -> int | None:
    """Of those in which the network itself was measured; None where it was not."""
    rows = [row for row in _trained(file.rows) if row.model == own.model]
    return int(nearest(rows, own.batch).counters["batch"]) if rows else None


def _trained(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row.family in TRAINING and row.failure is None)


def _peers(file: File, cost: Cost) -> tuple[Prediction, ...]:
    """The fastest of each other program on each device; of what its rows say alone."""
    found = []
    for program in dict.fromkeys(row.program for row in file.peers):
        rows = [row for row in file.peers if row.program == program]
        measured = from_own_rows(rows, cost)
        found += [one for device in (CPU, GPU) if (one := fastest(measured, device))]
    return tuple(found)


def _measured_limit(file: File, one: Prediction | None) -> Limit | None:
    """By the profile and the bound of the row that it is from."""
    if one is None or one.row is None:
        return None
    shares = [
        (PARTS[part], seconds / max(split.total, sum(split.parts.values())))
        for split in splits([one.row])
        for part, seconds in split.parts.items()
    ]
    bound = bounds(file).get(one.row.index)
    return _limit(shares, bound) if shares or (bound and bound.name) else None


def _gpu_limit(
    file: File, adviser: Adviser, cost: Cost, gpus: Sequence[Prediction]
) -> Limit | None:
    """Of the first GPU: measured, or by the prediction of its fastest way."""
    if not gpus:
        return None
    if gpus[0].device == GPU:
        return _measured_limit(file, gpus[0])
    card = next(one for one in adviser.cards if one.id == gpus[0].device)
    way = next(one for one in WAYS if gpus[0].label.endswith(f"{one.execution}, {one.data}"))
    shares = predict_limits(adviser.fit, cost, card, way) if adviser.fit else {}
    return _limit(shares.items()) if shares else None


def _limit(shares: Iterable[tuple[str, float]], bound: Bound | None = None) -> Limit:
    return Limit(tuple(sorted(shares, key=lambda pair: -pair[1])), bound)


def cost_of_row(
    row: Row, rows: int, epoch: dict[str, Any], operations: tuple[Operation, ...] = ()
) -> Cost:
    """That of the network of `row`, as far as it counted it, in an epoch of so many `rows`."""
    params, batch = row.counters["params"], int(row.counters["batch"])
    sizes = {"params": params, "batch": batch, "rows": rows, "steps": max(1, -(-rows // batch))}
    accumulate = int(row.configuration.get("accumulate", "1"))
    fields = {**sizes, "epoch": epoch}
    return Cost(row.model, row.precision, accumulate, params, float(batch), fields, operations)


def first_win(line: Sequence[Size], device: str) -> float:
    """From which place of `line` on that GPU wins at all that follow; infinity where it does not
    at the last."""
    won = [size.winner(device) == "gpu" for size in line]
    return next((place for place in range(len(won)) if all(won[place:])), inf)


def name_of(one: Prediction) -> str:
    """Where and how it computes, in few words: "CPU, 2 threads", "RTX 4060, predicted"."""
    row = one.row
    if row is None:
        return f"{one.label if one.series else one.name}, predicted"
    words = [row.axes["program"].word(row.program)] if row.program != OWN else []
    words += (
        ["CPU" if row.device == CPU else "GPU"] if row.program == OWN or not row.threads else []
    )
    chosen = row.chosen or row.configuration
    if row.threads:
        used, most = int(chosen.get("cpu_threads", row.threads)), row.threads
        words.append(counted(most, "thread") if used == most else f"{used} of {most} threads")
    if chosen.get("execution", "eager") != "eager":
        words.append(chosen["execution"])
    how = {key: row.configuration[key] for key in _HOW if key in row.configuration}
    words += row.axes.words(how)
    if row.device == GPU and (data := row.configuration.get("data", "resident")) != "resident":
        words.append(data)
    return ", ".join(words)


def key_of(one: Prediction) -> str:
    """What the same card, or program and device, has in every size."""
    return one.device if one.row is None else f"{one.row.program}-{one.device}"


def title_of(one: Prediction) -> str:
    """The card, or program and device: "PyTorch, CPU"."""
    if one.row is None:
        return one.name
    where = "CPU" if one.device == CPU else "GPU"
    program = one.row.axes["program"].word(one.row.program)
    return where if one.row.program == OWN else f"{program}, {where}"
