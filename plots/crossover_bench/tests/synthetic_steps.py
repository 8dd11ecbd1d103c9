# SPDX-License-Identifier: Apache-2.0
"""Rows of the families Minibatch and Forward, of machines that obey a formula, on CPU and GPU.

As in tests/synthetic.py nobody measured any of it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from crossover_bench.tests import synthetic, synthetic_machine
from crossover_bench.tests.synthetic import MODELS


@dataclass(frozen=True)
class Network:
    """`flops` are of one sample's step, `shares` what parts of a CPU's step take, 1 in all."""

    params: int
    batch: int
    flops: float
    shares: dict[str, float]


_PRODUCTS = {"product": 0.9, "elementwise": 0.04, "loss": 0.01, "update": 0.05}
_CONVOLUTIONS = {
    **{"product": 0.05, "convolution": 0.6, "normalization": 0.15, "pooling": 0.05},
    **{"elementwise": 0.06, "reorder": 0.02, "loss": 0.01, "update": 0.06},
}
NETWORKS = {
    "fcn-s": Network(118_007_936, 64, 7.1e8, _PRODUCTS),
    "alexnet-s": Network(62_378_344, 16, 6.8e9, _CONVOLUTIONS),
    "resnet-50": Network(25_557_032, 16, 2.46e10, _CONVOLUTIONS),
    "fcn-r": Network(14_204_938, 1024, 8.5e7, _PRODUCTS),
    "alexnet-r": Network(89_578, 1024, 7.4e7, _CONVOLUTIONS),
    "resnet-56": Network(855_770, 128, 7.6e8, _CONVOLUTIONS),
    "lstm": Network(6_182_672, 128, 1.1e9, _PRODUCTS),
    "mlp-784-512-10": Network(407_050, 100, 2.4e6, _PRODUCTS),
}
WAYS = (("eager", "pageable"), ("graph", "resident"))
BATCHES = (2, 8, 32, 128, 1024)
_LAUNCH = {"eager": 3e-2, "graph": 1e-2}  # seconds of a GPU's step, whatever its batch


def cpu_configuration(model: str, threads: int, batch: int | None = None) -> dict[str, str]:
    """The configuration of one Minibatch row on the CPU, in the network's own batch or another."""
    return synthetic.cpu_configuration(model, threads, batch or NETWORKS[model].batch, "Minibatch")


def gpu_configuration(
    model: str, batch: int | None = None, execution: str = "graph", data: str = "resident"
) -> dict[str, str]:
    """The configuration of one Minibatch row on the GPU."""
    batch = batch or NETWORKS[model].batch
    return synthetic.gpu_configuration(model, execution, data, batch, "Minibatch")


def seconds_of(configuration: dict[str, str]) -> float:
    """What the formula says a step takes; of alexnet-r CPU and GPU cross at about batch 8."""
    flops = NETWORKS[configuration["model"]].flops * int(configuration["batch"])
    if configuration["device"] == "cpu":
        return flops / (3e10 * int(configuration["cpu_threads"]) ** 0.9)
    return _LAUNCH[configuration["execution"]] + flops / 5e12


def samples(
    configuration: dict[str, str], seconds: list[float] | None = None, **changes: Any
) -> list[dict[str, Any]]:
    """The entries of one row; without `seconds` those of the formula, with 3 % noise."""
    network, batch = NETWORKS[configuration["model"]], int(configuration["batch"])
    copied = configuration.get("data", "resident") != "resident"
    if seconds is None:
        generator = np.random.default_rng([network.params, batch, len(str(configuration))])
        noise = 1.0 + generator.gamma(2.0, 0.015, 9)
        seconds = (seconds_of(configuration) * noise).tolist()
    flops = network.flops * batch
    typical = float(np.median(seconds))
    profile = {part: 0.97 * share * typical for part, share in network.shares.items()}
    if configuration["device"] != "cpu":
        profile |= {"launch": 0.02 * typical, "synchronization": 0.005 * typical}
    if copied:
        profile["copy_to_device"] = 0.05 * typical
    facts = {
        "rows": batch,
        "steps": 1,
        "flops": flops,
        "bytes": 20.0 * network.params,
        "products": 12,
        "launches": 40,
        "loss_first_step": 2.3,
        "peak_bytes": 16 * network.params,
        "reorders": 3,
        "reorder_bytes": 4 * batch,
        "workload": f"{network.params * 100_000 + batch:016x}",
        "label": "sgd",
        "minimum_work": {"flops": flops, "memory_bytes": 2.0 * network.params},
        "verification": synthetic.verified(steps=2, steps_of=2, batch=min(batch, 4)),
        **{f"seconds_{part}": value for part, value in profile.items()},
        **changes,
    }
    if copied:
        facts["bytes_to_device"] = 4096.0 * batch
    entries = synthetic.samples(configuration, seconds, params=network.params, **facts)
    for entry in entries:
        del entry["loss_first_epoch"]
    return entries


def steps(
    models: Iterable[str] = tuple(NETWORKS),
    *,
    threads: tuple[int, ...] = (1, 2),
    ways: tuple[tuple[str, str], ...] = WAYS,
    batches: tuple[int, ...] = (),
) -> list[dict[str, Any]]:
    """The entries of `models`, each in its own batch and in `batches`, on CPU and GPU."""
    entries = []
    for model in models:
        for batch in sorted({NETWORKS[model].batch, *batches}):
            for count in threads:
                entries += samples(cpu_configuration(model, count, batch))
            for execution, data in ways:
                entries += samples(gpu_configuration(model, batch, execution, data))
    return entries


def machine(gpu: bool = True, epochs: bool = True) -> dict[str, Any]:
    """A file with ceilings, epochs (or without), every network in its own batch, and alexnet-r and
    fcn-r in several."""
    left_out: dict[str, Any] = {} if gpu else {"modes": ()}
    left_out |= {} if epochs else {"models": ()}
    document = synthetic_machine.machine(**left_out)
    ways = WAYS if gpu else ()
    for model in NETWORKS:
        batches = BATCHES if model in ("alexnet-r", "fcn-r") else ()
        document["benchmarks"] += steps([model], ways=ways, batches=batches)
    return document


# --- rows of the family Forward


_QUANTILES = {"p50": 1.0, "p90": 1.1, "p99": 2.0, "p999": 5.0, "max": 40.0}


def passes(model: str, batch: int, device: str) -> list[dict[str, Any]]:
    """The entries of one row; a GPU takes 20 us at least, and a CPU as long as it computes."""
    params = MODELS[model][0]
    configuration = (
        synthetic.cpu_configuration(model, 2, batch, "Forward")
        if device == "cpu"
        else synthetic.gpu_configuration(model, batch=batch, family="Forward")
    )
    flops = 2.0 * params * batch
    seconds = 1e-6 + flops / 2e10 if device == "cpu" else 2e-5 + flops / 5e12
    noise = np.random.default_rng([params, batch, len(device)]).gamma(2.0, 0.015, 9)
    entries = synthetic.samples(
        configuration,
        (seconds * (1 + noise)).tolist(),
        iterations=100,
        verification=synthetic.verified(entries=2 * batch, entries_of=2 * batch),
        flops=flops,
        clock_seconds=3e-8,
    )
    for place, entry in enumerate(entries):
        for counter in ("rows", "steps", "loss_first_epoch"):
            del entry[counter]
        typical = entry["real_time"] / 1e3
        entry |= {f"latency_{key}_seconds": typical * times for key, times in _QUANTILES.items()}
        entry["latency_passes"] = 10_000 - place
    return entries
