# SPDX-License-Identifier: Apache-2.0
"""What a training step starts, computes, moves and keeps, as a GPU would be asked for it; counted
once, on the CPU, where each operation of PyTorch's passes by."""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

Shape = tuple[int, int, int]  # m × k by k × n, in the order m, n, k

# What starts no kernel although it gives a tensor that is no view.
_NO_KERNEL = ("empty", "new_empty", "_unsafe_view", "_local_scalar_dense", "lift_fresh", "set_")
# Kinds of operations, as bench's profile has them, by a part of their name.
_KINDS = {
    **{"convolution": "convolution", "attention": "product"},
    **{"norm": "normalization", "pool": "pooling", "loss": "loss", "log_softmax": "loss"},
    **{"softmax": "softmax"},
    **{"copy": "reorder", "clone": "reorder"},
}
_VIEW = "view"  # which Python starts, and no kernel
_PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "addbmm", "mv", "addmv", "dot")
# For each parameter, as bench counts it (include/crossover/cost.h).
_UPDATE_FLOPS = {"sgd": 2, "momentum": 4, "adam": 14, "adamw": 14}
# For each gate and each cell of a recurrence, forward and backward (the same).
_GATE_FLOPS, _CELL_FLOPS = (7, 5), (8, 10)
_RECURRENCES = ("lstm", "gru", "rnn_tanh", "rnn_relu")


@dataclass
class Counts:
    """What one step does. `others`: flops, bytes and launches of what is no product, by kind;
    `products`: how many there are of each kind, shapes, flops and bytes. `peak_bytes`: the most
    that the step itself holds at a time; `kept_bytes`: what its forward pass keeps for the backward
    pass."""

    others: dict[str, list[float]] = field(default_factory=dict)
    products: Counter[tuple[str, tuple[tuple[Shape, int], ...], float, float]] = field(
        default_factory=Counter
    )
    peak_bytes: int = 0
    kept_bytes: int = 0

    def add(self, kind: str, flops: float, size: float, launches: float = 1) -> None:
        sums = self.others.setdefault(kind, [0.0, 0.0, 0.0])
        for place, value in enumerate((flops, size, launches)):
            sums[place] += value

    def add_products(
        self, kind: str, shapes: Sequence[tuple[Shape, int]], size: float, flops: float = 0
    ) -> None:
        """One launch; `flops` come on top of those of the products."""
        flops += sum(2.0 * m * n * k * count for (m, n, k), count in shapes)
        self.products[kind, tuple(shapes), flops, size] += 1

    @property
    def operations(self) -> list[dict[str, Any]]:
        """As `bench --cost` lists them."""
        operations: list[dict[str, Any]] = [
            {"kind": kind, "flops": flops, "bytes": size, "launches": launches}
            for kind, (flops, size, launches) in self.others.items()
        ]
        for (kind, shapes, flops, size), count in self.products.items():
            operation = {"kind": kind, "flops": flops, "bytes": size, "launches": 1.0}
            parts = [
                {"m": m, "n": n, "k": k, **({"count": each} if each > 1 else {})}
                for (m, n, k), each in shapes
            ]
            operation |= {"products": parts} if parts else {}
            operations.append(operation | ({"count": count} if count > 1 else {}))
        return operations

    def total(self, key: str) -> float:
        """Of flops, bytes or launches, among which views are none."""
        counted = (each for each in self.operations if each["kind"] != _VIEW)
        return sum(each[key] * each.get("count", 1) for each in counted)


