# SPDX-License-Identifier: Apache-2.0
"""The graph of torch.export as layers of bench's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from networks import attention, root_mean_square
from networks.builder import Builder
from networks.slices import arguments, joined
from networks.torch_operations import LAYERS, VIEWS
from networks.user_module import Input, user_place
from networks.values import ReadsImages, Refused, Value
from networks.windows import pair

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True)
class Parameter:
    """One of the module's, by its path; `seen` is a Value of what views make of it."""

    name: str
    seen: Value


@dataclass(frozen=True)
class Buffer:
    name: str


_KNOWN_LATER = (
    *(Value, Parameter, Buffer, attention.Scores, attention.Scaled),
    root_mean_square.Partial,
)


class Call:
    """An operation of the graph with its arguments by name, as its layer reads them."""

    def __init__(self, graph: Graph, node: fx.Node) -> None:
        self.build, self._graph, self.node = graph.build, graph, node
        self.operation = operation_of(node)
        schema = node.target._schema.arguments
        given = dict(zip([one.name for one in schema], node.args, strict=False)) | node.kwargs
        found = {one.name: given.get(one.name, one.default_value) for one in schema}
        self.arguments: dict[str, Any] = fx.map_arg(found, graph.found)

    def __getitem__(self, argument: str) -> Any:
        return self.arguments[argument]

    def value(self, argument: str = "") -> Value:
        """One of them, or the first, which is to be what a layer gives."""
        name = argument or next(iter(self.arguments))
        found = self.arguments[name]
        if not isinstance(found, Value):
            raise self.refused(f"its {name} is no layer's result")
        return found

    def parameter(self, argument: str) -> list[str]:
        """The path of one that is a parameter; [] where it is None."""
        found = self.arguments[argument]
        if found is None:
            return []
        return [self._plain(argument, found).name]

    def parameters(self, argument: str) -> list[str]:
        return [self._plain(argument, one).name for one in self.arguments[argument]]

    def shape(self, argument: str, index: int | None = None) -> tuple[int, ...]:
        """Of a parameter, or of one in a list of them."""
        found = self.arguments[argument]
        return self._plain(argument, found if index is None else found[index]).seen.shape

    def table(self, argument: str) -> tuple[str, np.ndarray]:
        """A parameter's path, and which of its numbers are read."""
        found = self.arguments[argument]
        if not isinstance(found, Parameter):
            raise self.refused(f"its {argument} is no layer's result")
        return found.name, found.seen.places

    def part(self, argument: str, index: int) -> tuple[str, np.ndarray]:
        """The same of a parameter in a list."""
        found = self.arguments[argument][index]
        if not isinstance(found, Parameter):
            raise self.refused(f"what it reads at {index} of {argument} is no layer's result")
        return found.name, found.seen.places

    def rows_of_table(self, argument: str, rows: torch.Tensor) -> Parameter:
        found = self._plain(argument, self.arguments[argument])
        return replace(found, seen=found.seen.seen_as(found.seen.places[rows.numpy()]))

    def layer_of(self, parameters: list[str]) -> dict[str, Any] | None:
        """The layer before that has one of them."""
        name = next((self._graph.used[one] for one in parameters if one in self._graph.used), "")
        return self.build.steps[name].layer if name else None

    def _plain(self, argument: str, found: Any) -> Parameter:
        if not isinstance(found, Parameter) or not found.seen.is_plain:
            raise self.refused(f"its {argument} is calculated, not a parameter")
        return found

    def only(self, **allowed: Any) -> None:
        """Refuses arguments that no layer has, by their names."""
        for name, value in allowed.items():
            found = self.arguments[name]
            same = list(found) == value if isinstance(value, list) else found == value
            if not same:
                raise self.refused(f"{name} is {found}, and can only be {value}")

    def pair(self, argument: str, sizes: Sequence[int] = ()) -> Any:
        """One that has a number for each direction: as the layers' JSON has it."""
        found = sizes or self.arguments[argument]
        found = [found] if isinstance(found, int) else list(found)
        is_line = self.operation.endswith("1d")
        found = found * 2 if len(found) == 1 and not is_line else found
        return pair(found, 0 if "padding" in argument else 1)

    @property
    def name(self) -> str:
        """The path of the module of PyTorch's that calls it; else of the user's, and what it is."""
        stack = list((self.node.meta.get("nn_module_stack") or {}).values())
        path, kind = stack[-1] if stack else ("", "")
        kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        path = re.sub(r"@\d+$", "", path)
        if kind.startswith("torch.nn.modules.") and not kind.endswith(".Sequential") and path:
            return path
        return f"{path}.{self.operation}" if path else self.operation

    @property
    def where(self) -> str:
        trace = self.node.meta.get("stack_trace") or self.node.stack_trace or ""
        place = user_place([(file, int(line)) for file, line in _FRAME.findall(trace)])
        return f"{self.name} ({self.operation}{', ' + place if place else ''})"

    def refused(self, what: str) -> Refused:
        return Refused(f"{self.where}: {what}")


