# SPDX-License-Identifier: Apache-2.0
"""ONNX's operators and the layers that they are: one line each, or a function where attributes
decide. Layers have arrays for parameters, as PyTorch's modules store them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from networks import attention, products, root_mean_square, strides, trained
from networks import onnx_taken_apart as taken_apart
from networks.values import Value, non_defaults
from networks.windows import both, global_max, padded, pair

if TYPE_CHECKING:
    from networks.builder import Step
    from networks.from_onnx import Call


def _gelu(call: Call) -> Value:
    kind = "gelu_tanh" if call.get("approximate", "none") == "tanh" else "gelu"
    return call.build.elementwise(call, kind, call.value())


def _hard_sigmoid(call: Call) -> Value:
    call.only(beta=0.5)
    if not np.isclose(call.get("alpha", 0.2), 1 / 6):
        raise call.refused(f"alpha is {call.get('alpha', 0.2)}, and can only be 1/6")
    return call.build.elementwise(call, "hardsigmoid", call.value())


def _elementwise(kind: str, **numbers: tuple[str, float, float]) -> Callable[[Call], Value]:
    """A layer with numbers of its own: each with ONNX's name, and its default there and here."""

    def layer(call: Call) -> Value:
        settings = {
            setting: (taken_apart.exact(np.float32(call.get(name, there)).reshape(1)), here)
            for setting, (name, there, here) in numbers.items()
        }
        return call.build.elementwise(call, kind, call.value(), **non_defaults(**settings))

    return layer


def _clip(call: Call) -> Value:
    if call.constant(1) is None or call.constant(2) is None:
        raise call.refused("it holds numbers on one side, and a layer does on both")
    least, most = (float(taken_apart.exact(call.weight(index))) for index in (1, 2))
    if (least, most) == (0, 6):
        return call.build.elementwise(call, "relu6", call.value())
    settings = non_defaults(min_val=(least, -1.0), max_val=(most, 1.0))
    return call.build.elementwise(call, "hardtanh", call.value(), **settings)


def _pad(call: Call) -> Value:
    call.only(mode="constant")
    value, zeros, fill = call.value(), call.weight(1), call.constant(2)
    axes, rank = call.constant(3), value.places.ndim
    if fill is not None and fill.any():
        raise call.refused("it adds others than zeros")
    counts = np.zeros((2, rank), dtype=int)
    counts[:, slice(None) if axes is None else axes] = zeros.reshape(2, -1)
    return attention.as_layers(call, padded(call, value, counts.T[::-1].ravel().tolist()))


def _number(call: Call, constant: np.ndarray) -> float:
    if constant.size != 1:
        raise call.refused(
            f"it reads constants {list(constant.shape)}, of which a file does not say whether they "
            "are trained; one number can be subtracted, or divided by"
        )
    return taken_apart.exact(constant)


def _sub(call: Call) -> Value:
    left, right = call.inputs
    if isinstance(right, np.ndarray):
        return attention.affine(call, left, 1.0, -_number(call, right))
    if isinstance(left, np.ndarray):
        return attention.affine(call, right, -1.0, _number(call, left))
    turned = attention.affine(call, right, -1.0, 0)
    return call.build.sum(call, attention.as_layers(call, left), turned)


def _dropout(call: Call) -> Value:
    ratio = call.constant(1)
    rate = 0.5 if ratio is None else float(ratio)
    if rate == 0:
        return call.value()
    return call.build.elementwise(call, "dropout", call.value(), p=round(rate, 7))


def _linear(call: Call, weight: np.ndarray, bias: np.ndarray | None) -> Value:
    count, value = weight.shape[0], call.value()
    for step in call.build.steps.values():
        is_table = step.layer["type"] == "embedding" and bias is None
        if is_table and same_numbers(step.parameters[0], weight):
            step.layer["scaled_start"] = True  # that of a product
            tied = step.layer["name"]
            return call.build.rowwise(call, "linear", value, [], out_features=count, tied=tied)
    settings = {"out_features": count, **non_defaults(bias=(bias is not None, True))}
    return call.build.rowwise(call, "linear", value, _given(weight, bias), **settings)


def _given(*parameters: np.ndarray | None) -> list[np.ndarray]:
    return [numbers for numbers in parameters if numbers is not None]


