# SPDX-License-Identifier: Apache-2.0
"""A node of ONNX, and what it says as a call of one of PyTorch's operations, whose layers it is."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, Protocol

import numpy as np
import onnx
import torch

from crossover_bench.networks.builder import Builder
from crossover_bench.networks.calls import Call, Parameter
from crossover_bench.networks.torch_operations import CALLS
from crossover_bench.networks.values import Refused, Value

NO_LAYER = "there is no such layer (docs/networks.md has the layers there are)"
_NUMBERED = re.compile(r"^(onnx::.*|val_\d+|\d+)$")  # names that exporters make up


class Walk(Protocol):
    """What is known of a file's graph so far."""

    build: Builder
    values: dict[str, Any]
    initializers: set[str]
    may_be_trained: set[str]
    readers: Counter[str]  # how many nodes read a value
    statistics: dict[str, tuple[np.ndarray, np.ndarray]]  # of batch normalization


class Node:
    """A node with its inputs and attributes, as its layer reads them."""

    def __init__(self, graph: Walk, node: onnx.NodeProto) -> None:
        self.build, self.graph, self.node = graph.build, graph, node
        self.inputs: list[Any] = [graph.values.get(name) for name in node.input]
        self.attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}

    def call(self, operation: str, /, **arguments: Any) -> Any:
        """The layers of PyTorch's operation with these arguments; others have their defaults."""
        if operation not in CALLS:
            raise self.refused(NO_LAYER)
        return CALLS[operation](_Said(self, operation, arguments))

    def parameter(self, index: int) -> Parameter | None:
        """A constant as what is trained; None where it is left out."""
        numbers = self.constant(index)
        return None if numbers is None else self.trained(numbers, index)

    def trained(self, numbers: np.ndarray, index: int) -> Parameter:
        """Numbers of this input as what is trained."""
        return Parameter(numbers, Value(self.node.input[index], numbers.shape, False))

    def number(self, attribute: str) -> float:
        """An attribute, or ONNX's default of it, as it was written before it became a float32."""
        attributes = onnx.defs.get_schema(self.node.op_type).attributes
        unsaid = onnx.helper.get_attribute_value(attributes[attribute].default_value)
        return float(exact(np.full(1, self.get(attribute, unsaid), np.float32)))

    def get(self, attribute: str, unsaid: Any = None) -> Any:
        value = self.attributes.get(attribute, unsaid)
        return value.decode() if isinstance(value, bytes) else value

    @property
    def epsilon(self) -> float:
        """The epsilon of a normalization as it was written before it became a float32."""
        return float(f"{self.get('epsilon', 1e-5):.6g}")

    def value(self, index: int = 0) -> Value:
        given = self.inputs[index]
        if not isinstance(given, Value):
            raise self.refused(f"its input {self.node.input[index]!r} is no layer's result")
        return given

    def constant(self, index: int) -> np.ndarray | None:
        """An input that does not depend on the network's inputs; None where it is left out."""
        given = self.inputs[index] if index < len(self.inputs) else None
        if isinstance(given, Value):
            raise self.refused(
                f"its input {self.node.input[index]!r} is calculated, not a constant"
            )
        return given

    def weight(self, index: int) -> np.ndarray:
        constant = self.constant(index)
        if constant is None:
            raise self.refused(f"its input {index} is missing")
        return constant

    @property
    def axes(self) -> list[int]:
        """The axes of a reduction: its second input, or in older opsets an attribute."""
        axes = self.constant(1)
        return list(self.get("axes", [])) if axes is None else axes.tolist()

    def only(self, **allowed: Any) -> None:
        """Refuses attributes that no layer has. The first of the allowed values is ONNX's
        default."""
        for name, value in allowed.items():
            choices = value if isinstance(value, tuple) else (value,)
            given = self.get(name, choices[0])
            close = isinstance(given, float) and any(
                np.isclose(given, choice, rtol=1e-6, atol=0) for choice in choices
            )
            if not close and given not in choices:
                wanted = " or ".join(str(choice) for choice in dict.fromkeys(choices))
                raise self.refused(f"{name} is {given}, and can only be {wanted}")

    @property
    def directions(self) -> int:
        """2 of images, 1 of lines."""
        return self.value().places.ndim - 2

    @property
    def pads_apart(self) -> list[int]:
        """The pads of a convolution or a pool, if those at both ends differ; else none."""
        pads, count = list(self.get("pads", [])), self.directions
        is_apart = self.node.op_type != "ConvTranspose" and pads[:count] != pads[count:]
        return pads if is_apart else []

    def each(self, attribute: str, unsaid: int) -> list[int]:
        """An attribute with a number for each direction."""
        count = self.directions
        sizes = list(self.get(attribute, [unsaid] * count))
        if sizes[count:] and sizes[:count] != sizes[count:]:  # at the ends
            raise self.refused(f"{attribute} is {sizes}, and can only be the same at both ends")
        if count not in (1, 2) or len(sizes[:count]) != count:
            raise self.refused(f"{attribute} is {sizes}; layers read lines and images")
        return sizes[:count]

    def is_read_once(self, index: int) -> bool:
        return self.graph.readers[self.node.input[index]] == 1

    @property
    def name(self) -> str:
        """The path of the module, if a weight's name tells it; else the node's name."""
        for given in self.node.input:
            if given in self.graph.initializers and not _NUMBERED.match(given):
                path, _, last = given.rpartition(".")
                if path and last in ("weight", "bias"):
                    return path
        return self.node.name.strip("/").replace("/", ".") or self.node.op_type.lower()

    def refused(self, what: str) -> Refused:
        return Refused(f"{self.node.name or self.node.output[0]} ({self.node.op_type}): {what}")


class _Said(Call):
    """What a node says."""

    def __init__(self, node: Node, operation: str, given: dict[str, Any]) -> None:
        overloads = getattr(torch.ops.aten, operation)
        schemas = (getattr(overloads, name)._schema.arguments for name in overloads.overloads())
        known = next(schema for schema in schemas if given.keys() <= {a.name for a in schema})
        self._node = node
        arguments = {a.name: given.get(a.name, a.default_value) for a in known}
        super().__init__(node.build, operation, arguments)

    @property
    def name(self) -> str:
        return self._node.name

    def refused(self, what: str) -> Refused:
        return self._node.refused(what)

    def layer_of(self, parameters: list[Any]) -> dict[str, Any] | None:
        for step in self.build.steps.values():
            is_table = step.layer["type"] == "embedding"
            if is_table and any(same_numbers(step.parameters[0], each) for each in parameters):
                return step.layer
        return None


def same_numbers(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two weights are one. Weights start at random, so two layers with the same numbers
    share them."""
    return left.ndim > 1 and np.array_equal(left, right) and (left != left.flat[0]).any()


def exact(factor: Any) -> Any:
    """The number that a float32 stands for."""
    is_number = isinstance(factor, np.ndarray) and factor.size == 1
    return float(f"{float(factor.ravel()[0]):.8g}") if is_number else factor
