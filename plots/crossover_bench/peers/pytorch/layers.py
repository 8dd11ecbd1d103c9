# SPDX-License-Identifier: Apache-2.0
"""The layers of a network's file (docs/networks.md): an entry for each type, which PyTorch's peer,
both importers and `networks show` read."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from operator import add, mul
from typing import Any

import torch
from torch import nn
from torch.nn.functional import pad, scaled_dot_product_attention

from crossover_bench.peers.generator import kept_by_dropout
from crossover_bench.peers.tasks import OF_ALL, Unsupported

SIDES = ("left", "right", "top", "bottom", "front", "back")  # as torch.nn.functional.pad has them


class Dropout(nn.Dropout):
    """PyTorch's, but that a mask may be given: while a network is verified, the reference's."""

    def __init__(self, probability: float, number: int, shape: tuple[int, ...]) -> None:
        super().__init__(probability)
        self.number = number  # of the layer, counted from 0
        self.shape = shape  # with -1 for the batch
        self.mask: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mask is not None:
            return x * self.mask.to(x.dtype)
        return super().forward(x)

    def take_mask(self, step: int, rows: int, device: torch.device) -> None:
        """That of the reference in its step, from 1."""
        kept = kept_by_dropout(self.number, step, -math.prod(self.shape) * rows, self.p)
        self.mask = torch.from_numpy(kept / (1 - self.p)).reshape(self.shape).to(device)


class Embedding(nn.Embedding):
    """Its table starts in +- 1 / sqrt(width) where `scaled_start`, else in +- 1."""

    def __init__(self, scaled_start: bool = False, **sizes: int) -> None:
        super().__init__(**sizes)
        self.scaled_start = scaled_start


class PositionEmbedding(nn.Module):
    """Adds a trained vector to each place of a sequence [time, batch, width]."""

    def __init__(self, time: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(time, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.weight[:, None]


class ClassToken(nn.Module):
    """A trained vector in front of each sequence [time, batch, width]."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(1, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.weight[:, None].expand(1, x.shape[1], -1).to(x.dtype), x])


class Function(nn.Module):
    """Without parameters, and without a module in torch.nn."""

    def __init__(self, of: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        self.of = of

    def forward(self, *read: torch.Tensor) -> torch.Tensor:
        return self.of(*read)


def _attention(x: torch.Tensor, num_heads: int, causal: bool = False) -> Function:
    """Of [time, batch, 3 width], as one linear layer gives q, k and v."""

    def of(qkv: torch.Tensor) -> torch.Tensor:
        time, batch, _ = qkv.shape
        heads = qkv.view(time, batch, 3, num_heads, -1).permute(2, 1, 3, 0, 4)
        y = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=causal)
        return y.permute(2, 0, 1, 3).reshape(time, batch, -1)

    return Function(of)


def _as_strided(
    x: torch.Tensor, shape: list[int], size: list[int], stride: list[int], storage_offset: int = 0
) -> Function:
    """torch.as_strided of each sample, as a vector, a sequence [time, batch, width] or an image."""
    # PyTorch has no strides below 0: it flips what it has read forwards.
    flipped = [axis for axis, step in enumerate(stride, 1) if step < 0]
    backwards = sum((size[axis - 1] - 1) * stride[axis - 1] for axis in flipped)
    strides = [abs(step) for step in stride]

    def of(x: torch.Tensor) -> torch.Tensor:
        x = (x.transpose(0, 1) if x.ndim == 3 else x).flatten(1).contiguous()
        batch, each = x.shape
        first = x.storage_offset() + storage_offset + backwards
        y = x.as_strided((batch, *size), (each, *strides), first)
        y = (y.flip(flipped) if flipped else y).reshape(batch, *shape)
        return y.transpose(0, 1) if y.ndim == 3 else y

    return Function(of)


def _pad(x: torch.Tensor, **sides: int) -> Function:
    """Zeros on each side of [batch, channels, height, width]; below zero so many are cut off."""
    counts = tuple(sides.get(name, 0) for name in SIDES)
    return Function(lambda x: pad(x, counts))


def _interpolated(
    x: torch.Tensor, size: int | list[int], align_corners: bool = False
) -> nn.Upsample:
    both = (size, size) if isinstance(size, int) else (size[0], size[1])
    return nn.Upsample(both, mode="bilinear", align_corners=align_corners)


