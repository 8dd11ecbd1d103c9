# SPDX-License-Identifier: Apache-2.0
"""ONNX's own cases of single operators: a file, inputs and outputs. Which inputs are a network's
and which its weights no case says: each input by itself is tried, the first two and the first
three, where they have a batch, and all else becomes a constant of the file. The loss function is
the first that takes what comes out."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from onnx.backend.test.loader import load_model_tests

from crossover_bench.networks import ending, onnx_proof
from crossover_bench.networks.from_onnx import Graph, loaded
from crossover_bench.networks.proof import MORE, difference_of_more
from crossover_bench.networks.values import BATCH, Refused
from tools.outside.results import Suite, Verdict, of_refusal, worst

_LOSSES = ("mse", "cross-entropy", "bce")
_TRAINING = "ai.onnx.preview.training"
_MOST_INPUTS = 3  # of a network


@dataclass(frozen=True)
class Question:
    """A case read as a network: `given` are the numbers of its inputs, `expected` those of the
    output."""

    model: onnx.ModelProto
    given: Sequence[np.ndarray]
    expected: np.ndarray
    place: int
    tokens: Sequence[int]


@cache
def cases() -> list[Any]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of the cases' own making
        return load_model_tests(kind="node")


def suite(tell: Callable[[str], None]) -> tuple[Suite, dict[str, dict[str, Any]]]:
    """And the networks that came in, by their case."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")  # of what the evaluator computes
        networks: dict[str, dict[str, Any]] = {}
        verdicts = []
        with tempfile.TemporaryDirectory() as folder:
            for case in cases():
                if not is_of_training(case):
                    tell(case.name)
                    verdicts.append(_of_case(case, Path(folder), networks))
    how = (
        f"the case's numbers, repeated to {MORE} samples, through the imported network built again "
        f"in float64; to {onnx_proof.TOLERANCE:g} of the largest"
    )
    return Suite("onnx, node cases", onnx.__version__, how, verdicts), networks


def is_of_training(case: Any) -> bool:
    """Which tools/outside/updates.py looks at."""
    return any(opset.domain == _TRAINING for opset in case.model.opset_import)


def _of_case(case: Any, folder: Path, networks: dict[str, dict[str, Any]]) -> Verdict:
    verdicts = [_verdict(case.name, question, folder, networks) for question in _questions(case)]
    if not verdicts:
        return Verdict(case.name, "other", "no input in float with a batch, or no such output")
    return worst(verdicts)


def _questions(case: Any) -> Iterator[Question]:
    model = case.model
    inputs, outputs = case.data_sets[0]
    if any(not isinstance(x, np.ndarray) for x in inputs):
        return
    if any(node.op_type == "Dropout" and len(node.input) > 2 for node in model.graph.node):
        return  # the masks are drawn
    names = [given.name for given in model.graph.input]
    values = dict(zip(names, inputs, strict=True))
    counts = [_tokens(model, place, inputs) for place in range(len(inputs))]
    able = [
        at
        for at, x in enumerate(inputs)
        if x.ndim and x.size and (x.dtype in (np.float32, np.float64) or counts[at])
    ]
    firsts = [tuple(able[:count]) for count in range(2, _MOST_INPUTS + 1)]
    for chosen in dict.fromkeys([*((at,) for at in able), *firsts]):
        if len({inputs[at].shape[0] for at in chosen}) > 1:
            continue
        for place, expected in enumerate(outputs):
            is_number = isinstance(expected, np.ndarray) and expected.dtype.kind == "f"
            if is_number and expected.ndim:
                yield Question(
                    _with_batch(model, {names[at] for at in chosen}, values),
                    [inputs[at] for at in chosen],
                    expected,
                    place,
                    [counts[at] for at in chosen],
                )


def _tokens(model: onnx.ModelProto, place: int, inputs: Sequence[np.ndarray]) -> int:
    """How many tokens an input of whole numbers has; 0 of other inputs."""
    is_index = model.graph.node[0].op_type == "Gather" and place == 1
    return len(inputs[0]) if is_index and inputs[1].min() >= 0 else 0


def _with_batch(
    model: onnx.ModelProto, chosen: set[str], values: dict[str, np.ndarray]
) -> onnx.ModelProto:
    """The file whose inputs are the chosen ones, with a batch of any size."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.graph.input[:]
    for given in model.graph.input:
        if given.name in chosen:
            x = values[given.name]
            kind = helper.np_dtype_to_tensor_dtype(x.dtype)
            shape = ["batch", *x.shape[1:]]
            made.graph.input.append(helper.make_tensor_value_info(given.name, kind, shape))
        else:
            made.graph.initializer.append(numpy_helper.from_array(values[given.name], given.name))
    for output in made.graph.output:
        if output.type.tensor_type.shape.dim:
            output.type.tensor_type.shape.dim[0].dim_param = "results"
    return made


def _verdict(
    name: str, question: Question, folder: Path, networks: dict[str, dict[str, Any]]
) -> Verdict:
    path = folder / "case.onnx"
    first = ""
    onnx.save(question.model, path)
    for loss in _LOSSES:
        try:
            graph = Graph(loaded(path, as_is=True), question.tokens, question.place)
            described = ending.described(graph, name[:100], loss)
            onnx_proof.prove(graph, described)
            verdict = _compared(name, question, graph, described)
        except Refused as refused:
            first = first or str(refused)
            continue
        except Exception as error:
            return Verdict(name, "fault", f"{type(error).__name__}: {error}")
        if verdict.outcome == "equal":
            networks.setdefault(name, described)
        return verdict
    return of_refusal(name, first)


def _compared(name: str, question: Question, graph: Graph, described: dict[str, Any]) -> Verdict:
    network = onnx_proof.built_again(graph, described)
    if any(
        attribute.name == "training_mode" and attribute.i
        for node in question.model.graph.node
        for attribute in node.attribute
    ):
        network.train()
    few, many = (_shape(question, samples) for samples in (BATCH, MORE))
    axes = [axis for axis, (a, b) in enumerate(zip(few, many, strict=True)) if a != b]
    count = len(question.given[0])
    if len(axes) != 1 or question.expected.shape[axes[0]] != count:
        return Verdict(name, "other", "its results are not one for each sample")
    rows = np.arange(MORE) % count
    given = [torch.from_numpy(np.ascontiguousarray(x[rows])) for x in question.given]
    given = [x.double() if x.is_floating_point() else x for x in given]
    expected = torch.from_numpy(np.take(question.expected, rows, axes[0]))
    with torch.no_grad():
        apart = difference_of_more(graph, network, given, expected, few)
    if not apart <= max(onnx_proof.TOLERANCE, _rounding(question.expected)):
        return Verdict(name, "different", f"differs by {apart:.1e} of the largest", apart)
    return Verdict(name, "equal", apart=apart)


def _rounding(expected: np.ndarray) -> float:
    """A unit of the last digit of numbers that a case has with four behind the point, some of them
    cut off, relative to the largest; 0 of others."""
    is_rounded = [np.allclose(expected, np.round(expected, d), rtol=1e-6, atol=0) for d in (3, 4)]
    return 1e-4 / float(np.abs(expected).max()) if is_rounded == [False, True] else 0.0


def _shape(question: Question, samples: int) -> tuple[int, ...]:
    """Of the output for so many samples."""
    names = [given.name for given in question.model.graph.input]
    rows = [x[np.arange(samples) % len(x)] for x in question.given]
    reference = onnx_proof.evaluator(question.model)
    outputs = reference.run(None, dict(zip(names, rows, strict=True)))
    return tuple(outputs[question.place].shape)
