# SPDX-License-Identifier: Apache-2.0
"""What is predicted of a network on every device of a file and on cards, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from plots.core.machines import short_gpu
from plots.core.mlp import network_of
from plots.features.advise.analysis import (
    Prediction,
    Reasons,
    fit_series,
    from_own_rows,
    predict,
)
from plots.features.predict.analysis import predict_times
from plots.features.predict.fit import band_notes
from plots.features.predict.simulate import Times
from plots.features.predict.ways import WAYS, Way
from plots.file.families import TRAINING
from plots.file.prices import SIDES
from plots.file.quantities import TIME, Quantity
from plots.text import printable

if TYPE_CHECKING:
    from plots.core.cards import Card
    from plots.core.cost import Cost
    from plots.core.mlp import Mlp
    from plots.features.predict.fit import Fit
    from plots.file.rows import File

CPU, GPU = "cpu", "cuda"
_ELSE = "f32"  # in which the CPU trains where it was not measured in the precision that is asked
# By which hidden layers are widened or narrowed to find where the other side wins.
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
        from plots.core.cost import CostError  # noqa: PLC0415

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
    def cpu(self) -> Prediction | None:
        """The fastest on the file's CPU; None where nothing is predicted of it."""
        return fastest(self.predictions, CPU)

    @property
    def gpus(self) -> tuple[Prediction, ...]:
        """The fastest of each GPU: what the CPU is up against is the file's own, or else the first
        card."""
        devices = dict.fromkeys(one.device for one in self.predictions if one.device != CPU)
        best = (fastest(self.predictions, device) for device in devices)
        return tuple(one for one in best if one)

    def shortened(self) -> tuple[Prediction, ...]:
        """Each way of the CPU, and of every other device the best."""
        return (*(one for one in self.predictions if one.device == CPU), *self.gpus)

    def reasons_said(self) -> list[str]:
        """Why there are no other predictions, a sentence for each reason."""
        return [
            f"No prediction for {' and '.join(labels) if len(labels) < 3 else ', '.join(labels)}: "
            f"{reason}."
            for reason, labels in self.reasons.items()
        ]


def fastest(predictions: Iterable[Prediction], device: str) -> Prediction | None:
    """The fastest way of a device: on the GPU of those with the data there, where there are any, as
    the headline compares."""
    own = [one for one in predictions if one.device == device]
    there = [one for one in own if one.data == "resident"]
    return min(there or own, key=lambda one: one.middle, default=None)


def winner(cpu: Prediction | None, gpu: Prediction | None) -> str | None:
    """The side whose whole band is below the other's: cpu or gpu; None where that cannot be
    told."""
    if cpu is None or gpu is None or (cpu.low <= gpu.high and gpu.low <= cpu.high):
        return None
    return "gpu" if gpu.high < cpu.low else "cpu"


UNLIKE = (
    "No network that this machine's times follow from was trained with {}, so its band may be too "
    "narrow"
)


def seen(file: File) -> dict[str, list[str]]:
    """The activations, optimizers and losses of the fully connected networks of `file`."""
    found: dict[str, set[str]] = {"activation": set(), "optimizer": set(), "loss": set()}
    for row in file.rows:
        own = network_of(row.model)
        if own and row.family in TRAINING and row.failure is None:
            found["activation"] |= {own.activation} if len(own.widths) > 2 else set()
            found["optimizer"].add(row.optimizer.partition(" ")[0] or own.optimizer)
            found["loss"].add(own.loss)
    return {what: sorted(values) for what, values in found.items()}


