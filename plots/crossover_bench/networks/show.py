# SPDX-License-Identifier: Apache-2.0
"""The layers of a network in JSON as a table: shapes, parameters, operations."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from crossover_bench.networks.builder import Builder
from crossover_bench.networks.steps import Step
from crossover_bench.networks.values import BATCH, Refused, Value, shown
from crossover_bench.peers.pytorch.layers import LAYERS
from crossover_bench.peers.tasks import OF_ALL

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
            of_all = set(OF_ALL) - {"shared"}
            settings = {key: value for key, value in layer.items() if key not in of_all}
            at = _Place(layer.get("name", f"layer {number}"), layer["type"])
            reads = [values[name] for name in layer["inputs"]] if "inputs" in layer else [last]
            last = values[at.name] = build.layer(at, at.kind, reads, **settings)
    except (KeyError, TypeError, AttributeError) as error:
        raise Refused(f"the network lacks {error} (docs/networks.md)") from error
    return build.input, list(build.steps.values())


def flops(step: Step, reads: tuple[int, ...]) -> int:
    """FLOP of the forward pass of one sample."""
    count, gives = LAYERS[step.layer["type"]].flop, step.gives.shape
    whole = count * math.prod(gives) if isinstance(count, int) else count(step.layer, reads, gives)
    return whole // BATCH


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
            f"{count:,}" if count else "",
        )
        for step, count in zip(layers, counts, strict=True)
    )
    parameters = sum(step.count for step in layers)
    lines.append((f"{len(layers)} layers", "", "", f"{parameters:,}", f"{sum(counts):,}"))
    widths = [max(map(len, column)) for column in zip(_HEAD, *lines, strict=True)]
    aligned = [
        [*map(str.ljust, line[:3], widths), *map(str.rjust, line[3:], widths[3:])]
        for line in (_HEAD, *lines)
    ]
    rows = ["  ".join(cells).rstrip() for cells in aligned]
    note = "FLOP: of the forward pass of one sample, as include/crossover/cost.h counts them"
    return "\n".join([f"{described.get('name', 'a network')}", *rows, note, ""])
