# SPDX-License-Identifier: Apache-2.0
"""What is predicted of a network on every device of a file and on cards; and what is known of a
user's own network: the fastest way of each device, of each other program and of each card, at the
batch that counts and in every size."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

from crossover_bench.answers.advise.analysis import (
    Prediction,
    Reasons,
    fit_series,
    from_own_rows,
    nearest,
    of_threads,
    predict,
)
from crossover_bench.answers.advise.pytorch import InPyTorch, Loop
from crossover_bench.answers.predict.analysis import predict_limits, predict_times
from crossover_bench.answers.predict.data import card_of
from crossover_bench.answers.predict.fit import band_notes
from crossover_bench.answers.predict.simulate import Times
from crossover_bench.answers.predict.ways import WAYS, Way
from crossover_bench.answers.why.analysis import PARTS, splits
from crossover_bench.counts.bounds import bounds
from crossover_bench.counts.cards import load_cards
from crossover_bench.counts.cost import Cost, CostError, Operation
from crossover_bench.counts.mlp import network_of
from crossover_bench.files.axes import OWN
from crossover_bench.files.families import TRAINING
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import Bound, File, Row
from crossover_bench.files.sides import SIDES
from crossover_bench.study.machines import short_gpu
from crossover_bench.words.text import counted, printable

if TYPE_CHECKING:
    from crossover_bench.answers.predict.fit import Fit
    from crossover_bench.counts.cards import Card
    from crossover_bench.counts.mlp import Mlp

CPU, GPU = "cpu", "cuda"
Winner = Literal["cpu", "gpu"] | None
_ELSE = "f32"  # the CPU's precision where it was not measured in the one that is asked for
# The widths of hidden layers are multiplied by these to find where the other side wins.
_FACTORS = [2.0**power for power in range(-8, 9)]


@dataclass(frozen=True, slots=True)
class Network:
    """What is asked: a network by its `cost`, and its widths where it is fully connected."""

    cost: Cost
    mlp: Mlp | None = None

    def on_cpu(self, precision: str) -> Cost:
        """Its cost in another precision, where that can be counted."""
        return replace(self.mlp, precision=precision).cost() if self.mlp else self.cost

    def scaled(self, factor: float) -> Network | None:
        """With hidden layers so many times as wide; None where it has none, or none so wide."""
        if self.mlp is None or len(self.mlp.widths) < 3:
            return None
        first, *hidden, last = self.mlp.widths
        widths = (first, *(max(1, math.floor(width * factor + 0.5)) for width in hidden), last)
        try:
            mlp = replace(self.mlp, widths=widths)
        except CostError:
            return None
        return Network(mlp.cost(), mlp)


@dataclass(frozen=True, slots=True)
class Advice:
    """`predictions` of a network, an epoch each, the file's own devices first; `reasons` say why
    there are no others."""

    network: Network
    predictions: tuple[Prediction, ...]
    reasons: Reasons

    @property
    def cost(self) -> Cost:
        """That of the network."""
        return self.network.cost

    @property
    def cpu(self) -> Prediction | None:
        """The fastest on the file's CPU; None where nothing is predicted of it."""
        return fastest(self.predictions, CPU)

    @property
    def gpus(self) -> tuple[Prediction, ...]:
        """The fastest way of each GPU; first the one to compare the CPU with: a card that was asked
        for, else the file's own, else the first card."""
        devices = dict.fromkeys(way.device for way in self.predictions if way.device != CPU)
        return tuple(filter(None, (fastest(self.predictions, device) for device in devices)))

    def shortened(self) -> tuple[Prediction, ...]:
        """Each way of the CPU, and of every other device the best."""
        return (*(way for way in self.predictions if way.device == CPU), *self.gpus)

    def reason_sentences(self) -> list[str]:
        """Why there are no other predictions, a sentence for each reason."""
        return [
            f"No prediction for {' and '.join(labels) if len(labels) < 3 else ', '.join(labels)}: "
            f"{reason}."
            for reason, labels in self.reasons.items()
        ]


def fastest(predictions: Iterable[Prediction], device: str) -> Prediction | None:
    """The fastest way of a device: of those with the data on it, where there are any, as the
    headline compares."""
    ways = [way for way in predictions if way.device == device]
    there = [way for way in ways if way.data == "resident"]
    return min(there or ways, key=lambda way: way.middle, default=None)


def winner(cpu: Prediction | None, gpu: Prediction | None) -> Winner:
    """The side whose whole band is below the other's: cpu or gpu; None where the bands overlap or
    one is missing."""
    if cpu is None or gpu is None or (cpu.low <= gpu.high and gpu.low <= cpu.high):
        return None
    return "gpu" if gpu.high < cpu.low else "cpu"


UNLIKE = (
    "No network that this machine's times follow from was trained with {}, so its band may be too "
    "narrow"
)


