# SPDX-License-Identifier: Apache-2.0
"""Result files that nobody measured: every time in them comes from a formula below.

They exist to test the readers, and are put together from entries that have all of a repetition, the
facts of its row included: write() makes a file of them, as_file() its content. The machine is
called "synthetic machine" wherever it is named, and such a file never belongs under results/.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

REPETITIONS = 9
_TIMES = ("real_time", "cpu_time", "time_unit")
# An axis that only a file knows.
TILING = {"key": "tiling", "role": "how", "values": ["plain", "blocked"], "description": "of data"}
ROWS = {"disc": 1000, "heart": 709, "fcn": 4096, "mlp": 1000}
MODELS = {  # model: (parameters, batch size)
    # disc-N doubles from 2 inputs to 2^N, and ends in 2 outputs.
    **{
        f"disc-{depth}": (
            sum(2**k * 2 ** (k + 1) + 2 ** (k + 1) for k in range(1, depth)) + 2 ** (depth + 1) + 2,
            100,
        )
        for depth in range(2, 13)
    },
    "heart": (1522, 10),
    "fcn-r": (14_204_938, 1024),
    "mlp-784-512-10": (407_050, 100),
}


def cpu_configuration(
    model: str, threads: int, batch: int | None = None, family: str = "Epoch"
) -> dict[str, str]:
    """The configuration of one row on the CPU, in the network's own batch or another."""
    return {
        "family": family,
        "model": model,
        "batch": str(batch or MODELS[model][1]),
        "precision": "f32",
        "device": "cpu",
        "execution": "eager",
        "cpu_threads": str(threads),
    }


def gpu_configuration(
    model: str,
    execution: str = "graph",
    data: str = "pinned",
    batch: int | None = None,
    family: str = "Epoch",
) -> dict[str, str]:
    cpu = cpu_configuration(model, 1, batch, family)
    del cpu["cpu_threads"]
    return {**cpu, "device": "cuda", "execution": execution, "data": data}


def row_name(configuration: dict[str, str]) -> str:
    """The benchmark's name that spells `configuration`."""
    rest = [f"{key}:{value}" for key, value in configuration.items() if key != "family"]
    return "/".join([configuration["family"], *rest])


def verified(**compared: Any) -> dict[str, Any]:
    """The verification of a row of which so much was `compared`."""
    checked = {"reference": "float64 interpreter", "tolerance": 1e-5, "relative_error": 3e-8}
    return {**checked, **compared}


