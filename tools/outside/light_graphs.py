# SPDX-License-Identifier: Apache-2.0
"""ONNX's nine "light" graphs: known networks of images in files that hold the sizes of their
weights alone. With constants as weights each output would be one number, and any wiring would pass;
here they are drawn. Two samples go through onnx's evaluator one by one, in the file's own batch of
1, and together through the imported network."""

from __future__ import annotations

import math
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from onnx.backend import test

from crossover_bench.networks import ending, onnx_proof
from crossover_bench.networks.from_onnx import Graph, loaded
from crossover_bench.networks.proof import ENDS, for_bench, seen
from crossover_bench.networks.values import BATCH, Refused
from tools.outside.results import Suite, Verdict, of_refusal

_FILES = Path(test.__file__).parent / "data" / "light"
_PREFIX = "light_"
_WEIGHTS_ARE_NO_INPUTS = 4  # since this version of files


def suite(tell: Callable[[str], None]) -> tuple[Suite, dict[str, dict[str, Any]]]:
    """And the networks that came in, by their case."""
    networks: dict[str, dict[str, Any]] = {}
    verdicts = []
    with (
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        tempfile.TemporaryDirectory() as folder,
    ):
        warnings.simplefilter("ignore")
        for path in sorted(_FILES.glob("*.onnx")):
            tell(path.stem)
            verdicts.append(_of_file(path, Path(folder, "drawn.onnx"), networks))
    how = (
        f"{BATCH} drawn samples, one by one through onnx's evaluator, together through the network "
        f"built again in float64; to {onnx_proof.TOLERANCE:g} of the largest. The weights are drawn"
    )
    name = 'onnx, "light" graphs'
    return Suite(name, onnx.__version__, how, verdicts, "files", is_listed=True), networks


def _of_file(path: Path, drawn: Path, networks: dict[str, dict[str, Any]]) -> Verdict:
    name = path.stem.removeprefix(_PREFIX)
    try:
        onnx.save(with_weights(onnx.load(path), np.random.default_rng(0)), drawn)
        model = loaded(drawn, as_is=True)
        graph = Graph(model, [])
        described = ending.described(graph, name, "cross-entropy")
        apart = _apart(graph, described)
    except Refused as refused:
        return of_refusal(name, str(refused))
    except Exception as error:
        return Verdict(name, "fault", f"{type(error).__name__}: {error}")
    if not apart <= onnx_proof.TOLERANCE:
        return Verdict(name, "different", f"differs by {apart:.1e} of the largest", apart)
    networks[name] = described
    return Verdict(name, "equal", apart=apart)


def _apart(graph: Graph, described: dict[str, Any]) -> float:
    """The largest difference, relative to the largest number."""
    (read,) = graph.inputs
    shape = graph.arguments[read.name].places.shape
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    evaluator = onnx_proof.evaluator(graph.batch.own)
    results = [evaluator.run(None, {read.name: sample})[0] for sample in np.split(x, BATCH)]
    expected = np.concatenate(results)
    network = onnx_proof.built_again(graph, described)
    numbers = for_bench([torch.from_numpy(x).double()], list(graph.arguments.values()))
    with torch.no_grad():
        mine = seen(ENDS[graph.end](network(numbers)), graph.output).numpy()
    return float(np.abs(expected.ravel() - mine.ravel()).max() / np.abs(expected).max())


def with_weights(model: onnx.ModelProto, random: np.random.Generator) -> onnx.ModelProto:
    """The model, whose constants of numbers are drawn."""
    graph, nodes = model.graph, list(model.graph.node)
    kept = [node for node in nodes if node.op_type != "ConstantOfShape"]
    readers = {name: (node, place) for node in kept for place, name in enumerate(node.input)}
    given = {weights.name: weights for weights in graph.initializer}
    shapes = {
        name: tuple(weights.dims)
        for name, weights in given.items()
        if weights.data_type == onnx.TensorProto.FLOAT
    }
    for node in nodes:
        if node.op_type == "ConstantOfShape":
            shape = numpy_helper.to_array(given[node.input[0]])
            shapes[node.output[0]] = tuple(map(int, shape))
            del given[node.input[0]]
    others = [weights for name, weights in given.items() if name not in shapes]
    del graph.initializer[:], graph.node[:]
    graph.node.extend(kept)
    graph.initializer.extend(others)
    for name, shape in shapes.items():
        if name not in readers:
            continue
        numbers = _drawn(shape, *_reader(name, readers), random).astype(np.float32)
        graph.initializer.append(numpy_helper.from_array(numbers, name))
    known = {weights.name for weights in graph.initializer}
    left = [read for read in graph.input if read.name in readers and read.name not in known]
    del graph.input[:]
    graph.input.extend(left)
    model.ir_version = max(model.ir_version, _WEIGHTS_ARE_NO_INPUTS)
    return model


def _reader(name: str, readers: dict[str, tuple[onnx.NodeProto, int]]) -> tuple[str, int]:
    """The operator that reads these numbers, and as which of its inputs."""
    node, place = readers[name]
    while node.op_type == "Unsqueeze":
        node, place = readers[node.output[0]]
    return node.op_type, place


def _drawn(
    shape: tuple[int, ...], operator: str, place: int, random: np.random.Generator
) -> np.ndarray:
    """Numbers with which a network's own neither die out nor grow from layer to layer."""
    if len(shape) > 1 and operator in ("Conv", "Gemm"):
        return random.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
    if operator == "Mul" or (operator == "BatchNormalization" and place in (1, 4)):
        return random.uniform(0.5, 1.5, shape)  # factors and variances
    return random.standard_normal(shape) * 0.1
