# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operations and the layers that they are: one line each, or a function where arguments
decide. What bench's layers do not have is refused by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from networks import attention
from networks.builder import said
from networks.values import Value

if TYPE_CHECKING:
    from networks.from_torch import Call


def _elementwise(kind: str, **only: Any) -> Callable[[Call], Value]:
    def layer(call: Call) -> Value:
        call.only(**only)
        return call.build.elementwise(call, kind, call.value())

    return layer


def _gelu(call: Call) -> Value:
    kind = "gelu_tanh" if call["approximate"] == "tanh" else "gelu"
    return call.build.elementwise(call, kind, call.value())


def _dropout(call: Call) -> Value:
    if not call["train"] or call["p"] == 0:
        return call.value()
    return call.build.elementwise(call, "dropout", call.value(), p=call["p"])


def _linear(call: Call) -> Value:
    weight, bias = call.parameter("weight"), call.parameter("bias")
    out_features, tied = call.shape("weight")[0], call.layer_of(weight)
    if tied and not bias and tied["type"] == "embedding":
        tied["scaled_start"] = True  # that of a product
        own = {"out_features": out_features, "tied": tied["name"]}
        return call.build.rowwise(call, "linear", call.value(), [], **own)
    own = {"out_features": out_features, **said(bias=(bool(bias), True))}
    return call.build.rowwise(call, "linear", call.value(), weight + bias, **own)


def _conv2d(call: Call) -> Value:
    weight, bias = call.parameter("weight"), call.parameter("bias")
    channels, _, *kernel = call.shape("weight")
    size, stride = call.square("kernel_size", kernel), call.square("stride")
    dilation = call.square("dilation")
    if call["padding"] == "same":
        padding = dilation * (size - 1) // 2
        if dilation * (size - 1) % 2 or stride != 1:
            raise call.refused(
                "padding='same' is as much on all sides only of odd kernels with stride 1"
            )
    else:
        padding = 0 if call["padding"] == "valid" else call.square("padding")
    own = said(stride=(stride, 1), padding=(padding, 0), bias=(bool(bias), True))
    own |= said(groups=(call["groups"], 1), dilation=(dilation, 1))
    sizes = {"out_channels": channels, "kernel_size": size}
    return call.build.image(call, "conv2d", call.value(), weight + bias, **sizes, **own)


def _conv_transpose2d(call: Call) -> Value:
    weight, bias = call.parameter("weight"), call.parameter("bias")
    _, channels, *kernel = call.shape("weight")
    groups, stride = call["groups"], call.square("stride")
    own = said(stride=(stride, 1), padding=(call.square("padding"), 0))
    own |= said(output_padding=(call.square("output_padding"), 0), bias=(bool(bias), True))
    own |= said(groups=(groups, 1), dilation=(call.square("dilation"), 1))
    sizes = {"out_channels": channels * groups, "kernel_size": call.square("kernel_size", kernel)}
    return call.build.image(call, "conv_transpose2d", call.value(), weight + bias, **sizes, **own)


def _upsample(call: Call) -> Value:
    value, factors = call.value(), call["scale_factors"]
    before = value.places.shape[2:]
    sizes = call["output_size"] or [a * b for a, b in zip(before, factors, strict=True)]
    return call.build.upsampled(call, value, sizes)


def _pool(call: Call, kind: str) -> Value:
    size, padding = call.square("kernel_size"), call.square("padding")
    stride = call.square("stride") if call["stride"] else size
    ceil_mode = bool(call["ceil_mode"])
    own = said(stride=(stride, size), padding=(padding, 0), ceil_mode=(ceil_mode, False))
    return call.build.image(call, kind, call.value(), kernel_size=size, **own)


def _max_pool2d(call: Call) -> Value:
    call.only(dilation=[1, 1] if isinstance(call["dilation"], list) else 1)
    return _pool(call, "max_pool2d")


