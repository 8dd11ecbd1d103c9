# SPDX-License-Identifier: Apache-2.0
"""Files in which PyTorch takes turns with bench; as in tests/synthetic.py nobody measured
any of it."""

from typing import Any

import numpy as np

from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_sweep import DISC_MODELS, epochs, pairs

RATIO = 8.0  # PyTorch's time over ours, in every pair
CROSSOVER = 50_000.0  # parameters, with ours


def theirs(configuration: dict[str, str], **changes: str) -> dict[str, str]:
    """The configuration of PyTorch's row of the same work."""
    where = {"program": "pytorch", "device": configuration["device"]}
    place = list(configuration).index("device")
    items = list(configuration.items())
    return {**dict(items[:place]), **where, **dict(items[place:]), **changes}


def is_theirs(entry: dict[str, Any]) -> bool:
    return "program" in entry["configuration"]


def on_cpu(
    ratio: float = RATIO, models: tuple[str, ...] = DISC_MODELS, **changes: str
) -> list[dict[str, Any]]:
    """Epochs on one thread, ours with noise of 20 % that the pairs share."""
    generator = np.random.default_rng(5)
    entries = []
    for model in models:
        ours = synthetic.cpu_configuration(model, 1)
        times = 1e-7 * synthetic.MODELS[model][0] * (1 + 0.2 * generator.random(9))
        entries += synthetic.samples(ours, times.tolist())
        entries += synthetic.samples(theirs(ours, **changes), (ratio * times).tolist())
    return entries


def on_both(models: tuple[str, ...] = DISC_MODELS) -> list[dict[str, Any]]:
    """Epochs on both devices: ours cross at CROSSOVER, PyTorch's at twice that."""

    def seconds(configuration: dict[str, str], params: float) -> float:
        if configuration["device"] == "cuda":
            return 1e-3
        crossover = CROSSOVER * (2 if "program" in configuration else 1)
        return 1e-3 * float((params / crossover) ** 0.8)

    ours = pairs(models)
    gpu = {"execution": "eager", "data": "resident"}
    others = [theirs(each, **(gpu if each["device"] == "cuda" else {})) for each in ours]
    return epochs([*ours, *others], seconds)


def document(entries: list[dict[str, Any]], gpu: bool = False) -> dict[str, Any]:
    """A file of ./run --with-peers."""
    made = synthetic.document(entries, gpu="synthetic GPU" if gpu else None)
    crossover = made["context"]["crossover"]
    crossover["software"]["libraries"]["PyTorch"] = "0.0+synthetic"
    crossover["configuration"]["command"].append("--with-peers")
    return made
