# SPDX-License-Identifier: Apache-2.0
"""ONNX's operators as PyTorch's operations (torch_operations.py): one line each, or a function
where attributes decide; and what an exporter makes of a layer, put together again."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import torch

from crossover_bench.networks import attention, root_mean_square
from crossover_bench.networks.calls import Parameter
from crossover_bench.networks.onnx_node import Node, exact
from crossover_bench.networks.recurrences import backwards
from crossover_bench.networks.steps import Step
from crossover_bench.networks.torch_operations import without_padding
from crossover_bench.networks.values import BATCH, Value, non_defaults
from crossover_bench.networks.windows import padded_by_itself
from crossover_bench.peers.pytorch.layers import LAYERS

_OF_GELU = "it is known of GELU alone, x * (1 + erf(x / sqrt(2))) * 0.5"


@dataclass(frozen=True)
class Gelu:
    """A part of a GELU, x * (1 + erf(x / sqrt(2))) * 0.5. No layer gives it."""

    of: Value
    is_shifted: bool = False  # 1 + erf
    is_gated: bool = False  # times x
    factor: float = 1.0


@dataclass(frozen=True)
class OneHot:
    """Rows of zeros with a one where a token is. No layer gives them; their product by a table is
    an embedding."""

    tokens: Value


def _equal(node: Node) -> Any:
    index = 0 if isinstance(node.inputs[0], Value) else 1
    if node.value(index).layer not in node.build.tokens:
        return _compared("eq", node)
    tokens, numbers = node.value(index), node.weight(1 - index)
    seen, _ = np.broadcast_arrays(tokens.places, numbers)
    each = np.arange(seen.shape[-1])
    is_one = (seen == seen[..., :1]).all() and np.array_equal(numbers.ravel(), each)
    if not is_one:
        raise node.refused("it can only say of tokens which of all each is")
    return OneHot(tokens.seen_as(seen[..., 0]))


def _compared(operation: str, node: Node) -> Any:
    return node.call(operation, **_pair(node, Value))


def _erf(node: Node) -> Gelu:
    scaled, factor = node.inputs[0], 1 / math.sqrt(2)
    is_scaled = isinstance(scaled, attention.Scaled)
    if not is_scaled or not math.isclose(scaled.factor, factor, rel_tol=1e-6):
        raise node.refused(_OF_GELU)
    return Gelu(scaled.value)


def _gelu_times(node: Node, partial: Gelu, factor: Any) -> Gelu | Value:
    """`factor`: x, half of it, or a half."""
    if isinstance(factor, Value):
        factor = attention.Scaled(factor, 1.0, node)
    if isinstance(factor, attention.Scaled):
        same = factor.value.layer == partial.of.layer
        if partial.is_gated or not same or not factor.value.is_seen_as(partial.of.places):
            raise node.refused("it gates another result than that whose erf it has")
        partial, factor = replace(partial, is_gated=True), factor.factor
    partial = replace(partial, factor=partial.factor * factor)
    if partial.is_shifted and partial.is_gated and partial.factor == 1 / 2:
        return node.build.elementwise(node, "gelu", partial.of)
    return partial


def _gelu_plus(node: Node, partial: Gelu, added: np.ndarray) -> Gelu:
    if partial.is_shifted or added.size != 1 or added != 1:
        raise node.refused(_OF_GELU)
    return replace(partial, is_shifted=True)


def _function(operation: str, *attributes: str) -> Callable[[Node], Any]:
    """PyTorch's operation of one value, with these attributes for the numbers of its layer."""
    numbers = LAYERS[operation].numbers or {} if attributes else {}

    def layers(node: Node) -> Any:
        given = dict(zip(numbers, map(node.number, attributes), strict=True))
        return node.call(operation, self=node.inputs[0], **given)

    return layers


def _hard_sigmoid(node: Node) -> Any:
    """PyTorch's has a slope of 1/6; another one is a line held between 0 and 1."""
    slope, shift = node.number("alpha"), node.number("beta")
    if math.isclose(slope, 1 / 6, rel_tol=1e-6) and shift == 0.5:
        return node.call("hardsigmoid", self=node.inputs[0])
    line = attention.affine(node, attention.scaled(node, node.value(), slope), 1.0, shift)
    return node.call("clamp", self=line, min=0.0, max=1.0)