def _avg_pool2d(call: Call) -> Value:
    call.only(divisor_override=None)
    if call.square("padding"):  # without any, no zeros are counted
        call.only(count_include_pad=True)
    return _pool(call, "avg_pool2d")


def _adaptive_avg_pool2d(call: Call) -> Value:
    value, size = call.value(), call.square("output_size")
    if size == 1:
        return call.build.global_mean(call, value, keeps=True)
    height, width = value.places.shape[-2:]
    if height != width or height % size:
        raise call.refused(
            f"places of {height} by {width} can't be divided into {size} equal parts"
        )
    if height == size:
        return value
    return call.build.image(call, "avg_pool2d", value, kernel_size=height // size)


def _mean(call: Call) -> Value:
    return call.build.mean(call, call.value(), call["dim"] or [], call["keepdim"])


def _batch_norm(call: Call) -> Value:
    if call["weight"] is None:
        raise call.refused("affine is False, and can only be True")
    call.only(training=True, momentum=0.1, eps=1e-5)
    parameters = call.parameter("weight") + call.parameter("bias")
    return call.build.image(call, "batch_norm", call.value(), parameters)


def _group_norm(call: Call) -> Value:
    if call["weight"] is None:
        raise call.refused("affine is False, and can only be True")
    own = {"num_groups": call["num_groups"], **said(eps=(call["eps"], 1e-5))}
    parameters = call.parameter("weight") + call.parameter("bias")
    return call.build.image(call, "group_norm", call.value(), parameters, **own)


def _instance_norm(call: Call) -> Value:
    if call["weight"] is None:
        raise call.refused("affine is False, and can only be True")
    call.only(use_input_stats=True)
    own = {"num_groups": call.shape("weight")[0], **said(eps=(call["eps"], 1e-5))}
    parameters = call.parameter("weight") + call.parameter("bias")
    return call.build.image(call, "group_norm", call.value(), parameters, **own)


def _layer_norm(call: Call) -> Value:
    if len(call["normalized_shape"]) != 1:
        raise call.refused("normalized_shape has several dimensions, and can only have the last")
    if call["weight"] is None or call["bias"] is None:
        raise call.refused("weight or bias is missing; layer_norm has both")
    own = said(eps=(call["eps"], 1e-5))
    parameters = call.parameter("weight") + call.parameter("bias")
    return call.build.rowwise(call, "layer_norm", call.value(), parameters, **own)


def _add(call: Call) -> Value:
    call.only(alpha=1)
    left, right = call["self"], call["other"]
    if isinstance(left, Value) and isinstance(right, Value):
        return call.build.sum(call, left, right)
    value = left if isinstance(left, Value) else call.value("other")
    name, table = call.table("self" if value is right else "other")
    value = call.build.sequence(call, value)
    if value.time_first and len(value.shape) == 3:
        width = value.shape[-1]
        time = value.places // (value.shape[1] * width)
        shape = value.places.shape
        seen = np.broadcast_to(table, shape) if table.ndim <= len(shape) else table
        whole = seen.shape == shape and (seen == time * width + value.places % width).all()
        if whole and table.size == value.shape[0] * width:
            given = call.build.layer(call, "position_embedding", [value], [name])
            return given.seen_as(value.places)
    raise call.refused(
        "a parameter can only be added to a sequence, as a table [time, width] of its length"
    )


def _cat(call: Call) -> Value:
    """A parameter in front of a sequence is its class token."""
    parts, dim = call["tensors"], call["dim"]
    if len(parts) == 2 and isinstance(parts[1], Value) and not isinstance(parts[0], Value):
        name, token = call.part("tensors", 0)
        value = call.build.sequence(call, parts[1])
        return call.build.class_token(call, name, token, value, dim)
    return call.build.concatenation(call, parts, dim)


def _mul(call: Call) -> Any:
    left, right = call["self"], call["other"]
    if isinstance(left, Value) and isinstance(right, Value):
        return call.build.product(call, left, right)
    return attention.scaled(call)


def _rms_norm(call: Call) -> Value:
    if len(call["normalized_shape"]) != 1:
        raise call.refused("normalized_shape has several dimensions, and can only have the last")
    if call["weight"] is None:
        raise call.refused("weight is missing, and rms_norm has one")
    own = said(eps=(call["eps"], None))
    return call.build.rowwise(call, "rms_norm", call.value(), call.parameter("weight"), **own)


def _embedding(call: Call) -> Any:
    if not isinstance(call["indices"], Value):  # rows of a table that are always the same
        return call.rows_of_table("weight", call["indices"])
    call.only(padding_idx=-1, scale_grad_by_freq=False, sparse=False)
    tokens = call.value("indices")
    if tokens.layer != "input" or not tokens.is_whole or len(tokens.shape) != 2:
        raise call.refused(
            "it reads no tokens of the input, [batch, time]; --input-type=tokens:N has them"
        )
    count, width = call.shape("weight")
    sizes = {"num_embeddings": count, "embedding_dim": width}
    weight = call.parameter("weight")
    return call.build.layer(call, "embedding", [tokens], weight, **sizes).of_rows(tokens.places)


def _lstm(call: Call) -> Any:
    call.only(has_biases=True, bidirectional=False)
    if call["num_layers"] > 1:
        call.only(dropout=0.0)
    if any(not hasattr(state, "any") or state.any() for state in call["hx"]):
        raise call.refused("its first state is given, and can only be zero")
    flat = call.parameters("params")
    count = len(flat) // call["num_layers"]
    if count != 4:
        raise call.refused("proj_size is given, and can only be 0")
    layers = [flat[first : first + count] for first in range(0, len(flat), count)]
    value, batch_first = call.value(), call["batch_first"]
    hidden_size = call.shape("params", 1)[1]
    given = call.build.lstm(call, value, layers, hidden_size, batch_first)
    return given, None, None  # its last states are no layer's result


LAYERS: dict[str, Callable[[Call], Any]] = {
    "relu": _elementwise("relu"),
    "sigmoid": _elementwise("sigmoid"),
    "tanh": _elementwise("tanh"),
    "gelu": _gelu,
    "silu": _elementwise("silu"),
    "relu6": _elementwise("relu6"),
    "hardtanh": _elementwise("relu6", min_val=0, max_val=6),
    "hardswish": _elementwise("hardswish"),
    "hardsigmoid": _elementwise("hardsigmoid"),
    "leaky_relu": _elementwise("leaky_relu", negative_slope=0.01),
    "dropout": _dropout,
    "linear": _linear,
    "conv2d": _conv2d,
    "conv_transpose2d": _conv_transpose2d,
    "upsample_nearest2d": _upsample,
    "max_pool2d": _max_pool2d,
    "avg_pool2d": _avg_pool2d,
    "adaptive_avg_pool2d": _adaptive_avg_pool2d,
    "mean": _mean,
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "instance_norm": _instance_norm,
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "add": _add,
    "cat": _cat,
    "embedding": _embedding,
    "lstm": _lstm,
    "scaled_dot_product_attention": attention.of_one_call,
    "matmul": attention.product,
    "mul": _mul,
    "div": attention.scaled,
    "masked_fill": attention.masked,
    "softmax": attention.softmax,
}
# What moves numbers and changes none. A graph says which of a user's tensors share memory only by
# its views; a copy counts as one, because the proof finds where that would be wrong.
VIEWS = frozenset(
    (
        *("view", "reshape", "flatten", "unflatten", "transpose", "permute", "t", "numpy_T"),
        *("squeeze", "unsqueeze", "select", "slice", "narrow", "split", "split_with_sizes"),
        *("unsafe_split", "chunk", "unbind", "expand", "expand_as", "view_as", "reshape_as"),
        *("movedim", "moveaxis", "swapaxes", "swapdims", "contiguous", "clone", "alias"),
    )
)