def _to_image(x: torch.Tensor, height: int = 1, channels: int = 0) -> Function:
    """[time, batch, width] -> [batch, width, height, time / height]; with `channels`, a sample
    [time, width], or a vector, is read row by row."""

    def of(x: torch.Tensor) -> torch.Tensor:
        if x.ndim == 3:
            x = x.transpose(0, 1) if channels else x.permute(1, 2, 0)
        return x.reshape(x.shape[0], channels or x.shape[1], height, -1)

    return Function(of)


def _slice(x: torch.Tensor, to: int, over_time: bool = False, **others: int) -> Function:
    """Channels of an image, places of tokens [time, batch] or, `over_time`, of a sequence; else of
    the last dimension."""
    part = slice(others.get("from", 0), to)
    if over_time or not x.is_floating_point():
        return Function(lambda x: x[part])
    return Function(lambda x: x[:, part] if x.ndim == 4 else x[..., part])


def _multiply(x: torch.Tensor, y: torch.Tensor) -> Function:
    """Of one shape, or by [batch, channels] or [batch, width] in all places of the first."""
    is_gate_of_images = x.ndim == 4 and y.ndim == 2
    return Function(lambda x, y: x * y[:, :, None, None]) if is_gate_of_images else Function(mul)


def _matmul(
    x: torch.Tensor,
    y: torch.Tensor,
    transpose: bool = False,
    num_heads: int = 1,
    scale: float = 1.0,
) -> Function:
    """Of each head of two sequences [time, batch, width]; a vector is one of a single place."""

    def heads(x: torch.Tensor) -> torch.Tensor:
        x = x[None] if x.ndim == 2 else x
        return x.unflatten(-1, (num_heads, -1)).permute(1, 2, 0, 3)

    def of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        left, right = heads(x), heads(y)
        z = scale * (left @ (right.transpose(-1, -2) if transpose else right))
        z = z.permute(2, 0, 1, 3).flatten(2)
        return z[0] if x.ndim == 2 else z

    return Function(of)


def _softmax(x: torch.Tensor, num_heads: int = 1, causal: bool = False) -> Function:
    """Of each head's part of the last dimension; causal: of a sequence, of the places so far."""

    def of(x: torch.Tensor) -> torch.Tensor:
        parts = x.unflatten(-1, (num_heads, -1))
        if causal:
            time, keys = x.shape[0], parts.shape[-1]
            later = torch.ones(time, keys, dtype=torch.bool, device=x.device).triu(1)
            parts = parts.masked_fill(later[:, None, None], -math.inf)
        return parts.softmax(-1).flatten(-2)

    return Function(of)


# FLOP of a batch's forward pass, from a layer's JSON and the shapes that it reads first and gives.
_Shape = tuple[int, ...]
Count = Callable[[dict[str, Any], _Shape, _Shape], int]


@dataclass(frozen=True)
class Layer:
    """A type of layer. `module`: from what it reads and its parameters, which are called as
    PyTorch's are. `flop`: for each number that it gives, or by a rule, as include/crossover/cost.h
    and src/operations/fit.h count. `parameters`: those of networks/schema.json. `time_first`:
    whether it gives [time, batch, ...]; None: if it reads such. `numbers`: None, or of a function
    of each number its own numbers and their defaults: PyTorch's operation of the layer's name is
    it. `onnx`: ONNX's operator for that, and behind it the attributes that are the numbers."""

    module: Callable[..., nn.Module]
    flop: int | Count
    parameters: str = ""
    time_first: bool | None = None
    numbers: dict[str, float] | None = None
    onnx: str = ""


def _function(
    module: Callable[..., nn.Module], flop: int, onnx: str = "", **numbers: float
) -> Layer:
    """Of each number by itself."""
    return Layer(_alone(module), flop, " ".join(numbers), None, numbers, onnx)


