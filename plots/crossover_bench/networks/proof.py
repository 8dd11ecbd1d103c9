# SPDX-License-Identifier: Apache-2.0
"""Whether an imported network is the original: the JSON is built again as PyTorch's modules, by the
code with which PyTorch is measured, and has to give the same numbers with the same parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch.export.graph_signature import InputKind
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from crossover_bench.networks.ending import Graph as Imported
from crossover_bench.networks.from_torch import Graph
from crossover_bench.networks.strides import samples_of
from crossover_bench.networks.user_module import Input, in_float64
from crossover_bench.networks.values import BATCH, Refused, Value, in_short
from crossover_bench.peers.pytorch.networks import network_of
from crossover_bench.peers.tasks import Unsupported

BATCHES = 2
# Samples: with a batch as small as an import's nothing shows that some are left out.
MORE = 4 * BATCH
TOLERANCE = 1e-9  # relative to the largest number of a tensor
# Of the largest of all gradients: those that are zero but for rounding, as of a bias in front of
# batch normalization, differ by it.
ROUNDING = 1e-13
_DROPOUT = "dropout"
# What a loss has of a network's end, of rows.
ENDS = {
    "": lambda x: x,
    "sigmoid": torch.sigmoid,
    "softmax": lambda x: x.softmax(-1),
    "log_softmax": lambda x: x.log_softmax(-1),
}


class WithoutDropout(TorchFunctionMode):
    """Drops nothing in training: two networks would drop different numbers."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        if _DROPOUT in getattr(function, "__name__", ""):
            return args[0]
        kwargs = kwargs or {}
        if "dropout_p" in kwargs:  # of attention's weights
            kwargs = {**kwargs, "dropout_p": 0.0}
        return function(*args, **kwargs)


def rebuilt(described: dict[str, Any], parameters: Sequence[torch.Tensor]) -> nn.Module:
    """The network in float64, with these parameters in the order of its layers."""
    try:
        network = network_of(described).double()
    except Unsupported as error:
        raise Refused(str(error)) from error
    count = len(list(network.parameters()))
    if count != len(parameters):
        raise Refused(f"built again, the network has {count} parameters, not {len(parameters)}")
    with torch.no_grad():
        for mine, theirs in zip(network.parameters(), parameters, strict=True):
            mine.copy_(theirs.reshape(mine.shape))
    return network


def seen(result: torch.Tensor, value: Value) -> torch.Tensor:
    """What a layer gives as the original's code sees it."""
    return result.reshape(-1)[torch.from_numpy(value.places)]


def for_bench(given: Sequence[torch.Tensor], values: Sequence[Value]) -> torch.Tensor:
    """The arguments of the original in one input, as bench's layers read them."""
    numbers = torch.empty(values[0].shape, dtype=given[0].dtype).reshape(-1)
    for x, value in zip(given, values, strict=True):
        numbers[torch.from_numpy(value.places).reshape(-1)] = x.reshape(-1)
    return numbers.reshape(values[0].shape)


