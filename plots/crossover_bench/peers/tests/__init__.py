# SPDX-License-Identifier: Apache-2.0
"""What tests of peers share."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crossover_bench.peers.generator import PARAMETERS, uniform
from crossover_bench.peers.rows import Prepared, repetition
from crossover_bench.peers.tasks import Optimizer, Task
from crossover_bench.peers.verification import Mismatch, References, Training, verified

FIXTURES = Path(__file__).resolve().parents[4] / "tests" / "fixtures"
NETWORKS: dict[str, Any] = json.loads((FIXTURES / "networks.json").read_text("utf-8"))


def ours(model: str, **changes: str) -> dict[str, str]:
    """The configuration of a row of bench's."""
    return {
        "family": "Epoch",
        "model": model,
        "batch": "100",
        "precision": "f32",
        "device": "cpu",
        "execution": "eager",
        "cpu_threads": "1",
        **changes,
    }


def configuration_of(name: str) -> dict[str, str]:
    """Of the row of that name."""
    family, *pairs = name.split("/")
    return {"family": family, **dict(pair.split(":", 1) for pair in pairs)}


def trained(model: str) -> dict[str, Any]:
    """What bench tells of a network beside its costs."""
    data = "disc points" if model.startswith("disc-") else "uniform"
    if model.startswith(("gpt-", "microgpt-")):
        data = "uniform sentences"
    return {"network": NETWORKS[model], "data": data}


CPU = {"device": "cpu", "execution": "eager", "precision": "f32"}
SIZES = {"batch": 100, "rows": 1000, "params": 230, "flops": 1e6}
DISC = Task(**trained("disc-4"), **SIZES, optimizer=Optimizer("sgd", 0.1), label="")
HEART = {  # what bench tells of a row of it
    **trained("heart"),
    **{"params": 1522, "batch": 10, "rows": 45, "epoch": {"flops": 1e5}},
    "optimizer": "adamw lr=0.001 weight_decay=0.0001",
}
CASES = [
    case
    for name in ("golden_mlp.json", "golden_networks.json")
    for case in json.loads((FIXTURES / name).read_text("utf-8"))["cases"]
]
OWN_WIDTHS = {  # as bench calls them
    "sigmoid-small": "mlp-20-33-65-7-sigmoid",
    "gelu-momentum": "mlp-20-33-65-7-gelu",
    "silu-sgd": "mlp-9-24-24-3-silu-mse",
}
SMALL = ("policy", "surrogate", "matrix-4", "lenet-5")


def task_of(case: dict[str, Any]) -> Task | None:
    """Of a golden case that is a network with its own data; None of others."""
    name = case["name"]
    known = ("disc-", "fcn-r", "alexnet-r", "resnet-56", "gpt-", "microgpt-", "vit-ti")
    name = OWN_WIDTHS.get(name, name)
    if "network" in case:
        told = {"network": case["network"], "data": "uniform"}
    elif name == "gpt-short" or (
        not name.startswith(known) and name not in (*OWN_WIDTHS.values(), *SMALL, "lstm")
    ):
        return None
    else:
        told = trained(name)
    decay = 1e-4 if case["optimizer"] == "adamw" else 0.0
    optimizer = Optimizer(case["optimizer"], case["lr"], decay)
    sizes = {key: case[key] for key in ("batch", "rows", "params")}
    return Task(**told, **sizes, optimizer=optimizer, label="", flops=1.0)


GOLDEN = [(case, task) for case in CASES if (task := task_of(case))]


def is_golden(
    case: dict[str, Any], task: Task, losses: list[float], parameters: list[np.ndarray]
) -> None:
    """Asserts that a training in float64 is the golden case's."""
    assert losses == pytest.approx(case["losses"], rel=1e-9)
    assert sum(values.size for values in parameters) == case["params"]
    counted = [values.ravel() for values in parameters]
    if "attention" in task.layer_types:  # without the bias of keys: docs/golden.md
        for at in range(1, len(parameters)):
            size, third = counted[at].size, counted[at].size // 3
            if parameters[at - 1].shape == (size, third):
                counted[at] = np.delete(counted[at], slice(third, 2 * third))
    flat = np.concatenate(counted)
    assert flat.sum() == pytest.approx(case["params_sum_after"], rel=1e-7)
    assert np.linalg.norm(flat) == pytest.approx(case["params_norm_after"], rel=1e-9)