def seen(file: File) -> dict[str, list[str]]:
    """The activations, optimizers and losses of the fully connected networks of `file`."""
    trained = [(mlp, row) for row in _trained(file.rows) if (mlp := network_of(row.model))]
    optimizers = {row.optimizer.partition(" ")[0] or mlp.optimizer for mlp, row in trained}
    return {
        "activation": sorted({mlp.activation for mlp, _ in trained if len(mlp.widths) > 2}),
        "optimizer": sorted(optimizers),
        "loss": sorted({mlp.loss for mlp, _ in trained}),
    }


class Adviser:
    """Is fitted to a file once, and then answers for any network that is trained in one precision,
    with an update every so many batches, on all or so many CPU `threads`; by `fit` also on `cards`,
    in each of `ways`. It answers in `quantity`; `second` says how much of that a second of each
    side is. Cards that were `asked` for stand before the file's own GPU: the answer is about the
    first."""

    def __init__(
        self,
        file: File,
        precision: str = "f32",
        accumulate: int = 1,
        *,
        cards: Sequence[Card] = (),
        asked: bool = False,
        fit: Fit | None = None,
        ways: Sequence[Way] = WAYS,
        quantity: Quantity = TIME,
        second: Mapping[str, float] | None = None,
        threads: str = "",
    ) -> None:
        self.quantity, self._second = quantity, second or dict.fromkeys(SIDES, 1.0)
        self._whole, self._threads = file, threads
        self._file = file = of_threads(file, threads)
        self.fit, self._ways = fit, ways
        self.cards = tuple(cards) if fit else ()
        self._asked = asked
        self.series, self.reasons = fit_series(file, precision, accumulate)
        self.precision = self.cpu_precision = precision
        if precision != _ELSE and not any(series.device == CPU for series in self.series):
            others, _ = fit_series(file, _ELSE, accumulate)
            cpus = [series for series in others if series.device == CPU]
            if cpus:
                self.cpu_precision = _ELSE
                self.series = [*cpus, *self.series]
                self.reasons = {}

    @property
    def machine(self) -> str:
        """The name of the file's machine."""
        return self._file.machine.id

    @property
    def notes(self) -> list[str]:
        """The CPU's precision where it is not the one that is asked for, and what the cards' bands
        are worth."""
        other = self.cpu_precision != self.precision
        notes = [f"The CPU trains in {self.cpu_precision}."] if other else []
        worth = band_notes(self.fit, self.precision) if self.fit and self.cards else ()
        return [*notes, *worth]

    def unlike(self, network: Network) -> str:
        """Which of its activation, optimizer and loss this machine's networks did not have, a
        sentence; empty where they had each."""
        mlp = network.mlp
        if mlp is None or not self.series:
            return ""
        new = [
            getattr(mlp, what)
            for what, known in seen(self._file).items()
            if getattr(mlp, what) not in known
        ]
        words = " or ".join(name.replace("_", "-") for name in new)
        return f"{UNLIKE.replace('{}', words)}." if new else ""

    def advice(self, network: Network, most_cards: int | None = None) -> Advice:
        """What is predicted of it, on the first `most_cards` of the cards (None: all)."""
        from_rows = from_own_rows(_trained_alike(self._file.rows, network.mlp), network.cost)
        measured = from_rows if network.mlp is None else []
        reasons: Reasons = {}
        answers: list[tuple[str, Prediction | str]] = [(way.label, way) for way in measured]
        if not measured and network.cost.has_own_rates:
            name = printable(network.cost.model, 60)
            reason = (
                "the file did not measure it, and a network with convolutions or normalization is "
                "not predicted from others, as their rates hang on their shapes; measure it with "
                f"--family=Minibatch --model={name}"
            )
            reasons = {reason: ("this machine",)}
        elif not measured:
            reasons = dict(self.reasons)
            on_cpu = network.on_cpu(self.cpu_precision) if self.series else network.cost
            answers = [
                (series.label, predict(series, on_cpu if series.device == CPU else network.cost))
                for series in self.series
            ]
            # By its widths it is predicted, as the form does, unless too few others were measured.
            predicted = {answer.device for _, answer in answers if isinstance(answer, Prediction)}
            instead = {way.label: way for way in from_rows if way.device not in predicted}
            answers += instead.items()
            without = {reason: _others(labels, instead) for reason, labels in reasons.items()}
            reasons = {reason: labels for reason, labels in without.items() if labels}
        on_cards: list[tuple[str, Prediction | str]] = [
            (short_gpu(card.name), self._of_card(card, way, network.cost))
            for card in self.cards[:most_cards]
            for way in self._ways
        ]
        answers = [*on_cards, *answers] if self._asked else [*answers, *on_cards]
        for label, answer in answers:
            if isinstance(answer, str):
                reasons[answer] = tuple(dict.fromkeys((*reasons.get(answer, ()), label)))
        times = [answer for _, answer in answers if isinstance(answer, Prediction)]
        return Advice(network, tuple(map(self._in_quantity, times)), reasons)

    def in_pytorch(self, network: Network, ours: Advice | Size) -> InPyTorch | None:
        """The same in PyTorch's loop, on the CPU and on the GPU of the answer; None where a side is
        not known that `ours` knows."""
        made = self._loop.answer(network.cost, ours.cpu, is_own=network.mlp is None)
        return made if made and len(made.gpus) == len(ours.gpus[:1]) else None

    @cached_property
    def _loop(self) -> Loop:
        here = None if self._asked else card_of(self._file, load_cards())
        card = here or next(iter(self.cards), None)
        return Loop(
            *(self._whole, card, self.fit),
            quantity=self.quantity,
            second=self._second,
            threads=self._threads,
        )

    def _in_quantity(self, time: Prediction) -> Prediction:
        second = self._second["cpu" if time.device == CPU else "gpu"]
        middle, low, high = (second * end for end in (time.middle, time.low, time.high))
        return replace(time, middle=middle, low=low, high=high, quantity=self.quantity)

    def _of_card(self, card: Card, way: Way, cost: Cost) -> Prediction | str:
        assert self.fit is not None, "without a fit there are no cards"
        times = predict_times(self.fit, cost, card, way, float(cost.fields["steps"]))
        if not isinstance(times, Times):
            return times
        name = short_gpu(card.name)
        label = f"{name}, {way.execution}, {way.data}"
        return Prediction(label, card.id, name, way.data, times.seconds, times.low, times.high)

    def meeting(self, network: Network) -> tuple[str, float | None, tuple[float, float]] | None:
        """The side that wins (cpu or gpu); at how many parameters the other one would win with
        wider or narrower hidden layers, None if nowhere; and the range of parameters that was
        searched. None where too little is known."""
        points = []
        for factor in _FACTORS:
            other = network if factor == 1 else network.scaled(factor)
            advice = self.advice(other, most_cards=1) if other else None
            if other and advice and advice.cpu and advice.gpus:
                ratio = math.log(advice.cpu.middle / advice.gpus[0].middle)
                points.append((other.cost.params, ratio, factor))
        points.sort()
        here = next((ratio for _, ratio, factor in points if factor == 1), None)
        if here is None or len(points) < 2:
            return None
        crossings = [
            low * (high / low) ** (before / (before - after))
            for (low, before, _), (high, after, _) in pairwise(points)
            if (before > 0) != (after > 0)
        ]
        params = network.cost.params
        nearest = min(crossings, key=lambda size: abs(math.log(size / params)), default=None)
        return "gpu" if here > 0 else "cpu", nearest, (points[0][0], points[-1][0])


