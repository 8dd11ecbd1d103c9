# SPDX-License-Identifier: Apache-2.0
"""A result file of a machine that obeys a formula: ceilings, profiles and bounds included.

Like synthetic.py's, its figures were measured by nobody.
"""

from typing import Any

import numpy as np

from crossover_bench.tests import synthetic

# Per second, of the synthetic CPU's thread and of the synthetic GPU.
CPU_FLOPS, CPU_BYTES = 5e10, 1e10
GPU_FLOPS, GPU_BYTES, GPU_COPY = 1e13, 1e12, 1e10
# What a launch costs, in seconds, and what the CPU's call of a product and a row of the loss do.
LAUNCH = {"eager": 4e-6, "graph": 1e-6}
PRODUCT, LOGIT = 1.5e-6, 2e-8
# Of the ceilings that products and memory reach.
EFFICIENCY = 0.7
WAIT = 1e-5  # for the GPU, once an epoch
LAYERS = {"heart": 3, "fcn-r": 3, "mlp-784-512-10": 2}
FEATURES = {"heart": 29, "fcn-r": 26752, "mlp-784-512-10": 784}


def counts(model: str) -> dict[str, float]:
    """What an epoch of `model` costs, roughly: enough to obey a formula."""
    params, batch = synthetic.MODELS[model]
    name = model.split("-", maxsplit=2)
    return work(
        params=params,
        batch=batch,
        rows=synthetic.ROWS[name[0]],
        layers=LAYERS.get(model) or int(name[1]),
        features=FEATURES.get(model, 2),
    )


def work(*, params: int, batch: int, rows: int, layers: int, features: int) -> dict[str, float]:
    """The same of any network; `features` are the numbers in one sample."""
    steps = -(-rows // batch)
    return {
        "params": params,
        "batch": batch,
        "rows": rows,
        "steps": steps,
        "logits": 2 * rows,
        "flops": 6.0 * params * rows,
        "bytes": 20.0 * params * steps + 40.0 * rows * params**0.5,
        "products": (3 * layers - 1) * steps,
        "cpu_launches": (5 * layers - 1) * steps,
        "gpu_launches": (4 * layers - 1) * steps,
        "bytes_to_device": rows * (4.0 * features + 4),
    }


def cost(model: str, what: dict[str, float]) -> dict[str, Any]:
    """What bench --cost would print, as far as it is read."""
    modes = dict.fromkeys(("resident", "pageable", "pinned", "pinned-async"), what["gpu_launches"])
    return {
        "model": model,
        **{name: what[name] for name in ("params", "batch", "rows", "steps", "logits")},
        "precision": "f32",
        "accumulate": 1,
        "epoch": {
            **{name: what[name] for name in ("flops", "bytes", "products", "bytes_to_device")},
            "device_launches": {
                "cpu": what["cpu_launches"],
                "cuda": {"eager": modes, "graph": modes},
            },
        },
    }


def profile(what: dict[str, float], configuration: dict[str, str]) -> dict[str, float]:
    """Seconds by part of an epoch, as the formula has them."""
    threads = int(configuration.get("cpu_threads", "0"))
    if threads:
        return {
            "product": PRODUCT * what["products"]
            + what["flops"] / (CPU_FLOPS * threads * EFFICIENCY),
            "elementwise": what["bytes"] / (CPU_BYTES * threads),
            "loss": LOGIT * what["logits"],
        }
    copied = configuration["data"] != "resident"
    return {
        "product": what["flops"] / (GPU_FLOPS * EFFICIENCY),
        "elementwise": what["bytes"] / GPU_BYTES,
        "loss": 1e-9 * what["rows"],
        "launch": LAUNCH[configuration["execution"]] * what["gpu_launches"],
        **({"copy_to_device": what["bytes_to_device"] / GPU_COPY} if copied else {}),
        "synchronization": WAIT,
    }


def epoch(
    model: str,
    configuration: dict[str, str],
    *,
    noise: float = 0.02,
    seed: int = 0,
    first_call_seconds: float = 0.05,
) -> list[dict[str, Any]]:
    """The repetitions of one Epoch row. `noise` is the standard deviation of the logarithm of the
    row's time, and a tenth of it that of a repetition's."""
    what = counts(model)
    parts = profile(what, configuration)
    on_cpu = configuration["device"] == "cpu"
    generator = np.random.default_rng([seed, int(what["params"]), len(str(configuration))])
    centre = sum(parts.values()) * np.exp(noise * generator.standard_normal())
    spread = 0.1 * noise * generator.standard_normal(synthetic.REPETITIONS)
    seconds = (centre * np.exp(spread)).tolist()
    more: dict[str, Any] = {f"seconds_{part}": value for part, value in parts.items()}
    if not on_cpu and configuration["data"] != "resident":
        more["bytes_to_device"] = what["bytes_to_device"]
    return synthetic.samples(
        configuration,
        seconds,
        bytes=what["bytes"],
        products=what["products"],
        logits=what["logits"],
        launches=what["cpu_launches" if on_cpu else "gpu_launches"],
        first_call_seconds=first_call_seconds,
        minimum_work={"flops": what["flops"]},
        **more,
    )


def peaks(threads: tuple[int, ...], gpu: bool) -> list[dict[str, Any]]:
    """Peak rows of arithmetic, memory and copies."""
    entries = []
    for count in threads:
        where = {"device": "cpu", "cpu_threads": str(count)}
        entries += _peak(
            {"quantity": "fma", "precision": "f32", **where}, "flops", CPU_FLOPS * count
        )
        entries += _peak({"quantity": "triad", **where}, "bytes", CPU_BYTES * count)
    if gpu:
        where = {"device": "cuda"}
        entries += _peak({"quantity": "fma", "precision": "f32", **where}, "flops", GPU_FLOPS)
        entries += _peak({"quantity": "triad", **where}, "bytes", GPU_BYTES)
        entries += _peak({"quantity": "copy", "direction": "h2d", **where}, "bytes", GPU_COPY)
    return entries


def _peak(configuration: dict[str, str], counter: str, rate: float) -> list[dict[str, Any]]:
    facts: dict[str, Any] = {counter: rate * 1e-3}
    return synthetic.operation({"family": "Peak", **configuration}, [1e-3] * 3, **facts)


def machine(
    *,
    threads: tuple[int, ...] = (1, 2),
    modes: tuple[tuple[str, str], ...] = (("eager", "resident"), ("graph", "resident")),
    models: tuple[str, ...] = tuple(synthetic.MODELS),
    noise: float = 0.02,
    seed: int = 0,
) -> dict[str, Any]:
    """A file with every model on all `threads` and in all `modes` (execution, data) of a GPU."""
    entries = peaks(threads, bool(modes))
    for model in models:
        for count in threads:
            entries += epoch(
                model, synthetic.cpu_configuration(model, count), noise=noise, seed=seed
            )
        for execution, data in modes:
            configuration = synthetic.gpu_configuration(model, execution, data)
            entries += epoch(model, configuration, noise=noise, seed=seed, first_call_seconds=0.9)
    return synthetic.document(entries, gpu="synthetic GPU" if modes else None)
