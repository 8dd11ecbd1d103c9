# SPDX-License-Identifier: Apache-2.0
"""Networks of PyTorch, imported and proved."""

from __future__ import annotations

from typing import Any

from torch import nn

from networks import proof
from networks.ending import ended, without_loss
from networks.from_torch import Graph
from networks.user_module import Input, exported, with_draws_as_inputs


def kinds(described: dict[str, Any]) -> list[str]:
    return [layer["type"] for layer in described["layers"]]


def told(
    network: nn.Module, *wanted: Input, loss: str = "cross-entropy", output: int | None = None
) -> tuple[dict[str, Any], str]:
    """Proved, and what is said about it."""
    network = network.double()
    wanted = with_draws_as_inputs(network, *wanted)
    graph = Graph(exported(network, *wanted), *wanted, output=output)
    value, graph.end = without_loss(graph.build, graph.output, loss)
    graph.output = ended(graph.build, value, loss)
    described = graph.build.described("x", graph.output, loss)
    difference, count = proof.prove(network, graph, described, *wanted)
    assert difference <= 1e-9 and count > 1
    return described, "; ".join(graph.notes)
