# SPDX-License-Identifier: Apache-2.0
"""The end of a network: what its loss has, and the last layer of one that gives images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from crossover_bench.networks.builder import LOSSES, Builder
from crossover_bench.networks.values import Refused, Value


@dataclass(frozen=True)
class Ending:
    """The place of a layer that the network's loss needs."""

    name: str = "pixels"

    def refused(self, what: str) -> Refused:
        return Refused(f"the network's output: {what}")


_OF_LOSS = {"cross_entropy": ("softmax", "log_softmax"), "bce": ("sigmoid",), "mse": ()}


def without_loss(build: Builder, value: Value, loss_function: str) -> tuple[Value, str]:
    """Where the last layer is part of the loss: what it reads, and its type. Else the output and
    ""."""
    loss, step = LOSSES[loss_function], build.steps.get(value.layer)
    kind = step.layer["type"] if step else ""
    if step and value.layer in build.log_softmaxes:
        step, kind = build.steps[step.reads[0]], "log_softmax"
    if step and kind in _OF_LOSS[loss] and not {"num_heads", "causal"} & step.layer.keys():
        if kind != "log_softmax":
            build.notes.append(
                f"the {kind} at its end is left out, because the loss {loss_function} has one; a "
                "loss of logits behind it would apply it twice"
            )
        read = step.reads[0]
        before = build.input if read == "input" else build.steps[read].gives
        return before.seen_as(value.places), kind
    if loss_function == "nll":
        raise Refused(
            "the network's output is no log_softmax, which nll reads; "
            "--loss-function=cross-entropy reads logits"
        )
    return value, ""


def ended(build: Builder, value: Value, loss_function: str) -> Value:
    """An image or a sequence at the end of a network as its loss reads it: a row for each pixel,
    which has a label, or a row of all numbers of a sample, whose order a mean over all of them does
    not see. Other outputs stay as they are."""
    is_classes = LOSSES[loss_function] == "cross_entropy"
    if not is_classes and value.time_first and len(value.shape) == 3 and value.is_whole:
        return build.row_of_sequence(Ending("steps"), value)
    is_image = len(value.shape) == 4 and not value.time_first and value.layer != "input"
    if not is_image or not value.is_whole:
        return value
    shape = value.places.shape
    if is_classes:
        is_in_order = np.array_equal(value.places.ravel(), value.plain.places.ravel())
        if value.image is None or not is_in_order:
            return value
        rows = build.layer(Ending(), "to_sequence", [value.plain])
        return rows.seen_as(rows.places.transpose(1, 2, 0).reshape(shape))
    flat = build.layer(Ending(), "flatten", [value.plain])
    return flat.seen_as(value.places)


class Graph(Protocol):
    """A graph of PyTorch's or of ONNX's."""

    build: Builder
    arguments: dict[str, Any]  # Values
    output: Value
    end: str


def described(graph: Graph, name: str, loss_function: str) -> dict[str, Any]:
    """The JSON of the network as its loss reads it. The graph ends there from now on."""
    value, graph.end = without_loss(graph.build, graph.output, loss_function)
    graph.output = ended(graph.build, value, loss_function)
    return graph.build.described(name, graph.output, loss_function)
