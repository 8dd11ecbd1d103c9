# SPDX-License-Identifier: Apache-2.0
"""Comparisons whose answers are given, not found: what is made of them is tested alone; and what a
file says of the sizes in between (`refinements`)."""

from typing import Any

import numpy as np

from crossover_bench.curves.crossover import Comparison, Crossover
from crossover_bench.curves.curves import Curve
from crossover_bench.files.axes import Label

COMMON = {"family": "Epoch", "batch": "100"}
SIZES = np.array([22.0, 2982.0, 703142.0])


def answer(size: float | None, spread: float = 0.1) -> Crossover:
    """A crossover at `size`, its interval `spread` wide on each side; None: the GPU always wins."""
    sizes = tuple(SIZES.tolist())
    if size is None:
        return Crossover("always", None, None, None, (), sizes=sizes, winners=(1,) * 3)
    low, high = size * (1 - spread), size * (1 + spread)
    return Crossover("once", size, low, high, (size,), sizes=sizes)


def curve(seconds: float = 1.0, **configuration: str) -> Curve:
    samples = tuple(np.full(9, seconds) for _ in SIZES)
    is_best = configuration.get("cpu_threads") == "best"
    candidates = tuple((times,) for times in samples) if is_best else ()
    how = {"precision": "f32", **configuration}
    return Curve(Label(), how, SIZES, samples, candidates, own_batch=COMMON["batch"])


def comparison(crossover: Crossover, threads: str = "best", **gpu: Any) -> Comparison:
    return Comparison(
        COMMON,
        "parameters",
        curve(device="cpu", execution="eager", cpu_threads=threads),
        curve(device="cuda", **gpu),
        crossover,
    )


# --- the sizes in between


FIRST = {"device": "cpu", "execution": "eager", "cpu_threads": "1"}
PAIRED = {"family": "Epoch", "batch": "100", "precision": "f32"}


def pairs(*intervals: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {
        "kind": "threads",
        "common": PAIRED,
        "first": FIRST,
        "second": {**FIRST, "cpu_threads": "2"},
        "error": 0.05,
        "most_sizes": 32,
        "most_pairs": 100,
        "complete": True,
        "ladder": [
            {"model": "disc-7", "params": 11430, "winner": "first"},
            {"model": "disc-8", "params": 44710, "winner": "second"},
        ],
        "sizes": [
            {
                "model": "disc-7x1.5",
                "params": 25504,
                "pairs": 14,
                "won_by_first": 14,
                "ties": 0,
                "winner": "first",
            }
        ],
        "intervals": list(intervals),
        **changes,
    }


def interval(low: float | None, high: float | None) -> dict[str, Any]:
    return {"below": "first", "low": low, "high": high}
