# SPDX-License-Identifier: Apache-2.0
"""What is trained: the networks and their data, as bench has them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from peers.generator import INPUTS, LABELS, uniform

_MLP = {
    "heart": (29, 32, 16, 2),
    "fcn-r": (784, 2048, 4096, 1024, 10),
    "fcn-s": (26752, 2048, 2048, 2048, 26752),
}
_IMAGES = {  # pixels of a side, classes
    "alexnet-r": (32, 10),
    "alexnet-s": (224, 1000),
    "resnet-56": (32, 10),
    "resnet-50": (224, 1000),
}
TOKENS, VOCABULARY = 32, 10000  # of a sequence of lstm


@dataclass(frozen=True)
class Optimizer:
    kind: str  # sgd or adamw
    learning_rate: float
    weight_decay: float = 0.0

    @staticmethod
    def of(label: str) -> Optimizer:
        """From bench's words for it: "adamw lr=0.001 weight_decay=0.0001"."""
        kind, *words = label.split()
        values = dict(word.split("=", 1) for word in words)
        if kind not in ("sgd", "adamw"):
            raise ValueError(f"no optimizer is called {kind!r}")
        return Optimizer(kind, float(values["lr"]), float(values.get("weight_decay", 0)))


@dataclass(frozen=True)
class Task:
    """A network with its data: an epoch of `rows` in batches of `batch`, or one step of a batch,
    for which `rows` is `batch`."""

    model: str
    batch: int
    rows: int
    optimizer: Optimizer
    label: str  # of the optimizer, as bench says it
    params: int
    flops: float  # of an iteration

    @staticmethod
    def of(family: str, counted: dict[str, Any]) -> Task:
        """From what `bench --cost` prints."""
        is_step = family == "Minibatch"
        return Task(
            model=counted["model"],
            batch=counted["batch"],
            rows=counted["batch"] if is_step else counted["rows"],
            optimizer=Optimizer.of(counted["optimizer"]),
            label=counted["optimizer"],
            params=counted["params"],
            flops=counted["step" if is_step else "epoch"]["flops"],
        )

    @property
    def steps(self) -> int:
        return -(-self.rows // self.batch)


def mlp_of(model: str) -> tuple[list[int], str] | None:
    """Widths and activation of a fully connected network; None where it is none."""
    if model in _MLP:
        return list(_MLP[model]), "sigmoid" if model.startswith("fcn") else "relu"
    if disc := re.fullmatch(r"disc-(\d+)(?:x([\d.]+))?", model):
        ten_thousandths = round(float(disc[2] or 1) * 10000)
        hidden = [((ten_thousandths << i) + 5000) // 10000 for i in range(2, int(disc[1]) + 1)]
        return [2, *hidden, 2], "relu"
    if own := re.fullmatch(r"mlp((?:-\d+)+)(-sigmoid)?", model):
        return [int(width) for width in own[1][1:].split("-")], "sigmoid" if own[2] else "relu"
    return None


def data_of(model: str, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels: float64 [rows, ...] and int64 [rows]; of lstm tokens, int64 [time, rows]
    each. ValueError where the network is unknown."""
    if model.startswith("disc-"):
        return _disc(rows)
    if model == "lstm":
        return _tokens(INPUTS, rows), _tokens(LABELS, rows)
    if model in _IMAGES:
        side, classes = _IMAGES[model]
        return _uniform_rows((3, side, side), rows, classes)
    if known := mlp_of(model):
        widths, _ = known
        return _uniform_rows((widths[0],), rows, widths[-1])
    raise ValueError(f"PyTorch's side has no network {model!r}; add it to peers/tasks.py")


def _disc(rows: int) -> tuple[np.ndarray, np.ndarray]:
    points = uniform(INPUTS, 0, 2 * rows).reshape(rows, 2)
    labels = (points**2).sum(axis=1) < 1 / (2 * math.pi)
    return (points - points.mean()) / points.std(ddof=1), labels.astype(np.int64)


def _uniform_rows(
    sample: tuple[int, ...], rows: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    inputs = 2 * uniform(INPUTS, 0, rows * math.prod(sample)) - 1
    labels = np.floor(uniform(LABELS, 0, rows) * classes).astype(np.int64)
    return inputs.reshape(rows, *sample), labels


def _tokens(stream: int, rows: int) -> np.ndarray:
    tokens = np.floor(uniform(stream, 0, TOKENS * rows) * VOCABULARY)
    return tokens.astype(np.int64).reshape(TOKENS, rows)