def _of_samples(places: np.ndarray, value: Value, shape: Sequence[int]) -> tuple[Any, ...]:
    """Where numbers of this shape are by samples, in as many rows; and the place in a sample of
    what the layer of `value` gives, of each number in a row. `places` are those of an import's
    batch, in which one dimension is that of the batch alone or of it and others."""
    grown = [
        a for a, (few, many) in enumerate(zip(places.shape, shape, strict=True)) if few != many
    ]
    samples = shape[grown[0]] * BATCH // places.shape[grown[0]] if len(grown) == 1 else 0
    if samples != MORE or shape[grown[0]] % MORE:
        given = shape[0] if len(shape) else 1
        raise Refused(
            f"the network uses a part of a batch: of {MORE} samples it gives {given} results; "
            "all of them can be trained"
        )
    of, inner = (np.moveaxis(x, grown[0], 0) for x in samples_of(value.seen_as(places)))
    line = of.reshape(len(of), -1)[:, 0]
    run = next((at for at, sample in enumerate(line) if sample != line[0]), len(line))
    many = np.tile(np.repeat(np.arange(MORE), run), len(line) // (BATCH * run))
    numbers = np.moveaxis(np.arange(math.prod(shape)).reshape(shape), grown[0], 0)
    rows = np.stack([numbers[many == sample].ravel() for sample in range(MORE)])
    return rows, inner[line == line[0]].ravel()


def _more_for_bench(given: Sequence[torch.Tensor], values: Sequence[Value]) -> torch.Tensor:
    """for_bench() of MORE samples."""
    axis, shape = int(values[0].time_first), list(values[0].shape)
    sample = [size for at, size in enumerate(shape) if at != axis]
    numbers = torch.empty((MORE, math.prod(sample)), dtype=given[0].dtype)
    for x, value in zip(given, values, strict=True):
        rows, inner = _of_samples(value.places, value, x.shape)
        numbers[:, inner] = x.reshape(-1)[torch.from_numpy(rows)]
    return numbers.reshape(MORE, *sample).movedim(0, axis).contiguous()


def difference_of_more(
    graph: Imported,
    network: nn.Module,
    given: Sequence[torch.Tensor],
    expected: torch.Tensor,
    few: Sequence[int],
) -> float:
    """The largest relative difference of MORE samples, of which the original gives `expected` and
    the network built again its own; `few`: the shape of the original's result of an import's batch.
    Refused where the two can't be compared."""
    if expected.ndim != len(few):
        raise Refused(f"the network gives other dimensions for {MORE} samples than for {BATCH}")
    mine = ENDS[graph.end](network(_more_for_bench(given, list(graph.arguments.values()))))
    value = graph.output
    rows, inner = _of_samples(value.places.reshape(few), value, expected.shape)
    axis, shape = int(value.time_first), list(value.shape)
    shape[axis] = MORE
    mine = mine.reshape(shape).movedim(axis, 0).reshape(MORE, -1)[:, torch.from_numpy(inner)]
    return _difference(expected.reshape(-1)[torch.from_numpy(rows)], mine, 0.0)


def _prove_of_more(
    network: nn.Module, again: nn.Module, graph: Graph, wanted: Sequence[Input], few: Sequence[int]
) -> float:
    given = [read.random(but=graph.paddings, batch=MORE) for read in wanted]
    with torch.no_grad(), WithoutDropout(), in_float64():
        try:
            expected = tree_leaves(network(*(x * 1 for x in given)))[graph.place]
        except Exception as error:  # whatever the user's code may raise where shapes do not fit
            raise Refused(
                f"the network runs on {BATCH} samples and not on {MORE} ({in_short(error)}), so "
                "it is one for a batch of that size alone"
            ) from error
        prepared = list(map(graph.prepared, graph.arguments, given))
        difference = difference_of_more(graph, again, prepared, expected, few)
    if not difference <= TOLERANCE:
        raise Refused(
            f"the imported network gives other numbers than the original for {MORE} samples, and "
            f"the original's for {BATCH}: it knows how many there are"
        )
    return difference


def prove(
    network: nn.Module, graph: Graph, described: dict[str, Any], *wanted: Input
) -> tuple[float, int]:
    """The largest relative difference of outputs and gradients on random batches, and how many
    tensors were compared. Refused where one is above the tolerance."""
    names = [name for step in graph.build.alive(graph.output) for name in step.parameters]
    theirs = dict(network.named_parameters(remove_duplicate=False)) | graph.made.constants
    has_gradients = not wanted[0].tokens

    def originals(of: Callable[[torch.Tensor], torch.Tensor | None]) -> dict[str, Any]:
        made = graph.made
        return {name: made.numbers_of(name, of(theirs[made.whole_of(name)])) for name in names}

    again = rebuilt(described, [*originals(torch.Tensor.detach).values()]).train()
    for module in network.modules():  # what has a dropout of its own inside
        if isinstance(module, (nn.MultiheadAttention, nn.RNNBase)):
            module.dropout = 0.0
    largest = 0.0
    pairs: list[tuple[str, Any, Any]] = []
    shape: tuple[int, ...] = ()  # of an import's batch of results
    for _ in range(BATCHES):
        given = [read.random(but=graph.paddings).requires_grad_(has_gradients) for read in wanted]
        mine_given = [x.detach().clone().requires_grad_(has_gradients) for x in given]
        prepared = list(map(graph.prepared, graph.arguments, mine_given))
        own_x = for_bench(prepared, list(graph.arguments.values()))
        with WithoutDropout(), in_float64():
            expected = tree_leaves(network(*(x * 1 for x in given)))[graph.place]
            mine = seen(ENDS[graph.end](again(own_x * 1)), graph.output)
        shape = tuple(expected.shape)
        difference = _difference(expected, mine, 0.0)
        if not difference <= TOLERANCE:
            plain, numbers = [x.detach() for x in given], originals(torch.Tensor.detach)
            raise Refused(
                "the imported network gives other numbers than the original: "
                f"{_first_difference(graph, described, numbers, plain, own_x.detach())}"
            )
        slope = torch.randn_like(expected)
        for out, of in ((expected, network), (mine, again)):
            of.zero_grad(set_to_none=True)
            out.backward(slope)
        gradients = originals(lambda parameter: parameter.grad)
        pairs = [
            (name, gradients[name], parameter.grad)
            for name, parameter in zip(names, again.parameters(), strict=True)
            if parameter.requires_grad or gradients[name] is not None
        ]
        if has_gradients and not graph.build.stops:  # which bench's of the data do not
            inputs = zip(given, mine_given, strict=True)
            pairs += [("the input", x.grad, mine_x.grad) for x, mine_x in inputs]
        top = max(float(gradient.abs().max()) for _, gradient, _ in pairs if gradient is not None)
        largest = max(largest, difference)
        for name, expected_gradient, gradient in pairs:
            difference = _difference(expected_gradient, gradient, ROUNDING * top)
            if not difference <= TOLERANCE:
                raise Refused(
                    "the imported network gives other gradients than the original: first that of "
                    f"{name}, by {difference:.1e} of its largest"
                )
            largest = max(largest, difference)
    difference = _prove_of_more(network, again, graph, wanted, shape)
    return max(largest, difference), 1 + len(pairs)


def _difference(expected: torch.Tensor | None, mine: torch.Tensor | None, rounding: float) -> float:
    """The largest difference above rounding, relative to the largest number; infinite where a
    tensor is missing, unless it is a gradient that is zero here."""
    if expected is None and mine is not None and not mine.any():
        return 0.0
    if expected is None or mine is None:
        return float("inf")
    if expected.numel() == 0 or expected.numel() != mine.numel():
        return float("inf")
    apart = float((expected - mine.reshape(expected.shape)).abs().max().detach())
    apart = 0.0 if apart <= rounding else apart
    largest = float(expected.abs().max().detach())
    return apart / largest if largest > 0 else (float("inf") if apart else 0.0)


class _Recorder(fx.Interpreter):
    """Runs the exported graph and keeps what the nodes of layers give."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph.program.graph_module)
        self._wanted = {node for node, _ in graph.origins.values()}
        self.kept: dict[str, torch.Tensor] = {}

    def run_node(self, n: fx.Node) -> Any:
        is_dropout = n.op == "call_function" and _DROPOUT in str(n.target)
        result = self.fetch_args_kwargs_from_env(n)[0][0] if is_dropout else super().run_node(n)
        if n.name in self._wanted:
            first = result[0] if isinstance(result, (tuple, list)) else result
            self.kept[n.name] = first.detach().clone()  # others may overwrite it
        return result


def _first_difference(
    graph: Graph,
    described: dict[str, Any],
    theirs: dict[str, torch.Tensor],
    inputs: list[torch.Tensor],
    own_x: torch.Tensor,
) -> str:
    """Names the first layer that gives other numbers: the networks that end with each layer are
    compared."""
    program, recorder = graph.program, _Recorder(graph)
    given = {**program.state_dict, **program.constants}
    left = iter(inputs)
    with torch.no_grad():
        recorder.run(
            *(
                next(left) if spec.kind == InputKind.USER_INPUT else given[spec.target]
                for spec in program.graph_signature.input_specs
            )
        )
        parameters: list[torch.Tensor] = []
        for number, layer in enumerate(described["layers"]):
            name = layer["name"]
            parameters += [theirs[path] for path in graph.build.steps[name].parameters]
            node, value = graph.origins.get(name, ("", None))
            if value is None or node not in recorder.kept:
                continue
            part = {**described, "layers": described["layers"][: number + 1]}
            part.pop("labels", None)
            with WithoutDropout():
                mine = seen(rebuilt(part, parameters).train()(own_x), value)
            if not _difference(recorder.kept[node], mine, 0.0) <= TOLERANCE:
                return f"first {name} ({layer['type']})"
    return "but no layer does by itself, so their order is another"
