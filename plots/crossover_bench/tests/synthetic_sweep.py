# SPDX-License-Identifier: Apache-2.0
"""Synthetic files with all that a CPU and a GPU can be compared in, and crossovers that are known.

As in tests/synthetic.py nobody measured any of it.

    python -m crossover_bench.tests.synthetic_sweep FILE    write one, to look at what is made of it
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from crossover_bench.curves.curves import Curve
from crossover_bench.files.axes import Label
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_probes import layer, product

_GAMMA_MEDIAN = 1.6783469900166608  # of shape 2 and scale 1

DISC_MODELS = tuple(model for model in synthetic.MODELS if model.startswith("disc-"))
DISC_SIZES = np.array([synthetic.MODELS[model][0] for model in DISC_MODELS], dtype=float)
GPU_MODES = (
    ("eager", "pageable"),
    ("eager", "resident"),
    ("graph", "pinned"),
    ("graph", "resident"),
    ("graph-epoch", "resident"),
)
_LAUNCH_SECONDS = {"eager": 60e-6, "graph": 14e-6, "graph-epoch": 5e-6}
_COPY_SECONDS = {"pageable": 25e-6, "pinned": 9e-6, "resident": 0.0}
_TF32_FASTER = 1.8


def noisy(
    seconds: float, generator: np.random.Generator, scale: float = 0.015, repetitions: int = 9
) -> np.ndarray:
    """Times with right-skewed noise whose population median is `seconds`."""
    noise = 1.0 + generator.gamma(2.0, scale, repetitions)
    return seconds * noise / (1.0 + scale * _GAMMA_MEDIAN)


def curve(
    device: str,
    seconds: np.ndarray,
    generator: np.random.Generator,
    *,
    sizes: np.ndarray = DISC_SIZES,
    scale: float = 0.015,
    repetitions: int = 9,
) -> Curve:
    """A curve through the medians `seconds` at `sizes`; `device` is cpu or cuda."""
    samples = tuple(noisy(float(time), generator, scale, repetitions) for time in seconds)
    return Curve(Label(device), {"device": device}, sizes, samples)


def epochs(
    configurations: list[dict[str, str]],
    seconds: Callable[[dict[str, str], float], float],
    seed: int = 0,
    repetitions: int = 9,
) -> list[dict[str, Any]]:
    """The entries of Epoch rows, whose median is `seconds` of the configuration and parameters."""
    generator = np.random.default_rng(seed)
    entries = []
    for configuration in configurations:
        params = float(synthetic.MODELS[configuration["model"]][0])
        times = noisy(seconds(configuration, params), generator, repetitions=repetitions)
        entries += synthetic.samples(configuration, times.tolist())
    return entries


def pairs(models: Iterable[str]) -> list[dict[str, str]]:
    """The configurations of each of `models` on one thread and on a GPU."""
    return ways(None, PINNED, models=models)


def known(crossover: float = 50_000.0) -> list[dict[str, Any]]:
    """Rows of the disc family on one thread and a GPU, equally fast at `crossover` parameters."""
    seconds = crossing(crossover)
    return epochs(pairs(DISC_MODELS), lambda *each: 1e-3 * seconds(*each))


def operation(
    configuration: dict[str, str], seconds: float, count: int, generator: np.random.Generator
) -> list[dict[str, Any]]:
    """The entries of a Gemm or Layer row: `count` operations an iteration, `seconds` for each."""
    checked = synthetic.verified(entries=64, entries_of=64)
    facts = {"flops": 1e6, "bytes": 1e4, "verified_entries": 64, "verification": checked}
    times = noisy(seconds, generator, repetitions=5).tolist()
    entries = synthetic.operation(configuration, times, count, **facts)
    return [{**entry, "instance": instance} for instance, entry in enumerate(entries)]


def _epoch_seconds(configuration: dict[str, str], params: float) -> float:
    rows = synthetic.ROWS[configuration["model"].split("-")[0]]
    steps = -(-rows // int(configuration["batch"]))
    flops = 6.0 * params * rows
    if configuration["device"] == "cpu":
        threads = int(configuration["cpu_threads"])
        return steps * (4e-6 + 2e-6 * threads) + flops / (5e10 * threads**0.8)
    launch = _LAUNCH_SECONDS[configuration["execution"]] + _COPY_SECONDS[configuration["data"]]
    rate = 5e12 * (_TF32_FASTER if configuration["precision"] == "tf32" else 1.0)
    return steps * launch + flops / rate + 30e-6


def _epoch_configurations(batches: tuple[int, ...]) -> Iterator[dict[str, str]]:
    for model in synthetic.MODELS:
        discs = batches if model in DISC_MODELS else (synthetic.MODELS[model][1],)
        for batch in discs:
            for threads in (1, 2, 8):
                yield synthetic.cpu_configuration(model, threads, batch)
            for precision in ("f32", "tf32"):
                for execution, data in GPU_MODES:
                    configuration = synthetic.gpu_configuration(model, execution, data, batch)
                    yield {**configuration, "precision": precision}


def _operations(generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Square products that cross at 200 exactly, and layers that the GPU always wins."""
    cpu, gpu = {"device": "cpu", "cpu_threads": "1"}, {"device": "cuda"}
    for edge in (32, 64, 128, 256, 512, 1024):
        for where, power, count in ((cpu, 3.0, 100), (gpu, 0.5, 10)):
            seconds = 1e-5 * (edge / 200) ** power
            yield from operation(product(edge, edge, edge, where), seconds, count, generator)
    for width in (16, 64, 256, 1024):
        for where, at_once in ((cpu, 16), (gpu, 64)):
            yield from operation(layer(width, where), 1e-4 * width / at_once, 100, generator)


def wide_sweep(batches: tuple[int, ...] = (10, 100, 1000)) -> dict[str, Any]:
    """A file with three thread counts, five GPU modes, two precisions, `batches` and operations."""
    entries = epochs(list(_epoch_configurations(batches)), _epoch_seconds)
    entries += _operations(np.random.default_rng(1))
    return synthetic.document(entries, gpu="synthetic GPU")


if __name__ == "__main__":
    synthetic.write(Path(sys.argv[1]), wide_sweep())


# --- several batches and ways, and times whose winner is known


RESIDENT = ("graph", "resident")
EAGER = ("eager", "resident")
PINNED = ("graph", "pinned")
ALL = DISC_MODELS
LARGE = DISC_MODELS[-2:]

Seconds = Callable[[dict[str, str], float], float]


def ways(
    batch: int | None, *modes: tuple[str, str], models: Iterable[str] = ALL, **more: str
) -> list[dict[str, str]]:
    """The configurations of a CPU with one thread and a GPU in each of `modes`, at one batch."""
    rows = []
    for model in models:
        rows.append(synthetic.cpu_configuration(model, 1, batch))
        for execution, data in modes:
            rows.append({**synthetic.gpu_configuration(model, execution, data, batch), **more})
    return list({str(row): row for row in rows}.values())


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
