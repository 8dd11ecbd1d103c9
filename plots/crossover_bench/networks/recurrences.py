# SPDX-License-Identifier: Apache-2.0
"""LSTM and GRU, of one direction or both."""

from __future__ import annotations

from typing import Any

import numpy as np

from crossover_bench.networks import strides
from crossover_bench.networks.builder import At
from crossover_bench.networks.calls import Call, NoLayers
from crossover_bench.networks.values import Value


def recurrent(call: Call) -> Any:
    if not call["has_biases"]:
        raise call.refused("it has no biases (bias=False), and bench's has")
    kind = call.operation
    states = call["hx"] if kind == "lstm" else [call["hx"]]
    if any(not hasattr(state, "any") or state.any() for state in states):
        raise call.refused("its first state is given, and can only be zero")
    flat = call.parameters("params")
    count = len(flat) // call["num_layers"] // (1 + call["bidirectional"])
    if count != 4:
        raise call.refused("proj_size is given, and can only be 0")
    layers = [flat[first : first + count] for first in range(0, len(flat), count)]
    settings = {"hidden_size": call.shape("params", 1)[1], "batch_first": call["batch_first"]}
    dropout = call["dropout"] if call["train"] else 0.0
    if call["bidirectional"]:
        return _both_ways(call, layers, settings, dropout)
    given = call.build.recurrent(call, kind, call.value(), layers, **settings, dropout=dropout)
    hidden = np.full((len(layers), *given.shape[1:]), -1)
    hidden[-1] = given.plain.places[-1]
    return given, given.seen_as(hidden), NoLayers("the cell's last state")


def _both_ways(
    call: Call, layers: list[list[str]], settings: dict[str, Any], dropout: float
) -> tuple[Value, Value, Any]:
    """A recurrence in both directions. Each layer is two: the second reads backwards, and its
    result is reversed."""
    build, value, time = call.build, call.value(), int(settings["batch_first"])

    def turned(value: Value) -> Value:
        return backwards(call, value, time)

    for number, (ahead, back) in enumerate(zip(layers[::2], layers[1::2], strict=True)):
        if number and dropout:
            value = build.elementwise(call, "dropout", value, p=dropout)
        first = build.recurrent(call, call.operation, value, [ahead], **settings)
        second = build.recurrent(call, call.operation, turned(value), [back], **settings)
        value = build.concatenation(call, [first, turned(second)], 2)
    by_time, size = np.moveaxis(value.places, time, 0), settings["hidden_size"]
    hidden = np.full((len(layers), *by_time.shape[1:-1], size), -1)
    hidden[-2:] = by_time[-1, :, :size], by_time[0, :, size:]
    return value, value.seen_as(hidden), NoLayers("the cell's last state")


def backwards(place: At, value: Value, axis: int) -> Value:
    """A copy of a sequence from its end, whose time is in that axis."""
    seen = value.seen_as(np.flip(value.places, axis))
    sample = (seen.places.shape[axis], seen.shape[-1])
    return strides.rearranged(place.build, place, seen, sample) or seen
