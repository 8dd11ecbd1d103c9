# SPDX-License-Identifier: Apache-2.0
"""What depends on no sample: layers over parameters and constants, as of a table of places. bench
calculates them for each sample; the code sees those of the first, without a batch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from torch.utils._pytree import tree_leaves, tree_map

from crossover_bench.networks import attention, root_mean_square, strides, trained
from crossover_bench.networks.builder import At
from crossover_bench.networks.calls import Call, Parameter
from crossover_bench.networks.torch_operations import OF_EACH_NUMBER
from crossover_bench.networks.values import BATCH, Value

# Operations of rows and of single numbers, which are the same with a batch in front.
_OF_ROWS = OF_EACH_NUMBER | {
    *("linear", "layer_norm", "rms_norm", "dropout", "pad", "constant_pad_nd", "baddbmm"),
}
_OF_IMAGES = ("conv1d", "conv2d")  # which have a batch in front, if only of one
_WEIGHTS = ("weight", "bias", "params")  # which no value can be
_LATER = (Value, Parameter)
_OF_SAMPLES = (Value, attention.Scores, attention.Scaled, root_mean_square.Partial)


class Alone:
    """Which layers these are."""

    def __init__(self) -> None:
        self._layers: set[str] = set()
        self._constants: dict[tuple[Any, ...], Value] = {}

    def called(self, call: Call, layers: Callable[[Call], Any]) -> Any:
        """What `layers` make of the call, some of whose arguments may depend on no sample."""
        read = [part for part in tree_leaves([*call.arguments.values()]) if part is not None]
        beside = [part for part in read if isinstance(part, _OF_SAMPLES) and not self._is(part)]
        if beside:
            moved = {
                name: tree_map(lambda part: self._beside(call, part, beside[0]), argument)
                for name, argument in call.arguments.items()
                if name not in _WEIGHTS
            }
            return layers(call.changed(**moved))
        first = next(iter(call.arguments))
        is_read = hasattr(call[first], "numpy") or isinstance(call[first], _LATER)
        if (
            (call.operation in _OF_ROWS or call.operation in _OF_IMAGES)
            and is_read
            and any(isinstance(part, _LATER) for part in read)
        ):
            return self._of_rows(call, first, layers)
        return layers(call)

    def _of_rows(self, call: Call, first: str, layers: Callable[[Call], Any]) -> Any:
        before = set(call.build.steps)
        value = self._as_value(call, call[first])
        has_batch = is_repeated(value.places)
        is_batch_of_one = call.operation in _OF_IMAGES and len(value.places) == 1
        places = value.places if has_batch or is_batch_of_one else value.places[None]
        moved = call.changed(**{first: _with_batch(value, places, np.arange(BATCH))})
        given = attention.as_layers(call, layers(moved))
        self._layers |= set(call.build.steps) - before
        if has_batch:
            return given
        return given.seen_as(given.places[:1] if is_batch_of_one else given.places[0])

    def _as_value(self, call: Call, operand: Any) -> Value:
        if isinstance(operand, Value):
            return operand
        before = set(call.build.steps)
        if isinstance(operand, Parameter):
            count = math.prod(operand.seen.shape)
            row = trained.row(call, _any_of(call), operand.of, count)
            for function in operand.calculated:
                row = function(row)
            value = row.seen_as(row.places[0].ravel()[operand.seen.places])
        else:
            numbers = operand.numpy()
            key = (numbers.shape, numbers.tobytes())
            if key not in self._constants:
                self._constants[key] = _constants(call, numbers)
            value = self._constants[key]
        self._layers |= set(call.build.steps) - before
        return value

    def _beside(self, at: At, part: Any, other: Any) -> Any:
        """The part as it meets another, which has a batch."""
        if not self._is(part):
            return part
        value = other
        if isinstance(other, attention.Scaled):
            value = other.value
        elif isinstance(other, root_mean_square.Partial):
            value = other.of
        if isinstance(value, attention.Scores):
            shape = (*value.joined, 1, 1) if value.joined else value.query.places.shape
        else:
            shape = value.places.shape
        places = part.places
        if not is_repeated(places):
            places = places[(None,) * (len(shape) - places.ndim)]
            if len(places) > 1:
                raise at.refused("what depends on no sample can only be one for all samples")
        return _with_batch(part, places, np.repeat(np.arange(BATCH), shape[0] // BATCH))

    def _is(self, part: Any) -> bool:
        if not isinstance(part, Value) or part.layer not in self._layers:
            return False
        of, _ = strides.samples_of(part)
        return not of.any()


def _any_of(at: At) -> Value:
    """A value of numbers, which gives a row for each sample."""
    given = [at.build.input, *(step.gives for step in at.build.steps.values())]
    for value in given:
        if value.layer not in at.build.tokens:
            return value
    raise at.refused(
        "it is called before any layer has read the tokens; call it behind their embedding"
    )


def _constants(at: At, numbers: np.ndarray) -> Value:
    """Constants as a layer gives them: each that is different once, and then its places."""
    distinct, which = np.unique(numbers, return_inverse=True)
    if len(distinct) > strides.MOST_PARTS:
        raise at.refused(
            f"it reads {len(distinct)} different constants; at most {strides.MOST_PARTS} become "
            "layers"
        )
    zero = trained.zeros(at, _any_of(at), 1)
    parts = [
        at.build.once(at, "affine", zero, f"{at.name}.constant", shift=float(number))
        if number
        else zero
        for number in distinct
    ]
    row = at.build.concatenation(at, parts, 2) if len(parts) > 1 else zero
    return row.seen_as(row.plain.places[:, 0].ravel()[which].reshape(numbers.shape))


def is_repeated(places: np.ndarray) -> bool:
    """Whether the code has repeated it for each sample."""
    return len(places) == BATCH and places.ndim > 1 and np.array_equal(*places)


def _with_batch(value: Value, places: np.ndarray, samples: np.ndarray) -> Value:
    """The value with these samples in front, each its own numbers. `places` are the first sample's,
    for all or for each."""
    _, inner = strides.samples_of(value.seen_as(places))
    samples = samples.reshape(-1, *[1] * (places.ndim - 1))
    return value.seen_as(strides.placed(value, inner, samples))
