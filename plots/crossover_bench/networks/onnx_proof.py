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

from crossover_bench.networks.from_onnx import Graph
from crossover_bench.networks.proof import (
    BATCHES,
    ENDS,
    MORE,
    difference_of_more,
    for_bench,
    rebuilt,
    seen,
)
from crossover_bench.networks.values import BATCH, Refused, in_short
from crossover_bench.peers.pytorch.networks import BATCH_NORMS

TOLERANCE = 1e-4  # relative to the largest output: the reference computes in float32


def built_again(graph: Graph, described: dict[str, Any]) -> torch.nn.Module:
    """The imported network as PyTorch's modules in float64, with the file's weights and statistics,
    not in training."""
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
    return network


def prove(graph: Graph, described: dict[str, Any]) -> tuple[float, str]:
    """The largest relative difference of outputs, and what is not proved. Refused above the
    tolerance."""
    network = built_again(graph, described)
    reference = ReferenceEvaluator(_not_in_training(graph.model))
    random, largest = np.random.default_rng(0), 0.0
    shape: tuple[int, ...] = ()  # of an import's batch of results
    for _ in range(BATCHES):
        given = {
            read.name: _random(graph, place, random) for place, read in enumerate(graph.inputs)
        }
        expected = _run(reference, given)[graph.place]
        if not np.isfinite(expected).all():
            raise Refused(
                "on random numbers the file gives some that are infinite or none at all, so "
                "nothing proves the import"
            )
        shape = expected.shape
        own_x = for_bench(_numbers(given), list(graph.arguments.values()))
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
    return largest, _prove_of_more(graph, network, reference, random, shape)


def _prove_of_more(
    graph: Graph,
    network: torch.nn.Module,
    reference: ReferenceEvaluator,
    random: np.random.Generator,
    few: tuple[int, ...],
) -> str:
    """Refused where the file gives other numbers for more samples than an import's batch has.
    Returns what to say where it has a batch of its own, and so none for more."""
    given = {
        read.name: _random(graph, place, random, MORE) for place, read in enumerate(graph.inputs)
    }
    try:
        many = reference.run(None, given)[graph.place]
    except Exception as error:  # whatever a node may raise where its shapes do not fit
        if graph.has_fixed_batch:
            return f"; its batch is fixed, so nothing proves it for another ({in_short(error)})"
        raise Refused(
            f"the file runs on {BATCH} samples and not on {MORE} ({in_short(error)}), though its "
            "batch may have any size; export it with a batch that is used as a whole"
        ) from error
    expected = torch.from_numpy(many.copy())
    with torch.no_grad():
        apart = difference_of_more(graph, network, _numbers(given), expected, few)
    if not apart <= TOLERANCE:
        raise Refused(
            f"the imported network gives other numbers than onnx's reference evaluator for {MORE} "
            f"samples, by {apart:.1e} of the largest"
        )
    return ""


def _numbers(given: dict[str, Any]) -> list[torch.Tensor]:
    numbers = [torch.from_numpy(x) for x in given.values()]
    return [x.double() if x.is_floating_point() else x for x in numbers]


def _run(reference: ReferenceEvaluator, given: dict[str, Any]) -> list[Any]:
    try:
        return reference.run(None, given)
    except Exception as error:  # of a MaxPool with ceil_mode and padding, in 1.23
        raise Refused(
            "onnx's reference evaluator fails on the file, so nothing proves the import: "
            f"{in_short(error)}"
        ) from error


def _random(
    graph: Graph, place: int, random: np.random.Generator, batch: int = BATCH
) -> np.ndarray:
    """Random numbers or tokens for one input, whose first dimension is the batch."""
    read = graph.inputs[place]
    shape = graph.arguments[read.name].places.shape
    shape = (batch, *shape[1:])
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