class Adviser:
    """Fitted to a file once, it answers for any network that is trained in one precision, with an
    update every so many batches; on `cards` too, in each of `ways`, by `fit`. It answers in
    `quantity`, for which a second of each side counts as `second` says."""

    def __init__(
        self,
        file: File,
        precision: str = "f32",
        accumulate: int = 1,
        *,
        cards: Sequence[Card] = (),
        fit: Fit | None = None,
        ways: Sequence[Way] = WAYS,
        quantity: Quantity = TIME,
        second: Mapping[str, float] | None = None,
    ) -> None:
        self.quantity, self._second = quantity, second or dict.fromkeys(SIDES, 1.0)
        self._file, self.fit, self._ways = file, fit, ways
        self.cards = tuple(cards) if fit else ()
        self.series, self.reasons = fit_series(file, precision, accumulate)
        self.precision = self.cpu_precision = precision
        if precision != _ELSE and not any(one.device == CPU for one in self.series):
            others, _ = fit_series(file, _ELSE, accumulate)
            cpus = [one for one in others if one.device == CPU]
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
        """In what the CPU trains where that is not what is asked, and what the cards' bands are
        worth."""
        other = self.cpu_precision != self.precision
        notes = [f"The CPU trains in {self.cpu_precision}."] if other else []
        worth = band_notes(self.fit, self.precision) if self.fit and self.cards else ()
        return [*notes, *worth]

    def unlike(self, network: Network) -> str:
        """What of its training the fit of this machine knows nothing of, a sentence; empty where
        that is nothing."""
        mlp = network.mlp
        if mlp is None or not self.series:
            return ""
        new = [
            getattr(mlp, what)
            for what, known in seen(self._file).items()
            if getattr(mlp, what) not in known
        ]
        words = " or ".join(one.replace("_", "-") for one in new)
        return f"{UNLIKE.replace('{}', words)}." if new else ""

    def advice(self, network: Network, most_cards: int | None = None) -> Advice:
        """What is predicted of it; on the first so many of the cards."""
        own = from_own_rows(self._file.rows, network.cost) if network.mlp is None else []
        reasons: Reasons = {}
        answers: list[tuple[str, Prediction | str]] = [(one.label, one) for one in own]
        if not own and network.cost.has_own_rates:
            name = printable(network.cost.model, 60)
            reason = (
                "the file did not measure it, and a network with convolutions or normalization is "
                "not predicted from others, as their rates hang on their shapes; measure it with "
                f"--family=Minibatch --model={name}"
            )
            reasons = {reason: ("this machine",)}
        elif not own:
            reasons = dict(self.reasons)
            on_cpu = network.on_cpu(self.cpu_precision) if self.series else network.cost
            answers = [
                (one.label, predict(one, on_cpu if one.device == CPU else network.cost))
                for one in self.series
            ]
        answers += [
            (short_gpu(card.name), self._of_card(card, way, network.cost))
            for card in self.cards[:most_cards]
            for way in self._ways
        ]
        for label, answer in answers:
            if isinstance(answer, str):
                reasons[answer] = tuple(dict.fromkeys((*reasons.get(answer, ()), label)))
        found = [one for _, one in answers if isinstance(one, Prediction)]
        return Advice(network, tuple(map(self._told, found)), reasons)

    def _told(self, one: Prediction) -> Prediction:
        """`one` in the quantity that is asked for."""
        second = self._second["cpu" if one.device == CPU else "gpu"]
        middle, low, high = (second * end for end in (one.middle, one.low, one.high))
        return replace(one, middle=middle, low=low, high=high, quantity=self.quantity)

    def _of_card(self, card: Card, way: Way, cost: Cost) -> Prediction | str:
        assert self.fit is not None, "without a fit there are no cards"
        times = predict_times(self.fit, cost, card, way, float(cost.fields["steps"]))
        if not isinstance(times, Times):
            return times
        name = short_gpu(card.name)
        label = f"{name}, {way.execution}, {way.data}"
        return Prediction(label, card.id, name, way.data, times.seconds, times.low, times.high)

    def meeting(self, network: Network) -> tuple[str, float | None, tuple[float, float]] | None:
        """Which side the network is on (cpu or gpu), at how many parameters the other one would
        take over with wider or narrower hidden layers, None if nowhere, and between how many that
        was looked for; None where too little is known."""
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
        nearest = min(crossings, key=lambda one: abs(math.log(one / params)), default=None)
        return "gpu" if here > 0 else "cpu", nearest, (points[0][0], points[-1][0])
