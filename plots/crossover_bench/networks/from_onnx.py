# SPDX-License-Identifier: Apache-2.0
"""A file of ONNX as layers of bench's: what is constant is computed by onnx's reference, and so is
what views make of the places of numbers."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import inliner, numpy_helper, version_converter
from onnx.reference import ReferenceEvaluator

from crossover_bench.networks import attention, root_mean_square
from crossover_bench.networks.builder import Builder
from crossover_bench.networks.onnx_batch import Batch
from crossover_bench.networks.onnx_node import NO_LAYER, Node, same_numbers
from crossover_bench.networks.onnx_operations import NODES, OF_SCORES, VIEWS, Gelu, OneHot, goes_on
from crossover_bench.networks.onnx_states import note_of, without_first_states
from crossover_bench.networks.slices import joined
from crossover_bench.networks.steps import Step
from crossover_bench.networks.values import BATCH, ReadsImages, Refused, Value, in_short

FIRST_OPSET = 13
# In older versions of BatchNormalization onnx's evaluator mixes in the statistics of the batch; it
# has no older DequantizeLinear, of which weights may be made.
_FIRST_OPSETS = {"BatchNormalization": 15, "DequantizeLinear": 19}
EXPORT = "export it with a batch of any size (dynamic)"
_OF_ONE = f"the file has a batch of 1, which may be why: {EXPORT}"
_SCOPES = "pkg.torch.onnx.name_scopes"


def loaded(path: Path, as_is: bool) -> onnx.ModelProto:
    """The model in the file, with at least opset 13."""
    if not path.is_file():
        raise Refused(f"{path}: there is no such file")
    try:
        model = onnx.load(path)
        onnx.checker.check_model(model)
        model = inliner.inline_local_functions(model)
    except Exception as error:
        raise Refused(f"{path} can't be read as ONNX: {in_short(error)}") from error
    opsets = {opset.domain: opset.version for opset in model.opset_import}
    opset = opsets.get("", opsets.get("ai.onnx", 0))
    kinds = {node.op_type for node in model.graph.node}
    least = max([FIRST_OPSET, *(_FIRST_OPSETS.get(kind, 0) for kind in kinds)])
    if opset < least:
        try:
            model = version_converter.convert_version(model, least)
        except Exception as error:
            raise Refused(
                f"{path} has opset {opset}, and onnx makes no {least} of it: {in_short(error)}"
            ) from error
    _without_names(model.graph)
    _of_two_at_a_time(model.graph)
    # Of a new network the folded biases are zero, and that exporter leaves them out.
    if "Conv" in kinds and "BatchNormalization" not in kinds and not as_is:
        raise Refused(
            f"{path} has convolutions and no BatchNormalization: PyTorch's exporter "
            "folds batch normalization into convolutions, even of a network in training, and "
            "what is left is not the network that is trained; import it from PyTorch "
            "(FILE.py:CALLABLE), or say --as-is if it never had any"
        )
    return model


_OF_TWO = {"Sum": "Add", "Max": "Max", "Min": "Min"}


def _of_two_at_a_time(graph: onnx.GraphProto) -> None:
    """Writes each Sum, Max and Min, of however many values, as nodes of two; of one, as that."""
    nodes = list(graph.node)
    taken = {name for node in nodes for name in (*node.input, *node.output)}
    del graph.node[:]
    for node in nodes:
        kind = _OF_TWO.get(node.op_type) if node.domain in ("", "ai.onnx") else None
        if kind is None or len(node.input) == 0:
            graph.node.append(node)
            continue
        if len(node.input) == 1:
            graph.node.append(
                onnx.helper.make_node("Identity", node.input, node.output, name=node.name)
            )
            continue
        so_far = node.input[0]
        for place, other in enumerate(node.input[1:], 1):
            is_last = place == len(node.input) - 1
            result = node.output[0] if is_last else _free(f"{node.output[0]}_{place}", taken)
            graph.node.append(
                onnx.helper.make_node(kind, [so_far, other], [result], name=node.name)
            )
            so_far = result


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _is_called_twice(first: Step, step: Step) -> bool:
    """Whether both are one layer with the same parameters."""
    pairs = zip(first.parameters, step.parameters, strict=False)
    is_alike = first.is_like(step) and len(first.parameters) == len(step.parameters)
    return is_alike and all(np.array_equal(*pair) for pair in pairs)


_KNOWN_LATER = (Value, attention.Scores, attention.Scaled, root_mean_square.Partial, Gelu, OneHot)


class Graph:
    """Walks through the nodes of a file in their order."""

    def __init__(
        self,
        model: onnx.ModelProto,
        tokens: Sequence[int],
        output: int | None = None,
        samples: Sequence[tuple[int, ...]] = (),
    ) -> None:
        """`samples`: the shapes of one sample of each input, if the user gives them."""
        self.model, self.tokens, self._samples = model, tokens, samples
        self.arguments: dict[str, Value] = {}
        self.end = ""  # what the loss has of the network's (ending.py)
        graph = model.graph
        self.first_states = without_first_states(graph)
        self.place = _place_of_output(graph, output)
        self._needed = _needed_for(graph, graph.output[self.place].name)
        self.initializers = {weights.name for weights in graph.initializer}
        self.readers: Counter[str] = Counter(name for node in graph.node for name in node.input)
        self.readers.update(given.name for given in graph.output)
        self.inputs = [given for given in graph.input if given.name not in self.initializers]
        self.batch = Batch(model)
        try:
            self._walk_somehow()
        except Refused as error:
            why = f"; {_OF_ONE}" if self.batch.size == 1 and NO_LAYER not in str(error) else ""
            raise Refused(f"{error}{why}") from error
        given = self.values.get(graph.output[self.place].name)
        if isinstance(given, (attention.Scores, attention.Scaled)):
            given = attention.as_layers(Node(self, graph.node[-1]), given)
        if isinstance(given, root_mean_square.Partial):
            given = root_mean_square.as_layers(Node(self, graph.node[-1]), given)
        if not isinstance(given, Value):
            raise Refused("the network's output does not depend on its input")
        self.output = self.build.as_output(Node(self, graph.node[-1]), given)
        self.model = self.batch.freed(model)
        self._look_at_parameters()

    def _look_at_parameters(self) -> None:
        steps = self.build.alive(self.output)
        copies: dict[str, str] = {}
        for at, step in enumerate(steps):
            for before in steps[:at]:
                # Copies of a layer have the same numbers, too, but not in one place of the file;
                # PyTorch's new exporter writes them once, and says which modules have them.
                pairs = itertools.product(step.parameters, before.parameters)
                if not any(np.may_share_memory(*pair) and same_numbers(*pair) for pair in pairs):
                    continue
                name, first = step.layer["name"], before.layer["name"]
                if self.modules.get(name, "") != self.modules.get(first, ""):
                    copies.setdefault(name, first)
                    continue
                if not _is_called_twice(before, step):
                    raise Refused(
                        f"{name} has the very weights of {first}, and is no layer of its type and "
                        "sizes; layers of others have parameters of their own"
                    )
                step.shares(first)
        if copies:
            (copy, copied), *_ = copies.items()
            self.build.notes.append(
                f"{len(copies)} of its layers have the very weights of others ({copy} of {copied}) "
                "in the file, where PyTorch's exporter writes those of untrained copies once; each "
                "has its own here, so if they are one, import the network from PyTorch"
            )
        bare = [s for s in steps if s.layer.get("bias") is False]
        if bare and self.model.producer_name == "pytorch":
            self.build.notes.append(
                f"{len(bare)} of its layers ({bare[0].layer['name']} first) have no bias in the "
                "file; PyTorch's exporter leaves out biases that are all zero, so if they have "
                "some, import the network from PyTorch"
            )

    @property
    def notes(self) -> list[str]:
        """Sentences about what is not as in the original."""
        return [*([note_of(self.first_states)] if self.first_states else []), *self.build.notes]

    def _walk_somehow(self) -> None:
        """Reads the input as the file describes it, as images, or as a series [batch, time,
        columns], which is a line that is read as a sequence. Refused for the reason of the walk
        that came furthest."""
        try:
            try:
                self._walk()
            except ReadsImages as images:
                self._walk(images.sample, images.places)
        except Refused as error:
            shape = next(iter(self.arguments.values())).places.shape if self.arguments else ()
            if len(self.inputs) != 1 or self.tokens[0] or len(shape) != 3:
                raise
            batch, time, columns = shape
            order = np.arange(batch * time * columns).reshape(shape).transpose(0, 2, 1)
            reached = len(self.values)
            try:
                self._walk((columns, 1, time), order.ravel())
            except Refused as of_series:
                raise (of_series if len(self.values) > reached else error) from error

    def _walk(self, sample: tuple[int, ...] = (), places: np.ndarray | None = None) -> None:
        """`sample`: the shape of the input, if it is not the file's, and `places`: the order of its
        numbers there."""
        self.values: dict[str, Any] = {
            weights.name: numpy_helper.to_array(weights) for weights in self.model.graph.initializer
        }
        # Several numbers that lie in the file, and what is calculated from them.
        self.may_be_trained = {
            name for name, x in self.values.items() if x.dtype.kind == "f" and x.size > 1
        }
        self.statistics: dict[str, tuple[np.ndarray, np.ndarray]] = {}  # of batch normalization
        # Of a layer: the path of the module that it was, as PyTorch's new exporter notes it down.
        self.modules: dict[str, str] = {}
        self._read_inputs(sample, places)
        for node in self.model.graph.node:
            if not self._needed.intersection(node.output):
                continue
            try:
                self._add(node)
            except (Refused, ReadsImages):
                raise
            except Exception as error:
                raise Node(self, node).refused(
                    f"it can't be imported as it is used here ({type(error).__name__}: "
                    f"{in_short(error)})"
                ) from error

    def _read_inputs(self, sample: tuple[int, ...], places: np.ndarray | None) -> None:
        if not self.inputs:
            raise Refused("the network has no input")
        self.tokens = self.tokens or [0] * len(self.inputs)
        if len(self.tokens) != len(self.inputs):
            raise Refused(
                f"the network has {len(self.inputs)} inputs and --input-type is given "
                f"{len(self.tokens)} times; say it once for each"
            )
        shapes: Sequence[tuple[int, ...] | None] = self._samples or [None] * len(self.inputs)
        if len(shapes) != len(self.inputs):
            raise Refused(
                f"the network has {len(self.inputs)} inputs and --input is given {len(shapes)} "
                "times; say it once for each, or not at all"
            )
        samples = list(map(self._sample, self.inputs, self.tokens, shapes))
        whole = sample or joined(samples, [count > 0 for count in self.tokens])
        self.build = Builder(whole, self.tokens[0] > 0, settled=bool(sample))
        names = [given.name for given in self.inputs]
        views = self.build.slices.arguments(samples, names, 0, places)
        self.arguments = dict(zip(names, views, strict=True))
        self.values |= self.arguments

    def _sample(
        self, given: onnx.ValueInfoProto, tokens: int, shape: tuple[int, ...] | None
    ) -> tuple[int, ...]:
        """The shape of one sample of an input; () where it is one token or number."""
        tensor = given.type.tensor_type
        is_tokens = tensor.elem_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
        if is_tokens != bool(tokens):
            kind = "tokens; --input-type=tokens:N says" if is_tokens else "numbers, not tokens; say"
            raise Refused(
                f"the network reads {kind} {'how many' if is_tokens else 'no --input-type'}"
            )
        # Paddle writes -1 for any size.
        first, *sample = (max(dimension.dim_value, 0) for dimension in tensor.shape.dim)
        if shape is not None:
            fits = len(shape) == len(sample)
            if not fits or any(a not in (0, b) for a, b in zip(sample, shape, strict=True)):
                sizes = "x".join(str(size or "N") for size in sample)
                raise Refused(f"the input {given.name!r} is {sizes} in the file, N of any size")
            sample = list(shape)
        if not all(sample):
            raise Refused(
                f"the input {given.name!r} has no fixed shape of a sample; --input=SHAPE says it, "
                "once for each input"
            )
        if first not in (0, self.batch.size, BATCH):
            raise Refused(
                f"the input {given.name!r} has a batch of {first}, and others of other sizes; "
                "export them with a batch of any size (dynamic)"
            )
        for dimension, size in zip(tensor.shape.dim, (BATCH, *sample), strict=True):
            dimension.dim_value = size
        return tuple(sample)

    def _add(self, node: onnx.NodeProto) -> None:
        call = Node(self, node)
        for name, given in zip(node.input, call.inputs, strict=True):
            is_of_scores = isinstance(given, (attention.Scores, attention.Scaled))
            if is_of_scores and node.op_type not in OF_SCORES:
                self.values[name] = attention.as_layers(call, given)
            if isinstance(given, root_mean_square.Partial) and not goes_on(call, given):
                self.values[name] = root_mean_square.as_layers(call, given)
        call = Node(self, node)
        call.inputs = self.batch.of(node, call.inputs)
        depends = any(isinstance(given, _KNOWN_LATER) for given in call.inputs)
        if node.op_type == "Shape" or not depends:
            self.batch.follows(node, depends)
        if node.op_type == "Shape" and depends:
            shape = np.array(call.value().places.shape, dtype=np.int64)
            self.values[node.output[0]] = shape[call.get("start", 0) : call.get("end")]
        elif not depends:
            self.values.update(zip(node.output, self._run(node, call.inputs), strict=False))
            if self.may_be_trained.intersection(node.input):
                self.may_be_trained.update(node.output)
        elif node.op_type in VIEWS:
            value = call.value()
            seen = self._run(node, [value.places, *call.inputs[1:]])
            if len(seen) == 1:
                self.values[node.output[0]] = self.build.viewed(call, value, seen[0])
            else:
                self.values.update(
                    {n: value.seen_as(s) for n, s in zip(node.output, seen, strict=True)}
                )
        elif node.op_type in NODES:
            before = set(self.build.steps)
            result = NODES[node.op_type](call)
            scopes = {entry.key: entry.value for entry in node.metadata_props}.get(_SCOPES, "")
            *paths, _ = ["", *re.findall(r"'([^']*)'", scopes)]  # the last is the node's own name
            module = paths[-1].partition("@")[0] if paths else ""
            self.modules |= dict.fromkeys(self.build.steps.keys() - before, module)
            several = result if isinstance(result, tuple) else (result,)
            self.values.update(zip(node.output, several, strict=False))
        else:
            raise call.refused(NO_LAYER)

    def _run(self, node: onnx.NodeProto, inputs: list[Any]) -> list[Any]:
        """What onnx's reference computes from constants."""
        known = {name: x for name, x in zip(node.input, inputs, strict=True) if name}
        types = {n: onnx.helper.np_dtype_to_tensor_dtype(np.asarray(known[n]).dtype) for n in known}
        given = [onnx.helper.make_tensor_value_info(n, types[n], None) for n in known]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
        graph = onnx.helper.make_graph([node], "constant", given, outputs)
        model = onnx.helper.make_model(
            graph, opset_imports=self.model.opset_import, ir_version=self.model.ir_version
        )
        try:
            return ReferenceEvaluator(model).run(None, known)
        except Exception as error:  # of sizes in the file that are those of another batch
            raise Node(self, node).refused(
                f"onnx's reference can't compute it for a batch of {BATCH} ({in_short(error)})"
            ) from error


