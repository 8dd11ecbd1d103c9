# SPDX-License-Identifier: Apache-2.0
"""PyTorch's operations and the layers that they are: one line each, or a function where arguments
decide. ONNX's operators are said in them (onnx_operations.py). What bench's layers do not have is
refused by its name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crossover_bench.networks import (
    arithmetic,
    attention,
    comparisons,
    products,
    recurrences,
    root_mean_square,
    trained,
)
from crossover_bench.networks.builder import At
from crossover_bench.networks.calls import Call, NoLayers, Parameter
from crossover_bench.networks.functions import FUNCTIONS
from crossover_bench.networks.values import Value, both, non_defaults, pair
from crossover_bench.networks.windows import Padded, global_max, padded, padded_by_itself
from crossover_bench.peers.pytorch.layers import LAYERS


def is_read_as_it_is(operand: Any, operation: str) -> bool:
    """Whether the operation reads the operand before it becomes layers."""
    known = ("conv1d", "conv2d") if isinstance(operand, Padded) else attention.OF_SCORES
    return operation in known


def _dropout(call: Call) -> Value:
    if not call["train"] or call["p"] == 0:
        return call.value()
    return call.build.elementwise(call, "dropout", call.value(), p=call["p"])


def _detach(call: Call) -> Any:
    parameter = call["self"]
    if isinstance(parameter, Value) and not call.build.is_trained(parameter):
        call.build.stops = True
        return parameter
    if hasattr(parameter, "seen"):
        raise call.refused(
            f"{parameter.name} is changed while the network runs, as max_norm does; in bench the "
            "optimizer alone changes parameters"
        )
    raise call.refused(
        "no gradients go through it; in bench they go through each layer behind one that is trained"
    )


def _channel_dropout(call: Call) -> Value:
    """Dropout of whole channels: a gate of ones, one for each channel, some of which are
    dropped."""
    value, build = call.value(), call.build
    if not call["train"] or call["p"] == 0:
        return value
    mean = build.mean(call, value, range(2, value.places.ndim), keeps=True)
    gate = build.elementwise(call, "dropout", attention.affine(call, mean, 0.0, 1.0), p=call["p"])
    return build.product(call, value, gate)


def _linear(call: Call) -> Value:
    weight, bias = call.parameter("weight"), call.parameter("bias")
    out_features, tied = call.shape("weight")[0], call.layer_of(weight)
    if tied and not bias and tied["type"] == "embedding":
        tied["scaled_start"] = True  # that of a product
        settings = {"out_features": out_features, "tied": tied["name"]}
        return call.build.rowwise(call, "linear", call.value(), [], **settings)
    settings = {"out_features": out_features, **non_defaults(bias=(bool(bias), True))}
    return call.build.rowwise(call, "linear", call.value(), weight + bias, **settings)


def _conv2d(call: Call) -> Value:
    weight, bias = call.parameter("weight"), call.parameter("bias")
    channels, _, *kernel = call.shape("weight")
    size, stride = call.pair("kernel_size", kernel), call.pair("stride")
    dilation = call.pair("dilation")
    read = call["input"]
    if call["padding"] == "same":
        zeros = [d * (k - 1) for d, k in zip(both(dilation), both(size), strict=True)]
        padding = pair([count // 2 for count in zeros], 0)
        if any(count % 2 for count in zeros):  # one more behind
            sides = [side for count in zeros[::-1] for side in (count // 2, count - count // 2)]
            read = padded(call, attention.as_layers(call, read), sides[: 2 * len(kernel)])
            padding = 0
    else:
        padding = 0 if call["padding"] == "valid" else call.pair("padding")
    if isinstance(read, Padded):
        padding, read = read.added_to(padding), read.value
    settings = non_defaults(stride=(stride, 1), padding=(padding, 0), bias=(bool(bias), True))
    settings |= non_defaults(groups=(call["groups"], 1), dilation=(dilation, 1))
    sizes = {"out_channels": channels, "kernel_size": size}
    value = read if isinstance(read, Value) else call.value()
    return call.build.image(call, "conv2d", value, weight + bias, **sizes, **settings)


_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}  # as numpy has them


def _pad(call: Call) -> Any:
    value, fill, sides = call.value(), call.arguments.get("value") or 0, call["pad"]
    mode = call.arguments.get("mode", "constant")
    if mode in _MODES:
        each = [*zip(sides[::2], sides[1::2], strict=True)][::-1]
        each = [(0, 0)] * (value.places.ndim - len(each)) + each
        return padded_by_itself(call, value, each, _MODES[mode])
    if not math.isfinite(fill):
        raise call.refused(f"it adds {fill} around an image or a line, and no layer does")
    zeros = padded(call, attention.affine(call, value, 1.0, -fill), sides)
    return attention.affine(call, attention.as_layers(call, zeros), 1.0, fill) if fill else zeros


def _conv_transpose2d(call: Call) -> Value:
    weight, bias = call.parameter("weight"), call.parameter("bias")
    _, channels, *kernel = call.shape("weight")
    groups, stride = call["groups"], call.pair("stride")
    settings = {"out_channels": channels * groups, "kernel_size": call.pair("kernel_size", kernel)}
    settings |= non_defaults(stride=(stride, 1), padding=(call.pair("padding"), 0))
    settings |= non_defaults(output_padding=(call.pair("output_padding"), 0))
    settings |= non_defaults(dilation=(call.pair("dilation"), 1))
    settings |= non_defaults(groups=(groups, 1), bias=(bool(bias), True))
    return call.build.image(call, "conv_transpose2d", call.value(), weight + bias, **settings)


def _upsample(call: Call) -> Value:
    value = call.value()
    return call.build.upsampled(call, value, _sizes(call, value.places.shape[2:]))


def _sizes(call: Call, before: Sequence[int]) -> list[float]:
    """Of resized images: as they are given, or by factors."""
    return call["output_size"] or [
        a * b for a, b in zip(before, call["scale_factors"], strict=True)
    ]


_LINEAR = ("upsample_linear1d", "upsample_bilinear2d")


def _resampled(call: Call) -> Any:
    """An image, or a parameter that is one, whose pixels are interpolated: where its size stays,
    each is itself."""
    read = next(iter(call.arguments.values()))
    image = read.seen if isinstance(read, Parameter) else attention.as_layers(call, read)
    before = list(image.places.shape[2:])
    sizes = _sizes(call, before)
    if list(map(int, sizes)) == before:
        return read
    if isinstance(read, Parameter) or call.operation not in _LINEAR:
        raise call.refused(f"it interpolates between pixels, from {before} to {list(sizes)}")
    return call.build.interpolated(call, image, sizes, bool(call["align_corners"]))


def _check_batch(call: Call) -> None:
    """PyTorch's pools also read a sample without a batch, whose channels would be taken for it."""
    shape, wanted = call.value().places.shape, 4 if "2d" in call.operation else 3
    if len(shape) != wanted:
        raise call.refused(
            f"it reads {list(shape)} as channels without a batch; {wanted} dimensions have one"
        )


