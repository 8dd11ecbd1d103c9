# SPDX-License-Identifier: Apache-2.0
"""A file with everything that a file may hold, a few rows of each: what the readers have to bear.

As in tests/synthetic.py nobody measured any of it.
"""

from typing import Any

import numpy as np

from crossover_bench.tests import (
    synthetic,
    synthetic_machine,
    synthetic_peers,
    synthetic_probes,
    synthetic_steps,
)
from crossover_bench.tests.synthetic_answers import FIRST, PAIRED, interval, pairs
from crossover_bench.tests.synthetic_sweep import noisy

_REPETITIONS = 9
_DISCS = ("disc-3", "disc-6", "disc-9")
_OWN = {"mine": 16, "minex4": 64}  # network: its hidden layer
_COPIES = ("1", "4", "16")
_STEPS, _SIZES = (10, 100), (1000, 4000)
_METER = {"name": "RAPL", "counts": "cpu", "resolution_joules": 1e-4, "update_seconds": 1e-3}


def whole() -> dict[str, Any]:
    """A file that is fit to be committed, with a row of each family, device and ceiling, and with
    one skipped and one disturbed; with curves over sizes, copies and ranks; with other programs,
    other builds and commands; with a network of its own, a module as it is, pairs, energy, and an
    axis of its own.
    """
    entries = [*_of_each_kind(), *_epochs(), *_passes(), *_own(), *_module(), *_commands()]
    entries.append(synthetic.failure(synthetic.gpu_configuration("heart"), "no memory", "skipped"))
    document = synthetic.document(entries, gpu="NVIDIA L4", axes=(synthetic.TILING,))
    crossover = document["context"]["crossover"]
    training = {"rows": 1000, "batch": 100, "optimizer": "sgd", "learning_rate": 0.01}
    networks = [{"name": name, "layers": [], "training": training} for name in _OWN]
    command = {"first": "a {n} {steps}", "second": "b {n} {steps}", "equal": "cmp"}
    crossover |= {
        "networks": networks,
        "ladders": {"disc": [*_DISCS], "mine": [*_OWN]},
        "ladder_batches": {"mine": 100},
        "energy": {"meters": [_METER], "idle_watts_before": 9, "idle_watts_after": 10.5},
        "budget": {"seconds": 60, "used_seconds": 59, "left_open": ["disc-6"]},
        "counters": {"joules": {"unit": "J", "kind": "repetition", "description": "of it"}},
        "peers": {
            "pytorch": {"version": "0"},
            "command": {"version": "0", **command, "sizes": [*_SIZES], "steps": [*_STEPS]},
        },
        "refinements": _pairs(),
    }
    crossover["machine"]["id"] = "synthetic-machine"
    crossover["software"]["commit"] = "0123456789" * 4
    return document


def _of_each_kind() -> list[dict[str, Any]]:
    """Of all synthetic rows, but epochs and passes, the first of each kind."""
    every = synthetic_probes.everything(gpu=True)["benchmarks"]
    every += [*synthetic_probes.sums(), *synthetic_steps.steps(["fcn-r", "alexnet-r"])]
    kinds: dict[tuple[str | None, ...], str] = {}
    for entry in every:
        configuration = entry["configuration"]
        kind = tuple(map(configuration.get, ("family", "device", "quantity", "direction", "bytes")))
        # Sums of two sizes tell of those in between.
        key = kind if configuration["family"] == "Collective" else kind[:4]
        if configuration["family"] != "Epoch":
            kinds.setdefault(key, entry["name"])
    return [entry for entry in every if entry["name"] in kinds.values()]


def _epochs() -> list[dict[str, Any]]:
    """The disc networks on one and two threads, two ranks, the GPU and in PyTorch."""
    entries = []
    for model in _DISCS:
        cpu, gpu = synthetic.cpu_configuration(model, 1), synthetic.gpu_configuration(model)
        ways = [cpu, {**cpu, "cpu_threads": "2"}, {**cpu, "ranks": "2"}, gpu]
        ways += [synthetic_peers.theirs(cpu), synthetic_peers.theirs(gpu, compiler="inductor")]
        ways += [{**cpu, "program": "bench-same"}, {**gpu, "precision": "tf32"}]
        for way in ways:
            entries += _row(way, **synthetic_machine.counts(model))
    middle = _DISCS[1]
    cpu = synthetic.cpu_configuration(middle, 1)
    entries += _row({**cpu, "batch": "50", "accumulate": "2"})
    entries += _row({**cpu, "zero": "keep"}, cpu_wait=0.1) + _row({**cpu, "tiling": "blocked"})
    chosen = {"execution": "fused", "cpu_threads": "1"}
    entries += _row({**cpu, "execution": "auto"}, chosen=chosen, threads_used=1)
    for copies in _COPIES[1:]:
        for way in (cpu, synthetic.gpu_configuration(middle)):
            entries += _row({**way, "copies": copies})
    return entries


