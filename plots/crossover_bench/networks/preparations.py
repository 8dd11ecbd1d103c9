# SPDX-License-Identifier: Apache-2.0
"""What is done to an input before anything else reads it, by constants alone: pixels are divided by
255, columns standardized. It trains nothing, so bench's input is what comes out of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import fx
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind

from crossover_bench.networks.torch_operations import VIEWS
from crossover_bench.networks.values import BATCH

_ARITHMETIC = ("add", "sub", "rsub", "mul", "div")
NOTHING_DONE = ("to", "_to_copy", "type_as", "float", "double", "cpu", "cuda")  # on a CPU


class Preparations:
    def __init__(
        self, program: ExportedProgram, are_tokens: bool, but: Collection[str] = ()
    ) -> None:
        """`but`: names of inputs that have none."""
        self._chains: dict[str, list[fx.Node]] = {}  # of inputs: up to the last arithmetic
        kinds = {spec.arg.name: spec.kind for spec in program.graph_signature.input_specs}
        given = [node for node in program.graph.nodes if node.op == "placeholder"]
        later = {node for node in given if kinds[node.name] == InputKind.PARAMETER}
        inputs = [node for node in given if kinds[node.name] == InputKind.USER_INPUT]
        later.update(inputs)
        for node in program.graph.nodes:
            if later & set(node.all_input_nodes):
                later.add(node)
        for node in inputs if not are_tokens else []:
            if node.name in but:
                continue
            chain = _chain(node, later)
            if chain and chain[-1].meta["val"].shape[0] == BATCH:
                self._chains[node.name] = chain
        # Nodes that are no operations of the network, and, of the last of each input, its name.
        self.ends = {node: "" for chain in self._chains.values() for node in chain}
        self.ends |= {chain[-1]: name for name, chain in self._chains.items()}

    def sample(self, name: str) -> tuple[int, ...]:
        """The shape of one sample of an input behind its preparations; () without any."""
        chain = self._chains.get(name)
        return tuple(chain[-1].meta["val"].shape[1:]) if chain else ()

    def done(self, name: str, x: torch.Tensor, values: dict[fx.Node, Any]) -> torch.Tensor:
        """The input behind its preparations; `values`: the constants that they use."""
        before = next(node for node in values if node.name == name)
        for node in self._chains.get(name, []):
            known = {**values, before: x}
            args, kwargs = fx.map_arg((node.args, node.kwargs), known.get)
            x, before = node.target(*args, **kwargs), node
        return x

    @property
    def notes(self) -> list[str]:
        done = [operation_of(node) for node in self.ends]
        names = " and ".join(name for name in dict.fromkeys(done) if name not in NOTHING_DONE)
        note = (
            f"what is done to the input first ({names}) is left out: bench's input is what comes "
            "out of it"
        )
        return [note] if done else []


def _chain(node: fx.Node, later: set[fx.Node]) -> list[fx.Node]:
    """The operations of an input up to the last arithmetic one."""
    chain: list[fx.Node] = []
    end = 0
    while len(users := [user for user in node.users if not is_check(user)]) == 1:
        (node,) = users
        known = isinstance(node.target, torch._ops.OpOverload) and operation_of(node)
        is_one = known in (*_ARITHMETIC, *NOTHING_DONE, *VIEWS)
        if not is_one or len(later & set(node.all_input_nodes)) > 1:
            break
        if not isinstance(node.meta["val"], torch.Tensor):
            break
        chain.append(node)
        end = len(chain) if known in _ARITHMETIC else end
    return chain[:end]


def is_check(node: fx.Node) -> bool:
    """Whether a node checks types or devices: export adds such nodes where a tensor is moved."""
    return getattr(node.target, "__name__", "").startswith("_assert_tensor_metadata")


def operation_of(node: fx.Node) -> str:
    """The name of an operation: relu, also of aten.relu_.default."""
    return node.target._schema.name.removeprefix("aten::").rstrip("_")