class Counting(TorchDispatchMode):
    """Counts in `counts` what runs within it. A recurrence, which a CPU takes apart into thousands
    of operations and a GPU computes in one call of its library, counts as that (recurrences())."""

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts()
        self.of_update = False
        self._held = 0
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_apart = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = func(*args, **(kwargs or {}))
        if self._is_apart or func.namespace == "profiler":
            pass
        elif _is_view(func):
            self.counts.add(_VIEW, 0.0, 0.0)
        else:
            self._count(func.overloadpacket.__name__, (args, kwargs or {}), given)
        for tensor in _tensors(given):
            self._hold(tensor.untyped_storage())
        return given

    def _count(self, name: str, args: Any, given: Any) -> None:
        written = _tensors(given)
        if name.startswith(_NO_KERNEL):
            return
        size = sum(map(_bytes, [*_tensors(args), *written]))
        numbers = sum(tensor.numel() for tensor in written)
        if self.of_update:
            self.counts.add("update", 0.0, size)
        elif name in _PRODUCTS:
            self.counts.add_products("product", _product(args[0]), size)
        elif name == "convolution":
            self.counts.add_products("convolution", _convolution(args[0], given), size)
        elif name == "convolution_backward":
            gradients = list(_convolution_backward(args[0]))
            for shape in gradients:
                self.counts.add_products("convolution", [(shape, 1)], size / len(gradients))
            if args[0][-1][2]:  # the bias' gradient is a sum of its own
                self.counts.add("elementwise", args[0][0].numel(), _bytes(args[0][0]))
        elif "scaled_dot_product" in name or "attention" in name:
            self.counts.add_products("product", (), size, _attention(name, args[0]))
        else:
            kinds = (kind for part, kind in _KINDS.items() if part in name)
            self.counts.add(next(kinds, "elementwise"), float(numbers), size)

    def _hold(self, storage: Any) -> None:
        """Until it is freed."""
        if storage in self._known:
            return
        size = storage.nbytes()
        self._known.add(storage)
        self._held += size
        self.counts.peak_bytes = max(self.counts.peak_bytes, self._held)
        weakref.finalize(storage, self._free, size).atexit = False

    def _free(self, size: int) -> None:
        self._held -= size

    def forward_is_done(self) -> None:
        self.counts.kept_bytes = self._held

    def update_is_done(self, optimizer: str, params: int) -> None:
        """As bench counts its operations."""
        self.counts.add("update", float(_UPDATE_FLOPS[optimizer] * params), 0.0, 0.0)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Nothing counts but what is held."""
        before, self._is_apart = self._is_apart, True
        try:
            yield
        finally:
            self._is_apart = before


class Recurrences(TorchFunctionMode):
    """Tells `counting` of them."""

    def __init__(self, counting: Counting) -> None:
        super().__init__()
        self._counting = counting

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") not in _RECURRENCES:
            return func(*args, **(kwargs or {}))
        leaves, spec = tree_flatten((list(args), kwargs or {}))
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]

        def call(given: Sequence[torch.Tensor]) -> Any:
            rest = iter(given)
            values = [next(rest) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            given_args, given_kwargs = tree_unflatten(values, spec)
            return func(*given_args, **given_kwargs)

        return _Apart.apply(self._counting, _Recurrence.of(args), call, *tensors)


@dataclass(frozen=True)
class _Recurrence:
    """Layers and directions with the shapes of their weights, [gates × hidden, read] and [gates ×
    hidden, hidden]; `rows` are all, of `time` steps."""

    weights: tuple[tuple[torch.Size, torch.Size], ...]
    rows: int
    time: int
    reads: int  # bytes of what it reads, with all weights

    @staticmethod
    def of(args: Any) -> _Recurrence:
        is_packed = isinstance(args[1], torch.Tensor) and args[1].dtype == torch.int64
        x, params = args[0], args[3 if is_packed else 2]
        matrices = [tensor for tensor in params if tensor.ndim == 2]
        pairs = tuple(
            (a.shape, b.shape) for a, b in zip(matrices[::2], matrices[1::2], strict=True)
        )
        rows = x.shape[0] if is_packed else math.prod(x.shape[:-1])
        time = len(args[1]) if is_packed else x.shape[1 if args[-1] is True and x.ndim > 2 else 0]
        return _Recurrence(pairs, rows, time, sum(map(_bytes, [x, *params])))

    def count(self, counts: Counts, backward: bool) -> None:
        for (gates, read), (_, hidden) in self.weights:
            batch = max(1, self.rows // self.time)
            if backward:
                shapes = [((self.rows, read, gates), 1), ((gates, read, self.rows), 1)]
                shapes += [((batch, hidden, gates), self.time), ((gates, hidden, self.rows), 1)]
            else:
                shapes = [((self.rows, gates, read), 1), ((batch, gates, hidden), self.time)]
            flops = self.rows * (_GATE_FLOPS[backward] * gates + _CELL_FLOPS[backward] * hidden)
            size = self.reads / len(self.weights) + 4.0 * self.rows * (2 * gates + hidden)
            counts.add_products("product", shapes, size * (1 + backward), flops)


class _Apart(torch.autograd.Function):
    """A recurrence, both of whose passes count as those of a GPU's library."""

    @staticmethod
    def forward(
        ctx: Any,
        counting: Counting,
        recurrence: _Recurrence,
        call: Callable[[Sequence[torch.Tensor]], Any],
        *tensors: torch.Tensor,
    ) -> Any:
        recurrence.count(counting.counts, backward=False)
        with counting.apart(), torch.enable_grad():
            ctx.read = [tensor.detach().requires_grad_(tensor.requires_grad) for tensor in tensors]
            ctx.given = call(ctx.read)
        ctx.of = counting, recurrence
        return tuple(tensor.detach() for tensor in ctx.given)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor | None) -> Any:
        counting, recurrence = ctx.of
        recurrence.count(counting.counts, backward=True)
        wanted = [tensor for tensor in ctx.read if tensor.requires_grad]
        pairs = [(y, g) for y, g in zip(ctx.given, gradients, strict=True) if y.requires_grad]
        outputs, of_outputs = zip(*pairs, strict=True)
        with counting.apart():
            of_wanted = iter(torch.autograd.grad(outputs, wanted, of_outputs, allow_unused=True))
        of_read = [next(of_wanted) if tensor.requires_grad else None for tensor in ctx.read]
        return (None, None, None, *of_read)


