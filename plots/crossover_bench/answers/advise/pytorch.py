# SPDX-License-Identifier: Apache-2.0
"""What a network takes in PyTorch's eager loop, here and on a card: that is what who asks runs.

docs/method/prediction.md defines the model; ask.js computes the same in a browser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from crossover_bench.answers.advise.analysis import Prediction, from_own_rows, of_threads
from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.analysis import Wanted, predict_draws
from crossover_bench.answers.predict.data import card_of
from crossover_bench.answers.predict.pytorch import call_of
from crossover_bench.answers.predict.simulate import ends, within
from crossover_bench.answers.predict.ways import PYTORCH_WAY, Band, Estimate
from crossover_bench.counts.cards import load_cards
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.study.machines import short_gpu
from crossover_bench.study.programs import pytorch_loop
from crossover_bench.study.study import Study

if TYPE_CHECKING:
    from crossover_bench.answers.predict.fit import Fit
    from crossover_bench.counts.cards import Card
    from crossover_bench.counts.cost import Cost
    from crossover_bench.files.rows import File

PRECISIONS = ("f32", "tf32")  # in which steps of PyTorch's were measured on a CPU
_MEASURED, _PREDICTED = "measured", "predicted"


@dataclass(frozen=True, slots=True)
class InPyTorch:
    """An epoch of `cost` on the file's CPU, and on no or one of `gpus`; `side` is the one that is
    surely ahead, cpu or gpu. Both sides have the same draws of the host, so that bands that overlap
    may still have a sure winner."""

    cost: Cost
    cpu: Prediction
    gpus: tuple[Prediction, ...]
    side: str | None = None


class Loop:
    """PyTorch's loop on the machine of `file`, and on `card`, None without one; `fit` is that of
    cards. It answers in `quantity`, of which a second of each side is `second`; measured rows count
    of so many CPU `threads`, of any if these are empty."""

    def __init__(
        self,
        file: File,
        card: Card | None,
        fit: Fit | None,
        *,
        quantity: Quantity = TIME,
        second: Mapping[str, float] | None = None,
        threads: str = "",
    ) -> None:
        self._rows = of_threads(pytorch_loop(Study(file)).file, threads).rows
        self._is_here = card is not None and card == card_of(file, load_cards())
        self._card, self._fit, self._quantity = (card if fit else None), fit, quantity
        self._second = second or {"cpu": 1.0, "gpu": 1.0}
        self.call: Estimate = call_of(file, Wanted(()))

    def answer(self, cost: Cost, ours: Prediction | None, *, is_own: bool) -> InPyTorch | None:
        """What it takes of `cost`, of which an epoch of ours takes so long on the CPU: as measured
        where the file measured a network that `is_own`, which its name alone tells; None where
        nothing is known of the CPU."""
        if cost.precision not in PRECISIONS or cost.accumulate != 1:
            return None
        measured = from_own_rows(self._rows, cost) if is_own else []
        cpu = self._measured(measured, "cpu")
        if cpu is None and ours and cost.operations:
            cpu = self._predicted(cost, ours)
        if cpu is None:
            return None
        gpu = self._measured(measured, "gpu")
        if gpu is None and self._card and cost.operations:
            gpu = self._on_card(cost, self._card)
        if gpu is None:
            return InPyTorch(cost, cpu[0], ())
        gains = np.quantile(np.log(cpu[1] / gpu[1]), (0.05, 0.95))
        side = "gpu" if gains[0] > 0 else "cpu" if gains[1] < 0 else None
        return InPyTorch(cost, cpu[0], (gpu[0],), side)

    def _measured(
        self, ways: Sequence[Prediction], side: str
    ) -> tuple[Prediction, np.ndarray] | None:
        alike = [way for way in ways if (way.device == "cpu") == (side == "cpu")]
        if not alike:
            return None
        way = min(alike, key=lambda way: way.middle)
        second = self._second[side]
        low, middle, high = (second * time for time in (way.low, way.middle, way.high))
        name = _MEASURED if side == "cpu" else way.name
        made = replace(way, name=name, quantity=self._quantity, low=low, middle=middle, high=high)
        return made, within(Band(low, high), "here")

    def _predicted(self, cost: Cost, ours: Prediction) -> tuple[Prediction, np.ndarray]:
        steps, second = float(cost.fields["steps"]), self._second["cpu"]
        step = within(Band(ours.low, ours.high), "here") / steps / second
        draws = second * steps * host.fitted().cpu_draws(cost, step, self.call)
        return self._made("PyTorch", "cpu", _PREDICTED, draws), draws

    def _on_card(self, cost: Cost, card: Card) -> tuple[Prediction, np.ndarray] | None:
        assert self._fit is not None, "without a fit there is no card"
        call = host.fitted().gpu_call_draws(self.call)
        steps = float(cost.fields["steps"])
        draws = predict_draws(self._fit, cost, card, PYTORCH_WAY, steps, call=call)
        if isinstance(draws, str):
            return None
        draws = draws * self._second["gpu"]
        name = short_gpu(card.name)
        device = "cuda" if self._is_here else card.id
        return self._made(f"{name}, PyTorch", device, name, draws), draws

    def _made(self, label: str, device: str, name: str, draws: np.ndarray) -> Prediction:
        times = ends(draws)
        return Prediction(
            *(label, device, name, "resident", times.seconds, times.low, times.high),
            quantity=self._quantity,
        )