def same_numbers(left: np.ndarray, right: np.ndarray) -> bool:
    """Whether two weights are one. Weights start at random, so two layers with the same numbers
    share them."""
    return left.ndim > 1 and np.array_equal(left, right) and (left != left.flat[0]).any()


def _gemm(call: Call) -> Value:
    call.only(alpha=1.0, beta=1.0, transA=0)
    weight, bias = call.weight(1), call.constant(2)
    weight = weight if call.get("transB", 0) else weight.T
    if bias is not None and bias.size != weight.shape[0]:
        raise call.refused(
            f"it adds {list(bias.shape)}, and a linear layer adds a number to each output"
        )
    return _linear(call, weight, None if bias is None else bias.ravel())


def _matmul(call: Call) -> Any:
    if not isinstance(call.inputs[1], np.ndarray):
        return attention.product(call, *call.inputs)
    weight = call.weight(1)
    if weight.ndim != 2:
        raise call.refused(f"its weights are {list(weight.shape)}, and can only be a matrix")
    return _linear(call, weight.T, None)


def _add(call: Call) -> Any:
    left, right = call.inputs
    if isinstance(left, Value) and isinstance(right, Value):
        return call.build.sum(call, left, right)
    index = 1 if isinstance(left, np.ndarray) else 0
    value, added = call.inputs[index], call.weight(1 - index)
    if not isinstance(value, Value):
        return taken_apart.add(call, value, added)
    if (norm := _of_channels(call, index, added)) is not None:
        norm.parameters[1] = norm.parameters[1] + added.ravel()
        return value
    step = call.build.steps.get(value.layer)
    is_row = added.size == value.shape[-1] == added.shape[-1]
    is_product = is_row and step is not None and step.layer["type"] == "linear"
    if step and is_product and step.layer.get("bias") is False and call.is_read_once(index):
        step.layer.pop("bias")  # the bias of the product in front of it
        step.parameters.append(added.ravel())
        step.count += added.size
        return value
    if added.size == 1:
        return attention.affine(call, value, 1.0, taken_apart.exact(added))
    if added.ndim == 1:
        raise call.refused(
            "a constant can only be added to a product, as the bias of a linear layer"
        )
    numbers = np.arange(added.size).reshape(added.shape)
    table = added.reshape(-1, added.shape[-1])
    return trained.position_embedding(call.build, call, value, table, numbers)


def _window(call: Call, size: Any, stride: Any) -> dict[str, Any]:
    """The settings that convolutions and pools share."""
    call.only(auto_pad=("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"))
    padding = 0 if call.pads_apart else call.pair("pads", 0)
    if call.get("auto_pad", "").startswith("SAME"):
        padding = _same(call, size)
    settings = non_defaults(stride=(call.pair("strides", 1), stride), padding=(padding, 0))
    return settings | {"kernel_size": size}


