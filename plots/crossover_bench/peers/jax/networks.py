# SPDX-License-Identifier: Apache-2.0
"""Networks as bench describes them (docs/networks.md), as functions of their parameters in JAX, and
their deterministic start.

Parameters stand in the order and in the shapes in which docs/golden.md numbers them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from crossover_bench.peers.generator import PARAMETERS, uniform
from crossover_bench.peers.tasks import OF_ALL, Unsupported

Array: TypeAlias = jax.Array
Parameters = Sequence[Array]


@dataclass(frozen=True)
class Start:
    """A parameter: uniform in `center` +- `bound`, or `constant`."""

    shape: tuple[int, ...]
    bound: float = 0.0
    constant: float | None = None
    center: float = 0.0


@dataclass(frozen=True)
class Layer:
    """`of` takes the layer's parameters and what it reads."""

    of: Callable[..., Array]
    starts: tuple[Start, ...] = ()


@dataclass(frozen=True)
class Network:
    """`outputs` of a batch: [batch, ...]; of a sequence, time first, [time batch, ...]."""

    starts: tuple[Start, ...]
    outputs: Callable[[Parameters, Array], Array]
    trained: tuple[bool, ...] = ()  # for each of `starts`: else it is frozen


def _product(
    of: Callable[[Array, Array], Array], shape: tuple[int, ...], outputs: int, bias: bool, rank: int
) -> Layer:
    """Of weights and what is read, with a bias for each output; all start alike."""
    bound = 1 / math.sqrt(math.prod(shape[1:]))
    starts = (Start(shape, bound), Start((outputs,), bound))
    if bias:
        return Layer(lambda w, b, x: of(w, x) + _of_channels(b, rank), starts)
    return Layer(of, starts[:1])


def _of_channels(values: Array, rank: int) -> Array:
    """As they meet [batch, channels, ...]."""
    return values.reshape(-1, *[1] * (rank - 2))


def _linear(x: Any, out_features: int, bias: bool = True) -> Layer:
    return _product(lambda w, x: x @ w.T, (out_features, x.shape[-1]), out_features, bias, 2)


_Size = int | list[int]  # for both directions, or [height, width]


def _both(size: _Size) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