def _alone(module: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    return lambda x, **options: module(**options)


def _of_width(module: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    return lambda x, **options: module(x.shape[-1], **options)


def _of_channels(module: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    return lambda x, **options: module(x.shape[1], **options)


def _window(layer: dict[str, Any]) -> int:
    """The number of places in a window."""
    size = layer["kernel_size"]
    return size * size if isinstance(size, int) else math.prod(size)


def _of_linear(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    return (2 * x[-1] + layer.get("bias", "tied" not in layer)) * math.prod(y)


def _of_convolution(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    products = 2 * x[1] // layer.get("groups", 1) * _window(layer)
    return (products + layer.get("bias", True)) * math.prod(y)


def _of_transposed(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    outputs = layer["out_channels"] // layer.get("groups", 1)
    return 2 * math.prod(x) * outputs * _window(layer) + layer.get("bias", True) * math.prod(y)


def _of_pool(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    return _window(layer) * math.prod(y)


def _of_neighbours(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    """Two along each axis whose size changes."""
    neighbours = math.prod(2 for before, after in zip(x, y, strict=True) if before != after)
    return 2 * neighbours * math.prod(y)


def _of_all_read(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    return math.prod(x)


def _of_attention(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    time, batch, width = y
    scores = time * (time + 1) // 2 if layer.get("causal", False) else time * time
    return batch * scores * (4 * width + 6 * layer["num_heads"])


def _of_matmul(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    return (2 * x[-1] // layer.get("num_heads", 1) + ("scale" in layer)) * math.prod(y)


def _of_softmax(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    heads = layer.get("num_heads", 1)
    keys, seen = y[-1] // heads, math.prod(y)
    if layer.get("causal", False):
        seen = y[1] * heads * sum(min(keys, t + 1) for t in range(y[0]))
    return 5 * seen


def _of_row_norm(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
    is_affine = layer.get("elementwise_affine", True)
    if layer["type"] == "rms_norm":
        return (3 + is_affine) * math.prod(y)
    return (6 + is_affine * (1 + layer.get("bias", True))) * math.prod(y)


def _of_recurrence(gates: int, of_cell: int) -> Count:
    def count(layer: dict[str, Any], x: _Shape, y: _Shape) -> int:
        time, batch, hidden = y
        inputs, states = 2 * time * x[-1], 2 * (time - 1) * hidden
        return batch * hidden * (gates * (inputs + states + 7 * time) + of_cell * time)

    return count


_WINDOW = "kernel_size stride padding"
_CONVOLUTION = f"out_channels {_WINDOW} dilation groups bias"
LAYERS: dict[str, Layer] = {
    # Functions of each number.
    "relu": _function(nn.ReLU, 1, "Relu"),
    "sigmoid": _function(nn.Sigmoid, 4, "Sigmoid"),
    "identity": _function(nn.Identity, 0),
    "tanh": _function(nn.Tanh, 4, "Tanh"),
    "gelu": _function(nn.GELU, 4),
    "gelu_tanh": _function(lambda: nn.GELU(approximate="tanh"), 9),
    "silu": _function(nn.SiLU, 5),
    "relu6": _function(nn.ReLU6, 2),
    "hardswish": _function(nn.Hardswish, 5, "HardSwish"),
    "hardsigmoid": _function(nn.Hardsigmoid, 4),
    "leaky_relu": _function(nn.LeakyReLU, 2, "LeakyRelu alpha", negative_slope=0.01),
    "elu": _function(nn.ELU, 4, "Elu alpha", alpha=1.0),
    "softplus": _function(nn.Softplus, 5, "Softplus"),
    "sin": _function(lambda: Function(torch.sin), 1, "Sin"),
    "exp": _function(lambda: Function(torch.exp), 1, "Exp"),
    "abs": _function(lambda: Function(torch.abs), 1, "Abs"),
    "log": _function(lambda: Function(torch.log), 1, "Log"),
    "sqrt": _function(lambda: Function(torch.sqrt), 1, "Sqrt"),
    "reciprocal": _function(lambda: Function(torch.reciprocal), 1, "Reciprocal"),
    "hardtanh": _function(nn.Hardtanh, 2, min_val=-1.0, max_val=1.0),
    "affine": _function(
        lambda scale=1.0, shift=0.0: Function(lambda x: scale * x + shift), 2, scale=1.0, shift=0.0
    ),
    # Products.
    "linear": Layer(_of_width(nn.Linear), _of_linear, "out_features bias tied"),
    "conv2d": Layer(_of_channels(nn.Conv2d), _of_convolution, _CONVOLUTION),
    "conv_transpose2d": Layer(
        _of_channels(nn.ConvTranspose2d), _of_transposed, f"{_CONVOLUTION} output_padding"
    ),
    "matmul": Layer(_matmul, _of_matmul, "transpose num_heads scale"),
    "attention": Layer(_attention, _of_attention, "num_heads causal"),
    "lstm": Layer(_of_width(nn.LSTM), _of_recurrence(4, 8), "hidden_size"),
    "gru": Layer(_of_width(nn.GRU), _of_recurrence(3, 5), "hidden_size"),
    # Windows and images.
    "max_pool2d": Layer(_alone(nn.MaxPool2d), _of_pool, f"{_WINDOW} ceil_mode"),
    "avg_pool2d": Layer(_alone(nn.AvgPool2d), _of_pool, f"{_WINDOW} ceil_mode"),
    "global_avg_pool2d": Layer(
        lambda x: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()), _of_all_read
    ),
    "upsample": Layer(
        lambda x, scale_factor: nn.Upsample(
            scale_factor=tuple(scale_factor) if isinstance(scale_factor, list) else scale_factor
        ),
        0,
        "scale_factor",
    ),
    "interpolate": Layer(_interpolated, _of_neighbours, "size align_corners"),
    "pad": Layer(_pad, 0, " ".join(SIDES)),
    "flatten": Layer(lambda x: nn.Flatten(), 0),
    # Norms, and what drops.
    "batch_norm": Layer(
        lambda x, **options: (nn.BatchNorm1d if x.ndim == 2 else nn.BatchNorm2d)(
            x.shape[1], **options
        ),
        7,
        "eps",
    ),
    "group_norm": Layer(
        lambda x, **options: nn.GroupNorm(num_channels=x.shape[1], **options), 7, "num_groups eps"
    ),
    "layer_norm": Layer(_of_width(nn.LayerNorm), _of_row_norm, "eps elementwise_affine bias"),
    "rms_norm": Layer(_of_width(nn.RMSNorm), _of_row_norm, "eps elementwise_affine"),
    "softmax": Layer(_softmax, _of_softmax, "num_heads causal"),
    "dropout": Layer(lambda x, p, number, shape: Dropout(p, number, shape), 1, "p"),
    # Several values, and parts of one.
    "add": Layer(lambda x, y: Function(add), 1),
    "multiply": Layer(_multiply, 1),
    "concatenate": Layer(
        lambda x, y, *more: Function(
            lambda *parts: torch.cat(parts, 1 if parts[0].ndim == 4 else -1)
        ),
        0,
    ),
    "slice": Layer(_slice, 0, "from to over_time"),
    "as_strided": Layer(_as_strided, 0, "shape size stride storage_offset"),
    # Sequences [time, batch, width].
    "embedding": Layer(
        _alone(Embedding), 0, "num_embeddings embedding_dim scaled_start", time_first=True
    ),
    "position_embedding": Layer(lambda x: PositionEmbedding(x.shape[0], x.shape[2]), 1),
    "class_token": Layer(lambda x: ClassToken(x.shape[2]), 0),
    # [batch, channels, height, width] -> [height * width, batch, channels]
    "to_sequence": Layer(
        lambda x: Function(lambda x: x.flatten(2).permute(2, 0, 1)), 0, time_first=True
    ),
    "to_image": Layer(_to_image, 0, "height channels", time_first=False),
    "mean_over_time": Layer(
        lambda x: Function(lambda x: x.mean(0)), _of_all_read, time_first=False
    ),
    "first_place": Layer(lambda x: Function(lambda x: x[0]), 0, time_first=False),
    "last_place": Layer(lambda x: Function(lambda x: x[-1]), 0, time_first=False),
}


RECURRENT = ("lstm", "gru")
_OF_PLACES = ("number", "num_layers")  # that a layer has in a network, beside its parameters


def is_time_first(layer: dict[str, Any], reads_time_first: bool) -> bool:
    """Whether the layer gives [time, batch, ...]."""
    if layer["type"] == "as_strided":
        return len(layer["shape"]) == 2
    gives = LAYERS[layer["type"]].time_first
    return reads_time_first if gives is None else gives


def module_of(layer: dict[str, Any], read: list[torch.Tensor], batch_axis: int) -> nn.Module:
    """That of one layer, without values, from what it reads; Unsupported in a sentence."""
    where = f"{layer['name']} ({layer['type']})"
    entry = LAYERS.get(layer["type"])
    if entry is None:
        types = ", ".join(LAYERS)
        raise Unsupported(
            f"{where}: peers/pytorch/layers.py has no layer of this type, only {types}"
        )
    arguments = {key: value for key, value in layer.items() if key not in OF_ALL}
    if others := arguments.keys() - {*entry.parameters.split(), *_OF_PLACES}:
        raise Unsupported(f"{where}: it has no {' and no '.join(sorted(others))}")
    if layer["type"] == "dropout":
        shape = list(read[0].shape)
        shape[batch_axis] = -1
        arguments["shape"] = tuple(shape)
    try:
        with torch.device("meta"):
            return entry.module(*read, **arguments)
    except TypeError as error:
        raise Unsupported(f"{where}: {error}") from error
