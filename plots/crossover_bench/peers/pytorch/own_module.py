# SPDX-License-Identifier: Apache-2.0
"""A module as its user wrote it, FILE.py:CALLABLE, with its data and its loss, trained as it is."""

from __future__ import annotations

import inspect
import json
import math
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_leaves, tree_map

from crossover_bench.peers.generator import INPUTS, uniform
from crossover_bench.peers.pytorch.user_file import alone, given_by, loaded, module_of
from crossover_bench.peers.tasks import Unsupported

LOSSES = ("cross-entropy", "nll", "mse", "bce", "module")  # or FILE.py:CALLABLE
_MOST_BYTES = 1 << 32  # of a user's batches, which are taken into memory


@dataclass(frozen=True)
class Module:
    """What of a user's is trained, as `./run` writes it into a file for the worker. `inputs` are
    the shape of a sample and the number of tokens (0: numbers) of each; `reason` is why it is
    measured as it is."""

    name: str
    source: str
    inputs: tuple[tuple[tuple[int, ...], int], ...] = ()
    batch_axis: int = 0
    loss: str = "cross-entropy"
    output: int | None = None
    data: str | None = None
    reason: str = ""
    scale: float = 1

    @staticmethod
    def read(path: Path) -> Module:
        told = json.loads(path.read_text(encoding="utf-8"))
        inputs = tuple((tuple(shape), tokens) for shape, tokens in told.pop("inputs"))
        return Module(inputs=inputs, **told)

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    def scaled(self, factor: float) -> Module:
        """Of another size, named as bench names one."""
        return replace(self, scale=factor, name=f"{self.name}x{factor:g}") if factor != 1 else self

    def batch(self) -> int:
        """How many rows a batch has, unless another number is asked for."""
        if self.data:
            return _rows_of(batches_of(self)[0], self.batch_axis)
        # As bench has it (docs/networks.md).
        return 100 if all(len(shape) < 2 and not tokens for shape, tokens in self.inputs) else 32

    def rows(self) -> int:
        """Of an epoch of the user's data; 0 where data is generated. Unsupported where an epoch has
        other batches than such of one size and a shorter one."""
        sizes = [_rows_of(batch, self.batch_axis) for batch in batches_of(self)]
        if any(size != sizes[0] for size in sizes[:-1]) or (sizes and sizes[-1] > sizes[0]):
            raise Unsupported("an epoch has batches of one size, and perhaps a last, shorter one")
        return sum(sizes)


# ---- the user's module


def made(module: Module) -> nn.Module:
    sizes = {} if module.scale == 1 else _sizes(module, loaded(module.source))
    return module_of(module.source, **sizes).train()


def _sizes(module: Module, make: Callable[..., Any]) -> dict[str, Any]:
    takes = inspect.signature(make).parameters if callable(make) else {}
    if "scale" in takes:
        return {"scale": int(module.scale) if module.scale == int(module.scale) else module.scale}
    if "width" in takes and isinstance(takes["width"].default, int):
        return {"width": max(1, round(takes["width"].default * module.scale))}
    raise Unsupported(
        f"--scale: {module.source} takes no argument scale, nor a width with a number to multiply"
    )


def seed(number: int) -> None:
    """Of all that a user's code may draw from."""
    for seed_generator in (random.seed, np.random.seed, torch.manual_seed):
        seed_generator(number)


# ---- its data


def _rows_of(batch: tuple[Any, Any], axis: int) -> int:
    """Of a batch: those of its first tensor."""
    first = next(iter(batch[0].values() if isinstance(batch[0], dict) else batch[0]))
    return first.shape[axis if first.ndim > axis else 0]


def generated(module: Module, first: int, rows: int) -> tuple[torch.Tensor, ...]:
    """Inputs from row `first` on: numbers in +- 1, or tokens."""
    inputs = []
    for place, (shape, tokens) in enumerate(module.inputs):
        each = math.prod(shape)
        numbers = uniform(INPUTS, (place << 28) + first * each, rows * each)
        numbers = numbers.reshape(rows, *shape)
        numbers = np.floor(numbers * tokens).astype(np.int64) if tokens else 2 * numbers - 1
        values = torch.from_numpy(numbers)
        is_moved = module.batch_axis and values.ndim > 1
        inputs.append(values.movedim(0, 1).contiguous() if is_moved else values)
    return tuple(inputs)


_taken: dict[str, list[tuple[Any, Any]]] = {}


def batches_of(module: Module) -> list[tuple[Any, Any]]:
    """The batches of --data, inputs and target, taken once; with a loss of the user's own, or of
    the module, the target is the batch as it came, or nothing."""
    if module.data is None:
        return []
    if module.data not in _taken:
        seed(0)
        data = loaded(module.data)
        with alone(Path(module.data.rpartition(":")[0])):
            _taken[module.data] = given_by(
                f"{module.data} gives no batches", _take, data() if callable(data) else data
            )
    if not _taken[module.data]:
        raise Unsupported(f"{module.data} gives no batches")
    return [_parted(module, batch) for batch in _taken[module.data]]


def _take(batches: Any) -> list[Any]:
    taken: list[Any] = []
    size = 0
    for batch in islice(batches, 1 << 16):
        tensors = tree_map(_tensor, batch)
        size += sum(tensor.nbytes for tensor in tree_leaves(tensors))
        if size > _MOST_BYTES and taken:
            break
        taken.append(list(tensors) if isinstance(tensors, tuple) else tensors)
    return taken


def _tensor(value: Any) -> torch.Tensor:
    return value.detach().cpu() if isinstance(value, torch.Tensor) else torch.as_tensor(value)


def _parted(module: Module, batch: Any) -> tuple[Any, Any]:
    if isinstance(batch, dict):
        return batch, batch if ":" in module.loss else ()
    if isinstance(batch, torch.Tensor):
        batch = [batch]
        return (*batch,), (*batch,) if module.loss != "module" else ()
    if module.loss == "module":
        return tuple(batch), ()
    if ":" in module.loss:
        return tuple(batch[:-1] if len(batch) > 1 else batch), tuple(batch)
    return tuple(batch[:-1] if len(batch) > 1 else batch), (batch[-1],)
