# SPDX-License-Identifier: Apache-2.0
"""A network in bench's form, built layer by layer from another's operations."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from crossover_bench.networks import strides
from crossover_bench.networks.slices import Slices
from crossover_bench.networks.steps import Step, Steps, as_sequence
from crossover_bench.networks.strides import MOST_PLACES
from crossover_bench.networks.values import (
    BATCH,
    Place,
    ReadsImages,
    Refused,
    Value,
    both,
    non_defaults,
    pair,
    shown,
)

LOSSES = {"cross-entropy": "cross_entropy", "nll": "cross_entropy", "mse": "mse", "bce": "bce"}


class Builder(Steps):
    """What operations are made of: layers, and those in front of them that bring what is read into
    an order that they read."""

    def __init__(self, sample: Sequence[int], is_tokens: bool, settled: bool = False) -> None:
        """`settled`: the shape of the input is final, and no other one is tried."""
        super().__init__(sample, is_tokens)
        self._sample, self._is_tokens, self._settled = list(sample), is_tokens, settled
        self.slices = Slices(self)
        self.log_softmaxes: set[str] = set()  # logarithms of a softmax, which a loss may have

    def elementwise(self, at: Place, kind: str, value: Value, **settings: Any) -> Value:
        value = self.slices.part(at, value)
        if not value.is_whole:
            value = strides.rearranged(self, at, value) or value
        if not value.is_whole:
            raise at.refused(f"it reads only a part of what {value.layer} gives, {_shape(value)}")
        return self.layer(at, kind, [value], **settings).seen_as(value.places)

    def rowwise(
        self, at: Place, kind: str, value: Value, parameters: Sequence[Any], **settings: Any
    ) -> Value:
        """A layer of each row (the last dimension) by itself, in whatever order the rows are."""
        value = self.sequence(at, value)
        if value.rows is None and value.time_first and len(value.shape) == 3:
            turned = _as_line(value)  # whose rows are places in time
            if turned.rows is not None:
                value = self.image_of(at, value, 1, 0).seen_as(turned.places)
        if value.rows is None:
            value = strides.as_rows(self, at, value) or value
        rows = value.rows
        if rows is None:
            raise at.refused(
                f"it reads {shown(value.places.shape, None)}, whose rows are not those of what "
                f"{value.layer} gives, {_shape(value)}"
            )
        return self.layer(at, kind, [value], parameters, **settings).of_rows(rows)

    def image(
        self, at: Place, kind: str, value: Value, parameters: Sequence[Any] = (), **settings: Any
    ) -> Value:
        """A layer of an image, or of a line, which is an image of height 1."""
        value = self.slices.part(at, value)
        if kind == "conv2d" and self._is_of_points(value, settings):
            row = {"out_features": settings["out_channels"]}
            row |= non_defaults(bias=(settings.get("bias", True), True))
            product = self.layer(at, "linear", [value], parameters, **row)
            return product.seen_as(_points(product, value.places.ndim))
        if value.image is None:
            self._read_as_image(value)
            value = self._as_image(at, value) or strides.as_image(self, at, value) or value
        if value.image is None:
            raise at.refused(
                f"it reads {shown(value.places.shape)}; {kind} reads images as they are, "
                "[batch, channels, height, width]"
            )
        if "kernel_size" in settings:
            _check_window(at, kind, settings)
        return self.layer(at, kind, [value.image], parameters, **settings).as_line_if(value)

    def batch_norm(self, at: Place, value: Value, parameters: Sequence[Any], **eps: Any) -> Value:
        """Batch normalization of images, of lines, of vectors, or of a sequence's rows, which is
        that of a line."""
        is_vector = len(value.shape) == 2 and value.places.ndim == 2
        rows = self.sequence(at, value) if value.places.ndim == 2 and not is_vector else value
        if rows.places.ndim == 2 and rows.time_first and rows.rows is not None:
            line = self.image_of(at, rows, 1, 0).seen_as(_as_line(rows).places)
            return self.layer(at, "batch_norm", [line.plain], parameters, **eps).seen_as(
                line.places
            )
        layer = self.rowwise if is_vector else self.image
        return layer(at, "batch_norm", value, parameters, **eps)

    def _read_as_image(self, value: Value) -> None:
        """Raises ReadsImages where the value is the input in another order."""
        shape = value.places.shape
        is_input = value.layer == "input" and not value.time_first and len(shape) in (3, 4)
        if is_input and not self._settled and value.is_whole and shape[0] == BATCH:
            sample = np.sort(value.places.reshape(BATCH, -1), axis=1)
            if np.array_equal(sample.ravel(), value.plain.places.ravel()):
                image = shape[1:] if len(shape) == 4 else (shape[1], 1, shape[2])
                raise ReadsImages(image, value.places)

    def upsampled(self, at: Place, value: Value, sizes: Sequence[float]) -> Value:
        """The image with these sizes, by the nearest pixel."""
        before = value.places.shape[2:]
        factors = [size / old for size, old in zip(sizes, before, strict=True)]
        if any(factor != int(factor) or factor < 1 for factor in factors):
            raise at.refused(
                f"images of {' by '.join(map(str, before))} can only become larger by whole factors"
            )
        factor = pair([int(factor) for factor in factors], 1)
        return value if factor == 1 else self.image(at, "upsample", value, scale_factor=factor)

    def interpolated(self, at: Place, value: Value, sizes: Sequence[float], aligned: bool) -> Value:
        """The image with these sizes, whose pixels lie between those that there are."""
        before = value.places.shape[2:]
        if any(size != int(size) for size in sizes):
            what = f"{' by '.join(map(str, before))} pixels {' by '.join(map(str, sizes))}"
            raise at.refused(f"it makes of {what}, and can only make whole ones")
        if aligned and any(size == 1 < old for size, old in zip(sizes, before, strict=True)):
            raise at.refused("it aligns the corners of several rows or columns with one")
        settings: dict[str, Any] = {"size": pair([int(size) for size in sizes], 1)}
        settings |= non_defaults(align_corners=(aligned, False))
        return self.image(at, "interpolate", value, **settings)

    @staticmethod
    def _is_of_points(value: Value, settings: dict[str, Any]) -> bool:
        """Whether a convolution reads a row as an image of one pixel, as in squeeze and excitation:
        it is a product."""
        is_bare = settings["kernel_size"] == 1 and not {"padding", "groups"} & settings.keys()
        is_row = is_bare and len(value.shape) == 2
        return is_row and value.is_seen_as(_points(value, value.places.ndim))

    def global_mean(self, at: Place, value: Value, keeps: bool) -> Value:
        pooled = self.image(at, "global_avg_pool2d", value)
        return pooled.seen_as(_points(pooled, value.places.ndim)) if keeps else pooled

    def mean(self, at: Place, value: Value, axes: Sequence[int], keeps: bool) -> Value:
        rank = value.places.ndim
        axes = sorted(axis % rank for axis in axes or range(rank))
        value = self.slices.part(at, value)
        is_image = axes == [2, 3] and rank == 4 and not value.time_first
        if is_image or (axes == [2] and value.is_line):
            return self.global_mean(at, value, keeps)
        if len(value.shape) == 4 and not value.time_first:  # in another order
            pixels, last = math.prod(value.shape[2:]), [*range(-len(axes), 0)]
            each = np.moveaxis(value.places, axes, last)
            places = each.reshape(*each.shape[: rank - len(axes)], -1)
            channel = places.min(-1) // pixels
            if np.array_equal(np.sort(places), channel[..., None] * pixels + np.arange(pixels)):
                mean = self.layer(at, "global_avg_pool2d", [value.plain])
                return mean.seen_as(np.expand_dims(channel, tuple(axes)) if keeps else channel)
        value = self.sequence(at, value)
        if axes == [1] and not value.time_first and value.image is not None and not value.is_line:
            turned = self.turned(at, value)  # whose places as channels have one mean each
            line = self.image_of(at, turned, 1, turned.shape[0])
            means = self.global_mean(at, line, keeps=False)
            places = means.places.reshape(value.shape[0], *value.shape[2:])
            return means.seen_as(places[:, None] if keeps else places)
        time = math.prod(value.places.shape[axis] for axis in axes)
        if value.time_first and len(value.shape) == 3 and time == value.shape[0]:
            by_time = np.moveaxis(value.places, axes, range(len(axes)))
            rest = by_time.shape[len(axes) :]
            by_time = np.sort(by_time.reshape(time, -1), axis=0)
            if np.array_equal(by_time, by_time[0] + math.prod(value.shape[1:]) * np.c_[:time]):
                mean = self.layer(at, "mean_over_time", [value.plain])
                places = by_time[0].reshape(rest)
                return mean.seen_as(np.expand_dims(places, tuple(axes)) if keeps else places)
        mean_of = strides.over(self, at, value, axes, kind="global_avg_pool2d", keeps=keeps)
        if mean_of is None:
            raise at.refused("a mean can be over the numbers of a sample, and not over the batch")
        return mean_of

    def sum(self, at: Place, left: Value, right: Value) -> Value:
        left, right = self.slices.part(at, left), self.slices.part(at, right)
        if left.time_first != right.time_first:  # an image beside a sequence of its pixels
            sides = (left, right)
            left, right = (self.turned(at, s) if len(s.shape) == 4 else s for s in sides)
        return self._joint(at, "add", "adds", left, right)

    def _joint(self, at: Place, kind: str, does: str, left: Value, right: Value) -> Value:
        """A layer of two values, number by number. Each is repeated where the other has more."""
        if left.shape == right.shape and left.is_seen_as(right.places) and left.is_whole:
            parts: list[Value] | None = [left, right]
        else:
            parts = strides.broadcast(self, at, (left, right))
        if parts is None:
            shapes = [shown(part.places.shape, None) for part in (left, right)]
            raise at.refused(
                f"it {does} {' and '.join(shapes)}, and no order of both is one of each sample"
            )
        return self.layer(at, kind, [part.plain for part in parts]).seen_as(parts[0].places)

    def concatenation(self, at: Place, values: Sequence[Any], axis: int) -> Value:
        if not all(isinstance(value, Value) for value in values):
            raise at.refused("it joins what is no layer's result")
        if len(values) == 1:
            return values[0]
        values = [self.slices.part(at, value) for value in values]
        first = values[0]
        axis %= first.places.ndim
        images = [value.image for value in values if value.image is not None]
        if axis == 1 and len(images) == len(values):
            return self.layer(at, "concatenate", images).as_line_if(first)
        values = [self.sequence(at, value) for value in values]
        rows = [value.rows for value in values]
        same = all(order is not None and np.array_equal(order, rows[0]) for order in rows)
        if not same or axis != first.places.ndim - 1 or any(len(v.shape) == 4 for v in values):
            joined = strides.joined(self, at, values, axis)
            if joined is None:
                shapes = [shown(value.places.shape, None) for value in values]
                raise at.refused(
                    f"it joins {' and '.join(shapes)} in dimension {axis}, and can only join what "
                    "belongs to one sample"
                )
            return joined
        return self.layer(at, "concatenate", values).of_rows(rows[0])

    def product(self, at: Place, left: Value, right: Value) -> Value:
        """The product of values of one shape and order, or of a value and factors for all its
        places."""
        left, right = self.slices.part(at, left), self.slices.part(at, right)
        for whole, factor in ((left, right), (right, left)):
            if whole.shape != factor.shape and self._is_gate(whole, factor):
                return self.layer(at, "multiply", [whole, factor]).seen_as(whole.places)
        return self._joint(at, "multiply", "multiplies", left, right)

    @staticmethod
    def _is_gate(whole: Value, factor: Value) -> bool:
        """Whether each number of `whole` meets the factor of its sample and channel."""
        count = len(whole.shape)
        if count == 3 and whole.time_first and factor.shape == whole.shape[1:]:
            shared = whole.places % math.prod(factor.shape)
        elif (
            count == 4 and factor.shape[:2] == whole.shape[:2] and math.prod(factor.shape[2:]) == 1
        ):
            shared = whole.places // math.prod(whole.shape[2:])
        else:
            return False
        try:
            return whole.is_whole and np.array_equal(
                np.broadcast_to(factor.places, shared.shape), shared
            )
        except ValueError:
            return False

    def recurrent(
        self,
        at: Place,
        kind: str,
        value: Value,
        layers: Sequence[Sequence[Any]],
        *,
        hidden_size: int,
        batch_first: bool,
        dropout: float = 0.0,
    ) -> Value:
        """A stack of recurrent layers with these parameters, and dropout between them. What it
        gives has the axes of what it reads."""
        axes = (1, 0, 2) if batch_first else (0, 1, 2)
        value = self.sequence(at, value)

        def is_sequence(value: Value) -> bool:
            has_time = value.time_first and len(value.shape) == 3
            return has_time and value.is_seen_as(value.plain.places.transpose(axes))

        if not is_sequence(value) and value.places.ndim == 3:
            time, width = value.places.shape[1 if batch_first else 0], value.places.shape[2]
            value = strides.rearranged(self, at, value, (time, width)) or value
        if not is_sequence(value):
            order = "[batch, time, width]" if batch_first else "[time, batch, width]"
            raise at.refused(
                f"it reads {shown(value.places.shape, None)} as {order} "
                f"(batch_first={batch_first}), and what {value.layer} gives is no such sequence, "
                f"but {_shape(value)}"
            )
        for number, parameters in enumerate(layers):
            if number and dropout:
                value = self.layer(at, "dropout", [value], p=dropout)
            value = self.layer(at, kind, [value], parameters, hidden_size=hidden_size)
        return value.seen_as(value.plain.places.transpose(axes))

    def embedding(
        self, at: Place, tokens: Value, parameters: Sequence[Any], count: int, width: int
    ) -> Value:
        """An embedding. Of a batch of single tokens it gives rows, not a sequence of one place."""
        tokens = self.slices.part(at, tokens)
        if tokens.layer not in self.tokens or not tokens.is_whole:
            raise at.refused(
                "it reads no tokens of the input, [batch, time]; --input-type=tokens:N has them"
            )
        sizes: dict[str, Any] = {"num_embeddings": count, "embedding_dim": width}
        given = self.layer(at, "embedding", [tokens], parameters, **sizes).of_rows(tokens.places)
        return self.viewed(at, given, given.places)

    def sequence(self, at: Place, value: Value) -> Value:
        """An image whose channels are read as rows becomes a sequence, [height width, batch,
        channels], seen as before. Other values stay as they are."""
        value = self.slices.part(at, value)
        if len(value.shape) != 4 or value.time_first or value.rows is not None:
            return value
        return value if as_sequence(value).rows is None else self.turned(at, value)

    def _as_image(self, at: Place, value: Value) -> Value | None:
        """A sequence, a vector, or an image in another order as the image or line that it is seen
        as."""
        seen = value.places
        if not value.is_whole:
            return None
        if len(value.shape) == 2 and not value.time_first and seen.ndim in (3, 4):
            rows = seen.reshape(len(seen), -1)
            if rows.shape == value.shape and value.seen_as(rows).is_plain:
                height = seen.shape[2] if seen.ndim == 4 else 1
                image = self.image_of(at, value, height, seen.shape[1])
                return image.seen_as(image.places.reshape(seen.shape))
        is_image = len(value.shape) == 4 and not value.time_first
        if seen.ndim not in (3, 4) or not (
            is_image or (len(value.shape) == 3 and value.time_first)
        ):
            return None
        sequence = as_sequence(value) if is_image else value
        time, batch, width = sequence.shape
        channels, height = seen.shape[1], seen.shape[2] if seen.ndim == 4 else 1
        for axes, split_channels in (((1, 2, 0), 0), ((1, 0, 2), channels)):
            fits = time % channels == 0 if split_channels else channels == width
            if seen.shape[0] == batch and fits:
                places = sequence.plain.places.transpose(axes).reshape(seen.shape)
                if sequence.is_seen_as(places):
                    sequence = self.turned(at, value) if is_image else value
                    image = self.image_of(at, sequence, height, split_channels)
                    return image.seen_as(image.places.reshape(seen.shape))
        return None

    def row_of_sequence(self, at: Place, value: Value) -> Value:
        """A whole sequence as a row of each sample's numbers. The code sees it as before."""
        time, batch, width = value.shape
        flat = self.layer(at, "flatten", [self.image_of(at, value, 1, 0)])
        order = flat.plain.places.reshape(batch, width, time).transpose(2, 0, 1)
        return flat.seen_as(order.ravel()[value.places])

    def as_output(self, at: Place, value: Value) -> Value:
        """The output: a part of a result, or a result in another order, becomes rows of its own."""
        value = self.slices.part(at, value)
        is_turned = len(value.places) == BATCH and value.places.ndim == 2 and not value.is_plain
        if value.is_whole and not is_turned:
            return value
        return strides.rearranged(self, at, value) or value

    # ---- the whole

    def alive(self, value: Value) -> list[Step]:
        """The layers that `value` depends on, in order. The last one gives it."""
        needed = {value.layer}
        for name, step in reversed(self.steps.items()):
            if name in needed:
                needed.update(step.reads)
        return [step for name, step in self.steps.items() if name in needed]

    def described(self, name: str, value: Value, loss_function: str) -> dict[str, Any]:
        """The JSON of the network whose output is `value`."""
        time_first, shape, places = value.time_first, value.shape, value.plain.places
        orders = [places]
        if time_first and len(shape) == 3:
            classes = shape[-1]
            orders += [places.transpose(axes) for axes in ((1, 0, 2), (1, 2, 0), (0, 2, 1))]
            orders += [order.reshape(-1, classes) for order in orders[:2]]
            if value.places.ndim == 4:  # images of logits
                orders.append(orders[2].reshape(value.places.shape))
        elif shape[-1] == 1:
            orders.append(places[:, 0])
        elif LOSSES[loss_function] != "cross_entropy" or 1 in (
            math.prod(value.places.shape[1:-1]),
            math.prod(value.places.shape[2:]),  # images of one pixel
        ):
            if value.places.size == places.size:
                orders.append(places.reshape(value.places.shape))
            if LOSSES[loss_function] != "cross_entropy" and value.is_whole:
                orders.append(value.places)  # a mean over all numbers has no order
        rank = 3 if time_first else 2
        if len(shape) != rank or not any(map(value.is_seen_as, orders)):
            raise Refused(
                f"the network gives {shown(value.places.shape, None)} for a batch of {BATCH}; a "
                "row of values for each sample, or for each token of it, can be trained"
            )
        if value.layer == "input":
            raise Refused("the network has no layers")
        loss = LOSSES[loss_function]
        is_classes = loss == "cross_entropy"
        if is_classes and shape[-1] < 2:
            raise Refused(
                "the network gives one number for each sample, too few for cross-entropy; "
                "--loss-function=mse or bce trains it"
            )
        layers, before = [], "input"
        for step in self.alive(value):
            reads = {} if step.reads == [before] else {"inputs": step.reads}
            frozen = {"requires_grad": False} if self.is_frozen(step) else {}
            layers.append(step.layer | frozen | reads)
            before = step.layer["name"]
        return {
            "name": name,
            "input": {"shape": self._sample, "type": "i32" if self._is_tokens else "f32"},
            "classes" if is_classes else "outputs": shape[-1],
            **({"labels": [shape[0]]} if time_first else {}),
            "loss": loss,
            "layers": layers,
        }