def _pool(call: Call, kind: str, value: Value) -> Value:
    _check_batch(call)
    size, padding = call.pair("kernel_size"), call.pair("padding")
    stride = call.pair("stride") if call["stride"] else size
    settings = non_defaults(stride=(stride, size), padding=(padding, 0))
    settings |= non_defaults(ceil_mode=(bool(call["ceil_mode"]), False))
    return call.build.image(call, kind, value, kernel_size=size, **settings)


def _max_pool2d(call: Call) -> Value:
    if call.pair("dilation") != 1:
        raise call.refused(f"dilation is {call['dilation']}, and can only be 1")
    return _pool(call, "max_pool2d", call.value())


def _avg_pool2d(call: Call) -> Value:
    if "divisor_override" in call.arguments:  # of images, not of lines
        call.only(divisor_override=None)
    value = call.value()
    if call["count_include_pad"] or not call.pair("padding"):  # without any, no zeros are counted
        return _pool(call, "avg_pool2d", value)
    return without_padding(call, value, lambda read: _pool(call, "avg_pool2d", read))


def without_padding(place: At, value: Value, pool: Callable[[Value], Value]) -> Value:
    """A mean that counts no padding: divided by the same pool of ones, which is the part of a
    window that is no padding."""
    pooled, first = pool(value), value.seen_as(value.places[:, :1])
    ones = place.build.elementwise(place, "affine", first, scale=0.0, shift=1.0)
    share = place.build.elementwise(place, "reciprocal", pool(ones))
    return place.build.product(place, pooled, share)