# ---- a user's own network: at the batch that counts, and in every size


_HOW = ("compiler", "layout", "torch_device")  # the axes that name a way of another program

# The cost of a size by its name in the file and its batch; None where that is not known.
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

    def winner(self, device: str) -> Winner:
        """Of the CPU and that GPU: cpu, gpu or None."""
        return winner(self.cpu, next((gpu for gpu in self.gpus if gpu.device == device), None))


@dataclass(frozen=True, slots=True)
class Limit:
    """What limits a device: `shares` of its time by name, the largest first; where it was measured
    also its bound."""

    shares: tuple[tuple[str, float], ...]
    bound: Bound | None = None


@dataclass(frozen=True, slots=True)
class OwnNetwork(Size):
    """The network at the batch that counts; `sizes` has every size and batch that was measured, the
    smallest first."""

    sizes: tuple[Size, ...] = ()
    cpu_limit: Limit | None = None
    gpu_limit: Limit | None = None
    pytorch: InPyTorch | None = None  # the same in its loop
    reasons: tuple[str, ...] = ()  # why something is not predicted, sentences
    rows: int = 0  # of it, of all sizes
    disturbed: int = 0  # of these by other programs

    @property
    def batches(self) -> list[tuple[float, Size]]:
        """The sizes of this network, by their batch."""
        return [
            (size.cost.batch, size) for size in self.sizes if size.cost.model == self.cost.model
        ]

    @property
    def widths(self) -> list[tuple[float, Size]]:
        """Those in this batch, by their parameters."""
        return [
            (size.cost.params, size) for size in self.sizes if size.cost.batch == self.cost.batch
        ]