def _local_response_norm(node: Node) -> Value:
    """x / (bias + alpha * the mean of x * x in a window of channels) ^ beta."""
    size, build, value = node.get("size"), node.build, node.value()
    if size % 2 == 0:
        raise node.refused(f"size is {size}, and can only be odd")
    squares = build.product(node, value, value)
    rows = squares.places.reshape(BATCH, 1, value.places.shape[1], -1)
    window: dict[str, Any] = {"kernel_size": [size, 1], "stride": 1, "padding": [size // 2, 0]}
    means = build.image(node, "avg_pool2d", squares.seen_as(rows), **window)
    means = means.seen_as(means.places.reshape(value.places.shape))
    below = attention.affine(node, means, node.number("alpha"), node.number("bias"))
    return build.product(node, value, node.call("pow", self=below, exponent=-node.number("beta")))


def _clip(node: Node) -> Any:
    least, most = (exact(node.constant(index)) for index in (1, 2))
    return node.call("clamp", self=node.inputs[0], min=least, max=most)


def _of_two(operation: str, held: str) -> Callable[[Node], Any]:
    """The larger or the smaller of two results, or of a result and a number."""

    def layers(node: Node) -> Any:
        both = _pair(node)
        bound = next((each for each in both.values() if isinstance(each, float)), None)
        if bound is None:
            return node.call(operation, **both)
        value = next(each for each in both.values() if each is not bound)
        return node.call("clamp", self=value, **{held: bound})

    return layers


def _pad(node: Node) -> Value:
    node.only(mode=("constant", "reflect", "edge", "wrap"))
    value, zeros, fill = node.value(), node.weight(1), node.constant(2)
    axes, rank = node.constant(3), value.places.ndim
    counts = np.zeros((2, rank), dtype=int)
    counts[:, slice(None) if axes is None else axes] = zeros.reshape(2, -1)
    if (mode := node.get("mode", "constant")) != "constant":
        return padded_by_itself(node, value, list(zip(*counts.tolist(), strict=True)), mode)
    return _padded(node, value, counts, 0 if fill is None else exact(fill))


def _padded(node: Node, value: Value, counts: np.ndarray, fill: float = 0) -> Value:
    """The value with zeros in front of each dimension and behind it. A layer has them, as a file's
    convolution that reads them has a padding of its own."""
    pad = counts.T[::-1].ravel().tolist()
    padded = node.call("constant_pad_nd", self=value, pad=pad, value=fill)
    return attention.as_layers(node, padded)


def _around(ends: Sequence[int]) -> np.ndarray:
    """The pads of a convolution or a pool as counts for each dimension."""
    return np.hstack([np.zeros((2, 2), dtype=int), np.reshape(ends, (2, -1))])


def _cast(node: Node) -> Value | OneHot:
    if isinstance(node.inputs[0], OneHot):
        return node.inputs[0]
    numbers = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    if node.get("to") not in numbers or node.value().layer in node.build.tokens:
        raise node.refused("it makes another type of a result, which no layer does")
    return node.value()


def _dropout(node: Node) -> Any:
    ratio = node.constant(1)
    rate = 0.5 if ratio is None else round(float(ratio), 7)
    return node.call("dropout", input=node.inputs[0], p=rate, train=True)


def _linear(node: Node, weight: np.ndarray, bias: Parameter | None) -> Any:
    return node.call("linear", input=node.inputs[0], weight=node.trained(weight, 1), bias=bias)


def _gemm(node: Node) -> Any:
    node.only(alpha=1.0, beta=1.0, transA=0)
    weight, bias = node.weight(1), node.constant(2)
    weight = weight if node.get("transB", 0) else weight.T
    if bias is not None and bias.size != weight.shape[0]:
        raise node.refused(
            f"it adds {list(bias.shape)}, and a linear layer adds a number to each output"
        )
    return _linear(node, weight, node.parameter(2))


def _matmul(node: Node) -> Any:
    left, right = node.inputs
    if not isinstance(right, np.ndarray):
        return node.call("matmul", self=left, other=right)
    if right.ndim != 2:
        raise node.refused(f"its weights are {list(right.shape)}, and can only be a matrix")
    if isinstance(left, OneHot):
        return node.call("embedding", weight=node.parameter(1), indices=left.tokens)
    return _linear(node, right.T, None)


def _pair(node: Node, *fixed: type) -> dict[str, Any]:
    """Both inputs as PyTorch's arithmetic reads them. A constant of one number is that number;
    others are trained, but for those beside one of the `fixed`, such as a mask."""
    both: list[Any] = []
    for index, given in enumerate(node.inputs):
        if not isinstance(given, np.ndarray):
            both.append(given)
        elif isinstance(node.inputs[1 - index], fixed):
            both.append(torch.from_numpy(np.array(given)))
        elif given.size == 1:
            both.append(exact(given))
        else:
            both.append(Parameter(given.squeeze(), node.trained(given, index).seen))
    return {"self": both[0], "other": both[1]}


def _add(node: Node) -> Any:
    index = 1 if isinstance(node.inputs[0], np.ndarray) else 0
    value, added = node.inputs[index], node.inputs[1 - index]
    if not isinstance(added, np.ndarray):
        return node.call("add", **_pair(node, attention.Scores, attention.Scaled))
    if isinstance(value, Gelu):
        return _gelu_plus(node, value, added)
    if (norm := _of_channels(node, index, added)) is not None:
        norm.parameters[1] = norm.parameters[1] + added.ravel()
        return value
    step = node.build.steps.get(value.layer) if isinstance(value, Value) else None
    is_row = step is not None and step.layer["type"] == "linear"
    is_row = is_row and added.size == value.shape[-1] == added.shape[-1]
    is_bias = is_row or _is_of_channels(node, index, added, ("conv2d", "conv_transpose2d"))
    if step and is_bias and step.layer.get("bias") is False and node.is_read_once(index):
        step.layer.pop("bias")  # the bias of the product in front of it
        step.parameters.append(added.ravel())
        step.count += added.size
        return value
    return node.call("add", **_pair(node, attention.Scores, attention.Scaled))


def _sub(node: Node) -> Any:
    return node.call("sub", **_either(node, "subtracted"))


def _either(node: Node, does: str) -> dict[str, Any]:
    """Both inputs. Numbers that lie in the file are trained, since PyTorch's exporter gives what is
    trained and what is not alike; numbers that the graph calculates are not."""
    both = _pair(node)
    for name, (argument, given) in zip(node.node.input, both.items(), strict=True):
        if not isinstance(given, Parameter):
            continue
        if name not in node.graph.may_be_trained:
            both[argument] = torch.from_numpy(np.array(node.graph.values[name]))
            continue
        node.build.notes.append(
            f"{node.name}: {given.of.size} numbers are {does} and trained; the file does not say "
            "whether they were"
        )
    return both


def _of_channels(node: Node, index: int, constant: np.ndarray) -> Step | None:
    """The normalization before this node, if it can have the constant, a number for each
    channel. Caffe's batch normalization has its factors and offsets in such nodes."""
    if not _is_of_channels(node, index, constant, ("group_norm", "batch_norm")):
        return None
    return node.build.steps[node.inputs[index].layer] if node.is_read_once(index) else None


def _is_of_channels(node: Node, index: int, constant: np.ndarray, kinds: Sequence[str]) -> bool:
    """Whether the constant has a number for each channel of an image that such a layer gives."""
    value = node.inputs[index]
    step = node.build.steps.get(value.layer) if isinstance(value, Value) else None
    if step is None or step.layer["type"] not in kinds or value.image is None:
        return False
    wanted = (1, value.shape[1], *[1] * (value.places.ndim - 2))
    return (1, *constant.shape)[-len(wanted) :] == wanted


def _mul(node: Node) -> Any:
    for index, other in ((0, node.inputs[1]), (1, node.inputs[0])):
        partial = node.inputs[index]
        if isinstance(other, np.ndarray) and (norm := _of_channels(node, index, other)) is not None:
            norm.parameters[:] = [numbers * other.ravel() for numbers in norm.parameters]
            return node.value(index)
        if isinstance(partial, Gelu):
            return _gelu_times(node, partial, exact(other))
    return node.call("mul", **_pair(node))


def _div(node: Node) -> Any:
    left, right = node.inputs
    is_inverse = isinstance(left, np.ndarray) and (left == 1).all()
    if isinstance(right, root_mean_square.Partial) and is_inverse:
        return node.call("reciprocal", self=right)
    return node.call("div", **_either(node, "divided by"))


def _where(node: Node) -> Any:
    """Scores with a mask, or what a comparison chooses."""
    if isinstance(node.inputs[0], Value):
        both = (exact(given) for given in node.inputs[1:])
        arguments = dict(zip(("condition", "self", "other"), (node.inputs[0], *both), strict=True))
        return node.call("where", **arguments)
    condition, (_, chosen, other) = node.weight(0), node.inputs
    hides = isinstance(chosen, np.ndarray)
    scores, fill = (other, chosen) if hides else (chosen, node.weight(2))
    mask = torch.from_numpy(np.array(condition if hides else ~condition))
    return node.call("masked_fill", self=scores, mask=mask, value=fill)


def _attention(node: Node) -> Any:
    """ONNX's own attention, since opset 23."""
    node.only(softcap=0.0, q_num_heads=0, kv_num_heads=0)
    node.only(left_window_size=-1, right_window_size=-1)
    if any(given is not None for given in node.inputs[3:]):
        raise node.refused("a mask or keys of the past are given")
    parts = dict(zip(("query", "key", "value"), node.inputs, strict=False))
    causal, scale = bool(node.get("is_causal", 0)), node.get("scale")
    return node.call("scaled_dot_product_attention", **parts, is_causal=causal, scale=scale)


def _window(node: Node, size: Sequence[int]) -> dict[str, list[int]]:
    """What convolutions and pools share."""
    node.only(auto_pad=("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    padding = [0] * node.directions if node.pads_apart else node.each("pads", 0)
    if node.get("auto_pad", "").startswith("SAME"):
        padding = _same(node, size)
    return {"stride": node.each("strides", 1), "padding": padding}


def _same(node: Node, size: Sequence[int]) -> list[int]:
    """The padding with which an image keeps its size, or its size divided by the stride; that of a
    transposed convolution multiplies by the stride."""
    places = node.value().places.shape[2:]
    sides = []
    for axis, extent in enumerate(size):
        stride = node.get("strides", [1] * len(places))[axis]
        wide = node.get("dilations", [1] * len(places))[axis] * (extent - 1) + 1
        zeros = max(0, (-(-places[axis] // stride) - 1) * stride + wide - places[axis])
        if node.node.op_type == "ConvTranspose":  # which leaves out so many of what it makes
            zeros = wide + node.get("output_padding", [0] * len(places))[axis] - stride
        if zeros % 2 or zeros < 0:
            raise node.refused("auto_pad adds more zeros at one end than at the other here")
        sides.append(zeros // 2)
    return sides


def _convolution(node: Node) -> dict[str, Any]:
    size = node.weight(1).shape[2:]
    parameters = {"weight": node.parameter(1), "bias": node.parameter(2)}
    return parameters | _window(node, size) | {"dilation": node.each("dilations", 1)}


def _conv(node: Node) -> Any:
    value, groups = node.value(), node.get("group", 1)
    if ends := node.pads_apart:
        value = _padded(node, value, _around(ends))
    operation = f"conv{node.directions}d"
    return node.call(operation, input=value, groups=groups, **_convolution(node))


def _conv_transpose(node: Node) -> Any:
    node.only(group=1)  # onnx's reference takes the weights of others for those of outputs
    if node.get("output_shape", None):
        raise node.refused("output_shape is given; output_padding says the same")
    more = node.each("output_padding", 0)
    operation = f"conv_transpose{node.directions}d"
    return node.call(
        operation, input=node.value(), output_padding=more, groups=1, **_convolution(node)
    )


def _resize(node: Node) -> Any:
    """With a whole factor, both ways to count pixels repeat each pixel, if it is the nearest."""
    node.only(mode=("nearest", "linear"), antialias=0, keep_aspect_ratio_policy="stretch")
    is_linear = node.get("mode", "nearest") == "linear"
    if is_linear:
        node.only(coordinate_transformation_mode=("half_pixel", "align_corners"), exclude_outside=0)
    else:
        node.only(coordinate_transformation_mode=("half_pixel", "asymmetric"))
    counts = node.get("coordinate_transformation_mode", "half_pixel")
    rounds = ("floor",) if counts == "asymmetric" else ("round_prefer_floor", "round_prefer_ceil")
    if not is_linear and node.get("nearest_mode", "round_prefer_floor") not in rounds:
        raise node.refused(f"nearest_mode can only be {' or '.join(rounds)}")
    value, factors, sizes = node.value(), node.constant(2), node.constant(3)
    shape = value.places.shape
    axes, resized = list(node.get("axes", range(len(shape)))), np.array(shape, dtype=float)
    if sizes is not None and sizes.size:
        resized[axes] = sizes
    elif factors is not None:
        resized[axes] *= factors
    else:
        raise node.refused("neither its factors nor its sizes are constants")
    if list(resized[:2]) != list(shape[:2]):
        raise node.refused("it resizes the batch or the channels")
    spatial = resized[2:].tolist()
    if not is_linear:
        return node.call(f"upsample_nearest{len(spatial)}d", input=value, output_size=spatial)
    kind = {1: "linear1d", 2: "bilinear2d"}.get(len(spatial), "trilinear3d")
    aligned = counts == "align_corners"
    return node.call(f"upsample_{kind}", input=value, output_size=spatial, align_corners=aligned)


def _pool(node: Node) -> Any:
    is_max = node.node.op_type == "MaxPool"
    size = node.each("kernel_shape", 1)
    value = node.value()
    settings: dict[str, Any] = {"kernel_size": size, **_window(node, size)}
    settings["ceil_mode"] = bool(node.get("ceil_mode", 0))
    ends, counts_padding = node.pads_apart, bool(node.get("count_include_pad", 0))
    if is_max:
        node.only(storage_order=0)
        if ends:  # a window that ends behind the last place is one of ceil_mode
            around = np.reshape(ends, (2, -1))
            settings |= {"padding": around[0].tolist(), "ceil_mode": _ends_behind(node, around)}
    else:
        settings["count_include_pad"] = counts_padding or bool(ends)
    if node.each("dilations", 1) != [1] * node.directions:
        raise node.refused(f"dilations is {node.get('dilations')}, and can only be 1")
    operation = f"{'max' if is_max else 'avg'}_pool{node.directions}d"
    if is_max or not ends:
        return node.call(operation, self=value, **settings)

    def pool(read: Value) -> Value:
        pooled: Value = node.call(operation, self=_padded(node, read, _around(ends)), **settings)
        return pooled

    return pool(value) if counts_padding else without_padding(node, value, pool)


def _ends_behind(node: Node, around: np.ndarray) -> bool:
    """Whether windows that end behind the last place are all that more padding at the end makes."""
    sizes = zip(
        *(node.value().places.shape[2:], node.get("kernel_shape")),
        *(node.get("strides", [1] * around.shape[1]), *around.tolist()),
        strict=True,
    )
    for places, extent, stride, front, back in sizes:
        wide = places + 2 * front - extent
        if -(-wide // stride) != (places + front + back - extent) // stride or back < front:
            raise node.refused(
                f"pads is {around.ravel().tolist()}, and can only be the same at both ends, or as "
                "many more at the end as the last window reaches"
            )
    return True


def _global_mean(node: Node) -> Any:
    size = [1] * node.directions
    return node.call(f"adaptive_avg_pool{len(size)}d", self=node.value(), output_size=size)


def _global_max(node: Node) -> Any:
    places = [*range(2, node.value().places.ndim)]
    return node.call("amax", self=node.value(), dim=places, keepdim=True)


def _reduced(operation: str) -> Callable[[Node], Any]:
    def layers(node: Node) -> Any:
        keeps = bool(node.get("keepdims", 1))
        return node.call(operation, self=node.inputs[0], dim=node.axes, keepdim=keeps)

    return layers


_OF_NORM = {"ReduceMean": "mean", "Add": "add", "Mul": "mul", "Div": "div"}


def goes_on(node: Node, partial: root_mean_square.Partial) -> bool:
    """Whether the node is the next step of an rms_norm."""
    kind, arguments = node.node.op_type, list(node.inputs)
    operation = _OF_NORM.get(kind, kind.lower())
    if kind == "ReduceMean":
        is_last = node.axes in ([-1], [partial.of.places.ndim - 1])
        arguments = [partial, [-1] if is_last else node.axes, bool(node.get("keepdims", 1))]
    elif kind == "Div" and isinstance(arguments[0], np.ndarray) and (arguments[0] == 1).all():
        operation = "reciprocal"
    elif kind in _OF_NORM:
        arguments = list(_pair(node).values())
    return root_mean_square.goes_on(partial, operation, arguments)


def _batch_norm(node: Node) -> Any:
    scale, shift = node.parameter(1), node.parameter(2)
    norm = {"weight": scale, "bias": shift, "training": True, "eps": node.epsilon}
    given = node.call("batch_norm", input=node.inputs[0], **norm)
    node.graph.statistics[given.layer] = (node.weight(3), node.weight(4))
    return given


def _group_norm(node: Node) -> Any:
    if node.weight(1).size != node.value().places.shape[1]:
        raise node.refused(
            "it has a weight for each group; from opset 21 on it is for each channel"
        )
    norm = {"weight": node.parameter(1), "bias": node.parameter(2), "eps": node.epsilon}
    return node.call("group_norm", input=node.value(), num_groups=node.get("num_groups"), **norm)


def _instance_norm(node: Node) -> Value:
    """By channels, or by groups of channels, if the image is seen as [batch, groups, ...]. So
    PyTorch exports GroupNorm below opset 21, with weights and bias behind it."""
    value, scale, shift = node.value(), node.weight(1), node.weight(2)
    groups, in_order = value.places.shape[1], value.plain.places.ravel()
    if len(value.shape) != 4 or not np.array_equal(value.places.ravel(), in_order):
        raise node.refused("it reads no image as a layer gives it, nor groups of its channels")
    if groups != value.shape[1] and ((scale != 1).any() or shift.any()):
        raise node.refused("it has a weight for each group, and can only have 1, without bias")
    each = value.shape[1] // groups
    settings = {"num_groups": groups, **non_defaults(eps=(node.epsilon, 1e-5))}
    parameters = [scale.repeat(each), shift.repeat(each)]
    given = node.build.layer(node, "group_norm", [value.plain], parameters, **settings)
    return given.seen_as(value.places)


def _row_norm(node: Node) -> Any:
    """Of the last dimension; rms_norm has no bias."""
    value, is_rms = node.value(), node.node.op_type == "RMSNormalization"
    node.only(axis=(-1, value.places.ndim - 1))
    width = [node.weight(1).size]
    norm = {"normalized_shape": width, "weight": node.parameter(1), "eps": node.epsilon}
    if is_rms:
        return node.call("rms_norm", input=value, **norm)
    return node.call("layer_norm", input=value, bias=node.parameter(2), **norm)


def _concat(node: Node) -> Any:
    """A constant in front of a sequence is its class token."""
    token, parts = node.inputs[0], node.inputs
    if len(parts) == 2 and isinstance(token, np.ndarray):
        vector = token.reshape(-1, token.shape[-1])[0]
        if not (token == vector).all():
            raise node.refused("what it puts in front is not the same for all samples")
        seen = node.trained(vector, 0).seen
        numbers = np.broadcast_to(np.arange(vector.size), token.shape)
        parts = [Parameter(vector, seen.seen_as(numbers)), parts[1]]
    return node.call("cat", tensors=parts, dim=node.get("axis"))


def _gather(node: Node) -> Any:
    """Rows of a table, or a view."""
    table, rows = node.inputs
    if not isinstance(rows, Value):
        places, axis, taken = node.value().places, node.get("axis", 0), node.weight(1)
        size = places.shape[axis]
        if ((taken < -size) | (taken >= size)).any():  # of a file with a batch of its own
            raise node.refused(f"it takes places that a dimension of {size} does not have")
        return node.build.viewed(node, node.value(), np.take(places, taken, axis))
    node.only(axis=0)
    if node.weight(0).ndim != 2:
        raise node.refused(f"its table is {list(table.shape)}, and can only be a matrix")
    return node.call("embedding", weight=node.parameter(0), indices=rows)


# PyTorch's order of the gates in ONNX's: input, output, forget, cell; update, reset, hidden.
_GATES = {"lstm": [0, 2, 3, 1], "gru": [1, 0, 2]}


def _recurrent(node: Node) -> tuple[Value, Value]:
    """A recurrence with a sequence, weights and biases. Its first states can only be zero, as are
    those that are inputs of the file (onnx_states.py)."""
    kind = node.node.op_type.lower()
    node.only(direction=("forward", "bidirectional", "reverse"), layout=0)
    if kind == "lstm":
        node.only(input_forget=0)
    elif node.get("linear_before_reset", 0) != 1:
        raise node.refused("linear_before_reset is 0, and can only be 1")
    if node.constant(3) is None:
        raise node.refused("it has no biases (B), and bench's has")
    inputs, states, biases = (node.weight(index) for index in (1, 2, 3))
    for index in (4, 7):  # lengths, and a cell that gates see
        if node.constant(index) is not None:
            raise node.refused(f"its input {node.node.input[index]!r} is given")
    first = [np.zeros(1) if (given := node.constant(index)) is None else given for index in (5, 6)]
    size, order = states.shape[-1], _GATES[kind]

    def ordered(gates: np.ndarray, index: int) -> Parameter:
        numbers = gates.reshape(len(order), size, -1)[order].reshape(len(order) * size, -1)
        return node.trained(numbers if index < 3 else numbers.ravel(), index)

    parameters: list[Parameter] = []
    for both in zip(inputs, states, biases, strict=True):
        parameters += [ordered(both[0], 1), ordered(both[1], 2)]
        parameters += [ordered(part, 3) for part in np.split(both[2], 2)]
    hx = first if kind == "lstm" else first[0]
    whole = {"has_biases": True, "num_layers": 1, "batch_first": False}
    whole |= {"bidirectional": len(inputs) == 2}
    is_reversed = node.get("direction", "forward") == "reverse"
    sequence = backwards(node, node.value(), 0) if is_reversed else node.value()
    steps, last, _ = node.call(kind, input=sequence, hx=hx, params=parameters, **whole)
    steps = backwards(node, steps, 0) if is_reversed else steps
    time, batch, _ = steps.places.shape
    by_direction = steps.places.reshape(time, batch, len(inputs), -1)
    return steps.seen_as(
        by_direction.transpose(0, 2, 1, 3)
    ), last  # [time, directions, batch, size]


NODES: dict[str, Callable[[Node], Any]] = {
    **{name: _function(name.lower()) for name in ("Cos", "Mish", "Neg")},
    **{
        operator: _function(name, *attributes)
        for name, entry in LAYERS.items()
        if entry.onnx
        for operator, *attributes in [entry.onnx.split()]
    },
    "Gelu": lambda node: node.call(
        "gelu", self=node.inputs[0], approximate=node.get("approximate", "none")
    ),
    "HardSigmoid": _hard_sigmoid,
    "LRN": _local_response_norm,
    "LogSoftmax": lambda node: node.call(
        "log_softmax", self=node.inputs[0], dim=node.get("axis", -1)
    ),
    "Clip": _clip,
    "Max": _of_two("maximum", "min"),
    "Min": _of_two("minimum", "max"),
    "Pad": _pad,
    "Cast": _cast,
    "Equal": _equal,
    **{
        name: partial(_compared, operation)
        for name, operation in (
            *(("Greater", "gt"), ("GreaterOrEqual", "ge")),
            *(("Less", "lt"), ("LessOrEqual", "le")),
        )
    },
    "Not": lambda node: node.call("logical_not", self=node.inputs[0]),
    "PRelu": lambda node: node.call("prelu", self=node.value(), weight=node.parameter(1)),
    "Dropout": _dropout,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Add": _add,
    "Sub": _sub,
    "Mul": _mul,
    "Div": _div,
    "Pow": lambda node: node.call("pow", self=node.inputs[0], exponent=exact(node.weight(1))),
    "Erf": _erf,
    "Where": _where,
    "Softmax": lambda node: node.call("softmax", self=node.inputs[0], dim=node.get("axis", -1)),
    "Attention": _attention,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Resize": _resize,
    **dict.fromkeys(("MaxPool", "AveragePool"), _pool),
    "GlobalAveragePool": _global_mean,
    "GlobalMaxPool": _global_max,
    "ReduceMax": _reduced("amax"),
    "ReduceMean": _reduced("mean"),
    "ReduceMin": _reduced("amin"),
    "ReduceSum": _reduced("sum"),
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    **dict.fromkeys(("LayerNormalization", "RMSNormalization"), _row_norm),
    "Concat": _concat,
    "Gather": _gather,
    "LSTM": _recurrent,
    "GRU": _recurrent,
}
# What reads a product as attention has it; for all others it becomes layers.
OF_SCORES = ("MatMul", "Mul", "Div", "Add", "Sub", "Where", "Softmax", "Erf")
VIEWS = frozenset(
    (
        *("Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Split", "Expand"),
        "Identity",
    )
)
