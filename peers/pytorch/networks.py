# SPDX-License-Identifier: Apache-2.0
"""Networks as bench describes them (docs/networks.md), in PyTorch's modules, and their
deterministic start.

Modules stand in the order in which docs/golden.md numbers their parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import add, getitem, mul
from typing import Any

import numpy as np
import torch
from torch import fx, nn
from torch.nn.functional import linear, pad, scaled_dot_product_attention

from peers.generator import PARAMETERS, kept_by_dropout, uniform
from peers.tasks import OF_ALL, Unsupported

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
    if others := sides.keys() - set(SIDES):
        raise TypeError(f"a pad has no {', '.join(sorted(others))}")
    counts = tuple(sides.get(name, 0) for name in SIDES)
    return Function(lambda x: pad(x, counts))


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
    part = slice(others.pop("from", 0), to)
    if others:
        raise TypeError(f"a slice has no {', '.join(others)}")
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


# From what a layer reads and its own parameters, which are called as PyTorch's are.
_MODULES: dict[str, Callable[..., nn.Module]] = {
    "linear": lambda x, **options: nn.Linear(x.shape[-1], **options),
    "relu": lambda x: nn.ReLU(),
    "sigmoid": lambda x: nn.Sigmoid(),
    "identity": lambda x: nn.Identity(),
    "tanh": lambda x: nn.Tanh(),
    "gelu": lambda x: nn.GELU(),
    "gelu_tanh": lambda x: nn.GELU(approximate="tanh"),
    "silu": lambda x: nn.SiLU(),
    "relu6": lambda x: nn.ReLU6(),
    "hardswish": lambda x: nn.Hardswish(),
    "hardsigmoid": lambda x: nn.Hardsigmoid(),
    "leaky_relu": lambda x, **options: nn.LeakyReLU(**options),
    "elu": lambda x, **options: nn.ELU(**options),
    "softplus": lambda x: nn.Softplus(),
    **{
        name: lambda x, name=name: Function(getattr(torch, name))
        for name in ("sin", "exp", "abs", "sqrt", "reciprocal")
    },
    "as_strided": _as_strided,
    "hardtanh": lambda x, **options: nn.Hardtanh(**options),
    "affine": lambda x, scale=1.0, shift=0.0: Function(lambda x: scale * x + shift),
    "pad": _pad,
    "conv2d": lambda x, **options: nn.Conv2d(x.shape[1], **options),
    "conv_transpose2d": lambda x, **options: nn.ConvTranspose2d(x.shape[1], **options),
    "group_norm": lambda x, **options: nn.GroupNorm(num_channels=x.shape[1], **options),
    "upsample": lambda x, scale_factor: nn.Upsample(
        scale_factor=tuple(scale_factor) if isinstance(scale_factor, list) else scale_factor
    ),
    "max_pool2d": lambda x, **options: nn.MaxPool2d(**options),
    "avg_pool2d": lambda x, **options: nn.AvgPool2d(**options),
    "global_avg_pool2d": lambda x: nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    "batch_norm": lambda x, **options: (nn.BatchNorm1d if x.ndim == 2 else nn.BatchNorm2d)(
        x.shape[1], **options
    ),
    "dropout": lambda x, p, number, shape: Dropout(p, number, shape),
    "add": lambda x, y: Function(add),
    "concatenate": lambda x, y, *more: Function(
        lambda *parts: torch.cat(parts, 1 if parts[0].ndim == 4 else -1)
    ),
    # [batch, channels, height, width] -> [height * width, batch, channels]
    "to_sequence": lambda x: Function(lambda x: x.flatten(2).permute(2, 0, 1)),
    "to_image": _to_image,
    "mean_over_time": lambda x: Function(lambda x: x.mean(0)),
    "class_token": lambda x: ClassToken(x.shape[2]),
    "first_place": lambda x: Function(lambda x: x[0]),
    "last_place": lambda x: Function(lambda x: x[-1]),
    "multiply": _multiply,
    "slice": _slice,
    "matmul": _matmul,
    "softmax": _softmax,
    "flatten": lambda x: nn.Flatten(),
    "embedding": lambda x, **options: Embedding(**options),
    "position_embedding": lambda x: PositionEmbedding(x.shape[0], x.shape[2]),
    "layer_norm": lambda x, **options: nn.LayerNorm(x.shape[-1], **options),
    "rms_norm": lambda x, **options: nn.RMSNorm(x.shape[-1], **options),
    "attention": _attention,
    "lstm": lambda x, **options: nn.LSTM(x.shape[-1], **options),
    "gru": lambda x, **options: nn.GRU(x.shape[-1], **options),
}
RECURRENT = ("lstm", "gru")
BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)


# Layers that make sequences, time first, or end them.
TIME_FIRST = {"embedding": True, "to_sequence": True, "mean_over_time": False, "to_image": False}
TIME_FIRST |= {"first_place": False, "last_place": False}


def is_time_first(layer: dict[str, Any], reads_time_first: bool) -> bool:
    """Whether the layer gives [time, batch, ...]."""
    if layer["type"] == "as_strided":
        return len(layer["shape"]) == 2
    return TIME_FIRST.get(layer["type"], reads_time_first)


def network_of(described: dict[str, Any]) -> nn.Module:
    """Its parameters have no values yet: fill() sets them. Unsupported, in a sentence that names
    the layer, where it can't be had. An nn.Sequential, if each layer reads the one before."""
    reads_tokens = described["input"]["type"] == "i32"
    batch, sample = 2, described["input"]["shape"]  # a batch of 1 has no variance
    x = torch.empty(
        (*sample, batch) if reads_tokens else (batch, *sample),
        dtype=torch.int64 if reads_tokens else torch.float32,
        device="meta",
    )
    modules = nn.Sequential()
    graph = fx.Graph()
    values, name = {"input": (x, graph.placeholder("x"), reads_tokens)}, "input"
    places: dict[str, str] = {}  # of modules, by the names of their layers
    for layer in _stacked(described["layers"]):
        read = [values[value] for value in layer.get("inputs", [name])]
        name = layer["name"]
        if "tied" in layer:
            ((x, node, time_first),) = read
            weight = f"{places[layer['tied']]}.weight"
            value = linear(x, modules.get_parameter(weight))
            node = graph.call_function(linear, (node, graph.get_attr(weight)))
            values[name] = value, node, time_first
            continue
        shapes, nodes, (time_first, *_) = zip(*read, strict=True)
        if "shared" in layer:
            places[name] = places[layer["shared"]]
            module = modules[int(places[name])]
        else:
            places[name] = str(len(modules))
            module = module_of(layer, list(shapes), int(time_first))
            modules.append(module)
        node = graph.call_module(places[name], nodes)
        value = module(*shapes)
        if isinstance(value, tuple):  # of an LSTM or GRU, which also gives its last state
            value, node = value[0], graph.call_function(getitem, (node, 0))
        values[name] = value, node, is_time_first(layer, time_first)
    node = values[name][1]
    if "labels" in described:
        modules.append(nn.Flatten(0, 1))
        node = graph.call_module(str(len(modules) - 1), (node,))
    graph.output(node)
    # fx writes straight code, which torch.compile can break at an LSTM.
    is_chain = not any(
        layer.keys() & {"inputs", "tied", "shared"} or layer["type"] in RECURRENT
        for layer in described["layers"]
    )
    return (modules if is_chain else fx.GraphModule(modules, graph)).to_empty(device="cpu")


