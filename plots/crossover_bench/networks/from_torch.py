# SPDX-License-Identifier: Apache-2.0
"""The graph of torch.export as layers of bench's."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from operator import getitem
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind, OutputKind, TensorArgument
from torch.utils._pytree import tree_leaves

from crossover_bench.networks import attention, calls, root_mean_square, strides
from crossover_bench.networks.alone import Alone
from crossover_bench.networks.builder import Builder
from crossover_bench.networks.calls import NoLayers, Parameter
from crossover_bench.networks.made_parameters import MadeParameters
from crossover_bench.networks.preparations import NOTHING_DONE, Preparations, operation_of
from crossover_bench.networks.slices import joined
from crossover_bench.networks.torch_operations import (
    CALLS,
    OF_EACH_NUMBER,
    VIEWS,
    is_read_as_it_is,
)
from crossover_bench.networks.user_module import Input, in_float64
from crossover_bench.networks.values import ReadsImages, Refused, Value, in_short
from crossover_bench.networks.windows import Padded
from crossover_bench.peers.pytorch.user_file import user_place

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_ARITHMETIC = ("add", "sub", "rsub", "mul", "div")
_FEW_CONSTANTS = 8  # that become a layer each
_OF_RESULTS = (attention.Scores, attention.Scaled, Padded)
_KNOWN_LATER = (Value, Parameter, NoLayers, *_OF_RESULTS, root_mean_square.Partial)


class Call(calls.Call):
    """An operation of the graph."""

    def __init__(self, graph: Graph, node: fx.Node) -> None:
        self._graph, self.node = graph, node
        schema = node.target._schema.arguments
        arguments = {argument.name: argument.default_value for argument in schema}
        arguments |= dict(zip(arguments, node.args, strict=False)) | node.kwargs
        read = fx.map_arg(arguments, graph.result_of)
        super().__init__(graph.build, operation_of(node), read)

    def shifts(self, layer: str, parameter: Any) -> None:
        super().shifts(layer, parameter)
        if layer in self._graph.origins:  # else it is of this call, which is noted
            self._graph.used[parameter] = layer
            self._graph.origins[layer] = (self.node.name, self._graph.origins[layer][1])

    def numbers(self, argument: str) -> np.ndarray | None:
        read = self.arguments[argument]
        is_frozen = isinstance(read, Parameter) and read.of in self.build.frozen
        if not is_frozen or read.calculated:
            return super().numbers(argument)
        constants, state = self._graph.made.constants, self._graph.program.state_dict
        known = constants[read.of] if read.of in constants else state[read.of].detach()
        return known.numpy().ravel()[read.seen.places]

    def frozen(self, numbers: np.ndarray) -> Parameter:
        return self._graph.made.constant(self.name, numbers)

    def part(self, argument: str, parameter: Parameter) -> Parameter:
        places = parameter.seen.places
        if len(np.unique(places)) < places.size:
            raise self.refused(f"its {argument} repeats numbers of {parameter.name}")
        return self._graph.made.part(parameter)

    def is_used(self, parameter: Any) -> bool:
        return parameter in self._graph.used

    def layer_of(self, parameters: list[Any]) -> dict[str, Any] | None:
        names = [self._graph.used[path] for path in parameters if path in self._graph.used]
        return self.build.steps[names[0]].layer if names else None

    @property
    def bounds(self) -> tuple[float, float] | None:
        return self._graph.bounds_of(self.node.all_input_nodes[0])

    def pads_with(self, token: int) -> None:
        super().pads_with(token)
        self._graph.paddings.append(token)

    @property
    def name(self) -> str:
        """The path of PyTorch's module that calls the operation; else the path of the user's
        module, and the operation."""
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
        """`output`: which of the module's tensors is trained; None: its only one."""
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
        """Reads inputs as the user describes them, or as series [batch, time, columns], which are
        lines that are read as sequences: one as it first serves, several as gives fewer layers.
        Refused for the reason of the walk that came furthest."""
        are_tokens = any(argument.tokens for argument in self._wanted)
        names = self.program.graph_signature.user_inputs
        uniform = [name for name, of in zip(names, self._wanted, strict=False) if of.is_uniform]
        self.preparations = Preparations(self.program, are_tokens, but=uniform)
        refused, furthest = None, -1
        samples = [self._sample(at) for at in range(len(names))]
        are_series = not are_tokens and all(len(sample) == 2 for sample in samples)
        are_series &= len({sample[-1:] for sample in samples}) == 1
        layers: dict[bool, int] = {}
        for series in (False, True)[: 1 + are_series]:
            try:
                self._walk_as(series=series)
            except Refused as error:
                if len(self._values) > furthest:
                    refused, furthest = error, len(self._values)
                continue
            layers[series] = len(self.build.alive(self.output))
            if len(names) == 1:
                return
        if not layers:
            raise refused or AssertionError("a walk is tried")
        fewest = min(layers, key=lambda series: layers[series])
        if fewest != are_series:  # which was walked last
            self._walk_as(series=fewest)

    def _walk_as(self, series: bool = False) -> None:
        try:
            self._begin(series=series)
            self.output = self._walk()
        except ReadsImages as images:
            self._begin(images.sample, places=images.places)
            self.output = self._walk()

    def _begin(
        self,
        sample: tuple[int, ...] = (),
        series: bool = False,
        places: np.ndarray | None = None,
    ) -> None:
        """`sample` is the shape of the input where the user's is another, and `places` the order of
        its numbers there. `series`: inputs are [time, columns], one behind the other in a line of
        so many channels."""
        names = self.program.graph_signature.user_inputs
        samples = [self._sample(at) for at in range(len(names))]
        if series:
            sample = (samples[0][1], 1, sum(time for time, _ in samples))
        whole = sample or joined(samples, [argument.tokens > 0 for argument in self._wanted])
        self.build = Builder(whole, self._wanted[0].tokens > 0, settled=bool(sample))
        if series:
            axes = (2, 0, 1) if self._wanted[0].batch_axis else (0, 2, 1)
            line, self.arguments = self.build.input.places[:, :, 0], {}
            for name, (time, _) in zip(names, samples, strict=True):
                part, line = np.split(line, [time], axis=2)
                self.arguments[name] = self.build.input.seen_as(part.transpose(axes))
        else:
            views = self.build.slices.arguments(samples, names, self._wanted[0].batch_axis, places)
            self.arguments = dict(zip(names, views, strict=True))
        self.origins: dict[str, tuple[str, Value]] = {}  # of a layer: the node that it computes
        self._values = {}
        self.used: dict[str, str] = {}  # parameters, and by which layer
        self.alone = Alone()
        self.paddings: list[int] = []  # tokens whose rows of a table are not trained
        self._aliases: dict[int, str] = {}
        self.made = MadeParameters(self.build.frozen)

    def _place_of_output(self, wanted: int | None) -> int:
        specs = self.program.graph_signature.output_specs
        given = [output.arg for output in specs if output.kind == OutputKind.USER_OUTPUT]
        tensors = [at for at, output in enumerate(given) if isinstance(output, TensorArgument)]
        if not tensors:
            raise Refused("the network gives no tensor; one tensor can be trained")
        count = f"{len(tensors)} output{'s' * (len(tensors) > 1)}"
        if wanted is None and len(tensors) > 1:
            raise Refused(
                f"the network gives {count}; one tensor can be trained, and --output=0 to "
                f"{len(tensors) - 1} says which, or --output=all all of them as one row"
            )
        if wanted is not None and wanted >= len(tensors):
            raise Refused(f"the network gives {count}, and --output={wanted} counts from 0")
        return tensors[wanted or 0]

    def _sample(self, at: int) -> tuple[int, ...]:
        """The shape of one sample of an input behind its preparations."""
        name = self.program.graph_signature.user_inputs[at]
        return self.preparations.sample(name) or self._wanted[at].shape

    @property
    def notes(self) -> list[str]:
        """Sentences about what is not as in the original."""
        constants = self.made.notes(self.build.alive(self.output))
        return self.preparations.notes + self.build.notes + constants

    def prepared(self, name: str, x: torch.Tensor) -> torch.Tensor:
        """An argument of the original as bench's input has it."""
        return self.preparations.done(name, x, self._values)

    def result_of(self, node: fx.Node) -> Any:
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
                result = fx.map_arg(self._given_by(node), self.result_of)
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
        """The result that is trained."""
        results = zip(output.args[0], self.program.graph_signature.output_specs, strict=True)
        return [x for x, spec in results if spec.kind == OutputKind.USER_OUTPUT][self.place]

    def _needed(self) -> set[fx.Node]:
        """The nodes that the result depends on, and those that change others in place."""
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
            if not parameter.requires_grad:
                self.build.frozen.add(name)
            return Parameter(name, Value(name, tuple(parameter.shape), False))
        if spec.target in self.program.constants:
            return self.program.constants[spec.target]
        return self.program.state_dict[spec.target].clone()  # the walk may count batches in it

    def _result(self, node: fx.Node) -> Any:
        if node.op == "get_attr":
            return None  # a part, which what runs it reads
        if node.target is getitem:
            return getitem(*fx.map_arg(node.args, self.result_of))
        if node.target is torch.ops.higher_order.wrap_with_set_grad_enabled:
            return self._part(node)
        if not isinstance(node.target, torch._ops.OpOverload):
            raise Refused(
                f"{node.name}{place_of(node, ' ')}: a part in autocast, or with a control flow of "
                "its own can't be imported"
            )
        call = Call(self, node)
        first = next(iter(call.arguments.values()), None)
        before = set(self.build.steps)
        call = self._with_layers(call)
        read = [self._values[argument] for argument in node.all_input_nodes]
        is_later = any(isinstance(part, _KNOWN_LATER) for part in tree_leaves(read))
        result = (self._of_known_later if is_later else self._constant)(call)
        added = [name for name in self.build.steps if name not in before]
        self._note(call, added, result)
        if str(node.target._schema.name).endswith("_") and isinstance(first, Value):
            result = attention.as_layers(call, result)
            self._replace(call, first, result)
        return result

    def _part(self, node: fx.Node) -> Any:
        """One with gradients, or without (torch.no_grad), in which nothing is trained."""
        has_gradients, part, *given = node.args
        read = [self._values[argument] for argument in given]
        for value in () if has_gradients else read:
            if isinstance(value, Parameter):
                self.build.frozen.add(value.of)
            elif isinstance(value, Value) and self.build.is_trained(value):
                raise Refused(
                    f"{node.name}{place_of(node, ' ')}: no gradients go through a part without "
                    "them (torch.no_grad); in bench they go through each layer behind one that is "
                    "trained"
                )
        self.build.stops |= not has_gradients
        left = iter(read)
        for inner in getattr(node.graph.owning_module, part.target).graph.nodes:
            if inner.op == "output":
                return fx.map_arg(inner.args[0], self.result_of)
            is_given = inner.op == "placeholder"
            self._values[inner] = next(left) if is_given else self._checked_result(inner)
        raise AssertionError("a part ends with its output")

    def _replace(self, call: Call, changed: Value, by: Value) -> None:
        """Whatever saw the old numbers sees the new ones."""
        order = np.argsort(changed.places, axis=None)
        old, new = changed.places.ravel()[order], by.places.ravel()[order]
        for node, value in self._values.items():
            if not isinstance(value, Value) or value.layer != changed.layer:
                continue
            at = np.searchsorted(old, value.places).clip(max=len(old) - 1)
            is_changed = old[at] == value.places
            if is_changed.all():
                self._values[node] = by.seen_as(new[at])
            elif is_changed.any():
                raise call.refused(f"it changes a part of what {changed.layer} gives in place")

    def _constant(self, call: Call) -> Any:
        """What depends on neither the input nor on what is trained."""
        node = call.node
        if torch.Tag.nondeterministic_seeded in node.target.tags:
            raise call.refused(
                "it draws random numbers; of what is random, bench has dropout alone"
            )
        with in_float64():  # in which the original is compared
            return node.target(*fx.map_arg(node.args, self.result_of), **node.kwargs)

    def _of_known_later(self, call: Call) -> Any:
        if call.operation in NOTHING_DONE:
            return self._unchanged(call)
        if call.operation in VIEWS:
            return self._view(call)
        if (part := self._part_of_parameter(call)) is not None:
            return part
        if call.operation not in CALLS:
            raise call.refused("there is no such layer (docs/networks.md has the layers there are)")
        if self._reads_a_parameter_alone(call):
            return self._calculated(call)
        return self._with_constants(call)

    def _with_constants(self, call: Call) -> Any:
        """Layers of the call, whose constants are layers of their own where they are few, and else
        parameters that are not trained."""
        constants = {
            name: known
            for name, known in call.arguments.items()
            if isinstance(known, torch.Tensor)
            and known.is_floating_point()
            and known.numel() > 1
            and bool(known.isfinite().all())
        }
        are_many = any(len(known.unique()) > _FEW_CONSTANTS for known in constants.values())

        def made(with_frozen: bool) -> Any:
            frozen = {
                name: call.frozen(of.numpy()) for name, of in constants.items() if with_frozen
            }
            return self.alone.called(call.changed(**frozen), CALLS[call.operation])

        frozen_first = are_many and call.operation in _ARITHMETIC
        try:
            return made(frozen_first)
        except Refused as refused:
            if not constants:
                raise
            try:
                return made(not frozen_first)
            except Refused as other:
                raise (other if frozen_first else refused) from None

    @staticmethod
    def _reads_a_parameter_alone(call: Call) -> bool:
        first, *others = call.arguments.values()
        is_known = call.operation in OF_EACH_NUMBER and isinstance(first, Parameter)
        return is_known and not any(
            isinstance(other, _KNOWN_LATER) or hasattr(other, "numpy") for other in others
        )

    @staticmethod
    def _calculated(call: Call) -> Parameter:
        """The parameter, with the function of each of its numbers: layers where it meets a
        value."""
        name = next(iter(call.arguments))
        parameter: Parameter = call[name]

        def function(value: Value) -> Value:
            of_value = call.changed(**{name: value})
            return attention.as_layers(call, CALLS[call.operation](of_value))

        return replace(parameter, calculated=(*parameter.calculated, function))

    def _with_layers(self, call: Call) -> Call:
        """Makes layers of what the call reads as no layer's result, where its operation has no use
        for that."""
        for argument in call.node.all_input_nodes:
            operand = self._values[argument]
            if isinstance(operand, _OF_RESULTS) and not is_read_as_it_is(operand, call.operation):
                self._values[argument] = attention.as_layers(call, operand)
            if isinstance(operand, root_mean_square.Partial):
                arguments = list(call.arguments.values())
                if not root_mean_square.goes_on(operand, call.operation, arguments):
                    self._values[argument] = root_mean_square.as_layers(call, operand)
        return Call(self, call.node)

    def bounds_of(self, node: fx.Node) -> tuple[float, float] | None:
        """Of random numbers from 0 to 1, as views show them, with numbers added."""
        names = self.program.graph_signature.user_inputs
        if node.op == "placeholder":
            is_uniform = node.name in names and self._wanted[names.index(node.name)].is_uniform
            return (0.0, 1.0) if is_uniform else None
        operation = operation_of(node) if hasattr(node.target, "_schema") else ""
        read = node.all_input_nodes
        bounds = self.bounds_of(read[0]) if len(read) == 1 else None
        if operation in VIEWS or operation in NOTHING_DONE:
            return bounds
        added = [other for other in node.args if isinstance(other, (int, float))]
        if bounds is None or operation != "add" or len(added) != 1 or node.kwargs:
            return None
        return bounds[0] + added[0], bounds[1] + added[0]

    def _unchanged(self, call: Call) -> Any:
        """A move to a device, or to a type that the tensor already has on a CPU in float64."""
        node, (read, *_) = call.node, call.node.all_input_nodes
        before, after = read.meta["val"].dtype, node.meta["val"].dtype
        is_of_comparison = before == torch.bool and after.is_floating_point
        if before.is_floating_point != after.is_floating_point and not is_of_comparison:
            raise call.refused(f"it makes {after} of {before}, which no layer does")
        return self._values[read]

    def _part_of_parameter(self, call: Call) -> Parameter | None:
        """The numbers of a parameter that an operation moves, if it does no more: rows by an index,
        a product with constants of which one is 1 and the others are 0."""
        read = {id(value): value for value in map(self.result_of, call.node.all_input_nodes)}
        known = [value for value in read.values() if isinstance(value, _KNOWN_LATER)]
        parameter = known[0] if len(known) == 1 else None
        if not isinstance(parameter, Parameter) or parameter.calculated:
            return None
        count = math.prod(parameter.seen.shape)

        def with_numbers(numbers: torch.Tensor) -> Any:
            def of(argument: fx.Node) -> Any:
                value = self.result_of(argument)
                is_it = value is parameter
                return numbers[torch.from_numpy(parameter.seen.places)] if is_it else value

            with in_float64():
                node = call.node
                return node.target(*fx.map_arg(node.args, of), **fx.map_arg(node.kwargs, of))

        given = with_numbers(torch.arange(count, dtype=torch.double))
        if not isinstance(given, torch.Tensor) or not given.is_floating_point():
            return None
        places = given.long()
        if (places != given).any() or (places < 0).any() or (places >= count).any():
            return None
        # Of both signs and any size, so that each other function shows.
        chance = torch.Generator().manual_seed(0)
        sizes = 10 ** (33 * torch.rand(count, generator=chance, dtype=torch.double) - 3)
        drawn = sizes * torch.randn(count, generator=chance, dtype=torch.double)
        moved = with_numbers(drawn.requires_grad_())
        if not moved.requires_grad or not torch.equal(moved, drawn[places]):
            return None
        return replace(parameter, seen=parameter.seen.seen_as(places.numpy()))

    def _view(self, call: Call) -> Any:
        """The places as PyTorch itself moves them, for any view."""
        node, viewed = call.node, self._values[call.node.all_input_nodes[0]]
        if not isinstance(viewed, Parameter):
            viewed = call.value()

        def places(argument: fx.Node) -> Any:
            read = self._values[argument]
            read = read.seen if isinstance(read, Parameter) else read
            if not isinstance(read, Value):
                return read
            return torch.from_numpy(np.array(read.places, order="C"))

        seen = node.target(*fx.map_arg(node.args, places), **fx.map_arg(node.kwargs, places))
        if isinstance(viewed, Parameter):
            parts = tree_leaves(seen)
            tables = [replace(viewed, seen=viewed.seen.seen_as(part.numpy())) for part in parts]
            return tables[0] if isinstance(seen, torch.Tensor) else tables
        if isinstance(seen, torch.Tensor):
            return self._copied_between(call, viewed, node, seen.numpy(), places)
        return [call.value().seen_as(part.numpy()) for part in seen]

    def _copied_between(
        self, call: Call, value: Value, node: fx.Node, seen: np.ndarray, places: Callable[..., Any]
    ) -> Value:
        """A view of a view that no strides describe becomes a view of a copy of the first."""
        after = value.seen_as(seen)
        if not value.is_plain and strides.is_one_copy(value) and not strides.is_one_copy(after):
            copy = strides.rearranged(self.build, call, value)
            if copy is not None and copy.layer != value.layer:
                first = call.node.all_input_nodes[0]
                self._values[first] = value = copy
                seen = node.target(
                    *fx.map_arg(node.args, places), **fx.map_arg(node.kwargs, places)
                ).numpy()
        if call.operation == "roll":  # whose parts further views would cut again
            copy = strides.rearranged(self.build, call, value.seen_as(seen))
            return copy or value.seen_as(seen)
        return self.build.viewed(call, value, seen)

    def _note(self, call: Call, added: list[str], result: Any) -> None:
        """Notes which node a layer computes. Refuses a parameter that two layers have."""
        for name in added:
            step = self.build.steps[name]
            first = self.used.get(step.parameters[0]) if step.parameters else None
            before = self.build.steps.get(first or "")
            if before and before.is_like(step) and before.parameters == step.parameters:
                step.shares(before.layer["name"])
            for parameter in step.parameters:
                if other := self.made.overlap(parameter, self.used):
                    raise call.refused(
                        f"{self.made.whole_of(parameter)} is used twice, first by "
                        f"{self.used[other]}, and not by layers of one type and size"
                    )
                self.used[parameter] = name
        last = result[0] if isinstance(result, (tuple, list)) else result
        if added and isinstance(last, Value):
            self.origins[last.layer] = (call.node.name, last)

    def unused(self) -> list[str]:
        """Trained parameters that no layer reads."""
        paths = self.program.graph_signature.parameters
        known = {self._aliases[id(self.program.state_dict[path])] for path in paths}
        steps = self.build.alive(self.output)
        read = {self.made.whole_of(path) for step in steps for path in step.parameters}
        return sorted(known - read - self.build.frozen)


def place_of(node: fx.Node, before: str) -> str:
    """The user's line, behind `before`; empty where none is known."""
    trace = node.meta.get("stack_trace") or node.stack_trace or ""
    place = user_place([(file, int(line)) for file, line in _FRAME.findall(trace)])
    return f"{before}{place}" if place else ""
