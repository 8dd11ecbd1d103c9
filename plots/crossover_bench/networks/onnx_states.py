# SPDX-License-Identifier: Apache-2.0
"""The first states of recurrent layers that are inputs of a file, as where audio comes piece by
piece. A network is trained on whole sequences, which begin with zeros."""

from __future__ import annotations

from collections import defaultdict

import onnx

from crossover_bench.networks.onnx_operations import VIEWS

STATES = {"LSTM": (5, 6), "GRU": (5,)}  # inputs that are the first states
_Reads = list[tuple[onnx.NodeProto, int]]


def without_first_states(graph: onnx.GraphProto) -> list[str]:
    """Leaves out the inputs that are first states and nothing else, which are then zero. Returns
    their names."""
    readers: dict[str, _Reads] = defaultdict(list)
    for node in graph.node:
        for place, name in enumerate(node.input):
            readers[name].append((node, place))
    taken = {weights.name for weights in graph.initializer} | {end.name for end in graph.output}
    left_out = []
    for given in list(graph.input):
        reads = None if given.name in taken else _as_states(given.name, readers, taken)
        if reads:
            for node, place in reads:
                node.input[place] = ""
            graph.input.remove(given)
            left_out.append(given.name)
    gone, nodes = set(left_out), list(graph.node)  # and the views of them, which nothing reads now
    del graph.node[:]
    for node in nodes:
        if gone.intersection(node.input):
            gone.update(node.output)
        else:
            graph.node.append(node)
    return left_out


def _as_states(name: str, readers: dict[str, _Reads], outputs: set[str]) -> _Reads | None:
    """Where these numbers, or views of them, are the first states; None where they are more."""
    reads: _Reads = []
    for node, place in readers[name]:
        if place in STATES.get(node.op_type, ()):
            reads.append((node, place))
            continue
        if node.op_type not in (*VIEWS, "Gather") or place or outputs.intersection(node.output):
            return None
        for seen in node.output:
            further = _as_states(seen, readers, outputs)
            if further is None:
                return None
            reads += further
    return reads


def note_of(left_out: list[str]) -> str:
    """The sentence that says so."""
    return (
        f"the first states of its recurrent layers, which are inputs of the file "
        f"({' and '.join(left_out)}), are zero here, as at the beginning of each sequence"
    )