def _same(call: Call, size: Any) -> Any:
    """The padding with which an image keeps its size, or its size divided by the stride; that of a
    transposed convolution multiplies by the stride."""
    places = call.value().places.shape[2:]
    sides = []
    for axis, extent in enumerate(both(size)[2 - len(places) :]):
        stride = call.get("strides", [1] * len(places))[axis]
        wide = call.get("dilations", [1] * len(places))[axis] * (extent - 1) + 1
        zeros = max(0, (-(-places[axis] // stride) - 1) * stride + wide - places[axis])
        if call.node.op_type == "ConvTranspose":  # which leaves out so many of what it makes
            zeros = wide + call.get("output_padding", [0] * len(places))[axis] - stride
        if zeros % 2 or zeros < 0:
            raise call.refused("auto_pad adds more zeros at one end than at the other here")
        sides.append(zeros // 2)
    return pair(sides, 0)


def _cast(call: Call) -> Value:
    numbers = (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE)
    if call.get("to") not in numbers or call.value().layer in call.build.tokens:
        raise call.refused("it makes another type of a result, which no layer does")
    return call.value()


def _conv(call: Call) -> Value:
    weight, bias = call.weight(1), call.constant(2)
    size = pair(weight.shape[2:], 1)
    settings = {"out_channels": weight.shape[0], **_window(call, size, 1)}
    settings |= non_defaults(bias=(bias is not None, True), groups=(call.get("group", 1), 1))
    settings |= non_defaults(dilation=(call.pair("dilations", 1), 1))
    value = call.value()
    if ends := call.pads_apart:
        around = np.reshape(ends, (2, -1)).T[::-1].ravel().tolist()
        value = attention.as_layers(call, padded(call, value, around))
    return call.build.image(call, "conv2d", value, _given(weight, bias), **settings)


def _conv_transpose(call: Call) -> Value:
    weight, bias = call.weight(1), call.constant(2)
    call.only(group=1)  # onnx's reference takes the weights of others for those of outputs
    if call.get("output_shape", None):
        raise call.refused("output_shape is given; output_padding says the same")
    size = pair(weight.shape[2:], 1)
    settings = {"out_channels": weight.shape[1], **_window(call, size, 1)}
    settings |= non_defaults(output_padding=(call.pair("output_padding", 0), 0))
    settings |= non_defaults(bias=(bias is not None, True), dilation=(call.pair("dilations", 1), 1))
    parameters = _given(weight, bias)
    return call.build.image(call, "conv_transpose2d", call.value(), parameters, **settings)


def _resize(call: Call) -> Value:
    """With a whole factor, both ways to count pixels repeat each pixel."""
    call.only(
        mode="nearest", antialias=0, coordinate_transformation_mode=("half_pixel", "asymmetric")
    )
    asymmetric = call.get("coordinate_transformation_mode", "half_pixel") == "asymmetric"
    rounds = ("floor",) if asymmetric else ("round_prefer_floor", "round_prefer_ceil")
    if call.get("nearest_mode", "round_prefer_floor") not in rounds:
        raise call.refused(f"nearest_mode can only be {' or '.join(rounds)}")
    value, factors, sizes = call.value(), call.constant(2), call.constant(3)
    if sizes is None or not sizes.size:
        if factors is None:
            raise call.refused("neither its factors nor its sizes are constants")
        sizes = np.array(value.places.shape) * factors
    if list(sizes[:2]) != list(value.places.shape[:2]):
        raise call.refused("it resizes the batch or the channels")
    return call.build.upsampled(call, value, [float(size) for size in sizes[2:]])


def _pool(call: Call) -> Value:
    kind = "max_pool2d" if call.node.op_type == "MaxPool" else "avg_pool2d"
    size = call.pair("kernel_shape", 1)
    window = _window(call, size, size)
    if kind == "max_pool2d":
        call.only(storage_order=0)
    elif "padding" in window and not call.get("count_include_pad", 0):
        raise call.refused("count_include_pad is 0, and can only be 1 where there is padding")
    call.only(dilations=([1] * call.directions,))
    ceil_mode = non_defaults(ceil_mode=(bool(call.get("ceil_mode", 0)), False))
    return call.build.image(call, kind, call.value(), **window, **ceil_mode)


def _global_pool(call: Call) -> Value:
    value = call.value()
    if call.node.op_type == "GlobalAveragePool":
        return call.build.global_mean(call, value, keeps=True)
    return global_max(call.build, call, value, range(2, value.places.ndim), keeps=True)


def _reduce_max(call: Call) -> Value:
    return global_max(call.build, call, call.value(), call.axes, bool(call.get("keepdims", 1)))


def _reduce_mean(call: Call) -> Any:
    value, axes = call.inputs[0], call.axes
    if isinstance(value, root_mean_square.Partial):
        if axes not in ([-1], [value.of.places.ndim - 1]) or not call.get("keepdims", 1):
            raise call.refused("the mean of squares can only be over the last dimension, kept")
        return root_mean_square.after(call, value, "mean")
    return call.build.mean(call, call.value(), axes, bool(call.get("keepdims", 1)))


def _reduce_sum(call: Call) -> Value:
    value, axes = call.value(), call.constant(1)
    is_last = axes is not None and axes.tolist() in ([-1], [value.places.ndim - 1])
    keeps = bool(call.get("keepdims", 1))
    given = products.dot(call.build, call, value, keeps) if is_last else None
    if given is None:
        raise call.refused("a sum can be that of two vectors' product, over their last dimension")
    return given


def _batch_norm(call: Call) -> Value:
    eps = non_defaults(eps=(call.epsilon, 1e-5))
    scale, shift, mean, variance = (call.weight(index) for index in range(1, 5))
    given = call.build.batch_norm(call, call.value(), [scale, shift], **eps)
    call.graph.statistics[given.layer] = (mean, variance)
    return given


def _group_norm(call: Call) -> Value:
    settings = {"num_groups": call.get("num_groups"), **non_defaults(eps=(call.epsilon, 1e-5))}
    parameters, value = [call.weight(1), call.weight(2)], call.value()
    if parameters[0].size != value.places.shape[1]:
        raise call.refused(
            "it has a weight for each group; from opset 21 on it is for each channel"
        )
    return call.build.image(call, "group_norm", value, parameters, **settings)


def _instance_norm(call: Call) -> Value:
    """By channels, or by groups of channels, if the image is seen as [batch, groups, ...]. So
    PyTorch exports GroupNorm below opset 21, with weights and bias behind it."""
    value, scale, shift = call.value(), call.weight(1), call.weight(2)
    groups, in_order = value.places.shape[1], value.plain.places.ravel()
    if len(value.shape) != 4 or not np.array_equal(value.places.ravel(), in_order):
        raise call.refused("it reads no image as a layer gives it, nor groups of its channels")
    if groups != value.shape[1] and ((scale != 1).any() or shift.any()):
        raise call.refused("it has a weight for each group, and can only have 1, without bias")
    each = value.shape[1] // groups
    settings = {"num_groups": groups, **non_defaults(eps=(call.epsilon, 1e-5))}
    parameters = [scale.repeat(each), shift.repeat(each)]
    given = call.build.layer(call, "group_norm", [value.plain], parameters, **settings)
    return given.seen_as(value.places)


def _of_channels(call: Call, index: int, constant: np.ndarray) -> Step | None:
    """The group_norm before this node, if it can have the constant, a number for each channel."""
    value = call.inputs[index]
    if not isinstance(value, Value):
        return None
    step = call.build.steps.get(value.layer)
    fits = step is not None and step.layer["type"] == "group_norm" and value.image is not None
    wanted = (1, value.shape[1], *[1] * (value.places.ndim - 2))
    same = (1, *constant.shape)[-len(wanted) :] == wanted
    return step if fits and same and call.is_read_once(index) else None


def _layer_norm(call: Call) -> Value:
    call.only(axis=(-1, call.value().places.ndim - 1))
    weight, bias = call.weight(1), call.constant(2)
    settings = non_defaults(eps=(call.epsilon, 1e-5), bias=(bias is not None, True))
    return call.build.rowwise(call, "layer_norm", call.value(), _given(weight, bias), **settings)


def _mul(call: Call) -> Any:
    left, right = call.inputs
    if isinstance(left, Value) and isinstance(right, Value):
        return call.build.product(call, left, right)
    for index, other in ((0, right), (1, left)):
        partial = call.inputs[index]
        if isinstance(other, np.ndarray) and (norm := _of_channels(call, index, other)) is not None:
            norm.parameters[:] = [numbers * other.ravel() for numbers in norm.parameters]
            return call.value(index)
        if isinstance(partial, taken_apart.Gelu):
            return taken_apart.gelu_times(call, partial, taken_apart.exact(other))
        if isinstance(partial, root_mean_square.Partial):
            return (
                root_mean_square.normalized(call, other, partial)
                if isinstance(other, Value)
                else root_mean_square.weighted(call, partial, call.weight(1 - index))
            )
    operand, factor = (right, left) if isinstance(left, np.ndarray) else (left, right)
    if isinstance(factor, np.ndarray) and factor.size > 1:
        return _trained_factor(call, attention.as_layers(call, operand), factor)
    return attention.scaled(call, operand, taken_apart.exact(factor))


def _trained_factor(call: Call, value: Value, factor: np.ndarray) -> Value:
    meets = np.arange(factor.size).reshape(factor.shape)
    given = strides.scaled(call.build, call, value, factor.ravel(), meets)
    if given is None:
        raise call.refused(f"its factors {list(factor.shape)} meet no numbers of each sample")
    return given


def _div(call: Call) -> Any:
    left, right = call.inputs
    if isinstance(right, root_mean_square.Partial):
        if isinstance(left, np.ndarray) and (left == 1).all():
            return root_mean_square.after(call, right, "reciprocal")
        return root_mean_square.normalized(call, left, right)
    return attention.scaled(call, left, 1 / _number(call, call.weight(1)))


def _concat(call: Call) -> Value:
    """A constant in front of a sequence is its class token."""
    token, value = call.inputs[0], call.inputs[-1]
    if len(call.inputs) == 2 and isinstance(token, np.ndarray) and isinstance(value, Value):
        vector = token.reshape(-1, token.shape[-1])[0]
        if not (token == vector).all():
            raise call.refused("what it puts in front is not the same for all samples")
        numbers = np.broadcast_to(np.arange(vector.size), token.shape)
        value = call.build.sequence(call, value)
        return trained.class_token(call.build, call, vector, numbers, value, axis=call.get("axis"))
    return call.build.concatenation(call, call.inputs, call.get("axis"))


def _embedding(call: Call) -> Value:
    """A Gather of rows of a table."""
    call.only(axis=0)
    table, tokens = call.weight(0), call.value(1)
    if table.ndim != 2:
        raise call.refused(f"its table is {list(table.shape)}, and can only be a matrix")
    return call.build.embedding(call, tokens, [table], *table.shape)


def _gather(call: Call) -> Value:
    if isinstance(call.inputs[1], Value):
        return _embedding(call)
    axis, value = call.get("axis", 0), call.value()
    return call.build.viewed(call, value, np.take(value.places, call.weight(1), axis))


# PyTorch's order of the gates in ONNX's: input, output, forget, cell; update, reset, hidden.
_GATES = {"lstm": [0, 2, 3, 1], "gru": [1, 0, 2]}


def _recurrent(call: Call) -> tuple[Value, Value]:
    """A recurrence with a sequence, weights and biases. Its first states can only be zero."""
    kind = call.node.op_type.lower()
    call.only(direction="forward", layout=0)
    if kind == "lstm":
        call.only(input_forget=0)
    elif call.get("linear_before_reset", 0) != 1:
        raise call.refused("linear_before_reset is 0, and can only be 1")
    inputs, states, biases = call.weight(1), call.weight(2), call.weight(3)
    for index in (4, 5, 6, 7):
        given = call.inputs[index] if index < len(call.inputs) else None
        zero = index in (5, 6) and isinstance(given, np.ndarray) and not given.any()
        if given is not None and not zero:
            raise call.refused(
                f"its input {call.node.input[index]!r} is given, and can only be zero"
            )
    size = states.shape[-1]

    def ordered(gates: np.ndarray) -> np.ndarray:
        order = _GATES[kind]
        return gates.reshape(len(order), size, -1)[order].reshape(len(order) * size, -1)

    parameters = [ordered(inputs[0]), ordered(states[0])]
    parameters += [ordered(part).ravel() for part in np.split(biases[0], 2)]
    given = call.build.recurrent(
        call, kind, call.value(), [parameters], hidden_size=size, batch_first=False
    )
    # [time, directions, batch, size], and the last state
    return given.seen_as(given.places[:, None]), given.seen_as(given.plain.places[-1:])


LAYERS: dict[str, Callable[[Call], Any]] = {
    **taken_apart.LAYERS,
    **{
        name: _elementwise(name.lower())
        for name in ("Relu", "Sigmoid", "Tanh", "HardSwish", "Softplus", "Sin")
    },
    "Gelu": _gelu,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": _elementwise("leaky_relu", negative_slope=("alpha", 0.01, 0.01)),
    "Elu": _elementwise("elu", alpha=("alpha", 1.0, 1.0)),
    "Neg": lambda call: attention.affine(call, call.value(), -1.0, 0),
    "Sub": _sub,
    "Pad": _pad,
    "Clip": _clip,
    "Cast": _cast,
    "Dropout": _dropout,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "Mul": _mul,
    "Div": _div,
    "ReduceSum": _reduce_sum,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Resize": _resize,
    **dict.fromkeys(("MaxPool", "AveragePool"), _pool),
    **dict.fromkeys(("GlobalAveragePool", "GlobalMaxPool"), _global_pool),
    "ReduceMax": _reduce_max,
    "ReduceMean": _reduce_mean,
    "BatchNormalization": _batch_norm,
    "GroupNormalization": _group_norm,
    "InstanceNormalization": _instance_norm,
    "LayerNormalization": _layer_norm,
    "Add": _add,
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