def _stacked(layers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Layers of LSTM, or of GRU, that follow one another are one, as PyTorch's users have them;
    those that drop know their `number`."""
    read = {name for layer in layers for name in layer.get("inputs", [])}
    read |= {layer["shared"] for layer in layers if "shared" in layer}
    stacked: list[dict[str, Any]] = []
    for number, layer in enumerate(layers):
        last: dict[str, Any] = stacked[-1] if stacked else {"type": ""}
        is_same = layer["type"] == last["type"] and not layer.keys() & {"inputs", "shared"}
        stacks = is_same and layer["type"] in RECURRENT and last["name"] not in read
        if stacks and layer["hidden_size"] == last["hidden_size"]:
            last |= {"name": layer["name"], "num_layers": last.get("num_layers", 1) + 1}
        else:
            stacked.append(layer | ({"number": number} if layer["type"] == "dropout" else {}))
    return stacked


def module_of(layer: dict[str, Any], read: list[torch.Tensor], batch_axis: int) -> nn.Module:
    """That of one layer, without values, from what it reads; Unsupported in a sentence."""
    where = f"{layer['name']} ({layer['type']})"
    if layer["type"] not in _MODULES:
        types = ", ".join(_MODULES)
        raise Unsupported(
            f"{where}: peers/pytorch/networks.py has no layer of this type, only {types}"
        )
    arguments = {key: value for key, value in layer.items() if key not in OF_ALL}
    if layer["type"] == "dropout":
        shape = list(read[0].shape)
        shape[batch_axis] = -1
        arguments["shape"] = tuple(shape)
    try:
        with torch.device("meta"):
            return _MODULES[layer["type"]](*read, **arguments)
    except TypeError as error:
        raise Unsupported(f"{where}: {error}") from error


def fill(network: nn.Module, trains: bool = True, copy: int = 0) -> None:
    """Sets every parameter to its deterministic start, and statistics to PyTorch's. Of a network
    that is used a batch normalization is a factor and an offset (docs/method/timed.md). Each copy
    draws behind the one before."""
    position = copy * sum(parameter.numel() for parameter in network.parameters())
    for module in network.modules():
        if isinstance(module, BATCH_NORMS):
            module.reset_running_stats()
        for name, parameter in module.named_parameters(recurse=False):
            count = parameter.numel()
            drawn = 2 * uniform(PARAMETERS, position, count) - 1
            if not trains and isinstance(module, BATCH_NORMS):
                module.running_var.fill_(1 - module.eps)
                values = 2 + 0.5 * drawn if name == "weight" else 0.1 * drawn
            elif isinstance(module, (*BATCH_NORMS, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)):
                values = np.full(count, 1.0 if name == "weight" else 0.0)
            else:
                values = drawn * _bound(module)
            position += count
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(values).reshape(parameter.shape))


def _bound(module: nn.Module) -> float:
    """Of the start of its parameters, either way."""
    if isinstance(module, Embedding) and not module.scaled_start:
        return 1.0
    if isinstance(module, (Embedding, PositionEmbedding, ClassToken)):
        return 1 / math.sqrt(module.weight.shape[1])
    if isinstance(module, nn.RNNBase):
        return 1 / math.sqrt(module.hidden_size)
    if isinstance(module, (nn.Linear, nn.Conv2d, nn.ConvTranspose2d)):
        return 1 / math.sqrt(module.weight[0].numel())
    raise TypeError(f"no start is defined for {type(module).__name__}")
