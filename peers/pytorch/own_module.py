# SPDX-License-Identifier: Apache-2.0
"""A module as its user wrote it, FILE.py:CALLABLE, with its data and its loss, trained as it is."""

from __future__ import annotations

import importlib.util
import inspect
import io
import json
import math
import random
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_map

from peers.generator import INPUTS, uniform
from peers.tasks import Unsupported

LOSSES = ("cross-entropy", "nll", "mse", "bce", "module")  # or FILE.py:CALLABLE
_ROOT = Path(__file__).parents[2]
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
        found = [_rows_of(batch, self.batch_axis) for batch in batches_of(self)]
        if any(one != found[0] for one in found[:-1]) or (found and found[-1] > found[0]):
            raise Unsupported("an epoch has batches of one size, and perhaps a last, shorter one")
        return sum(found)


# ---- the user's files


class _TrainsError(Exception):
    """A file that is imported trains."""


_files: dict[Path, Any] = {}


def loaded(source: str) -> Any:
    """What FILE.py:NAME says. The file's folder comes first among those that it imports from, as if
    its user had started it, so its own model.py or tools.py win over this project's."""
    file, _, name = source.rpartition(":")
    path = Path(file).absolute()
    if not path.is_file():
        raise Unsupported(f"{path.name}: there is no such file")
    if path not in _files:
        _files[path] = None  # its folder is the user's from now on
        try:
            _files[path] = _imported(path)
        except Unsupported:
            del _files[path]
            raise
    if not hasattr(_files[path], name):
        own = [one for one, value in vars(_files[path]).items() if _is_of(value, _files[path])]
        has = f"; it has {', '.join(own)}" if own else ""
        raise Unsupported(f"{path.name} has nothing named {name!r}{has}")
    return getattr(_files[path], name)


def _is_of(value: Any, module: Any) -> bool:
    return callable(value) and getattr(value, "__module__", "") == module.__name__


def _imported(path: Path) -> Any:
    folder = str(path.parent)
    others = [one for one in sys.path if one and Path(one).absolute() not in (_ROOT, path.parent)]
    sys.path[:] = [folder, *others]
    for name in list(sys.modules):
        top = path.parent / name.partition(".")[0]
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(_ROOT) and (
            top.is_dir() or top.with_suffix(".py").is_file()
        ):
            del sys.modules[name]
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "_network"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Unsupported(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _alone(path):
        _said(f"{path.name} can't be imported", spec.loader.exec_module, module)
    return module


def _said(what: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What the user's code gives; Unsupported in one sentence where it does something else."""
    try:
        return call(*given, **named)
    except (SystemExit, KeyboardInterrupt, EOFError, _TrainsError) as error:
        does = {EOFError: "asks for input", _TrainsError: "trains"}
        raise Unsupported(
            f"{what}: it {does.get(type(error), 'ends the program')}{_place(error)}; what only a "
            'script does belongs under if __name__ == "__main__":'
        ) from error
    except Exception as error:
        raise Unsupported(f"{what}: {failure(error)}") from error


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """The user's code meets no command line, no input and no training; what it prints is lost."""

    def trains(*_: Any, **__: Any) -> None:
        raise _TrainsError

    argv, stdin = sys.argv, sys.stdin
    sys.argv, sys.stdin = [str(path)], io.StringIO()
    try:
        with (
            patch.object(torch.autograd, "backward", trains),
            redirect_stdout(io.StringIO()),
            redirect_stderr(io.StringIO()),
        ):
            yield
    finally:
        sys.argv, sys.stdin = argv, stdin


def failure(error: BaseException) -> str:
    """An exception in one line: what and, in the user's files, where."""
    said = " ".join(str(error).split())[:300]
    text = type(error).__name__ + (f": {said}" if said else "")
    return text + _place(error)


def _place(error: BaseException) -> str:
    """ " (net.py:7)", of the innermost line of the user's; empty where there is none."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        file = Path(frame.filename)
        if any(file.is_relative_to(path.parent) for path in _files):
            return f" ({file.name}:{frame.lineno})"
    return ""


def made(module: Module) -> nn.Module:
    found, path = loaded(module.source), Path(module.source.rpartition(":")[0])
    called = f"{path.name}:{module.source.rpartition(':')[2]}"
    if not callable(found):
        raise Unsupported(f"{called} is nothing to call")
    sizes = {} if module.scale == 1 else _sizes(module, found)
    make = partial(deepcopy, found) if isinstance(found, nn.Module) else found
    with _alone(path):
        network = _said(f"{called} can't be called", make, **sizes)
    if not isinstance(network, nn.Module):
        kind = type(network).__name__
        raise Unsupported(f"{called} gives a value of type {kind}, and no torch.nn.Module")
    return network.train()


def _sizes(module: Module, found: Callable[..., Any]) -> dict[str, Any]:
    takes = inspect.signature(found).parameters
    if "scale" in takes:
        return {"scale": int(module.scale) if module.scale == int(module.scale) else module.scale}
    if "width" in takes and isinstance(takes["width"].default, int):
        return {"width": max(1, round(takes["width"].default * module.scale))}
    raise Unsupported(
        f"--scale: {module.source} takes no argument scale, nor a width with a number to multiply"
    )


def seed(number: int) -> None:
    """Of all that a user's code may draw from."""
    for one in (random.seed, np.random.seed, torch.manual_seed):
        one(number)


# ---- its data


def _rows_of(batch: tuple[Any, Any], axis: int) -> int:
    """Of a batch: those of its first tensor."""
    first = next(iter(batch[0].values() if isinstance(batch[0], dict) else batch[0]))
    return first.shape[axis if first.ndim > axis else 0]


def generated(module: Module, first: int, rows: int) -> tuple[torch.Tensor, ...]:
    """Inputs from row `first` on: numbers in +- 1, or tokens."""
    found = []
    for place, (shape, tokens) in enumerate(module.inputs):
        each = math.prod(shape)
        numbers = uniform(INPUTS, (place << 28) + first * each, rows * each)
        numbers = numbers.reshape(rows, *shape)
        one = np.floor(numbers * tokens).astype(np.int64) if tokens else 2 * numbers - 1
        found.append(torch.from_numpy(one))
    if module.batch_axis:
        found = [one.movedim(0, 1).contiguous() if one.ndim > 1 else one for one in found]
    return tuple(found)


_taken: dict[str, list[tuple[Any, Any]]] = {}


def batches_of(module: Module) -> list[tuple[Any, Any]]:
    """The batches of --data, inputs and target, taken once; with a loss of the user's own, or of
    the module, the target is the batch as it came, or nothing."""
    if module.data is None:
        return []
    if module.data not in _taken:
        seed(0)
        found = loaded(module.data)
        with _alone(Path(module.data.rpartition(":")[0])):
            _taken[module.data] = _said(
                f"{module.data} gives no batches", _take, found() if callable(found) else found
            )
    whole = _taken[module.data]
    if not whole:
        raise Unsupported(f"{module.data} gives no batches")
    return [_parted(module, one) for one in whole]


def _take(batches: Any) -> list[Any]:
    taken, size = [], 0
    for batch in islice(batches, 1 << 16):
        one = tree_map(_tensor, batch)
        size += sum(t.nbytes for t in torch.utils._pytree.tree_leaves(one))
        if size > _MOST_BYTES and taken:
            break
        taken.append(list(one) if isinstance(one, tuple) else one)
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
