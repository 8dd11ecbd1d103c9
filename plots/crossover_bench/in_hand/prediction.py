# SPDX-License-Identifier: Apache-2.0
"""What a step would take on cards that are not here: from what PyTorch starts in it, counted on the
CPU (docs/method/peers.md#what-is-counted)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import nn

from crossover_bench.answers.advise.as_is_summary import left_out
from crossover_bench.answers.predict.analysis import DEFAULT_CARDS, step_draws
from crossover_bench.answers.predict.data import observations
from crossover_bench.answers.predict.fit import Fit, fit
from crossover_bench.answers.predict.simulate import ends, within
from crossover_bench.answers.predict.ways import Band
from crossover_bench.counts.cards import load_cards
from crossover_bench.counts.cost import Operation, operation_of
from crossover_bench.peers.pytorch.counting import Counting, Recurrences
from crossover_bench.peers.pytorch.user_file import failure
from crossover_bench.study.machines import short_gpu

_UPDATES = {"SGD": "sgd", "Adam": "adam", "AdamW": "adamw"}


def update_of(optimizer: Any) -> str:
    """What bench calls it; empty of another optimizer."""
    kind = _UPDATES.get(type(optimizer).__name__, "")
    has_momentum = any(group.get("momentum") for group in optimizer.param_groups)
    return "momentum" if kind == "sgd" and has_momentum else kind


@dataclass(frozen=True, slots=True)
class OnCard:
    """Seconds of a step on a card, in the middle of a band that holds 90 % of cards like it; `side`
    is the one that is surely ahead, cpu or gpu."""

    name: str
    seconds: float
    low: float
    high: float
    side: str | None


def on_cards(
    operations: tuple[Operation, ...], here: Band, beside: float
) -> tuple[tuple[OnCard, ...], str]:
    """On the usual cards, where a step takes `here` on the CPU, with the seconds `beside` that both
    devices wait for the loader; and why there is none, a phrase."""
    cards, made = load_cards(), []
    factor = math.log(left_out().factor)
    on_cpu = np.log(within(here, "here"))
    for name in DEFAULT_CARDS:
        draws = step_draws(_fitted(), operations, "f32", cards[name])
        if isinstance(draws, str):
            return (), draws
        times = ends(draws)
        low = min(times.low, times.seconds * math.exp(-factor)) + beside
        high = max(times.high, times.seconds * math.exp(factor)) + beside
        gains = np.quantile(on_cpu - np.log(within(Band(low, high), "theirs")), (0.05, 0.95))
        side = "gpu" if gains[0] > 0 else "cpu" if gains[1] < 0 else None
        known = OnCard(short_gpu(cards[name].name), times.seconds + beside, low, high, side)
        made.append(known)
    return tuple(made), ""


@cache
def _fitted() -> Fit:
    """To what was published, which takes seconds."""
    return fit(observations())


def counted(
    model: nn.Module, optimizer: Any, loss: Callable[[], torch.Tensor]
) -> tuple[tuple[Operation, ...], str]:
    """What a step of these copies on the CPU starts, after one that made the optimizer's state; or
    why nobody knows, a phrase."""
    dtypes = {parameter.dtype for parameter in model.parameters()}
    if dtypes != {torch.float32} or torch.is_autocast_enabled("cuda"):
        return (), "steps in float32 alone are predicted"
    kind = update_of(optimizer)
    try:
        for group in optimizer.param_groups:
            group["foreach"], group["fused"] = True, None  # as on a GPU
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()
        with Counting() as counting, Recurrences(counting):
            value = loss()
            counting.forward_is_done()
            value.backward()
            counting.of_update = True
            optimizer.step()
        if kind:  # of others the bytes and launches alone are known, which are most of it
            counting.update_is_done(kind, sum(p.numel() for p in model.parameters()))
    except Exception as error:  # a module may do what no mode can watch
        return (), f"its operations can't be counted: {failure(error)}"
    return tuple(map(operation_of, counting.counts.operations)), ""