class At(Place, Protocol):
    """An operation in a network that is built."""

    build: Builder


def _points(value: Value, rank: int) -> np.ndarray:
    """The places of a row that is seen as an image of one pixel, with `rank` dimensions."""
    return value.plain.places.reshape(*value.shape, *[1] * (rank - 2))


def _as_line(value: Value) -> Value:
    """A sequence as a line, [batch, width, 1, time]."""
    t, b, w = value.shape
    places = np.argsort(value.plain.places.transpose(1, 2, 0).ravel())[value.places]
    return replace(value, shape=(b, w, 1, t), time_first=False, view=places)


def _shape(value: Value) -> str:
    return shown(value.shape, int(value.time_first))


def _check_window(at: Place, kind: str, layer: dict[str, Any]) -> None:
    size, dilation = both(layer["kernel_size"]), both(layer.get("dilation", 1))
    extents = [d * (k - 1) + 1 for d, k in zip(dilation, size, strict=True)]
    padding, more = (layer.get(name, 0) for name in ("padding", "output_padding"))
    if any(map(operator.ge, both(padding), extents)):
        raise at.refused(f"padding is {padding}, and can only be below {pair(extents, 1)}")
    if any(map(operator.ge, both(more), both(layer.get("stride", 1)))):
        raise at.refused(f"output_padding is {more}, and can only be below the stride")
    if kind == "max_pool2d" and math.prod(size) > MOST_PLACES:
        raise at.refused(f"its windows have {math.prod(size)} places; {MOST_PLACES} are the most")
