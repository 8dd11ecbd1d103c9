# SPDX-License-Identifier: Apache-2.0
"""A call of one of PyTorch's operations, as its layers read it (torch_operations.py): one of an
exported graph (from_torch.py), or what a node of ONNX says (onnx_node.py)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from crossover_bench.networks.builder import Builder
from crossover_bench.networks.values import Refused, Value, pair


@dataclass(frozen=True)
class Parameter:
    """What is trained. `of`: its path in the module, or its numbers. `seen`: as views show it.
    `calculated`: functions of each of its numbers behind it, which a value that it meets has."""

    of: Any
    seen: Value
    calculated: tuple[Callable[[Value], Value], ...] = ()

    @property
    def name(self) -> str:
        return self.seen.layer


@dataclass(frozen=True)
class NoLayers:
    """A second result of an operation, which no layer of bench's gives."""

    what: str


class Call(ABC):
    """An operation with its arguments by name."""

    def __init__(self, build: Builder, operation: str, arguments: dict[str, Any]) -> None:
        self.build, self.operation, self.arguments = build, operation, arguments

    @property
    @abstractmethod
    def name(self) -> str:
        """What its layer is called."""

    @abstractmethod
    def refused(self, what: str) -> Refused:
        """A sentence that names the operation and where it stands."""

    @abstractmethod
    def layer_of(self, parameters: list[Any]) -> dict[str, Any] | None:
        """The layer that already has one of these parameters."""

    def changed(self, operation: str = "", /, **arguments: Any) -> Self:
        """The same call of another operation, or with other arguments."""
        other = copy(self)
        other.operation = operation or self.operation
        other.arguments = {**self.arguments, **arguments}
        return other

    def __getitem__(self, argument: str) -> Any:
        return self.arguments[argument]

    def value(self, argument: str = "") -> Value:
        """This argument, or the first one, which must be what a layer gives."""
        name = argument or next(iter(self.arguments))
        read = self.arguments[name]
        if isinstance(read, Value):
            return read
        if isinstance(read, NoLayers):
            raise self.refused(f"it reads {read.what}, which no layer gives")
        if isinstance(read, Parameter):
            raise self.refused(f"it reads {read.name}, a parameter, in place of a layer's result")
        raise self.refused(f"its {name} is no layer's result")

    def parameter(self, argument: str) -> list[Any]:
        """An argument that is a parameter; [] where it is None."""
        parameter = self.arguments[argument]
        return [] if parameter is None else [self._plain(argument, parameter).of]

    def parameters(self, argument: str) -> list[Any]:
        return [self._plain(argument, parameter).of for parameter in self.arguments[argument]]

    def shape(self, argument: str, index: int | None = None) -> tuple[int, ...]:
        """The shape of a parameter, or of one in a list of parameters."""
        read = self.arguments[argument]
        return self._plain(argument, read if index is None else read[index]).seen.shape

    def table(self, argument: str, index: int | None = None) -> tuple[Any, np.ndarray]:
        """A parameter, or one in a list, and which of its numbers are read."""
        read = self.arguments[argument]
        parameter = read if index is None else read[index]
        if not isinstance(parameter, Parameter):
            what = f"its {argument}" if index is None else f"what it reads at {index} of {argument}"
            raise self.refused(f"{what} is no layer's result")
        return parameter.of, parameter.seen.places

    def is_calculated(self, argument: str) -> bool:
        """Whether the argument is what functions make of a parameter."""
        return bool(getattr(self.arguments[argument], "calculated", ()))

    def shifts(self, layer: str, parameter: Any) -> None:
        """Gives a layer that already exists this parameter as its bias."""
        step = self.build.steps[layer]
        step.layer.pop("bias")
        step.parameters.append(parameter)
        step.count += step.layer.get("out_channels") or step.layer["out_features"]

    def numbers(self, argument: str) -> np.ndarray | None:
        """Of what stays as it is: a constant, or a frozen parameter. None of anything else."""
        read = self.arguments[argument]
        return read.numpy() if hasattr(read, "numpy") else None

    def frozen(self, numbers: np.ndarray) -> Parameter:
        """Constants as a parameter that is not trained."""
        raise self.refused(
            f"it reads a table of constants, {list(numbers.shape)}; such come in from PyTorch's "
            "modules, and not from files of ONNX"
        )

    def is_used(self, parameter: Any) -> bool:
        """Whether a layer has this parameter."""
        del parameter
        return False

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which numbers the first argument lies, if that is known."""
        return None

    def pads_with(self, token: int) -> None:
        self.build.notes.append(
            f"the row of padding ({token}) of {self.name} is trained like the others, if the data "
            "have that token"
        )

    def _plain(self, argument: str, parameter: Any) -> Parameter:
        if not isinstance(parameter, Parameter):
            raise self.refused(f"its {argument} is calculated, not a parameter")
        if parameter.calculated:
            raise self.refused(f"its {argument} is calculated from {parameter.name}")
        return parameter if parameter.seen.is_plain else self.part(argument, parameter)

    def part(self, argument: str, parameter: Parameter) -> Parameter:
        """Of a parameter what views show, as one of its own."""
        what = f"a part of {parameter.name}, or that in another order"
        raise self.refused(f"its {argument} is {what}, and a layer takes a parameter as it is")

    def only(self, **allowed: Any) -> None:
        """Refuses arguments that no layer has."""
        for name, value in allowed.items():
            given = self.arguments[name]
            same = list(given) == value if isinstance(value, list) else given == value
            if not same:
                given = f"a tensor {list(given.shape)}" if hasattr(given, "shape") else given
                raise self.refused(f"{name} is {given}, and can only be {value}")

    def pair(self, argument: str, sizes: Sequence[int] = ()) -> Any:
        """An argument with a number for each direction, as the layers' JSON has it."""
        sizes = sizes or self.arguments[argument]
        sizes = [sizes] if isinstance(sizes, int) else list(sizes)
        is_line = self.operation.endswith("1d")
        sizes = sizes * 2 if len(sizes) == 1 and not is_line else sizes
        return pair(sizes, 0 if "padding" in argument else 1)