class Graph:
    """Walks through the operations of a module in the order in which it calls them."""

    def __init__(self, program: ExportedProgram, *wanted: Input) -> None:
        self.program = program
        try:
            self._begin(wanted)
            self.output = self._walk()
        except ReadsImages as found:
            self._begin(wanted, found.sample)
            self.output = self._walk()

    def _begin(self, wanted: Sequence[Input], sample: tuple[int, ...] = ()) -> None:
        """`sample` is the shape of the input, where it is not the one that was said."""
        specs = self.program.graph_signature.input_specs
        names = [one.arg.name for one in specs if one.kind == InputKind.USER_INPUT]
        samples = [one.shape for one in wanted]
        whole = sample or joined(samples, [one.tokens > 0 for one in wanted])
        self.build = Builder(whole, wanted[0].tokens > 0, settled=bool(sample))
        found = arguments(self.build, samples, names, wanted[0].batch_axis)
        self.arguments = dict(zip(names, found, strict=True))
        self.origins: dict[str, tuple[str, Value]] = {}  # of a layer: the node that it computes
        self._values: dict[fx.Node, Any] = {}
        self.used: dict[str, str] = {}  # parameters, and by which layer
        self._aliases: dict[int, str] = {}

    def found(self, node: fx.Node) -> Any:
        return self._values[node]

    def _walk(self) -> Value:
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._given(specs[node.name])
            elif node.op == "output":
                (result,) = fx.map_arg(node.args[0], self.found)
                if isinstance(result, attention.Scaled):
                    raise result.at.refused("a network's output can't be multiplied by a number")
                if not isinstance(result, Value):
                    raise Refused("the network's output is no layer's result")
                return result
            else:
                self._values[node] = self._result(node)
        raise AssertionError("a graph ends with its output")

    def _given(self, spec: Any) -> Any:
        if spec.kind == InputKind.USER_INPUT:
            return self.arguments[spec.arg.name]
        if spec.kind == InputKind.PARAMETER:
            # Tied parameters have several paths, and are one.
            parameter = self.program.state_dict[spec.target]
            name = self._aliases.setdefault(id(parameter), spec.target)
            return Parameter(name, Value(name, tuple(parameter.shape), False))
        if spec.kind == InputKind.BUFFER:
            return Buffer(spec.target)
        return self.program.constants[spec.target]

    def _result(self, node: fx.Node) -> Any:
        if node.target is getitem:
            return getitem(*fx.map_arg(node.args, self.found))
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused(
                f"{node.name}: a part without gradients or with a control flow of its own can't "
                "be imported"
            )
        call = Call(self, node)
        first = next(iter(call.arguments.values()), None)
        if isinstance(first, Buffer) and call.operation == "add":
            return first  # the batches that batch normalization counts
        before = set(self.build.steps)
        if call.operation not in attention.OF_SCORES:
            for argument in node.all_input_nodes:
                if isinstance(self._values[argument], (attention.Scores, attention.Scaled)):
                    self._values[argument] = attention.as_layers(call, self._values[argument])
            call = Call(self, node)
        if not any(map(self._is_known_later, node.all_input_nodes)):
            result = node.target(*fx.map_arg(node.args, self.found), **node.kwargs)
        elif call.operation in VIEWS:
            result = self._view(call)
        elif call.operation in LAYERS:
            result = LAYERS[call.operation](call)
        else:
            supported = ", ".join(sorted(LAYERS))
            raise call.refused(f"there is no such layer; supported are {supported}, and views")
        added = [name for name in self.build.steps if name not in before]
        self._note(call, added, result)
        if str(node.target._schema.name).endswith("_") and isinstance(first, Value):
            if not first.is_whole:
                raise call.refused(f"it changes a part of what {first.layer} gives in place")
            self._overwrite(first, result)
        return result

    def _is_known_later(self, node: fx.Node) -> bool:
        """Whether it depends on the input or on what is trained; all else is computed here."""
        found = self._values[node]
        parts = found if isinstance(found, (list, tuple)) else [found]
        return any(isinstance(part, _KNOWN_LATER) for part in parts)

    def _view(self, call: Call) -> Any:
        """What PyTorch itself makes of the places, for whatever view."""
        node, viewed = call.node, self._values[call.node.all_input_nodes[0]]

        def places(argument: fx.Node) -> Any:
            found = self._values[argument]
            found = found.seen if isinstance(found, Parameter) else found
            return torch.from_numpy(found.places) if isinstance(found, Value) else found

        seen = node.target(*fx.map_arg(node.args, places), **fx.map_arg(node.kwargs, places))
        if isinstance(viewed, Parameter):
            return replace(viewed, seen=viewed.seen.seen_as(seen.numpy()))
        if isinstance(seen, torch.Tensor):
            return self.build.viewed(call, call.value(), seen.numpy())
        return [call.value().seen_as(one.numpy()) for one in seen]

    def _note(self, call: Call, added: list[str], result: Any) -> None:
        """Which node a layer computes, and that no parameter has two layers."""
        for name in added:
            for parameter in self.build.steps[name].parameters:
                if parameter in self.used:
                    raise call.refused(
                        f"{parameter} is the parameter of {self.used[parameter]} too, and shared "
                        "parameters can't be expressed"
                    )
                self.used[parameter] = name
        last = result[0] if isinstance(result, (tuple, list)) else result
        if added and isinstance(last, Value):
            self.origins[last.layer] = (call.node.name, last)

    def _overwrite(self, value: Value, result: Any) -> None:
        """After an operation in place, whatever saw the old numbers sees the new ones."""
        for node, found in self._values.items():
            if isinstance(found, Value) and found.layer == value.layer:
                new = Value(result.layer, result.shape, result.time_first)
                self._values[node] = new.seen_as(found.places)

    def unused(self) -> list[str]:
        """Parameters that no layer reads."""
        paths = self.program.graph_signature.parameters
        own = {self._aliases[id(self.program.state_dict[path])] for path in paths}
        alive = {one for step in self.build.alive(self.output) for one in step.parameters}
        return sorted(own - alive)


def operation_of(node: fx.Node) -> str:
    """relu, also of aten.relu_.default"""
    return node.target._schema.name.removeprefix("aten::").rstrip("_")