def own_network(file: File, adviser: Adviser, cost: Cost, count: Count) -> OwnNetwork:
    """What is known of the network of `cost`, whose name is that of its rows or their ladder."""
    advice = adviser.advice(Network(cost))
    rows = rows_of(file, cost.model)
    sizes = []
    for model, batch in {(row.model, int(row.counters["batch"])) for row in rows}:
        size_cost = count(model, batch)
        times = adviser.advice(Network(size_cost)) if size_cost else None
        if size_cost and times and times.cpu:
            sizes.append(Size(size_cost, times.cpu, times.gpus, _peers(file, size_cost)))
    sizes.sort(key=lambda size: (size.cost.params, size.cost.batch))
    return OwnNetwork(
        cost=cost,
        cpu=advice.cpu,
        gpus=advice.gpus,
        peers=_peers(file, cost),
        sizes=tuple(sizes),
        cpu_limit=_measured_limit(file, advice.cpu),
        gpu_limit=_gpu_limit(file, adviser, cost, advice.gpus),
        pytorch=adviser.in_pytorch(Network(cost), advice),
        reasons=tuple(advice.reason_sentences()),
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
    names = dict.fromkeys(ladders.get(name, name) for name in file.networks if name not in named)
    return [name for name in names if rows_of(file, name)]


def rows_of(file: File, name: str) -> list[Row]:
    """Those of `file` that trained a network, in any of its sizes."""
    sizes = re.compile(rf"{re.escape(name)}(x[0-9.]+)?")
    return [row for row in _trained(file.rows) if sizes.fullmatch(row.model)]


def nearest_batch(file: File, cost: Cost) -> int | None:
    """Of those in which the network itself was measured; None where it was not."""
    rows = [row for row in _trained(file.rows) if row.model == cost.model]
    return int(nearest(rows, cost.batch).counters["batch"]) if rows else None


def _trained(rows: Iterable[Row]) -> Iterator[Row]:
    return (row for row in rows if row.family in TRAINING and row.failure is None)


def _others(labels: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    return tuple(label for label in labels if label not in known)


def _trained_alike(rows: Sequence[Row], mlp: Mlp | None) -> list[Row]:
    """Those that may have trained it: a network in a file has one optimizer, one by its widths any,
    which its name does not tell."""
    kinds = ("",) if mlp is None else ("", mlp.optimizer)
    return [row for row in rows if mlp is None or row.optimizer.partition(" ")[0] in kinds]


def _peers(file: File, cost: Cost) -> tuple[Prediction, ...]:
    """The fastest way of each other program on each device, from its rows alone."""
    ways: list[Prediction | None] = []
    for program in dict.fromkeys(row.program for row in file.peers):
        measured = from_own_rows([row for row in file.peers if row.program == program], cost)
        ways += [fastest(measured, CPU), fastest(measured, GPU)]
    return tuple(filter(None, ways))


def _measured_limit(file: File, way: Prediction | None) -> Limit | None:
    """By the profile and the bound of the row that it is from."""
    if way is None or way.row is None:
        return None
    shares = [
        (PARTS[part], seconds / max(split.total, sum(split.parts.values())))
        for split in splits([way.row])
        for part, seconds in split.parts.items()
    ]
    bound = bounds(file).get(way.row.index)
    return _limit(shares, bound) if shares or (bound and bound.name) else None


def _gpu_limit(
    file: File, adviser: Adviser, cost: Cost, gpus: Sequence[Prediction]
) -> Limit | None:
    """Of the first GPU: measured, or by the prediction of its fastest way."""
    if not gpus:
        return None
    if gpus[0].device == GPU:
        return _measured_limit(file, gpus[0])
    card = next(card for card in adviser.cards if card.id == gpus[0].device)
    way = next(way for way in WAYS if gpus[0].label.endswith(f"{way.execution}, {way.data}"))
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
    """The place of `line` from which on that GPU wins at each; infinity where it does not win at
    the last."""
    won = [size.winner(device) == "gpu" for size in line]
    return next((place for place in range(len(won)) if all(won[place:])), math.inf)


def name_of(way: Prediction) -> str:
    """Where and how it computes, in few words: "CPU, 2 threads", "RTX 4060, predicted"."""
    row = way.row
    if row is None:
        return f"{way.label if way.series else way.name}, predicted"
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
    ways = ((key, row.configuration.get(key)) for key in _HOW)
    how = {key: value for key, value in ways if value not in (None, row.axes[key].plainest)}
    words += row.axes.words(how)
    if row.device == GPU and (data := row.configuration.get("data", "resident")) != "resident":
        words.append(data)
    return ", ".join(words)


def key_of(way: Prediction) -> str:
    """The card, or program and device, as a key: it is the same in every size."""
    return way.device if way.row is None else f"{way.row.program}-{way.device}"


def title_of(way: Prediction) -> str:
    """The card, or program and device: "PyTorch, CPU"."""
    if way.row is None:
        return way.name
    where = "CPU" if way.device == CPU else "GPU"
    program = way.row.axes["program"].word(way.row.program)
    return where if way.row.program == OWN else f"{program}, {where}"