def _row(configuration: dict[str, str], **facts: Any) -> list[dict[str, Any]]:
    """Epochs, with a profile, energy, and the processors of others in some repetitions."""
    entries = synthetic.samples(configuration)[:_REPETITIONS]
    for place, entry in enumerate(entries):
        seconds = entry["real_time"] / 1e3
        entry |= {
            "joules": 40 * seconds,
            "joules_error": 0.01 * seconds,
            "cpu_wait": 0.01 * (place % 3),
        }
        entry |= {"seconds_product": 0.5 * seconds, "seconds_communication": 0.1 * seconds}
        entry |= {"label": "sgd lr=0.1", "minimum_work": {"flops": 1e6, "memory_bytes": 1e3}}
        entry |= {"peak_bytes": 100_000, "workload": f"{len(configuration['model']):016x}"}
        entry |= {"ranks": int(configuration.get("ranks", 1)), **facts}
    return entries


def _passes() -> list[dict[str, Any]]:
    """Forward passes of the disc networks on both devices, and in ONNX Runtime on the CPU."""
    entries = []
    for model in _DISCS:
        for device in ("cpu", "cuda"):
            passes = synthetic_steps.passes(model, 1, device)[:_REPETITIONS]
            entries += passes
            if device == "cpu":
                theirs = synthetic_peers.theirs(passes[0]["configuration"], program="onnxruntime")
                name = synthetic.row_name(theirs)
                entries += [{**entry, "name": name, "configuration": theirs} for entry in passes]
    return entries


def _own() -> list[dict[str, Any]]:
    """A network of one's own in two sizes and batches."""
    entries = []
    for name, width in _OWN.items():
        for batch in (10, 100):
            ours = synthetic.cpu_configuration(name, 1, batch)
            params = 12 * width + 3
            known = {"params": params, "rows": 1000, **{"products": 50, "logits": 3000}}
            for way in (ours, synthetic_peers.theirs(ours)):
                times = [1e-5 + 1e-7 * params * (1 + 0.1 * place) for place in range(_REPETITIONS)]
                entries += synthetic.samples(way, times, **known)
    return entries


def _module() -> list[dict[str, Any]]:
    """Steps of a module that PyTorch trains as it is."""
    product = {"kind": "product", "launches": 1, "bytes": 4e5, "flops": 2e7, "count": 6}
    product |= {"products": [{"m": 10, "n": 100, "k": 64}]}
    memory = {"parameters": 400_000, "optimizer": 0, "activations": 4000, "peak": 500_000}
    known: dict[str, Any] = {"params": 100_000, "as_is": "body.0.weight is used twice", "rows": 100}
    known |= {"cost": {"operations": [product], "memory_bytes": memory}, "loss_first_step": 0.5}
    ours = synthetic.cpu_configuration("pairs", 1, 10, "Minibatch")
    return synthetic.samples(synthetic_peers.theirs(ours), [0.01, 0.012, 0.011], **known)


def _commands() -> list[dict[str, Any]]:
    """Two commands, the second of which starts later and steps faster."""
    entries = []
    generator = np.random.default_rng(1)
    for size in _SIZES:
        for program, start, step in (("first", 0.1, 1e-5), ("second", 2.1, 5e-6)):
            for steps in _STEPS:
                how = {"size": str(size), "program": program, "step_count": str(steps)}
                configuration = {"family": "Command", **how}
                for seconds in noisy(start + steps * step * size, generator, repetitions=6):
                    times = {"real_time": seconds * 1e3, "cpu_time": 1.0, "time_unit": "ms"}
                    name = synthetic.row_name(configuration)
                    times |= {"name": name, "iterations": 1, "first_call_seconds": float(seconds)}
                    entries.append({**times, "configuration": configuration})
    return entries


def _pairs() -> list[dict[str, Any]]:
    """Pairs of thread counts, of devices and of commands."""
    gpu = {"device": "cuda", "execution": "graph", "data": "pinned"}
    between = interval(20_000.0, 30_000.0)
    size = pairs()["sizes"][0]
    commands: dict[str, Any] = {
        "common": {"family": "Command"},
        "ladder": [],
        "first": {"program": "first"},
    }
    commands |= {"second": {"program": "second"}, "sizes": [{**size, "model": "2054"}]}
    return [
        pairs(between),
        pairs(between, kind="device", first=FIRST, second=gpu, common=PAIRED),
        pairs(interval(None, 2054.0), kind="command", **commands),
    ]
