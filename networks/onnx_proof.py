# SPDX-License-Identifier: Apache-2.0
"""Whether a network imported from ONNX computes what the file says: onnx's reference evaluator
beside the JSON, built again as PyTorch's modules. Neither is in training, since a file has no
gradients, and need not have statistics of batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import torch
from onnx.reference import ReferenceEvaluator

from networks.from_onnx import Graph
from networks.proof import BATCHES, ENDS, for_bench, rebuilt, seen
from networks.values import BATCH, Refused, in_short
from peers.pytorch.networks import BATCH_NORMS

_TIMES = 4  # as many samples as in the batch of an import
TOLERANCE = 1e-4  # relative to the largest output: the reference computes in float32


def prove(graph: Graph, described: dict[str, Any]) -> float:
    """The largest relative difference of outputs. Refused above the tolerance."""
    steps = graph.build.alive(graph.output)
    parameters = [torch.tensor(weights) for step in steps for weights in step.parameters]
    network = rebuilt(described, parameters).eval()
    norms = [module for module in network.modules() if isinstance(module, BATCH_NORMS)]
    statistics = [
        graph.statistics[s.layer["name"]] for s in steps if s.layer["type"] == "batch_norm"
    ]
    for module, (mean, variance) in zip(norms, statistics, strict=True):
        module.running_mean.copy_(torch.tensor(mean))
        module.running_var.copy_(torch.tensor(variance))
    reference = ReferenceEvaluator(_not_in_training(graph.model))
    random, largest = np.random.default_rng(0), 0.0
    _prove_of_more_samples(graph, reference, random)
    for _ in range(BATCHES):
        given = {
            read.name: _random(graph, place, random) for place, read in enumerate(graph.inputs)
        }
        expected = _run(reference, given)[graph.place]
        numbers = [torch.from_numpy(x) for x in given.values()]
        numbers = [x.double() if x.is_floating_point() else x for x in numbers]
        own_x = for_bench(numbers, list(graph.arguments.values()))
        with torch.no_grad():
            mine = seen(ENDS[graph.end](network(own_x)), graph.output).numpy()
        size = np.abs(expected).max() or 1.0  # a network may start with outputs of zero
        apart = float(np.abs(expected - mine).max() / size)
        if not apart <= TOLERANCE:
            raise Refused(
                "the imported network gives other numbers than onnx's reference evaluator, by "
                f"{apart:.1e} of the largest"
            )
        largest = max(largest, apart)
    return largest


def _prove_of_more_samples(
    graph: Graph, reference: ReferenceEvaluator, random: np.random.Generator
) -> None:
    """Refused where the file reads so many samples of a batch and not all: with a batch as small as
    that of an import nothing shows it. What fails with a larger batch has one of its own."""
    given = {read.name: _random(graph, place, random) for place, read in enumerate(graph.inputs)}
    more = {name: np.concatenate([x] * _TIMES) for name, x in given.items()}
    few = _run(reference, given)[graph.place].shape
    try:
        many = reference.run(None, more)[graph.place].shape
    except Exception:  # whatever a node may raise where its shapes do not fit
        return
    if few and (few == many or (few[0] == BATCH and many[0] != _TIMES * BATCH)):
        raise Refused(
            f"the network uses a part of a batch: of {_TIMES * BATCH} samples it gives {many[0]} "
            "results; export it with all of them"
        )


def _run(reference: ReferenceEvaluator, given: dict[str, Any]) -> list[Any]:
    try:
        return reference.run(None, given)
    except Exception as error:  # of a MaxPool with ceil_mode and padding, in 1.23
        raise Refused(
            "onnx's reference evaluator fails on the file, so nothing proves the import: "
            f"{in_short(error)}"
        ) from error


def _random(graph: Graph, place: int, random: np.random.Generator) -> np.ndarray:
    """Random numbers or tokens for one input."""
    read = graph.inputs[place]
    shape = graph.arguments[read.name].places.shape
    if not graph.tokens[place]:
        return random.standard_normal(shape).astype(np.float32)
    kind = onnx.helper.tensor_dtype_to_np_dtype(read.type.tensor_type.elem_type)
    return random.integers(graph.tokens[place], size=shape).astype(kind)


def _not_in_training(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for node in copy.graph.node:
        if node.op_type == "BatchNormalization":
            kept = [attribute for attribute in node.attribute if attribute.name != "training_mode"]
            del node.attribute[:], node.output[1:]
            node.attribute.extend(kept)
        elif node.op_type == "Dropout":
            del node.input[2:], node.output[1:]
    return copy