def _adaptive_pool(call: Call) -> Any:
    _check_batch(call)
    kind = "avg_pool2d" if "avg" in call.operation else "max_pool2d"
    value, wanted = call.value(), call["output_size"]
    places = value.places.shape[2:]
    sizes = [wanted] * len(places) if isinstance(wanted, int) else list(wanted)
    if kind == "avg_pool2d" and set(sizes) == {1}:
        return call.build.global_mean(call, value, keeps=True)
    if any(whole % size for whole, size in zip(places, sizes, strict=True)):
        raise call.refused(
            f"places of {' by '.join(map(str, places))} can't be divided into "
            f"{' by '.join(map(str, sizes))} equal parts"
        )
    size = pair([whole // size for whole, size in zip(places, sizes, strict=True)], 1)
    given = value if size == 1 else call.build.image(call, kind, value, kernel_size=size)
    return given if kind == "avg_pool2d" else (given, NoLayers("where the largest are"))


def _max(call: Call) -> Any:
    if "dim" not in call.arguments:
        raise call.refused("the largest can be that of an image's channels")
    dim = call["dim"]
    axes = [dim] if isinstance(dim, int) else dim
    largest = global_max(call, call.value(), axes, call["keepdim"])
    places = NoLayers("where the largest are")
    return largest if call.operation == "amax" else (largest, places)


def _min(call: Call) -> Any:
    """The largest of the negative, negated."""
    turned = attention.affine(call, call.value(), -1.0, 0)
    given = _max(call.changed({"min": "max", "amin": "amax"}[call.operation], self=turned))
    largest, *places = given if isinstance(given, tuple) else (given,)
    smallest = attention.affine(call, largest, -1.0, 0)
    return (smallest, *places) if places else smallest


def _mean(call: Call) -> Any:
    if isinstance(call["self"], root_mean_square.Partial):
        return root_mean_square.after(call, call["self"], "mean")
    return call.build.mean(call, call.value(), call["dim"] or [], call["keepdim"])


def _sum(call: Call) -> Value:
    value = call.value()
    is_last = list(call["dim"] or []) in ([-1], [value.places.ndim - 1])
    given = products.dot(call.build, call, value, call["keepdim"]) if is_last else None
    if given is not None:
        return given
    mean = call.build.mean(call, value, call["dim"] or [], call["keepdim"])
    return attention.affine(call, mean, value.places.size / mean.places.size, 0)


def _channel_norm(call: Call) -> Value:
    """Normalization by a batch, by groups of channels, or by each channel of a sample
    (instance_norm)."""
    if call.operation == "instance_norm":
        call.only(use_input_stats=True)
    if call["weight"] is None and call["bias"] is None:
        if call.operation != "batch_norm":
            return _group_norm_alone(call)
        channels = call.value().places.shape[1]
        call = call.changed(
            weight=call.frozen(np.ones(channels)), bias=call.frozen(np.zeros(channels))
        )
    if call["weight"] is None or call["bias"] is None:
        raise call.refused("it needs factors and a bias, or neither")
    eps = non_defaults(eps=(call["eps"], 1e-5))
    if call.operation == "batch_norm":
        if not call["training"]:
            return _batch_norm_in_evaluation(call)
        # momentum is that of averages which training does not read
        parameters = call.parameter("weight") + call.parameter("bias")
        return call.build.batch_norm(call, call.value(), parameters, **eps)
    groups = call.arguments.get("num_groups") or call.shape("weight")[0]
    parameters = call.parameter("weight") + call.parameter("bias")
    return call.build.image(call, "group_norm", call.value(), parameters, num_groups=groups, **eps)


def _batch_norm_in_evaluation(call: Call) -> Value:
    """Of fixed statistics and frozen parameters: a factor and an offset for each channel."""
    names = ("weight", "bias", "running_mean", "running_var")
    numbers = [call.numbers(name) for name in names]
    if any(known is None for known in numbers) or call.value().places.ndim < 3:
        raise call.refused(
            "it is in evaluation (eval()); bench's has the statistics of its batch, but where it "
            "reads images and its weight and bias are frozen (requires_grad=False)"
        )
    weight, bias, mean, variance = numbers
    factor = weight / np.sqrt(variance + call["eps"])
    kernel = factor.reshape(-1, *[1] * (call.value().places.ndim - 1))
    both = [call.frozen(kernel).of, call.frozen(bias - mean * factor).of]
    sizes = {"out_channels": len(factor), "kernel_size": 1, "groups": len(factor)}
    return call.build.image(call, "conv2d", call.value(), both, **sizes)


def _group_norm_alone(call: Call) -> Value:
    """Without weights: each group of channels is a row, as layer_norm has it."""
    value = call.value()
    groups = call.arguments.get("num_groups") or value.places.shape[1]
    rows = value.seen_as(value.places.reshape(len(value.places), groups, -1))
    eps = non_defaults(eps=(call["eps"], 1e-5))
    given = call.build.rowwise(call, "layer_norm", rows, [], elementwise_affine=False, **eps)
    return given.seen_as(given.places.reshape(value.places.shape))


def _row_norm(call: Call) -> Value:
    """Normalization of the last dimensions: layer_norm, or rms_norm, which has no bias."""
    value, count = call.value(), len(call["normalized_shape"])
    places = value.places
    rows = value.seen_as(places.reshape(*places.shape[: places.ndim - count], -1))
    has_bias = call.operation == "layer_norm"
    weight, bias = call.parameter("weight"), call.parameter("bias") if has_bias else []
    if bias and not weight:
        raise call.refused("it has a bias without a weight")
    eps = (call["eps"], 1e-5 if has_bias else None)
    settings = non_defaults(eps=eps, elementwise_affine=(bool(weight), True))
    settings |= non_defaults(bias=(bool(bias), True)) if has_bias and weight else {}
    given = call.build.rowwise(call, call.operation, rows, weight + bias, **settings)
    return given.seen_as(given.places.reshape(places.shape))


def _glu(call: Call) -> Value:
    """The first half of a dimension times the sigmoid of the other."""
    value = call.value()
    halves = np.split(value.places, 2, call["dim"])
    left, right = (value.seen_as(half) for half in halves)
    gate = call.build.elementwise(call, "sigmoid", right)
    return call.build.product(call, left, gate)


def _norm(call: Call) -> Value:
    """The root of the sum of squares."""
    call.only(ord=2)
    value = call.value()
    squares = call.build.product(call, value, value)
    mean = call.build.mean(call, squares, call["dim"] or [], call["keepdim"])
    summed = attention.affine(call, mean, value.places.size / mean.places.size, 0)
    return call.build.elementwise(call, "sqrt", summed)


def _term_and_product(call: Call) -> Any:
    call.only(value=1)
    product = arithmetic.mul(call.changed("mul", self=call["tensor1"], other=call["tensor2"]))
    return arithmetic.add(call.changed("add", other=product, alpha=1))


def _stack(call: Call) -> Value:
    parts = [attention.as_layers(call, part) for part in call["tensors"]]
    dim = call["dim"] % (parts[0].places.ndim + 1)
    wider = [part.seen_as(np.expand_dims(part.places, dim)) for part in parts]
    return call.build.concatenation(call, wider, dim)


def _cat(call: Call) -> Any:
    """A parameter in front of a sequence is its class token; parts of one are that one."""
    parts, dim = call["tensors"], call["dim"]
    names = {part.name for part in parts if isinstance(part, Parameter) and not part.calculated}
    if len(names) == 1 and all(isinstance(part, Parameter) for part in parts):
        seen = np.concatenate([part.seen.places for part in parts], dim)
        return replace(parts[0], seen=parts[0].seen.seen_as(seen))
    if len(parts) == 2 and isinstance(parts[1], Value) and not isinstance(parts[0], Value):
        name, token = call.table("tensors", 0)
        value = call.build.sequence(call, parts[1])
        return trained.class_token(call.build, call, name, token, value, axis=dim)
    return call.build.concatenation(call, parts, dim)


def _attention(call: Call) -> Value:
    call.only(enable_gqa=False)
    query, key, value = (call.value(name) for name in ("query", "key", "value"))
    scores = attention.scores_of(query, key, causal=bool(call["is_causal"]))
    value = attention.apart(value)
    scores = replace(scores, scale=call["scale"] or scores.usual_scale)
    mask, masked = call["attn_mask"], scores
    if isinstance(mask, (Value, Parameter)):
        masked = arithmetic.add(call.changed("add", self=scores, other=mask, alpha=1))
    elif mask is not None:
        masked = arithmetic.masked(call, scores, attention.hidden_by(call, mask))
    if isinstance(masked, Value):
        call.only(dropout_p=0)
        weights = attention.softmax(call, masked, -1)
        return attention.as_layers(call, attention.product(call, weights, call.value("value")))
    scores = masked
    scores = replace(scores, are_weights=True)
    if call["dropout_p"] == 0:
        return attention.of_weights(call, scores, value)
    weights = attention.as_layers(call, replace(scores, joined=()))
    weights = call.build.elementwise(call, "dropout", weights, p=call["dropout_p"])
    given = products.matmul(call.build, call, weights, value)
    return attention.together(given, scores.joined)


def _product(call: Call) -> Any:
    left, right = list(call.arguments.values())[:2]
    if isinstance(right, Parameter) and right.seen.places.ndim == 2:
        return _of_rows(call, left, right, right.seen.places.T)
    return attention.product(call, left, right)


def _of_rows(call: Call, rows: Any, parameter: Parameter, places: np.ndarray) -> Value:
    """A product of rows with a parameter, of which each output has a row of `places`."""
    weight = replace(parameter, seen=parameter.seen.seen_as(places))
    product = call.changed("linear")
    product.arguments = {
        "input": attention.as_layers(call, rows),
        "weight": weight,
        "bias": None,
    }
    return _linear(product)


def _product_and_mask(call: Call) -> Any:
    call.only(beta=1, alpha=1)
    scores = attention.product(call, call["batch1"], call["batch2"])
    return arithmetic.masked(call, scores, attention.hidden_by(call, call["self"]))


def _einsum(call: Call) -> Any:
    """A product over one index, sample by sample and head by head."""
    parts, equation = call["tensors"], call["equation"].replace(" ", "")
    read, _, gives = equation.partition("->")
    left, _, right = read.partition(",")
    shared = [letter for letter in left if letter in right and letter in gives]
    summed = [letter for letter in left if letter in right and letter not in gives]
    of_left = [letter for letter in left if letter not in right]
    of_right = [letter for letter in right if letter not in left]
    wanted = [*shared, *of_left, *of_right]
    is_of_rows = [*summed, *of_right] == [left[-1:], gives[-1:]] and gives[:-1] == left[:-1]
    if isinstance(parts[-1], Parameter) and is_of_rows and len(right) == 2:
        places = parts[-1].seen.places
        return _of_rows(call, parts[0], parts[-1], places.T if right[0] == left[-1] else places)
    if [*map(len, (summed, of_left, of_right))] != [1, 1, 1] or sorted(wanted) != sorted(gives):
        raise call.refused(
            f"{equation} is no product of two results over one index, as of queries and keys"
        )
    first = _in_order(call, parts[0], [*map(left.index, [*shared, *of_left, *summed])])
    second = _in_order(call, parts[1], [*map(right.index, [*shared, *summed, *of_right])])
    return _in_order(call, attention.product(call, first, second), [*map(wanted.index, gives)])


def _in_order(call: Call, operand: Any, axes: list[int]) -> Any:
    if axes == sorted(axes):
        return operand
    if isinstance(operand, attention.Scaled):
        return replace(operand, value=_in_order(call, operand.value, axes))
    value = attention.as_layers(call, operand)
    return value.seen_as(value.places.transpose(axes))


def _log_softmax(call: Call) -> Value:
    value = attention.softmax(call, call.value(), call["dim"])
    given = call.build.elementwise(call, "log", value)
    call.build.log_softmaxes.add(given.layer)
    return given


def _where(call: Call) -> Value:
    condition = call.value("condition")
    return comparisons.chosen(call, condition, call["self"], call["other"])


def _masked(call: Call) -> Any:
    if isinstance(call["mask"], Value):
        operand = attention.as_layers(call, call["self"])
        return comparisons.chosen(call, call["mask"], call["value"], operand)
    hidden = attention.constant(call, call["mask"])
    scores = arithmetic.masked(call, call["self"], hidden)
    if hidden.any():
        attention.check_fill(call, call["value"])
    return scores


def _embedding(call: Call) -> Any:
    call.only(scale_grad_by_freq=False, sparse=False)
    count, width = call.shape("weight")
    if call["padding_idx"] >= 0:
        call.pads_with(call["padding_idx"])
    tokens, weight = call.value("indices"), call.parameter("weight")
    return call.build.embedding(call, tokens, weight, count, width)


CALLS: dict[str, Callable[[Call], Any]] = {
    **FUNCTIONS,
    "dropout": _dropout,
    "feature_dropout": _channel_dropout,
    "detach": _detach,
    **dict.fromkeys(("pad", "constant_pad_nd"), _pad),
    "linear": _linear,
    **{f"conv{d}": _conv2d for d in ("1d", "2d")},
    **{f"conv_transpose{d}": _conv_transpose2d for d in ("1d", "2d")},
    **{f"upsample_nearest{d}": _upsample for d in ("1d", "2d")},
    **dict.fromkeys((*_LINEAR, "upsample_bicubic2d"), _resampled),
    **{f"_upsample_{kind}2d_aa": _resampled for kind in ("bilinear", "bicubic")},
    **{f"max_pool{d}": _max_pool2d for d in ("1d", "2d")},
    **{f"avg_pool{d}": _avg_pool2d for d in ("1d", "2d")},
    **{f"adaptive_{of}_pool{d}": _adaptive_pool for of in ("avg", "max") for d in ("1d", "2d")},
    "mean": _mean,
    **dict.fromkeys(("max", "amax"), _max),
    **dict.fromkeys(("min", "amin"), _min),
    **dict.fromkeys(("batch_norm", "group_norm", "instance_norm"), _channel_norm),
    **dict.fromkeys(("layer_norm", "rms_norm"), _row_norm),
    "add": arithmetic.add,
    "addcmul": _term_and_product,
    "linalg_vector_norm": _norm,
    **dict.fromkeys(("sub", "rsub"), arithmetic.sub),
    "cat": _cat,
    "stack": _stack,
    "embedding": _embedding,
    "lstm": recurrences.recurrent,
    "gru": recurrences.recurrent,
    "scaled_dot_product_attention": _attention,
    "matmul": _product,
    "bmm": _product,
    "baddbmm": _product_and_mask,
    "einsum": _einsum,
    "sum": _sum,
    "mul": arithmetic.mul,
    "div": arithmetic.div,
    "masked_fill": _masked,
    **dict.fromkeys(("eq", "ge", "gt", "le", "lt", "ne"), comparisons.compared),
    **dict.fromkeys(("logical_not", "bitwise_not"), comparisons.negated),
    "floor": comparisons.floor,
    "where": _where,
    "prelu": comparisons.prelu,
    "glu": _glu,
    "softmax": lambda call: attention.softmax(call, call["self"], call["dim"]),
    "log_softmax": _log_softmax,
    **dict.fromkeys(("pow", "square"), arithmetic.power),
    **dict.fromkeys(("var", "std"), arithmetic.variance),
    **{name: arithmetic.of_root(name) for name in ("sqrt", "rsqrt", "reciprocal")},
}
# Functions of each number by itself, which parameters alone may have.
OF_EACH_NUMBER = frozenset(
    (
        *(name for name, entry in LAYERS.items() if entry.numbers is not None),
        *("cos", "gelu", "log_sigmoid", "mish", "neg", "rsqrt", "softplus"),
        *("add", "div", "mul", "rsub", "sub"),  # with a number
    )
)
# What moves numbers and changes none. A graph says which of a user's tensors share memory only by
# its views; a copy counts as one, because the proof finds where that would be wrong.
VIEWS = frozenset(
    (
        *("view", "reshape", "flatten", "unflatten", "transpose", "permute", "t", "numpy_T", "mT"),
        *("squeeze", "unsqueeze", "select", "slice", "narrow", "split", "split_with_sizes"),
        *("unsafe_split", "chunk", "unbind", "expand", "expand_as", "view_as", "reshape_as"),
        *("movedim", "moveaxis", "swapaxes", "swapdims", "contiguous", "clone", "alias"),
        *("index", "index_select", "repeat", "tile", "repeat_interleave", "flip", "roll", "unfold"),
        *("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "diagonal", "rot90"),
    )
)
