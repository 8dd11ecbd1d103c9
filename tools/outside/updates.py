# SPDX-License-Identifier: Apache-2.0
"""The product's updates of parameters (include/crossover/operations/update.h) on the numbers of
others: ONNX's training cases, and PyTorch's optimizers with the settings of its own tests."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from torch.testing._internal.common_optimizers import optim_db

from crossover_bench.place import ROOT
from tools.outside.onnx_nodes import cases, is_of_training
from tools.outside.results import Suite, Verdict

_SOURCE = Path(__file__).with_name("updates.cpp")
_STEPS, _COUNT = 10, 64
_EXACT = 1e-12  # relative to the largest: both compute in double
_TOLERANCE = 1e-6  # ONNX's numbers are float32's


class Updates:
    """The program, compiled."""

    def __init__(self, folder: Path) -> None:
        self._program = folder / "updates"
        compiler = shlex.split(os.environ.get("CXX") or "c++")
        include = ["-std=c++20", "-O1", f"-I{ROOT / 'include'}"]
        subprocess.run([*compiler, *include, _SOURCE, "-o", self._program], check=True)

    def of(self, settings: Sequence[str | float], *columns: np.ndarray) -> np.ndarray:
        """[parameter and states, count] of parameters, gradients and states."""
        words = " ".join(map(str, settings))
        lines = [
            f"{words} {' '.join(repr(float(x)) for x in row)}" for row in zip(*columns, strict=True)
        ]
        done = subprocess.run(
            [self._program], input="\n".join(lines), capture_output=True, text=True, check=True
        )
        return np.array([list(map(float, line.split())) for line in done.stdout.splitlines()]).T


def suites() -> Iterator[Suite]:
    with tempfile.TemporaryDirectory() as folder:
        updates = Updates(Path(folder))
        yield _of_onnx(updates)
        yield _of_torch(updates)


def _apart(expected: np.ndarray, given: np.ndarray) -> float:
    return float(np.abs(expected - given).max() / (np.abs(expected).max() or 1.0))


# ---- ONNX


def _of_onnx(updates: Updates) -> Suite:
    verdicts = []
    for case in cases():
        if is_of_training(case):
            verdicts.append(_of_case(updates, case))
    how = (
        f"the update in double beside the case's float32; to {_TOLERANCE:g} of the largest. The L2 "
        "norm of a case is added to its gradient beforehand"
    )
    return Suite("onnx, training cases", onnx.__version__, how, verdicts)


def _of_case(updates: Updates, case: Any) -> Verdict:
    node = case.model.graph.node[0]
    set_to = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    inputs, outputs = case.data_sets[0]
    rate, step, *tensors = (x.astype(np.float64) for x in inputs)
    lists = {"Momentum": 3, "Adam": 4}.get(node.op_type)
    if not lists:
        return Verdict(case.name, "refused", f"there is no rule {node.op_type}")
    if set_to.get("mode", b"standard") != b"standard":
        return Verdict(case.name, "refused", f"there is no rule {set_to['mode'].decode()}")
    count = len(tensors) // lists
    largest = 0.0
    for at in range(count):
        w, g, *states = (tensors[part * count + at] for part in range(lists))
        expected = [outputs[part * count + at] for part in range(lists - 1)]
        g = g + set_to.get("norm_coefficient", 0.0) * w
        if node.op_type == "Momentum":
            # Its first step takes the gradient whole.
            beta = set_to["beta"] if step > 0 else 1.0
            settings: list[float | str] = ["momentum", float(rate), set_to["alpha"]]
            made = updates.of(settings, w, beta * g, *states)
        else:
            made = updates.of(_of_adam(set_to, float(rate), int(step)), w, g, *states)
        largest = max(largest, *map(_apart, expected, made[: lists - 1]))
    if not largest <= _TOLERANCE:
        return Verdict(case.name, "different", f"by {largest:.1e} of the largest", largest)
    return Verdict(case.name, "equal", apart=largest)


def _of_adam(set_to: dict[str, Any], rate: float, step: int) -> list[float | str]:
    """A step 0 of ONNX's has no correction of the bias, which is ours at a step without end."""
    betas = (set_to.get("alpha", 0.9), set_to.get("beta", 0.999))
    endless = 10**6
    return ["adamw", rate, *betas, set_to.get("epsilon", 1e-6), 0.0, step or endless]


# ---- PyTorch


def _of_torch(updates: Updates) -> Suite:
    verdicts = []
    for entry in optim_db:
        kind = entry.optim_cls
        for number, sample in enumerate(entry.optim_inputs_func(device="cpu")):
            name = f"{kind.__name__}-{number}"
            settings = _settings(kind, sample.kwargs)
            if isinstance(settings, str):
                verdicts.append(Verdict(name, "refused", settings))
            else:
                verdicts.append(_of_optimizer(updates, name, kind, sample.kwargs, settings))
    how = f"{_STEPS} steps of {_COUNT} drawn parameters in float64; to {_EXACT:g} of the largest"
    return Suite("torch, optim_db", torch.__version__, how, verdicts, "settings of optimizers")


def _settings(kind: Any, asked: dict[str, Any]) -> list[float | str] | str:
    """The words of updates.cpp, without the step; or why there are none."""
    rate = float(asked.get("lr", 1e-3))
    left = {key: value for key, value in asked.items() if key != "lr" and value}
    if kind is torch.optim.SGD:
        momentum = float(left.pop("momentum", 0.0))
        words: list[float | str] = ["momentum", rate, momentum]
    elif kind in (torch.optim.Adam, torch.optim.AdamW):
        is_apart = kind is torch.optim.AdamW
        decay = float(left.pop("weight_decay", 1e-2)) if is_apart else 0.0
        words = ["adamw", rate, 0.9, 0.999, 1e-8, decay]
    else:
        return f"there is no rule {kind.__name__}"
    return f"{kind.__name__} has no {' and no '.join(left)}" if left else words


def _of_optimizer(
    updates: Updates, name: str, kind: Any, asked: dict[str, Any], settings: list[float | str]
) -> Verdict:
    random = np.random.default_rng(0)
    theirs = torch.nn.Parameter(torch.from_numpy(random.standard_normal(_COUNT)))
    optimizer = kind([theirs], **asked)
    mine = theirs.detach().numpy().copy()
    states = [np.zeros(_COUNT) for _ in range(1 if settings[0] == "momentum" else 2)]
    largest = 0.0
    for step in range(1, _STEPS + 1):
        gradient = random.standard_normal(_COUNT)
        theirs.grad = torch.from_numpy(gradient.copy())
        optimizer.step()
        at = [step] if settings[0] == "adamw" else []
        mine, *states = updates.of([*settings, *at], mine, gradient, *states)[: 1 + len(states)]
        largest = max(largest, _apart(theirs.detach().numpy(), mine))
    if not largest <= _EXACT:
        return Verdict(name, "different", f"by {largest:.1e} of the largest", largest)
    return Verdict(name, "equal", apart=largest)