def _convolution(
    x: Any,
    out_channels: int,
    kernel_size: _Size,
    *,
    stride: _Size = 1,
    padding: _Size = 0,
    dilation: _Size = 1,
    groups: int = 1,
    bias: bool = True,
) -> Layer:
    shape = (out_channels, x.shape[1] // groups, *_both(kernel_size))

    def convolved(w: Array, x: Array) -> Array:
        return lax.conv_general_dilated(
            x,
            w,
            _both(stride),
            [(around, around) for around in _both(padding)],
            rhs_dilation=_both(dilation),
            feature_group_count=groups,
        )

    return _product(convolved, shape, out_channels, bias, x.ndim)


def _transposed(
    x: Any,
    out_channels: int,
    kernel_size: _Size,
    *,
    stride: _Size = 1,
    padding: _Size = 0,
    output_padding: _Size = 0,
    dilation: _Size = 1,
    groups: int = 1,
    bias: bool = True,
) -> Layer:
    """A convolution, by the mirrored windows, of the image with zeros between its pixels."""
    cin, cout = x.shape[1], out_channels // groups
    shape = (cin, cout, *_both(kernel_size))
    sizes = zip(*map(_both, (kernel_size, padding, dilation, output_padding)), strict=True)
    around = []
    for size, less, apart, more in sizes:
        before = apart * (size - 1) - less
        around.append((before, before + more))

    def convolved(w: Array, x: Array) -> Array:
        mirrored = w.reshape(groups, cin // groups, *shape[1:])[..., ::-1, ::-1]
        return lax.conv_general_dilated(
            x,
            mirrored.swapaxes(1, 2).reshape(out_channels, cin // groups, *shape[2:]),
            (1, 1),
            around,
            lhs_dilation=_both(stride),
            rhs_dilation=_both(dilation),
            feature_group_count=groups,
        )

    return _product(convolved, shape, out_channels, bias, x.ndim)


def _pool(
    x: Any,
    kernel_size: _Size,
    *,
    stride: _Size | None = None,
    padding: _Size = 0,
    ceil_mode: bool = False,
    is_max: bool,
) -> Layer:
    sizes, steps, paddings = _both(kernel_size), _both(stride or kernel_size), _both(padding)
    around, more = [(0, 0), (0, 0)], [(0, 0), (0, 0)]
    for extent, size, step, pad in zip(x.shape[2:], sizes, steps, paddings, strict=True):
        over = extent + 2 * pad - size
        places = (-(-over // step) if ceil_mode else over // step) + 1
        if (places - 1) * step >= extent + pad:
            places -= 1
        behind = max(0, (places - 1) * step - over)  # that only rounding up adds
        around.append((pad, pad + behind))
        more.append((0, behind))
    windows = {"window_dimensions": (1, 1, *sizes), "window_strides": (1, 1, *steps)}
    if is_max:
        return Layer(lambda x: lax.reduce_window(x, -jnp.inf, lax.max, padding=around, **windows))
    # As in PyTorch a mean counts padding, but not what rounding up adds.
    padded = np.ones(
        [1, 1, *(size + 2 * pad for size, pad in zip(x.shape[2:], paddings, strict=True))],
        np.float32,
    )

    def averaged(x: Array) -> Array:
        counts = lax.reduce_window(padded, 0.0, lax.add, padding=more, **windows)
        sums = lax.reduce_window(x, 0.0, lax.add, padding=around, **windows)
        return sums / counts.astype(x.dtype)

    return Layer(averaged)


def _upsample(x: Any, scale_factor: _Size) -> Layer:
    down, across = _both(scale_factor)
    return Layer(lambda x: x.repeat(down, 2).repeat(across, 3))


def _interpolate(x: Any, size: _Size, align_corners: bool = False) -> Layer:
    shares = [
        _shares(before, after, align_corners)
        for before, after in zip(x.shape[2:], _both(size), strict=True)
    ]

    def of(x: Array) -> Array:
        down, across = (jnp.asarray(axis, x.dtype) for axis in shares)
        return jnp.einsum("ih,jw,nchw->ncij", down, across, x, precision="highest")

    return Layer(of)


def _shares(before: int, after: int, aligned: bool) -> np.ndarray:
    """[after, before]: what each number of an axis counts for in those between."""
    corners = aligned and before != after
    step, offset, unit = (
        (before - 1, 0, after - 1) if corners else (2 * before, before - after, 2 * after)
    )
    places = np.clip(step * np.arange(after) + offset, 0, (before - 1) * unit) / unit
    return np.maximum(0, 1 - np.abs(places[:, None] - np.arange(before)))


def _normalized(x: Array, axes: int | tuple[int, ...], eps: float = 1e-5) -> Array:
    mean = x.mean(axes, keepdims=True)
    variance = ((x - mean) ** 2).mean(axes, keepdims=True)
    return (x - mean) * lax.rsqrt(variance + eps)


def _scaled(width: int) -> tuple[Start, Start]:
    return Start((width,), constant=1.0), Start((width,), constant=0.0)


def _batch_norm(x: Any, eps: float = 1e-5) -> Layer:
    axes = (0, *range(2, x.ndim))

    def of(w: Array, b: Array, x: Array) -> Array:
        return _normalized(x, axes, eps) * _of_channels(w, x.ndim) + _of_channels(b, x.ndim)

    return Layer(of, _scaled(x.shape[1]))


def _batch_norm_in_use(x: Any, eps: float = 1e-5) -> Layer:
    """A factor and an offset of each channel (docs/method/timed.md)."""
    del eps  # within the factor
    starts = (Start((x.shape[1],), 0.5, center=2.0), Start((x.shape[1],), 0.1))
    return Layer(lambda w, b, x: x * _of_channels(w, x.ndim) + _of_channels(b, x.ndim), starts)


def _group_norm(x: Any, num_groups: int, eps: float = 1e-5) -> Layer:
    def of(w: Array, b: Array, x: Array) -> Array:
        groups = _normalized(x.reshape(x.shape[0], num_groups, -1), -1, eps)
        return groups.reshape(x.shape) * _of_channels(w, x.ndim) + _of_channels(b, x.ndim)

    return Layer(of, _scaled(x.shape[1]))


def _layer_norm(
    x: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True
) -> Layer:
    def normalized(*values: Array) -> Array:
        *parameters, x = values
        y = _normalized(x, -1, eps)
        for parameter, join in zip(parameters, (jnp.multiply, jnp.add), strict=False):
            y = join(y, parameter)
        return y

    return Layer(normalized, _scaled(x.shape[-1])[: elementwise_affine * (1 + bias)])


def _rms_norm(x: Any, eps: float = 2.0**-23, elementwise_affine: bool = True) -> Layer:
    def normalized(*values: Array) -> Array:
        *weight, x = values
        y = x * lax.rsqrt((x**2).mean(-1, keepdims=True) + eps)
        return y * weight[0] if weight else y

    return Layer(normalized, _scaled(x.shape[-1])[:elementwise_affine])


def _pad(x: Any, **sides: int) -> Layer:
    names = (("front", "back"), ("top", "bottom"), ("left", "right"))
    around = [(0, 0, 0), *((sides.pop(a, 0), sides.pop(b, 0), 0) for a, b in names)]
    if sides:
        raise TypeError(f"a pad has no {', '.join(sides)}")
    return Layer(lambda x: lax.pad(x, jnp.zeros((), x.dtype), around))


def _embedding(
    x: Any, num_embeddings: int, embedding_dim: int, scaled_start: bool = False
) -> Layer:
    bound = 1 / math.sqrt(embedding_dim) if scaled_start else 1.0
    return Layer(lambda w, x: w[x], (Start((num_embeddings, embedding_dim), bound),))


def _position_embedding(x: Any) -> Layer:
    time, _, width = x.shape
    return Layer(lambda w, x: x + w[:, None], (Start((time, width), 1 / math.sqrt(width)),))


def _attention(x: Any, num_heads: int, causal: bool = False) -> Layer:
    def of(qkv: Array) -> Array:
        time, batch, _ = qkv.shape
        heads = qkv.reshape(time, batch, 3, num_heads, -1).transpose(2, 1, 0, 3, 4)
        y = jax.nn.dot_product_attention(*heads, is_causal=causal)
        return y.transpose(1, 0, 2, 3).reshape(time, batch, -1)

    return Layer(of)


def _slice(x: Any, to: int, over_time: bool = False, **others: int) -> Layer:
    part = slice(others.pop("from", 0), to)
    if others:
        raise TypeError(f"a slice has no {', '.join(others)}")
    if over_time or jnp.issubdtype(x.dtype, jnp.integer):  # tokens are [time, batch]
        return Layer(lambda x: x[part])
    return Layer(lambda x: x[:, part] if x.ndim == 4 else x[..., part])


def _to_image(x: Any, height: int = 1, channels: int = 0) -> Layer:
    def of(x: Array) -> Array:
        x = x.transpose((1, 0, 2) if channels else (1, 2, 0)) if x.ndim == 3 else x
        return x.reshape(x.shape[0], channels or x.shape[1], height, -1)

    return Layer(of)


def _matmul(
    x: Any, y: Any, transpose: bool = False, num_heads: int = 1, scale: float = 1.0
) -> Layer:
    def heads(x: Array) -> Array:
        x = x[None] if x.ndim == 2 else x
        return x.reshape(*x.shape[:2], num_heads, -1).transpose(1, 2, 0, 3)

    def of(x: Array, y: Array) -> Array:
        right = heads(y).swapaxes(-1, -2) if transpose else heads(y)
        z = (scale * (heads(x) @ right)).transpose(2, 0, 1, 3)
        z = z.reshape(*z.shape[:2], -1)
        return z[0] if x.ndim == 2 else z

    return Layer(of)


def _softmax(x: Any, num_heads: int = 1, causal: bool = False) -> Layer:
    def of(x: Array) -> Array:
        parts = x.reshape(*x.shape[:-1], num_heads, -1)
        if causal:
            seen = jnp.tri(x.shape[0], parts.shape[-1], dtype=bool)[:, None, None]
            parts = jnp.where(seen, parts, -jnp.inf)
        return jax.nn.softmax(parts, -1).reshape(x.shape)

    return Layer(of)


def _as_strided(
    x: Any, shape: list[int], size: list[int], stride: list[int], storage_offset: int = 0
) -> Layer:
    places = np.full(size, storage_offset)
    for axis, step in enumerate(stride):
        places += step * np.arange(size[axis]).reshape(-1, *[1] * (len(size) - axis - 1))
    places = places.reshape(shape).astype(np.int32)

    def of(x: Array) -> Array:
        x = x.swapaxes(0, 1) if x.ndim == 3 else x
        y = x.reshape(x.shape[0], -1)[:, places]
        return y.swapaxes(0, 1) if y.ndim == 3 else y

    return Layer(of)


_ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "sigmoid": jax.nn.sigmoid,
    "identity": lambda x: x,
    "tanh": jnp.tanh,
    "gelu": partial(jax.nn.gelu, approximate=False),
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "silu": jax.nn.silu,
    "relu6": jax.nn.relu6,
    "hardswish": jax.nn.hard_swish,
    "hardsigmoid": jax.nn.hard_sigmoid,
    "softplus": jax.nn.softplus,
    "sin": jnp.sin,
    "exp": jnp.exp,
    "abs": jnp.abs,
    "log": jnp.log,
    "sqrt": jnp.sqrt,
    "reciprocal": jnp.reciprocal,
    "global_avg_pool2d": lambda x: x.mean((2, 3)),
    "flatten": lambda x: x.reshape(x.shape[0], -1),
}
# From what a layer reads and its own parameters, which are called as PyTorch's are.
_LAYERS: dict[str, Callable[..., Layer]] = {
    "linear": _linear,
    "conv2d": _convolution,
    "conv_transpose2d": _transposed,
    "upsample": _upsample,
    "interpolate": _interpolate,
    "max_pool2d": partial(_pool, is_max=True),
    "avg_pool2d": partial(_pool, is_max=False),
    "batch_norm": _batch_norm,
    "group_norm": _group_norm,
    "layer_norm": _layer_norm,
    "embedding": _embedding,
    "position_embedding": _position_embedding,
    "attention": _attention,
    "add": lambda x, y: Layer(lambda x, y: x + y),
    "multiply": lambda x, gate: Layer(
        lambda x, gate: x * (gate[:, :, None, None] if (x.ndim, gate.ndim) == (4, 2) else gate)
    ),
    "concatenate": lambda *read: Layer(
        lambda *read: jnp.concatenate(read, 1 if read[0].ndim == 4 else -1)
    ),
    "rms_norm": _rms_norm,
    "leaky_relu": lambda x, negative_slope=0.01: Layer(
        lambda x: jax.nn.leaky_relu(x, negative_slope)
    ),
    "elu": lambda x, alpha=1.0: Layer(lambda x: jax.nn.elu(x, alpha)),
    "hardtanh": lambda x, min_val=-1.0, max_val=1.0: Layer(lambda x: jnp.clip(x, min_val, max_val)),
    "affine": lambda x, scale=1.0, shift=0.0: Layer(lambda x: scale * x + shift),
    "pad": _pad,
    "slice": _slice,
    "as_strided": _as_strided,
    "matmul": _matmul,
    "softmax": _softmax,
    "to_sequence": lambda x: Layer(lambda x: x.reshape(*x.shape[:2], -1).transpose(2, 0, 1)),
    "to_image": _to_image,
    "mean_over_time": lambda x: Layer(lambda x: x.mean(0)),
    "first_place": lambda x: Layer(lambda x: x[0]),
    "last_place": lambda x: Layer(lambda x: x[-1]),
    **{name: lambda x, of=of: Layer(of) for name, of in _ACTIVATIONS.items()},
}


# In place of those, in a network that does not train.
_IN_USE: dict[str, Callable[..., Layer]] = {
    "batch_norm": _batch_norm_in_use,
    "dropout": lambda x, p=0.5: Layer(lambda x: x),
}


def network_of(described: dict[str, Any], trains: bool = True) -> Network:
    """Unsupported, in a sentence that names the layer, where it can't be had."""
    layers = _LAYERS if trains else _LAYERS | _IN_USE
    reads_tokens = described["input"]["type"] == "i32"
    batch, sample = 2, described["input"]["shape"]
    shapes = {
        "input": jax.ShapeDtypeStruct(
            (*sample, batch) if reads_tokens else (batch, *sample),
            jnp.int32 if reads_tokens else jnp.float32,
        )
    }
    starts: list[Start] = []
    trained: list[bool] = []
    places: dict[str, slice] = {}  # of parameters, by the names of their layers
    calls: list[tuple[str, Callable[..., Array], slice, list[str]]] = []
    name = "input"
    for stated in described["layers"]:
        read = stated.get("inputs", [name])
        name = stated["name"]
        if "tied" in stated:
            layer, place = Layer(lambda w, x: x @ w.T), places[stated["tied"]]
        else:
            layer = _layer_of(layers, stated, [shapes[value] for value in read])
            place = slice(len(starts), len(starts) + len(layer.starts))
            if "shared" in stated:
                place = places[stated["shared"]]
            else:
                starts += layer.starts
                trained += [stated.get("requires_grad", True)] * len(layer.starts)
        places[name] = place
        parameters = [jax.ShapeDtypeStruct(start.shape, jnp.float32) for start in starts[place]]
        shapes[name] = jax.eval_shape(layer.of, *parameters, *(shapes[value] for value in read))
        calls.append((name, layer.of, place, read))
    labels_places = "labels" in described

    def outputs(parameters: Parameters, x: Array) -> Array:
        values = {"input": x}
        for name, of, place, read in calls:
            values[name] = of(*parameters[place], *(values[value] for value in read))
        last = values[calls[-1][0]]
        return last.reshape(-1, last.shape[-1]) if labels_places else last

    return Network(tuple(starts), outputs, tuple(trained))


def _layer_of(
    layers: dict[str, Callable[..., Layer]], stated: dict[str, Any], read: list[Any]
) -> Layer:
    where = f"{stated['name']} ({stated['type']})"
    if stated["type"] not in layers:
        raise Unsupported(
            f"{where}: peers/jax/networks.py has no such layer, but {', '.join(sorted(layers))}"
        )
    arguments = {key: value for key, value in stated.items() if key not in OF_ALL}
    try:
        return layers[stated["type"]](*read, **arguments)
    except TypeError as error:
        raise Unsupported(f"{where}: {error}") from error


def start_of(network: Network, copy: int = 0) -> list[np.ndarray]:
    """The deterministic start, in float64. Each copy draws behind the one before."""
    position, values = copy * sum(math.prod(start.shape) for start in network.starts), []
    for start in network.starts:
        count = math.prod(start.shape)
        if start.constant is None:
            drawn = 2 * uniform(PARAMETERS, position, count) - 1
            flat = start.center + start.bound * drawn
        else:
            flat = np.full(count, start.constant)
        position += count
        values.append(flat.reshape(start.shape))
    return values
