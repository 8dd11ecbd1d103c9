# SPDX-License-Identifier: Apache-2.0
"""A module of PyTorch's as bench's JSON, with the proof that it is the original."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from crossover_bench.networks import ending
from crossover_bench.networks.from_torch import Graph
from crossover_bench.networks.proof import prove
from crossover_bench.networks.user_module import (
    Input,
    exported,
    with_draws_as_inputs,
    with_one_output,
)
from crossover_bench.networks.values import Refused
from crossover_bench.peers.pytorch.user_file import failure
from crossover_bench.peers.tasks import Unsupported


@dataclass(frozen=True)
class Imported:
    """The network `described` in JSON, whose loss has its `end`. Of so many tensors the largest
    relative difference to the original's is `difference`. `draws` are inputs that the original
    draws itself, `unused` its parameters without a layer, `notes` sentences on what is not quite
    the original."""

    described: dict[str, Any]
    end: str
    difference: float
    tensors: int
    draws: tuple[Input, ...]
    unused: tuple[str, ...]
    notes: tuple[str, ...]


def imported(
    make: Callable[[], nn.Module],
    wanted: Sequence[Input],
    *,
    source: str,
    name: str,
    loss_function: str,
    output: int | str | None = None,
) -> Imported:
    """What `make` gives, in float64 and in training, which came from `source`. `output`: which of
    its tensors is trained; "all": as one row. Raises Refused."""
    try:
        network = make()
        if isinstance(output, str):
            with_one_output(network)
            output = None
        inputs = with_draws_as_inputs(network, *wanted)
        graph = Graph(exported(network, *inputs), *inputs, output=output)
        described = ending.described(graph, name, loss_function)
        difference, tensors = prove(network, graph, described, *inputs)
    except Refused:
        raise
    except Unsupported as error:  # what the user's file does
        raise Refused(str(error)) from error
    except Exception as error:
        raise Refused(f"{source} can't be imported: {failure(error)}") from error
    return Imported(
        described=described,
        end=graph.end,
        difference=difference,
        tensors=tensors,
        draws=inputs[len(wanted) :],
        unused=tuple(graph.unused()),
        notes=tuple(graph.notes),
    )
