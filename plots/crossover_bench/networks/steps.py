# SPDX-License-Identifier: Apache-2.0
"""The layers of a network so far, and how another one comes behind them; views that are layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from crossover_bench.networks.values import BATCH, Place, Refused, Value, non_defaults
from crossover_bench.peers.pytorch.layers import is_time_first, module_of
from crossover_bench.peers.tasks import Unsupported

MOST_PARAMETERS = 10**9


@dataclass
class Step:
    """A layer of bench's: what it reads and gives, and its parameters (their paths in the original,
    or their numbers) in the order of its module's."""

    layer: dict[str, Any]
    reads: list[str]
    gives: Value
    count: int  # of parameters
    parameters: list[Any] = field(default_factory=list)

    def is_like(self, other: Step) -> bool:
        """Whether both are layers of one type and sizes."""
        return {**self.layer, "name": ""} == {**other.layer, "name": ""}

    def shares(self, first: str) -> None:
        """Takes its parameters from an earlier layer."""
        self.layer["shared"], self.parameters, self.count = first, [], 0


class Steps:
    def __init__(self, sample: Sequence[int], is_tokens: bool) -> None:
        shape = (*sample, BATCH) if is_tokens else (BATCH, *sample)
        self.input = Value("input", shape, is_tokens)
        self.steps: dict[str, Step] = {}
        self.tokens = {"input"} if is_tokens else set()  # whatever gives some
        self.notes: list[str] = []  # sentences about what is not as in the original
        self.frozen: set[str] = set()  # parameters that are not trained
        self.stops = False  # whether gradients end somewhere in the original
        self._made_once: dict[tuple[str, str, str], Value] = {}

    def layer(
        self,
        at: Place,
        kind: str,
        reads: Sequence[Value],
        parameters: Sequence[Any] = (),
        name: str = "",
        **settings: Any,
    ) -> Value:
        """Adds a layer that reads these values as their layers give them. Refused where bench's
        layers and their modules (peers/pytorch/layers.py) have no such thing."""
        layer = {"name": self._free(name or at.name), "type": kind, **settings}
        batch_axis = int(reads[0].time_first)
        types = [torch.int64 if read.layer in self.tokens else torch.float32 for read in reads]
        given = [
            torch.empty(read.shape, dtype=dtype, device="meta")
            for read, dtype in zip(reads, types, strict=True)
        ]
        bare = layer | ({"number": 0} if kind == "dropout" else {})
        is_shared = bare.pop("shared", None)
        if bare.pop("tied", None):  # a product that has no weight of its own
            bare["bias"] = False
        try:
            module = module_of(bare, given, batch_axis)
            result = module(*given)
        except (Unsupported, RuntimeError, ValueError) as error:
            what = " ".join(str(error).split())
            raise at.refused(what.removeprefix(f"{layer['name']} ({kind}): ")) from error
        shape = tuple((result[0] if isinstance(result, tuple) else result).shape)
        time_first = is_time_first(layer, reads[0].time_first)
        value = Value(layer["name"], shape, time_first)
        trained = [] if "tied" in layer or is_shared else module.parameters()
        count = sum(parameter.numel() for parameter in trained)
        names = [read.layer for read in reads]
        self.steps[layer["name"]] = Step(layer, names, value, count, list(parameters))
        if kind == "slice" and reads[0].layer in self.tokens:
            self.tokens.add(layer["name"])
        if sum(step.count for step in self.steps.values()) > MOST_PARAMETERS:
            raise at.refused("with it the network has over 10^9 parameters; import a smaller one")
        return value

    def is_frozen(self, step: Step) -> bool:
        """Whether none of its parameters is trained. Refused where some are."""
        frozen = [isinstance(known, str) and known in self.frozen for known in step.parameters]
        if any(frozen) and not all(frozen):
            of = step.parameters[frozen.index(True)], step.parameters[frozen.index(False)]
            raise Refused(
                f"{step.layer['name']}: {of[0]} is frozen (requires_grad=False) and {of[1]} is "
                "not; bench trains all parameters of a layer, or none"
            )
        return any(frozen)

    def is_trained(self, value: Value) -> bool:
        """Whether gradients of what a layer gives reach a parameter."""
        needed, left = set(), [value.layer]
        while left:
            name = left.pop()
            if name in needed or name not in self.steps:
                continue
            needed.add(name)
            layer, reads = self.steps[name].layer, self.steps[name].reads
            left += [*reads, *(layer[key] for key in ("shared", "tied") if key in layer)]
        steps = [self.steps[name] for name in needed]
        return any(step.parameters and not self.is_frozen(step) for step in steps)

    def once(self, at: Place, kind: str, value: Value, name: str, **settings: Any) -> Value:
        """A layer without parameters that all who need it share, of what the layer of `value` gives
        however it is seen."""
        key = (value.layer, kind, repr(settings))
        if key not in self._made_once:
            self._made_once[key] = self.layer(at, kind, [value.plain], name=name, **settings)
        return self._made_once[key]

    def viewed(self, at: Place, value: Value, places: np.ndarray) -> Value:
        """The value as a view has it. A view is a layer only where samples become rows."""
        value = self.place(at, value.seen_as(places))
        if value.places.ndim != 2 or len(value.shape) < 3:
            return value
        rows = value.plain.places.reshape(value.shape[0], -1)
        if not value.time_first and value.is_seen_as(rows):
            return self.layer(at, "flatten", [value])
        # Place by place: of a sequence, or of an image with its channels last.
        is_image = len(value.shape) == 4 and not value.time_first
        sequence = as_sequence(value) if is_image else value
        if len(sequence.shape) == 3 and sequence.time_first:
            time, batch, _ = sequence.shape
            if sequence.is_seen_as(sequence.plain.places.transpose(1, 0, 2).reshape(batch, -1)):
                sequence = self.turned(at, value) if is_image else value
                return self.layer(at, "flatten", [self.image_of(at, sequence, 1, time)])
        return value

    def turned(self, at: Place, value: Value) -> Value:
        """An image as the sequence of its pixels, seen as before."""
        sequence = self.once(at, "to_sequence", value, f"{at.name}.sequence")
        return sequence.seen_as(as_sequence(value).places)

    def image_of(self, at: Place, value: Value, height: int, channels: int) -> Value:
        sizes = non_defaults(height=(height, 1), channels=(channels, 0))
        return self.once(at, "to_image", value, f"{at.name}.image", **sizes)

    def place(self, at: Place, value: Value) -> Value:
        """The first or the last place of a sequence as a layer. Other views stay views."""
        if not value.time_first or len(value.shape) != 3:
            return value
        if value.shape[0] == 1 and value.places.ndim != 2:  # all of it, and still in time
            return value
        for kind, time in (("first_place", 0), ("last_place", -1)):
            if np.array_equal(value.places.ravel(), value.plain.places[time].ravel()):
                given = self.layer(at, kind, [value.plain])
                return given.seen_as(given.places.reshape(value.places.shape))
        return value

    def _free(self, name: str) -> str:
        """This name, or, where another layer has it, a similar one."""
        number, free = 1, name
        while free == "input" or free in self.steps:
            number += 1
            free = f"{name}_{number}"
        return free


def as_sequence(value: Value) -> Value:
    """An image as the sequence of its pixels, [height width, batch, channels]."""
    b, c, h, w = value.shape
    order = value.plain.places.reshape(b, c, h * w).transpose(2, 0, 1)
    places = np.argsort(order.ravel())[value.places]
    return replace(value, shape=(h * w, b, c), time_first=True, view=places)
