# SPDX-License-Identifier: Apache-2.0
"""Configurations at several batches and in several ways, and times whose winner is known.

As in plots/tests/synthetic.py nobody measured any of it.
"""

from collections.abc import Callable, Iterable
from typing import Any

from plots.tests import synthetic
from plots.tests.synthetic_sweep import DISC_MODELS, epochs

RESIDENT = ("graph", "resident")
EAGER = ("eager", "resident")
PINNED = ("graph", "pinned")
ALL = DISC_MODELS
LARGE = DISC_MODELS[-2:]

Seconds = Callable[[dict[str, str], float], float]


def ways(
    batch: int, *modes: tuple[str, str], models: Iterable[str] = ALL, **more: str
) -> list[dict[str, str]]:
    """The configurations of a CPU with one thread and a GPU in each of `modes`, at one batch."""
    found = []
    for model in models:
        found.append(synthetic.cpu_configuration(model, 1, batch))
        for execution, data in modes:
            found.append({**synthetic.gpu_configuration(model, execution, data, batch), **more})
    return list({str(each): each for each in found}.values())


def trained(
    configurations: Iterable[dict[str, str]], seconds: Seconds, **options: int
) -> dict[str, Any]:
    """A file of `configurations`, each once, whose times are `seconds`."""
    unique = list({str(each): each for each in configurations}.values())
    return synthetic.document(epochs(unique, seconds, **options), gpu="synthetic GPU")


def crossing(at: float) -> Seconds:
    """Seconds of an epoch for which the GPU wins from `at` parameters."""
    return lambda way, params: (params / at) ** 0.8 if way["device"] == "cpu" else 1.0


def by_batch(**winners: str) -> Seconds:
    """At each batch, b10 and so on, either device wins at all sizes, or "at" some parameters."""

    def seconds(way: dict[str, str], params: float) -> float:
        winner = winners[f"b{way['batch']}"]
        if winner in ("cpu", "cuda"):
            return 1.0 if way["device"] == winner else 2.0
        return crossing(float(winner))(way, params)

    return seconds


def heart_on(faster: str) -> Seconds:
    """`heart` is twice as fast on this device; of the curve the GPU wins from 422 parameters."""

    def seconds(way: dict[str, str], params: float) -> float:
        if way["model"] == "heart":
            return 1.0 if way["device"] == faster else 2.0
        return crossing(422.0)(way, params)

    return seconds