def deep(layers: int = 32, norm: str = "batch_norm") -> Task:
    """Of normalized convolutions on few rows, where a rounding grows from layer to layer."""
    block = [
        {"type": "conv2d", "out_channels": 8, "kernel_size": 3, "padding": 1},
        {"type": norm, **({"num_groups": 4} if norm == "group_norm" else {})},
        {"type": "relu"},
    ]
    network = {
        "name": "deep",
        "input": {"shape": [3, 4, 4], "type": "f32"},
        "classes": 4,
        "loss": "cross_entropy",
        "layers": [*(block * layers), {"type": "flatten"}, {"type": "linear", "out_features": 4}],
    }
    named = [{"name": f"layer {i}", **layer} for i, layer in enumerate(network["layers"])]
    network["layers"] = named
    return Task(network, "uniform", 2, 4, Optimizer("sgd", 0.05), "", 1, 1e6)


def of_images() -> dict[str, Any]:
    """What bench tells of a network in use."""
    layers = [
        {"name": "a", "type": "conv2d", "out_channels": 4, "kernel_size": 3},
        {"name": "b", "type": "batch_norm"},
        {"name": "c", "type": "relu"},
        {"name": "d", "type": "dropout", "p": 0.5},
        {"name": "e", "type": "flatten"},
        {"name": "f", "type": "linear", "out_features": 3},
    ]
    network = {
        "name": "n",
        "loss": "cross_entropy",
        "layers": layers,
        "input": {"type": "f32", "shape": [2, 5, 5]},
        "classes": 3,
    }
    return {
        "network": network,
        "data": "uniform",
        "batch": 3,
        "rows": 30,
        "optimizer": "sgd lr=0.1",
        "params": 4 * 2 * 9 + 4 + 8 + 36 * 3 + 3,
        "pass": {"flops": 5e3},
    }


def copies_are_verified(
    make: Callable[[Task], Training],
    configuration: dict[str, str],
    references: References,
    task: Task,
    spoil: Callable[[Any], None],
) -> None:
    """Asserts that three copies are what each is alone in float64, and that they are refused once
    `spoil` was at the last one."""
    training = make(replace(task, copies=3, flops=3 * task.flops))
    checked, loss = verified(training, configuration, references)
    assert checked["steps"] == checked["steps_of"] == task.steps
    assert 0 < checked["relative_error"] <= checked["tolerance"]
    assert 0 < checked["parameter_error"] <= checked["parameter_tolerance"]
    assert loss == pytest.approx(np.mean(training.run_steps(task.steps)))
    training.run_steps(0)
    starts = 2 * uniform(PARAMETERS, 0, 3 * task.params) - 1  # of all, not times their bounds
    flat = np.concatenate([values.ravel() for values in training.parameters()])
    assert np.array_equal(np.sign(flat), np.sign(starts))
    spoil(training)
    with pytest.raises(Mismatch, match="of copy 3 "):
        verified(training, configuration, references)


def is_verified_and_timed(prepared: Prepared, reference: str, spoil: Callable[[Any], None]) -> None:
    """Asserts it of passes of of_images(), and that they are refused once `spoil` was at them."""
    checked = prepared.facts["verification"]
    assert checked["reference"] == f"{reference} in float64"
    assert checked["entries"] == checked["entries_of"] == 9
    assert 0 < checked["relative_error"] <= checked["tolerance"]
    times = repetition(prepared, 1e-3)
    assert 0 < times["latency_p50_seconds"] <= times["latency_max_seconds"]
    assert times["latency_passes"] >= 20
    spoil(prepared.work)
    with pytest.raises(Mismatch, match="the outputs differ from float64"):
        repetition(prepared, 1e-3)


# The same numbers stand in tests/forward_test.cpp.
OUTPUTS = [
    pytest.approx([0.0279358404789, -0.242967570016, -0.398105105315], abs=1e-11),
    pytest.approx([-0.223550004056, -0.375574303393, -0.500092879876], abs=1e-11),
    pytest.approx([-0.0950225236163, -0.259074703824, -0.211076447412], abs=1e-11),
]
