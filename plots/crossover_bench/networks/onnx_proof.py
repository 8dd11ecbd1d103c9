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
from onnx.reference.op_run import OpRun

from crossover_bench.networks.from_onnx import EXPORT, Graph
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


class LRN(OpRun):
    """In place of the evaluator's own, which up to 1.23 sums as many channels as it has samples."""

    def _run(
        self, x: np.ndarray, alpha: float, beta: float, bias: float, size: int
    ) -> tuple[np.ndarray]:
        around = [(0, 0), ((size - 1) // 2, size // 2), *[(0, 0)] * (x.ndim - 2)]
        windows = np.lib.stride_tricks.sliding_window_view(np.pad(x * x, around), size, axis=1)
        return ((x / (bias + alpha / size * windows.sum(-1)) ** beta).astype(x.dtype),)


class GlobalMaxPool(OpRun):
    """In place of the evaluator's own, which up to 1.23 takes a line's channels for its length."""

    def _run(self, x: np.ndarray) -> tuple[np.ndarray]:
        return (x.max(tuple(range(2, x.ndim)), keepdims=True),)


def evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    return ReferenceEvaluator(_not_in_training(model), new_ops=[LRN, GlobalMaxPool])


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


def prove(graph: Graph, described: dict[str, Any]) -> float:
    """The largest relative difference of outputs. Refused above the tolerance."""
    network = built_again(graph, described)
    reference = evaluator(graph.model)
    random, largest = np.random.default_rng(0), 0.0
    _prove_freed(graph, reference, random)
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
        x = for_bench(_numbers(given), list(graph.arguments.values()))
        with torch.no_grad():
            mine = seen(ENDS[graph.end](network(x)), graph.output).numpy()
        size = np.abs(expected).max() or 1.0  # a network may start with outputs of zero
        apart = float(np.abs(expected - mine).max() / size)
        if not apart <= TOLERANCE:
            raise Refused(
                "the imported network gives other numbers than onnx's reference evaluator, by "
                f"{apart:.1e} of the largest"
            )
        largest = max(largest, apart)
    _prove_of_more(graph, network, reference, random, shape)
    return largest


def _prove_of_more(
    graph: Graph,
    network: torch.nn.Module,
    reference: ReferenceEvaluator,
    random: np.random.Generator,
    few: tuple[int, ...],
) -> None:
    """Refused where the file gives other numbers for more samples than an import's batch has."""
    given = {
        read.name: _random(graph, place, random, MORE) for place, read in enumerate(graph.inputs)
    }
    try:
        many = reference.run(None, given)[graph.place]
    except Exception as error:  # whatever a node may raise where its shapes do not fit
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


def _prove_freed(graph: Graph, reference: ReferenceEvaluator, random: np.random.Generator) -> None:
    """Refused where two batches of a file's own size at once give others than each gives by
    itself."""
    size = graph.batch.size
    if not size:
        return
    given = {
        read.name: _random(graph, place, random, 2 * size)
        for place, read in enumerate(graph.inputs)
    }
    original = evaluator(graph.batch.own)
    halves = [
        _run(original, {name: np.split(x, 2)[half] for name, x in given.items()})[graph.place]
        for half in range(2)
    ]
    why = f"the file has a batch of {size}, which can't be made one of any size"
    try:
        together = reference.run(None, given)[graph.place]
    except Exception as error:  # whatever a node may raise where its shapes do not fit
        raise Refused(f"{why} ({in_short(error)}); {EXPORT}") from error
    pairs = zip(together.shape, halves[0].shape, strict=False)
    axis = next((axis for axis, (both, half) in enumerate(pairs) if both == 2 * half), None)
    apart = np.inf
    if axis is not None and together.size == 2 * halves[0].size:
        each = [part.reshape(halves[0].shape) for part in np.split(together, 2, axis)]
        apart = float(np.abs(np.subtract(each, halves)).max() / (np.abs(halves).max() or 1.0))
    if not apart <= TOLERANCE:
        raise Refused(f"{why}: two batches at once give others than each gives; {EXPORT}")


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