def _is_view(func: Any) -> bool:
    aliases = [value.alias_info for value in func._schema.returns]
    return bool(aliases) and all(alias and not alias.is_write for alias in aliases)


def _tensors(value: Any) -> list[torch.Tensor]:
    """Those that have a storage of their own, which sparse ones have not."""
    tensors = (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))
    return [tensor for tensor in tensors if tensor.layout == torch.strided]


def _bytes(tensor: torch.Tensor) -> int:
    """Those in memory: what is expanded is there once."""
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


def _product(args: Any) -> list[tuple[Shape, int]]:
    """Those of a batch are one, as their kernel is."""
    a, b = [value for value in args if isinstance(value, torch.Tensor)][-2:]
    rows = math.prod(a.shape[:-1]) if a.ndim > 1 else 1
    return [((rows, b.shape[-1] if b.ndim > 1 else 1, a.shape[-1]), 1)]


def _convolution(args: Any, given: torch.Tensor) -> list[tuple[Shape, int]]:
    """All groups are one product, as their kernel is."""
    x, weight, is_transposed = args[0], args[1], args[6]
    places = x if is_transposed else given
    return [((weight.shape[0], _places(places), math.prod(weight.shape[1:])), 1)]


def _convolution_backward(args: Any) -> Iterator[Shape]:
    """Each gradient is a product as large as that of the forward pass, in groups, too."""
    gradient, x, weight, is_transposed, mask = args[0], args[1], args[2], args[7], args[-1]
    places = _places(x if is_transposed else gradient)
    if mask[0]:
        yield places, math.prod(weight.shape[1:]), weight.shape[0]
    if mask[1]:
        yield weight.shape[0], math.prod(weight.shape[1:]), places


def _places(images: torch.Tensor) -> int:
    return images.shape[0] * math.prod(images.shape[2:])


def _attention(name: str, args: Any) -> float:
    """Of its two products; of the five of its gradient, which computes the scores again."""
    is_backward = "backward" in name
    query, key, value = args[is_backward : 3 + is_backward]
    scores = math.prod(query.shape[:-1]) * key.shape[-2]
    both = query.shape[-1] + value.shape[-1]
    return scores * (2.0 * both + 6) * (2.5 if is_backward else 1)
