# SPDX-License-Identifier: Apache-2.0
"""Files of many machines, with and without a GPU, whose times follow from formulas.

As in tests/synthetic.py nobody measured any of it.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from crossover_bench.study.machines import SideBySide
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_probes import product
from crossover_bench.tests.synthetic_sweep import operation

DISCS = tuple(model for model in synthetic.MODELS if model.startswith("disc-"))
MODELS = (*DISCS, "heart")


@dataclass(frozen=True)
class Machine:
    """Its `speed` is that of its CPU, and `gpu_speed` that of its GPU, in units of some machine."""

    name: str
    cpu: str
    cores: int
    speed: float
    gpu: str | None = None
    gpu_speed: float = 1.0
    date: str = "2020-01-01T00:00:00+00:00"


FIVE = (
    Machine("synthetic-a-8c", "Synthetic(R) Core(TM) A @ 3.00GHz", 8, 1.0, None),
    Machine("synthetic-b-64c", "Synthetic B 64-Core Processor", 64, 3.0, "NVIDIA Synth 100", 4.0),
    Machine("synthetic-c-4c", "Synthetic C", 4, 0.5, "NVIDIA Synth 10", 0.4),
    Machine("synthetic-d-16c", "Synthetic D", 16, 1.6, "NVIDIA GeForce Synth 50", 1.5),
    Machine("synthetic-e-2c", "Synthetic E", 2, 0.25, None),
)


WITH_GPU = {machine.name for machine in FIVE if machine.gpu}


def document(machine: Machine, seed: int = 0, models: tuple[str, ...] = MODELS) -> dict[str, Any]:
    """The file of `machine`: epochs and square products."""
    generator = np.random.default_rng([seed, machine.cores])
    entries: list[dict[str, Any]] = []
    for model in models:
        for threads in (1, machine.cores):
            entries += _epoch(machine, synthetic.cpu_configuration(model, threads), generator)
        if machine.gpu:
            for execution, data in (("eager", "pinned"), ("graph", "resident")):
                configuration = synthetic.gpu_configuration(model, execution, data)
                entries += _epoch(machine, configuration, generator)
    for edge in (64, 128, 256, 512, 1024):
        on_cpu = {"device": "cpu", "cpu_threads": str(machine.cores)}
        seconds = 4e-6 + 2 * edge**3 / (1e11 * machine.speed)
        entries += operation(product(edge, edge, edge, on_cpu), seconds, 10, generator)
        if machine.gpu:
            seconds = 7e-6 + 2 * edge**3 / (2e13 * machine.gpu_speed)
            on_gpu = product(edge, edge, edge, {"device": "cuda"})
            entries += operation(on_gpu, seconds, 10, generator)
    content = synthetic.document(entries, machine.name, machine.date, gpu=machine.gpu)
    cpu = content["context"]["crossover"]["machine"]["cpu"]
    cpu |= {"model": machine.cpu, "cores": machine.cores, "threads": machine.cores}
    return content


def machines(count: int) -> list[Machine]:
    """The FIVE and more of their kind."""
    made = list(FIVE)
    for number in range(len(FIVE), count):
        like, factor = FIVE[number % len(FIVE)], 1.1 ** (number // len(FIVE))
        name, speeds = f"{like.name}-{number}", (like.speed * factor, like.gpu_speed / factor)
        made.append(replace(like, name=name, speed=speeds[0], gpu_speed=speeds[1]))
    return made[:count]


def write_all(folder: Path, count: int = len(FIVE)) -> list[Path]:
    """Writes the files of `count` machines below `folder`; returns their paths."""
    return [
        synthetic.write(folder / machine.name / "2020-01-01-0000000.json", document(machine))
        for machine in machines(count)
    ]


def cpu_alone(seconds: dict[str, float], threads: int = 1, **options: Any) -> dict[str, Any]:
    """A file with five times `seconds` for each model."""
    entries = []
    for model, time in seconds.items():
        configuration = synthetic.cpu_configuration(model, threads)
        entries += synthetic.samples(configuration, [time] * 5)
    return synthetic.document(entries, **options)


def ids(side: SideBySide) -> list[str]:
    """The machines in the order in which they are shown."""
    return [standing.file.machine.id for standing in side.standings]


def _seconds(machine: Machine, configuration: dict[str, str]) -> float:
    """What an epoch takes: a cost for each step, and operations over a rate."""
    params, batch = synthetic.MODELS[configuration["model"]]
    rows = synthetic.ROWS[configuration["model"].split("-", maxsplit=1)[0]]
    steps, flops = -(-rows // batch), 6.0 * params * rows
    if configuration["device"] == "cpu":
        threads = int(configuration["cpu_threads"])
        rate = 3e10 * machine.speed * threads**0.8 / machine.cores**0.5
        return steps * (6e-6 + 1e-6 * threads**0.5) / machine.speed**0.3 + flops / rate
    launch = {"eager": 9e-5, "graph": 3e-5}[configuration["execution"]]
    copy = 0.0 if configuration["data"] == "resident" else 2e-5
    return steps * (launch / machine.gpu_speed**0.2 + copy) + flops / (4e12 * machine.gpu_speed)


def _epoch(
    machine: Machine, configuration: dict[str, str], generator: np.random.Generator
) -> list[dict[str, Any]]:
    noise = np.exp(0.01 * generator.standard_normal(synthetic.REPETITIONS))
    seconds = _seconds(machine, configuration)
    return synthetic.samples(configuration, (seconds * noise).tolist())
