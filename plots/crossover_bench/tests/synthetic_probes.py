# SPDX-License-Identifier: Apache-2.0
"""Rows of Peak, Copy, Collective, Gemm and Layer, and every GPU mode: times from formulas."""

from collections.abc import Iterable, Sequence
from itertools import product as product_of
from typing import Any

import numpy as np

from crossover_bench.tests import synthetic

GPU_MODES = [
    (execution, data)
    for execution in ("eager", "graph", "graph-epoch")
    for data in ("resident", "pageable", "pinned", "pinned-async")
    if execution != "graph-epoch" or data == "resident"
]
EDGES = (32, 64, 128, 256, 512, 1024, 2048)
_CPU = {"device": "cpu", "cpu_threads": "2"}
_GPU = {"device": "cuda"}
_FLOPS = {"cpu": 1e11, "cuda": 2e13}
_BYTES = {"cpu": 1e10, "cuda": 5e11}
_WAIT = {"cpu": 2e-7, "cuda": 6e-6}


def operation(
    configuration: dict[str, str], seconds: float, count: int = 1, **counters: float
) -> list[dict[str, Any]]:
    """The entries of a row that does `count` operations of `seconds` each, three repetitions.

    `counters` are those of one operation; of Peak and Copy they are given for the iteration.
    """
    is_probe = configuration["family"] in ("Peak", "Copy")
    per = count if is_probe else 1
    noise = np.random.default_rng(len(synthetic.row_name(configuration))).gamma(2.0, 0.02, 3)
    tolerance = 1e-5 if not is_probe and count > 1 else 0
    compared = {"tolerance": tolerance, "relative_error": 0, "entries": 1, "entries_of": 1}
    checked = synthetic.verified(reference="sums in float64", **compared)
    facts = {key: value * per for key, value in counters.items()}
    times = (seconds * (1 + noise)).tolist()
    return synthetic.operation(configuration, times, count, verification=checked, **facts)


def peaks(gpu: bool = True) -> list[dict[str, Any]]:
    """Ceilings of each device."""
    entries = []
    for device in (_CPU, _GPU) if gpu else (_CPU,):
        kind = device["device"]
        peak = {"family": "Peak"}
        fma = {**peak, "quantity": "fma", "precision": "f32", **device}
        entries += operation(fma, 1e9 / _FLOPS[kind], flops=1e9)
        entries += operation({**peak, "quantity": "triad", **device}, 0.1, bytes=0.1 * _BYTES[kind])
        waiting = "launch" if kind == "cuda" else "fork-join"
        entries += operation({**peak, "quantity": waiting, **device}, _WAIT[kind], 100)
    return entries


def copies(gpu: bool = True) -> list[dict[str, Any]]:
    """Copies of growing size, pageable and pinned."""
    entries = []
    kinds = [({"direction": "h2h"}, {**_CPU, "memory": "pageable", "mode": "sync"}, 8e9, 5e-8)]
    for way in ("h2d", "d2h") if gpu else ():
        for memory, bandwidth in (("pageable", 6e9), ("pinned", 2.4e10)):
            on_gpu = {**_GPU, "memory": memory, "mode": "async"}
            kinds.append(({"direction": way}, on_gpu, bandwidth, 8e-6))
    for direction, where, rate, latency in kinds:
        for exponent in range(10, 29, 2):
            size = 2**exponent
            configuration = {"family": "Copy", **direction, "bytes": str(size), **where}
            entries += operation(configuration, latency + size / rate, 1, bytes=size)
    return entries


def product(m: int, n: int, k: int, where: dict[str, str], cache: str = "warm") -> dict[str, str]:
    """The configuration of a product of matrices; `where`: device and threads."""
    shape = {"m": str(m), "n": str(n), "k": str(k)}
    kind = {"transpose": "nn", "precision": "f32", "cache": cache}
    return {"family": "Gemm", **shape, **kind, **where, "execution": "eager"}


def layer(width: int, where: dict[str, str], **kind: str) -> dict[str, str]:
    """The configuration of a layer of so many inputs and outputs."""
    what = {"batch": "100", "activation": "relu", "pass": "forward", "form": "fused", **kind}
    shape = {"family": "Layer", "width": str(width), **what, "precision": "f32"}
    return {**shape, **where, "execution": "eager"}


def products(gpu: bool = True, edges: Sequence[int] = EDGES) -> list[dict[str, Any]]:
    """Square products, warm and cold, and those of one batch of a network."""
    entries = []
    for where in (_CPU, _GPU) if gpu else (_CPU,):
        device = where["device"]
        for cache, slow in (("warm", 1.0), ("cold", 1.6)):
            for m, n, k in [*((edge,) * 3 for edge in edges), (100, 2, 4)]:
                flops, moved = 2 * m * n * k, 4 * (m * n + m * k + k * n)
                entries += operation(
                    product(m, n, k, where, cache),
                    _WAIT[device] + slow * flops / _FLOPS[device],
                    10,
                    flops=flops,
                    bytes=moved,
                    verified_entries=m * n,
                )
    return entries


def layers(
    gpu: bool = True, kinds: Iterable[tuple[str, str, str]] = (("100", "relu", "fused"),)
) -> list[dict[str, Any]]:
    """One layer of growing width, forward and backward, in `kinds` of batch, activation, form."""
    entries = []
    for where in (_CPU, _GPU) if gpu else (_CPU,):
        device = where["device"]
        for (batch, activation, form), direction, width in product_of(
            kinds, ("forward", "backward"), (16, 64, 256, 1024, 4096)
        ):
            kind = {"batch": batch, "activation": activation, "form": form, "pass": direction}
            flops = {"forward": 2, "backward": 4}[direction] * int(batch) * width**2
            entries += operation(
                layer(width, where, **kind),
                2 * _WAIT[device] + flops / _FLOPS[device],
                10,
                flops=flops,
                bytes=4 * width**2,
                verified_entries=int(batch) * width,
                width=width,
                batch=int(batch),
            )
    return entries


def epochs(modes: list[tuple[str, str]] | None = None) -> list[dict[str, Any]]:
    """Epochs of every network on the CPU and in each of `modes` of the GPU (None: all nine)."""
    entries = []
    for model in synthetic.MODELS:
        for threads in (1, 2):
            entries += synthetic.samples(synthetic.cpu_configuration(model, threads))
        for place, (execution, data) in enumerate(GPU_MODES if modes is None else modes):
            row = synthetic.samples(synthetic.gpu_configuration(model, execution, data))
            slow = 1 + 0.12 * place
            for entry in row:
                for key in ("real_time", "cpu_time"):
                    entry[key] *= slow
            entries += row
    return entries


def sums(device: str = "cpu") -> list[dict[str, Any]]:
    """On the CPU a microsecond, and a nanosecond a byte; on GPUs ten times that."""
    slow = {"cpu": 1, "cuda": 10}[device]
    entries = []
    for size in (4, 4096, 4_194_304):
        configuration = {
            **{"family": "Collective", "op": "allreduce", "bytes": str(size)},
            **{"device": device, "ranks": "2"},
        }
        seconds = slow * (1e-6 + 1e-9 * size)
        entries += operation(configuration, seconds, 1, bytes=size, ranks=2)
    return entries


def everything(gpu: bool = True, machine: str = "synthetic machine") -> dict[str, Any]:
    """A file with rows of all families."""
    entries = peaks(gpu) + copies(gpu) + products(gpu) + layers(gpu) + epochs(None if gpu else [])
    return synthetic.document(entries, machine=machine, gpu="synthetic GPU" if gpu else None)
