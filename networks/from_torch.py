# SPDX-License-Identifier: Apache-2.0
"""The graph of torch.export as layers of bench's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import getitem
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument

from networks import attention, root_mean_square, strides
from networks.builder import Builder, Step
from networks.preparations import NOTHING_DONE, Preparations, operation_of
from networks.slices import arguments, joined
from networks.torch_operations import LAYERS, VIEWS, is_read_as_it_is
from networks.user_module import Input, in_float64
from networks.values import ReadsImages, Refused, Value, in_short
from networks.windows import Padded, pair
from peers.pytorch.user_file import user_place

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass(frozen=True)
class Parameter:
    """One of the module's, by its path; `seen` is a Value of what views make of it."""

    name: str
    seen: Value


@dataclass(frozen=True)
class NoLayers:
    """What an operation gives beside its result, and no layer of bench's does."""

    what: str


_OF_RESULTS = (attention.Scores, attention.Scaled, Padded)
_KNOWN_LATER = (Value, Parameter, NoLayers, *_OF_RESULTS, root_mean_square.Partial)


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
        if isinstance(found, Value):
            return found
        if isinstance(found, NoLayers):
            raise self.refused(f"it reads {found.what}, which no layer gives")
        if isinstance(found, Parameter):
            raise self.refused(f"it reads {found.name}, a parameter, in place of a layer's result")
        raise self.refused(f"its {name} is no layer's result")

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

    def shifts(self, layer: str, parameter: str) -> None:
        """The layer before has that as its bias."""
        step = self.build.steps[layer]
        self._graph.used[parameter] = layer
        step.layer.pop("bias")
        step.parameters.append(parameter)
        step.count += step.layer["out_channels"]
        self._graph.origins[layer] = (self.node.name, self._graph.origins[layer][1])

    def is_used(self, parameter: str) -> bool:
        return parameter in self._graph.used

    def pads_with(self, token: int) -> None:
        self._graph.paddings.append(token)
        self.build.notes.append(
            f"the row of padding ({token}) of {self.name} is trained like the others, if the data "
            "have that token"
        )

    @staticmethod
    def no_layers(what: str) -> NoLayers:
        return NoLayers(what)

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
                given = f"a tensor {list(found.shape)}" if hasattr(found, "shape") else found
                raise self.refused(f"{name} is {given}, and can only be {value}")

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
        return f"{self.name} ({self.operation}{place_of(self.node, ', ')})"

    def refused(self, what: str) -> Refused:
        return Refused(f"{self.where}: {what}")


