# SPDX-License-Identifier: Apache-2.0
"""A file's own batch, most often 1, made one of any size: exporters write it into the shapes of
Reshape, Resize and Concat's constants. onnx's evaluator proves it (onnx_proof.py)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from crossover_bench.networks.onnx_states import STATES
from crossover_bench.networks.strides import samples_of
from crossover_bench.networks.values import BATCH, Value


class Batch:
    """`size`: that of the file; 0 where it is of any size already."""

    def __init__(self, model: onnx.ModelProto) -> None:
        initializers = {weights.name for weights in model.graph.initializer}
        given = [read for read in model.graph.input if read.name not in initializers]
        sizes = [
            [max(0, d.dim_value) for d in read.type.tensor_type.shape.dim[:1]] for read in given
        ]
        self.size = sizes[0][0] if given and all(size == sizes[0] for size in sizes) else 0
        self._follows: set[str] = set()  # constants that are calculated from the batch
        self.own = onnx.ModelProto()  # as it was
        if self.size:
            self.own.CopyFrom(model)
        # For an output of a node, what its inputs are then: a constant, one for each sample, None.
        self._changes: dict[str, dict[int, Any]] = {}

    def follows(self, node: onnx.NodeProto, is_shape: bool) -> None:
        """Of a node that gives constants. `is_shape`: in them the batch is counted."""
        if is_shape or self._follows.intersection(node.input):
            self._follows.update(node.output)

    def of(self, node: onnx.NodeProto, inputs: list[Any]) -> list[Any]:
        """A node's inputs with a batch of BATCH in place of the file's own."""
        self._changes.pop(node.output[0], None)
        if not self.size:
            return inputs
        changes = self._changed(node, inputs)
        if changes:
            self._changes[node.output[0]] = changes
        known = [changes.get(place, given) for place, given in enumerate(inputs)]
        return [given.for_import if isinstance(given, _Repeated) else given for given in known]

    def _changed(self, node: onnx.NodeProto, inputs: list[Any]) -> dict[int, Any]:
        """What stands in place of inputs, by their places."""
        kind, first = node.op_type, inputs[0] if inputs else None
        if kind in STATES:  # zeros are what is left out
            given = {place: inputs[place] for place in STATES[kind] if place < len(inputs)}
            is_zero = {p for p, x in given.items() if isinstance(x, np.ndarray) and not x.any()}
            return dict.fromkeys(is_zero)
        if kind == "Concat":
            return self._repeated(node, inputs)
        if kind == "Expand" and isinstance(first, np.ndarray) and first.size:
            is_one = bool((first == first.flat[0]).all())  # zeros, as of first states
            return {0: first.ravel()[:1].reshape([1] * first.ndim)} if is_one else {}
        is_constant = not self._follows.intersection(node.input)
        return self._shaped(kind, first, inputs) if isinstance(first, Value) and is_constant else {}

    def _repeated(self, node: onnx.NodeProto, inputs: list[Any]) -> dict[int, Any]:
        """Of Concat the constants that are the same for each sample, such as a class token."""
        read = [place for place, given in enumerate(inputs) if isinstance(given, Value)]
        axis = _axis(inputs[read[0]]) if read else None
        if axis is None or axis == onnx.helper.get_node_attr_value(node, "axis"):
            return {}
        changes = {}
        for place, given in enumerate(inputs):
            if isinstance(given, np.ndarray) and given.shape[axis : axis + 1] == (self.size,):
                first = np.take(given, [0], axis)
                if (given == first).all() and not self._follows.intersection([node.input[place]]):
                    changes[place] = _Repeated(first, node.input[read[0]], axis)
        return changes

    def _shaped(self, kind: str, value: Value, inputs: list[Any]) -> dict[int, Any]:
        changes: dict[int, Any] = {}
        if kind == "Reshape" and (shape := self._reshaped(value, inputs[1])) is not None:
            changes = {1: np.array(shape)}
        elif kind == "Expand" and isinstance(inputs[1], np.ndarray):
            shape = inputs[1].tolist()
            for place, size in enumerate(reversed(value.places.shape), 1):
                if size != 1 and place <= len(shape):
                    shape[-place] = 1  # as large as what is read
            changes = {1: np.array(shape)}
        elif kind == "Resize" and len(inputs) > 3 and isinstance(inputs[3], np.ndarray):
            factors = inputs[3] / value.places.shape
            changes = {2: np.array([1, *factors[1:]], np.float32), 3: None}
        return changes

    def _reshaped(self, value: Value, shape: Any) -> list[int] | None:
        """The shape with -1 in place of what holds the batch. None where nothing has to be done, or
        nothing can be."""
        axis = _axis(value)
        if axis is None or not isinstance(shape, np.ndarray):
            return None
        read = list(value.places.shape)
        target = [read[at] if size == 0 else int(size) for at, size in enumerate(shape.tolist())]
        if shape[axis : axis + 1].tolist() == [0]:
            return None
        whole = value.places.size * self.size // BATCH
        known = math.prod(size for size in target if size != -1)
        target = [whole // known if size == -1 else size for size in target]
        if math.prod(target) != whole:
            return None
        of, _ = samples_of(value)
        last = len(target) - 1  # a dimension that holds the batch is seldom the last

        def unlike(place: int) -> tuple[bool, ...]:
            is_same = place == axis and target[:place] == read[:place]
            return target[place] != self.size, place == last, not is_same

        for place in sorted(range(len(target)), key=unlike):
            if target[place] % self.size:
                continue
            larger = [*target]
            larger[place] = target[place] // self.size * BATCH
            if _varies_along(of.reshape(larger), place):
                target[place] = -1
                return target if target != shape.tolist() else None
        return None

    def freed(self, model: onnx.ModelProto) -> onnx.ModelProto:
        """The model with the changes."""
        if not self._changes:
            return model
        given = onnx.ModelProto()
        given.CopyFrom(model)
        graph, nodes = given.graph, list(given.graph.node)
        del graph.node[:], graph.value_info[:]
        for node in nodes:
            for place, change in self._changes.get(node.output[0], {}).items():
                name = f"{node.output[0]}/{place}/of any batch"
                if change is None:
                    name = ""
                elif isinstance(change, _Repeated):
                    graph.node.extend(change.nodes(name))
                    graph.initializer.extend(change.constants(name))
                else:
                    graph.initializer.append(numpy_helper.from_array(change, name))
                node.input[place] = name
            graph.node.append(node)
        return given


class _Repeated:
    """A constant for one sample, repeated for each sample of what `like` names."""

    def __init__(self, numbers: np.ndarray, like: str, axis: int) -> None:
        self._numbers, self._like, self._axis = numbers, like, axis

    @property
    def for_import(self) -> np.ndarray:
        return np.repeat(self._numbers, BATCH, self._axis)

    def nodes(self, name: str) -> list[onnx.NodeProto]:
        node = onnx.helper.make_node
        like = self._numbers.ndim * [f"{name} 1"]
        like[self._axis] = f"{name} batch"
        return [
            node("Shape", [self._like], [f"{name} shape"]),
            node("Gather", [f"{name} shape", f"{name} axis"], [f"{name} batch"]),
            node("Concat", like, [f"{name} sizes"], axis=0),
            node("Expand", [f"{name} of one", f"{name} sizes"], [name]),
        ]

    def constants(self, name: str) -> list[onnx.TensorProto]:
        numbers = {"1": np.ones(1, np.int64), "axis": np.array([self._axis])}
        numbers["of one"] = self._numbers
        return [numpy_helper.from_array(x, f"{name} {what}") for what, x in numbers.items()]


def _axis(value: Value) -> int | None:
    """The dimension in which the samples lie; None where they lie in several."""
    of, _ = samples_of(value)
    return next((axis for axis in range(of.ndim) if _varies_along(of, axis)), None)


def _varies_along(of: np.ndarray, axis: int) -> bool:
    """Whether samples differ along this dimension alone."""
    rows = np.moveaxis(of, axis, 0).reshape(of.shape[axis], -1)
    return bool(rows.size and (rows == rows[:, :1]).all() and (rows != rows[0, 0]).any())