def samples(
    configuration: dict[str, str],
    seconds: list[float] | None = None,
    seed: int = 0,
    **changes: Any,
) -> list[dict[str, Any]]:
    """The entries of one row, one for each repetition, each of an instance of its own.

    `seconds` are the times of the repetitions; without them a formula gives launch cost plus
    operations over rate with 3 % noise. `changes` replace or add fields in every entry.
    """
    model = configuration["model"]
    params, batch = changes.get("params") or MODELS[model][0], int(configuration["batch"])
    rows = changes.get("rows") or ROWS[model.split("-")[0]]
    steps = -(-rows // batch)
    flops = 6.0 * params * rows
    if seconds is None:
        threads = int(configuration.get("cpu_threads", "0"))
        if threads:
            centre = steps * (4e-6 + 2e-6 * threads) + flops / (5e10 * threads**0.9)
        else:
            centre = steps * 60e-6 + flops / 5e12
        noise = np.random.default_rng([seed, params, threads]).gamma(2.0, 0.015, REPETITIONS)
        seconds = (centre * (1.0 + noise)).tolist()
    name = row_name(configuration)
    common: dict[str, Any] = {
        "name": name,
        "iterations": 12,
        "time_unit": "ms",
        "configuration": configuration,
        "verification": verified(steps=steps, steps_of=steps),
        "params": params,
        "batch": batch,
        "rows": rows,
        "steps": steps,
        "flops": flops,
        "first_call_seconds": 0.05,
        "loss_first_epoch": 0.66,
    }
    if "cpu_threads" in configuration:
        common["cpu_threads"] = int(configuration["cpu_threads"])
    return [
        {**common, **dict.fromkeys(_TIMES[:2], value * 1e3), "instance": instance, **changes}
        for instance, value in enumerate(seconds)
    ]


def operation(
    configuration: dict[str, str], seconds: Iterable[float], count: int = 1, **facts: Any
) -> list[dict[str, Any]]:
    """The entries of a row that does `count` operations in an iteration, of so many `seconds` in
    each of its repetitions; `facts` stand in every entry."""
    return [
        {
            "name": row_name(configuration),
            "iterations": 5,
            **dict.fromkeys(_TIMES[:2], each * count * 1e3),
            "time_unit": "ms",
            "configuration": configuration,
            "verification": verified(reference="exact", tolerance=0, relative_error=0),
            "count": count,
            **facts,
        }
        for each in seconds
    ]


def failure(configuration: dict[str, str], message: str, outcome: str = "failed") -> dict[str, Any]:
    """The entry of a row that has no result, for the reason `message`."""
    return {
        "name": row_name(configuration),
        "configuration": configuration,
        "error_message": message,
        "outcome": outcome,
    }


def document(
    entries: list[dict[str, Any]],
    machine: str = "synthetic machine",
    date: str = "2020-01-01T00:00:00+00:00",
    complete: bool = True,
    gpu: str | None = None,
    *,
    axes: tuple[dict[str, Any], ...] = (),
) -> dict[str, Any]:
    """A whole result file around `entries`; `axes` are those that it describes."""
    content: dict[str, Any] = {
        "context": {
            "date": date,
            "json_schema_version": 1,
            "load_avg": [0.1, 0.2, 0.3],
            "crossover": {
                "schema_version": 2,
                "complete": complete,
                "machine": {
                    "id": machine,
                    "cpu": {
                        "model": "synthetic CPU",
                        "sockets": 1,
                        "cores": 2,
                        "threads": 2,
                        "numa_nodes": 1,
                        "governor": None,
                        "simd": "synthetic",
                    },
                    "memory_bytes": 16_000_000_000,
                    "gpu": {"name": gpu} if gpu else None,
                    "gpu_reason": "" if gpu else "none (synthetic)",
                    "os": "synthetic OS",
                    "kernel": "0.0",
                },
                "software": {
                    "commit": "",
                    "dirty": False,
                    "compiler": "synthetic",
                    "flags": "-O3",
                    "build_type": "Release",
                    "libraries": {"benchmark": "1.7.1"},
                },
                "configuration": {
                    "command": ["bench", "--sweep=default"],
                    "sweep": "default",
                    "repetitions": REPETITIONS,
                    "min_time_seconds": 0.1,
                    "environment": {"OMP_NUM_THREADS": "2"},
                    "flush_to_zero": True,
                    "data": "generated",
                },
                "load_average_end": [0.1, 0.2, 0.3],
            },
        },
        "benchmarks": entries,
    }
    if axes:
        content["context"]["crossover"]["axes"] = list(axes)
    return content


def sweep(threads: tuple[int, ...] = (1, 2), gpu: bool = True) -> dict[str, Any]:
    """A file as a default sweep would write it, with one flagged and one skipped row."""
    entries: list[dict[str, Any]] = []
    for model in MODELS:
        for count in threads:
            configuration = cpu_configuration(model, count)
            flags = [f"oversubscribed: {count} threads on 2 cores"] if count > 2 else []
            if model == "fcn-r" and count == 1:
                entries.append(failure(configuration, "too little memory: 9 GB needed", "skipped"))
                continue
            entries += samples(configuration, warnings=flags)
        if gpu:
            entries += samples(gpu_configuration(model))
    return document(entries, gpu="synthetic GPU" if gpu else None)


def as_file(content: dict[str, Any]) -> dict[str, Any]:
    """`content` with its rows in `rows`, and what another run would measure in `benchmarks`."""
    if "rows" in content or "benchmarks" not in content:
        return content
    repetitions: dict[str, list[dict[str, Any]]] = {}
    for entry in content["benchmarks"]:
        repetitions.setdefault(entry["name"], []).append(entry)
    rows, benchmarks = [], []
    for entries in repetitions.values():
        measured = [key for key in entries[0] if _is_measured(key, entries)]
        facts = {key: value for key, value in entries[0].items() if key not in measured}
        rows.append(facts if "outcome" in facts else {**facts, "repetitions": len(entries)})
        for place, entry in enumerate(() if "outcome" in facts else entries):
            varying = {
                key: entry[key]
                for key in measured
                if key in entry and (place == 0 or key in _TIMES or _varies(key, entries))
            }
            benchmarks.append({"name": entry["name"], "run_type": "iteration", **varying})
    plain = {**content, "rows": rows, "benchmarks": benchmarks}
    return json.loads(json.dumps(plain, default=float))  # without numpy's numbers


def _is_measured(key: str, entries: list[dict[str, Any]]) -> bool:
    if isinstance(entries[0][key], str | list | dict):
        return key in _TIMES
    return "second" in key or key in (*_TIMES, "iterations", "instance") or _varies(key, entries)


def _varies(key: str, entries: list[dict[str, Any]]) -> bool:
    return any(entry.get(key) != entries[0][key] for entry in entries)


def write(path: Path, content: dict[str, Any]) -> Path:
    """Writes `content` as a file to `path`, with the folders it needs; returns `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_file(content), indent=1), encoding="utf-8")
    return path