class Graph:
    """Walks through the operations of a module in the order in which it calls them."""

    def __init__(self, program: ExportedProgram, *wanted: Input, output: int | None = None) -> None:
        """`output`: which of the tensors is trained that it gives; None: its only one."""
        self.program, self._wanted = program, wanted
        self.end = ""  # what the loss has of the network's (ending.py)
        self.place = self._place_of_output(output)
        self._values: dict[fx.Node, Any] = {}
        first = wanted[0]
        if first.batch_axis == 1 and len(wanted) == 1 and not first.tokens:
            self.preparations = Preparations(program, are_tokens=False)
            if len(self._sample(0)) != 2:
                raise Refused("--batch-axis=1 is of tokens, or of numbers [time, batch, columns]")
            self._walk_as(series=True)
            return
        self._walk_somehow()

    def _walk_somehow(self) -> None:
        """With the input as it was said; or as a series [batch, time, columns], which is a line
        that is read as a sequence. Refused as the walk was that came furthest."""
        are_tokens = any(one.tokens for one in self._wanted)
        self.preparations = Preparations(self.program, are_tokens)
        refused, furthest = None, -1
        may_be_series = len(self._wanted) == 1 and not are_tokens and len(self._sample(0)) == 2
        for series in (False, True)[: 1 + may_be_series]:
            try:
                self._walk_as(series=series)
                return
            except Refused as error:
                if len(self._values) > furthest:
                    refused, furthest = error, len(self._values)
        raise refused or AssertionError("a walk is tried")

    def _walk_as(self, series: bool = False) -> None:
        try:
            self._begin(series=series)
            self.output = self._walk()
        except ReadsImages as found:
            self._begin(found.sample, places=found.places)
            self.output = self._walk()

    def _begin(
        self,
        sample: tuple[int, ...] = (),
        series: bool = False,
        places: np.ndarray | None = None,
    ) -> None:
        """`sample` is the shape of the input, where it is not the one that was said, and `places`
        the order of its numbers there. `series`: it is [time, columns], and a line of so many
        channels."""
        specs = self.program.graph_signature.input_specs
        names = [one.arg.name for one in specs if one.kind == InputKind.USER_INPUT]
        samples = [self._sample(at) for at in range(len(names))]
        if series:
            time, columns = samples[0]
            sample = (columns, 1, time)
        whole = sample or joined(samples, [one.tokens > 0 for one in self._wanted])
        self.build = Builder(whole, self._wanted[0].tokens > 0, settled=bool(sample))
        if series:
            axes = (2, 0, 1) if self._wanted[0].batch_axis else (0, 2, 1)
            line = self.build.input.own[:, :, 0]
            self.arguments = {names[0]: self.build.input.seen_as(line.transpose(axes))}
        else:
            found = arguments(self.build, samples, names, self._wanted[0].batch_axis, places)
            self.arguments = dict(zip(names, found, strict=True))
        self.origins: dict[str, tuple[str, Value]] = {}  # of a layer: the node that it computes
        self._values = {}
        self.used: dict[str, str] = {}  # parameters, and by which layer
        self.paddings: list[int] = []  # tokens whose rows of a table are not trained
        self._aliases: dict[int, str] = {}

    def _place_of_output(self, wanted: int | None) -> int:
        specs = self.program.graph_signature.output_specs
        given = [one.arg for one in specs if one.kind == OutputKind.USER_OUTPUT]
        tensors = [at for at, one in enumerate(given) if isinstance(one, TensorArgument)]
        if not tensors:
            raise Refused("the network gives no tensor; one tensor can be trained")
        count = f"{len(tensors)} output{'s' * (len(tensors) > 1)}"
        if wanted is None and len(tensors) > 1:
            raise Refused(
                f"the network gives {count}; one tensor can be trained, and --output=0 to "
                f"{len(tensors) - 1} says which"
            )
        if wanted is not None and wanted >= len(tensors):
            raise Refused(f"the network gives {count}, and --output={wanted} counts from 0")
        return tensors[wanted or 0]

    def _sample(self, at: int) -> tuple[int, ...]:
        """The shape of one sample of an input, as it is once prepared."""
        specs = self.program.graph_signature.input_specs
        name = [one.arg.name for one in specs if one.kind == InputKind.USER_INPUT][at]
        return self.preparations.sample(name) or self._wanted[at].shape

    @property
    def notes(self) -> list[str]:
        """Sentences about what is not as in the original."""
        return self.preparations.notes + self.build.notes

    def prepared(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """An argument of the original as bench's input has it."""
        return self.preparations.done(name, x, self._values)

    def found(self, node: fx.Node) -> Any:
        return self._values[node]

    def _walk(self) -> Value:
        specs = {spec.arg.name: spec for spec in self.program.graph_signature.input_specs}
        needed = self._needed()
        last = next(iter(self.program.graph.nodes))
        for node in self.program.graph.nodes:
            if node.op == "placeholder":
                self._values[node] = self._given(specs[node.name])
                last = node
            elif node.op == "output":
                result = fx.map_arg(self._given_by(node), self.found)
                if isinstance(result, _OF_RESULTS):
                    result = attention.as_layers(Call(self, last), result)
                if isinstance(result, root_mean_square.Partial):
                    result = root_mean_square.as_layers(Call(self, last), result)
                if not isinstance(result, Value):
                    raise Refused("the network's output is no layer's result")
                return self.build.as_output(Call(self, last), result)
            elif node in self.preparations.ends:
                self._values[node] = self.arguments.get(self.preparations.ends[node])
            elif node in needed:
                self._values[node] = self._checked_result(node)
                last = last if node.target is getitem else node
        raise AssertionError("a graph ends with its output")

    def _given_by(self, output: fx.Node) -> Any:
        """Which of its results is trained."""
        kinds = [spec.kind for spec in self.program.graph_signature.output_specs]
        own = zip(output.args[0], kinds, strict=True)
        return [one for one, kind in own if kind == OutputKind.USER_OUTPUT][self.place]

    def _needed(self) -> set[fx.Node]:
        """What that depends on, or may, because others are changed in place."""
        needed: set[fx.Node] = set()
        for node in reversed(self.program.graph.nodes):
            if node.op == "output":
                needed.add(self._given_by(node))
            schema = getattr(node.target, "_schema", None)
            if node in needed or (schema is not None and schema.name.endswith("_")):
                needed.update((node, *node.all_input_nodes))
        return needed

    def _checked_result(self, node: fx.Node) -> Any:
        try:
            return self._result(node)
        except (Refused, ReadsImages):
            raise
        except Exception as error:
            raise Refused(
                f"{node.name}{place_of(node, ' ')}: it can't be imported as it is used here "
                f"({type(error).__name__}: {in_short(error)})"
            ) from error

    def _given(self, spec: Any) -> Any:
        if spec.kind == InputKind.USER_INPUT:
            return self.arguments[spec.arg.name]
        if spec.kind == InputKind.PARAMETER:
            # Tied parameters have several paths, and are one.
            parameter = self.program.state_dict[spec.target]
            name = self._aliases.setdefault(id(parameter), spec.target)
            return Parameter(name, Value(name, tuple(parameter.shape), False))
        if spec.target in self.program.constants:
            return self.program.constants[spec.target]
        return self.program.state_dict[spec.target].clone()  # the walk may count batches in it

    def _result(self, node: fx.Node) -> Any:
        if node.target is getitem:
            return getitem(*fx.map_arg(node.args, self.found))
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused(
                f"{node.name}{place_of(node, ' ')}: a part without gradients (torch.no_grad), in "
                "autocast, or with a control flow of its own can't be imported"
            )
        call = Call(self, node)
        first = next(iter(call.arguments.values()), None)
        before = set(self.build.steps)
        call = self._with_layers(call)
        if not any(map(self._is_known_later, node.all_input_nodes)):
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                raise call.refused(
                    "it draws random numbers; of what is random, bench has dropout alone"
                )
            with in_float64():  # in which the original is compared
                result = node.target(*fx.map_arg(node.args, self.found), **node.kwargs)
        elif call.operation in NOTHING_DONE:
            result = self._unchanged(call)
        elif call.operation in VIEWS:
            result = self._view(call)
        elif call.operation in LAYERS:
            result = LAYERS[call.operation](call)
        else:
            raise call.refused("there is no such layer (docs/networks.md has the layers there are)")
        added = [name for name in self.build.steps if name not in before]
        self._note(call, added, result)
        if str(node.target._schema.name).endswith("_") and isinstance(first, Value):
            if not first.is_whole:
                raise call.refused(f"it changes a part of what {first.layer} gives in place")
            self._overwrite(first, result)
        return result

    def _with_layers(self, call: Call) -> Call:
        """What it reads that has no place in what it does becomes layers."""
        for argument in call.node.all_input_nodes:
            found = self._values[argument]
            if isinstance(found, _OF_RESULTS) and not is_read_as_it_is(found, call.operation):
                self._values[argument] = attention.as_layers(call, found)
            if isinstance(found, root_mean_square.Partial):
                arguments = list(call.arguments.values())
                if not root_mean_square.goes_on(found, call.operation, arguments):
                    self._values[argument] = root_mean_square.as_layers(call, found)
        return Call(self, call.node)

    def _unchanged(self, call: Call) -> Any:
        """To a device, or a type that it has already: of a CPU's float64 nothing comes of it."""
        node, (read, *_) = call.node, call.node.all_input_nodes
        before, after = read.meta["val"].dtype, node.meta["val"].dtype
        if before.is_floating_point != after.is_floating_point:
            raise call.refused(f"it makes {after} of {before}, which no layer does")
        return self._values[read]

    def _is_known_later(self, node: fx.Node) -> bool:
        """Whether it depends on the input or on what is trained; all else is computed here."""
        found = self._values[node]
        parts = found if isinstance(found, (list, tuple)) else [found]
        return any(isinstance(part, _KNOWN_LATER) for part in parts)

    def _view(self, call: Call) -> Any:
        """What PyTorch itself makes of the places, for whatever view."""
        node, viewed = call.node, self._values[call.node.all_input_nodes[0]]
        if not isinstance(viewed, Parameter):
            viewed = call.value()

        def places(argument: fx.Node) -> Any:
            found = self._values[argument]
            found = found.seen if isinstance(found, Parameter) else found
            if not isinstance(found, Value):
                return found
            return torch.from_numpy(np.array(found.places, order="C"))

        seen = node.target(*fx.map_arg(node.args, places), **fx.map_arg(node.kwargs, places))
        if isinstance(viewed, Parameter):
            return replace(viewed, seen=viewed.seen.seen_as(seen.numpy()))
        if isinstance(seen, torch.Tensor):
            return self._copied_between(call, viewed, node, seen.numpy(), places)
        return [call.value().seen_as(one.numpy()) for one in seen]

    def _copied_between(
        self, call: Call, value: Value, node: fx.Node, seen: np.ndarray, places: Callable[..., Any]
    ) -> Value:
        """A view of a view that no strides describe is one of a copy of the first."""
        after = value.seen_as(seen)
        if not value.is_plain and strides.is_one_copy(value) and not strides.is_one_copy(after):
            copy = strides.rearranged(self.build, call, value)
            if copy is not None and copy.layer != value.layer:
                first = call.node.all_input_nodes[0]
                self._values[first] = value = copy
                seen = node.target(
                    *fx.map_arg(node.args, places), **fx.map_arg(node.kwargs, places)
                ).numpy()
        return self.build.viewed(call, value, seen)

    def _note(self, call: Call, added: list[str], result: Any) -> None:
        """Which node a layer computes, and that no parameter has two layers."""
        for name in added:
            step = self.build.steps[name]
            first = self.used.get(step.parameters[0]) if step.parameters else None
            if first is not None and self._is_same(self.build.steps[first], step):
                step.layer["shared"] = first
                step.parameters, step.count = [], 0
            for parameter in step.parameters:
                if parameter in self.used:
                    raise call.refused(
                        f"{parameter} is used twice, first by {self.used[parameter]}, and not by "
                        "layers of one type and size"
                    )
                self.used[parameter] = name
        last = result[0] if isinstance(result, (tuple, list)) else result
        if added and isinstance(last, Value):
            self.origins[last.layer] = (call.node.name, last)

    @staticmethod
    def _is_same(first: Step, step: Step) -> bool:
        """Whether both are one module that is called twice."""
        own = [{k: v for k, v in one.layer.items() if k != "name"} for one in (first, step)]
        return own[0] == own[1] and first.parameters == step.parameters

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


def place_of(node: fx.Node, before: str) -> str:
    """The user's line, behind `before`; empty where none is known."""
    trace = node.meta.get("stack_trace") or node.stack_trace or ""
    place = user_place([(file, int(line)) for file, line in _FRAME.findall(trace)])
    return f"{before}{place}" if place else ""
