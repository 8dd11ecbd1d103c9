# SPDX-License-Identifier: Apache-2.0
"""The layers of a network in JSON as a table: shapes, parameters, operations."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from networks.builder import Builder, Step
from networks.values import BATCH, Refused, Value, shown
from networks.windows import both

# FLOP of the forward pass as include/crossover/cost.h and src/operations/fit.h count them, of
# what a layer reads and gives: per number that it gives ...
_PER_NUMBER = {
    kind: count
    for count, kinds in {
        0: (
            "as_strided pad identity concatenate class_token first_place last_place slice "
            "flatten embedding to_sequence to_image upsample"
        ),
        1: "relu sin exp abs sqrt reciprocal dropout add multiply position_embedding",
        2: "relu6 leaky_relu hardtanh affine",
        4: "sigmoid tanh gelu hardsigmoid elu",
        5: "silu hardswish softplus",
        7: "batch_norm group_norm",
        9: "gelu_tanh",
    }.items()
    for kind in kinds.split()
}
_Count = Callable[[dict[str, Any], tuple[int, ...], tuple[int, ...]], int]
# ... or by its own rule, of its JSON and both shapes.
_RULES: dict[str, _Count] = {
    "linear": lambda layer, x, y: (
        (2 * x[-1] + layer.get("bias", "tied" not in layer)) * math.prod(y)
    ),
    "conv2d": lambda layer, x, y: (
        (2 * x[1] // layer.get("groups", 1) * _places(layer) + layer.get("bias", True))
        * math.prod(y)
    ),
    "conv_transpose2d": lambda layer, x, y: (
        2 * math.prod(x) * layer["out_channels"] // layer.get("groups", 1) * _places(layer)
        + layer.get("bias", True) * math.prod(y)
    ),
    "max_pool2d": lambda layer, x, y: _places(layer) * math.prod(y),
    "avg_pool2d": lambda layer, x, y: _places(layer) * math.prod(y),
    "global_avg_pool2d": lambda layer, x, y: math.prod(x),
    "mean_over_time": lambda layer, x, y: math.prod(x),
    "attention": lambda layer, x, y: _attention(layer, y),
    "matmul": lambda layer, x, y: (
        (2 * x[-1] // layer.get("num_heads", 1) + ("scale" in layer)) * math.prod(y)
    ),
    "softmax": lambda layer, x, y: _softmax(layer, y),
    "layer_norm": lambda layer, x, y: (
        (6 + layer.get("elementwise_affine", True) * (1 + layer.get("bias", True))) * math.prod(y)
    ),
    "rms_norm": lambda layer, x, y: (3 + layer.get("elementwise_affine", True)) * math.prod(y),
    "lstm": lambda layer, x, y: _recurrent(4, 8, x, y),
    "gru": lambda layer, x, y: _recurrent(3, 5, x, y),
}
_OTHERS = ("name", "type", "inputs")  # of a layer's JSON; all else are its parameters
_HEAD = ("layer", "type", "gives", "parameters", "FLOP")


@dataclass(frozen=True)
class _Place:
    name: str
    kind: str

    def refused(self, what: str) -> Refused:
        return Refused(f"{self.name} ({self.kind}): {what}")


def steps(described: dict[str, Any]) -> tuple[Value, list[Step]]:
    """The input and the layers of a network. Refused where the JSON describes none."""
    try:
        sample = described["input"]
        build = Builder(sample["shape"], sample["type"] == "i32")
        values, last = {"input": build.input}, build.input
        for number, layer in enumerate(described["layers"]):
            settings = {key: value for key, value in layer.items() if key not in _OTHERS}
            at = _Place(layer.get("name", f"layer {number}"), layer["type"])
            reads = [values[name] for name in layer["inputs"]] if "inputs" in layer else [last]
            last = values[at.name] = build.layer(at, at.kind, reads, **settings)
    except (KeyError, TypeError, AttributeError) as error:
        raise Refused(f"the network lacks {error} (docs/networks.md)") from error
    return build.input, list(build.steps.values())


def flops(step: Step, reads: tuple[int, ...]) -> int | None:
    """FLOP of the forward pass of one sample; None where they are not counted."""
    kind, gives = step.layer["type"], step.gives.shape
    if kind in _RULES:
        return _RULES[kind](step.layer, reads, gives) // BATCH
    return _PER_NUMBER[kind] * math.prod(gives) // BATCH if kind in _PER_NUMBER else None


def table(described: dict[str, Any]) -> str:
    given, layers = steps(described)
    shapes = {"input": given.shape} | {step.layer["name"]: step.gives.shape for step in layers}
    counts = [flops(step, shapes[step.reads[0]]) for step in layers]
    lines = [("input", "", shown(given.shape, int(given.time_first)), "", "")]
    lines += (
        (
            step.layer["name"],
            step.layer["type"],
            shown(step.gives.shape, int(step.gives.time_first)),
            f"{step.count:,}" if step.count else "",
            "?" if count is None else f"{count:,}" if count else "",
        )
        for step, count in zip(layers, counts, strict=True)
    )
    least = "≥ " if None in counts else ""
    whole = sum(count or 0 for count in counts)
    parameters = sum(step.count for step in layers)
    lines.append((f"{len(layers)} layers", "", "", f"{parameters:,}", f"{least}{whole:,}"))
    widths = [max(map(len, column)) for column in zip(_HEAD, *lines, strict=True)]
    aligned = [
        [*map(str.ljust, line[:3], widths), *map(str.rjust, line[3:], widths[3:])]
        for line in (_HEAD, *lines)
    ]
    rows = ["  ".join(cells).rstrip() for cells in aligned]
    note = "FLOP: of the forward pass of one sample, as include/crossover/cost.h counts them"
    return "\n".join([f"{described.get('name', 'a network')}", *rows, note, ""])


def _places(layer: dict[str, Any]) -> int:
    """The number of places in a window."""
    return math.prod(both(layer["kernel_size"]))


def _recurrent(gates: int, of_cell: int, x: tuple[int, ...], y: tuple[int, ...]) -> int:
    time, batch, hidden = y
    inputs, states = 2 * time * x[-1], 2 * (time - 1) * hidden
    return batch * hidden * (gates * (inputs + states + 7 * time) + of_cell * time)


def _softmax(layer: dict[str, Any], y: tuple[int, ...]) -> int:
    heads = layer.get("num_heads", 1)
    keys, seen = y[-1] // heads, math.prod(y)
    if layer.get("causal", False):
        seen = y[1] * heads * sum(min(keys, t + 1) for t in range(y[0]))
    return 5 * seen


def _attention(layer: dict[str, Any], y: tuple[int, ...]) -> int:
    time, batch, width = y
    scores = time * (time + 1) // 2 if layer.get("causal", False) else time * time
    return batch * scores * (4 * width + 6 * layer["num_heads"])