def _without_names(graph: onnx.GraphProto) -> None:
    """Replaces the dictionaries of probabilities that scikit-learn's classifiers give by the
    probabilities."""
    kind = onnx.TensorProto.FLOAT
    for node in [node for node in graph.node if node.op_type == "ZipMap"]:
        for output in graph.output:
            if output.name == node.output[0]:
                output.CopyFrom(onnx.helper.make_tensor_value_info(node.input[0], kind, None))
        graph.node.remove(node)


def _place_of_output(graph: onnx.GraphProto, wanted: int | None) -> int:
    """The place of the output that is trained: the wanted one, or the only one of numbers."""
    count = len(graph.output)
    if wanted is not None and wanted >= count:
        raise Refused(f"the network gives {count} outputs, and --output={wanted} counts from 0")
    if wanted is not None:
        return wanted
    numbers = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16)
    places = [
        at for at, output in enumerate(graph.output) if output.type.tensor_type.elem_type in numbers
    ]
    if len(places) != 1 and count > 1:
        raise Refused(
            f"the network gives {count} outputs; one can be trained, and --output=0 to "
            f"{count - 1} says which"
        )
    return places[0] if places else 0


def _needed_for(graph: onnx.GraphProto, output: str) -> set[str]:
    """The names that the output is computed from. A classifier's labels, for example, are not among
    them."""
    needed = {output}
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            needed.update(node.input)
    return needed
