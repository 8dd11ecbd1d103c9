# SPDX-License-Identifier: Apache-2.0
"""What is trained: the networks and their data, as bench has them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crossover_bench.peers.generator import INPUTS, LABELS, uniform

# Of a layer's JSON; all else are its parameters.
OF_ALL = ("name", "type", "inputs", "shared", "requires_grad")


class Unsupported(Exception):  # noqa: N818 - a limit, not a fault
    """What can't be had, in words."""


@dataclass(frozen=True)
class Optimizer:
    kind: str  # sgd, momentum, adam or adamw
    learning_rate: float
    weight_decay: float = 0.0

    @staticmethod
    def of(label: str) -> Optimizer:
        """From bench's words for it: "adamw lr=0.001 weight_decay=0.0001"."""
        kind, *words = label.split()
        values = dict(word.split("=", 1) for word in words)
        if kind not in ("sgd", "momentum", "adam", "adamw"):
            raise ValueError(f"no optimizer is called {kind!r}")
        return Optimizer(kind, float(values["lr"]), float(values.get("weight_decay", 0)))


@dataclass(frozen=True)
class Task:
    """A network with its data: an epoch of `rows` in batches of `batch`, or one step or one pass of
    a batch, for which `rows` is `batch`. `data` is what bench calls the source of its rows."""

    network: dict[str, Any] = field(hash=False)  # docs/networks.md
    data: str
    batch: int
    rows: int
    optimizer: Optimizer
    label: str  # of the optimizer, as bench says it
    params: int
    flops: float  # of an iteration
    copies: int = 1  # that train at once on the same rows; `flops` are those of all

    @staticmethod
    def of(family: str, counted: dict[str, Any] | None, copies: int = 1) -> Task:
        """From what bench tells of a row's network (docs/protocol.md), which is of one copy."""
        if counted is None:
            raise ValueError("nothing is known of its network")
        iteration = {"Minibatch": "step", "Forward": "pass"}.get(family, "epoch")
        return Task(
            network=counted["network"],
            data=counted["data"],
            batch=counted["batch"],
            rows=counted["rows"] if iteration == "epoch" else counted["batch"],
            optimizer=Optimizer.of(counted["optimizer"]),
            label=counted["optimizer"],
            params=counted["params"],
            flops=copies * counted[iteration]["flops"],
            copies=copies,
        )

    @property
    def steps(self) -> int:
        return -(-self.rows // self.batch)

    @property
    def layer_types(self) -> set[str]:
        return {layer["type"] for layer in self.network["layers"]}


def data_of(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels: float64 [rows, ...], or of tokens int64 [places, rows]; and int64 [rows],
    or [places, rows] of one that labels each place. With another loss than cross-entropy, targets
    float64 [rows, outputs] in place of labels. Unsupported where they are not generated here."""
    sample, loss = task.network["input"]["shape"], task.network["loss"]
    classes = task.network.get("classes", 0)
    if task.data == "disc points":
        return _disc(task.rows)
    if task.data == "uniform sentences":
        shape = (task.rows, *sample)
        return _below(classes, INPUTS, shape).T, _below(classes, LABELS, shape).T
    if task.data != "uniform":
        raise Unsupported(f"peers/tasks.py generates no data called {task.data!r}")
    reads_tokens = task.network["input"]["type"] == "i32"
    if reads_tokens:
        inputs = _below(vocabularies(task.network)[:, None], INPUTS, (*sample, task.rows))
    else:
        inputs = 2 * uniform(INPUTS, 0, task.rows * math.prod(sample)) - 1
        inputs = inputs.reshape(task.rows, *sample)
    if loss == "cross_entropy":
        places = tuple(task.network.get("labels", []))
        if reads_tokens:
            return inputs, _below(classes, LABELS, (*places, task.rows))
        return inputs, _below(classes, LABELS, (task.rows, *places)).T
    shape = (task.rows, task.network["outputs"])
    targets = 2 * uniform(LABELS, 0, math.prod(shape)).reshape(shape)
    return inputs, np.floor(targets) if loss == "bce" else targets - 1


def _disc(rows: int) -> tuple[np.ndarray, np.ndarray]:
    points = uniform(INPUTS, 0, 2 * rows).reshape(rows, 2)
    labels = (points**2).sum(axis=1) < 1 / (2 * math.pi)
    return (points - points.mean()) / points.std(ddof=1), labels.astype(np.int64)


def vocabularies(network: dict[str, Any]) -> np.ndarray:
    """Of each token of a sample, how many there are: the rows of the smallest embedding that reads
    it, or as many as classes where none does."""
    count = network["input"]["shape"][0]
    ends, values, last = np.zeros(count, dtype=np.int64), {"input": slice(0, count)}, "input"
    for number, layer in enumerate(network["layers"]):
        read = values.get(layer.get("inputs", [last])[0])
        last = layer.get("name", f"layer {number}")
        if layer["type"] == "slice" and read:
            first = read.start
            values[last] = slice(first + layer.get("from", 0), first + layer["to"])
        elif layer["type"] == "embedding" and read:
            rows, before = layer["num_embeddings"], ends[read]
            ends[read] = np.where(before == 0, rows, np.minimum(before, rows))
    others = network["classes"] if "classes" in network else network["outputs"]
    return np.where(ends == 0, others, ends)


def _below(end: int | np.ndarray, stream: int, shape: tuple[int, ...]) -> np.ndarray:
    """One end, or one that each shape's place has."""
    numbers = np.floor(uniform(stream, 0, math.prod(shape)).reshape(shape) * end)
    return numbers.astype(np.int64)
