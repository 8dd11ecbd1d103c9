# SPDX-License-Identifier: Apache-2.0
"""FILE.py:CALLABLE: a module as its user makes it, and the graph that torch.export finds in it."""

from __future__ import annotations

import builtins
import importlib.util
import io
import logging
import os
import random
import sys
import sysconfig
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from networks.builder import MOST_PARAMETERS
from networks.values import BATCH, Refused

_OURS = Path(__file__).parent
_ROOT = _OURS.parent
_PACKAGES = ("networks", "peers", "plots", "tests", "tools")  # ours, which a user may have, too
_LIBRARIES = tuple(f"{sysconfig.get_path(kind)}/" for kind in ("stdlib", "purelib", "platlib"))
_LIBRARIES += (f"{Path(torch.__file__).parent}/",)
# What torch.export says in its own words.
_PLAIN = {
    "data-dependent": "it decides by the numbers of a tensor, as `if x.sum() > 0:` does",
    "We found a fake tensor": "it keeps a tensor that it makes while it runs, or sets weight.data",
}
_GUARD = 'put whatever trains, parses options or asks behind if __name__ == "__main__":'


@dataclass(frozen=True)
class Input:
    """What a network reads as one of its arguments: a sample, () of a single token or number, and
    how a batch of them lies."""

    shape: tuple[int, ...]
    tokens: int = 0  # how many there are; 0: numbers, not tokens
    batch_axis: int = 0

    def random(self, but: Sequence[int] = ()) -> torch.Tensor:
        """Without these tokens."""
        shape = [*self.shape]
        shape.insert(self.batch_axis, BATCH)
        if self.tokens:
            drawn = torch.tensor([one for one in range(self.tokens) if one not in but])
            return drawn[torch.randint(len(drawn), shape)]
        return torch.randn(shape, dtype=torch.float64)


@contextmanager
def started(source: str) -> Iterator[None]:
    """What is the user's runs meanwhile as `python FILE` has it: its own modules first and none of
    ours, no words of ours, nothing to read. What it changes of these is undone."""
    path = Path(source.rpartition(":")[0]).absolute()
    ours = {name: sys.modules[name] for name in sys.modules if _is_ours(name)}
    words, paths, read, folder = sys.argv, sys.path[:], builtins.input, Path.cwd()
    for name in ours:
        del sys.modules[name]
    sys.path[:] = [str(path.parent), *(one for one in paths if Path(one).absolute() != _ROOT)]
    sys.argv, builtins.input = [str(path)], _nobody_answers
    try:
        yield
    finally:
        for name in [name for name in sys.modules if _is_ours(name)]:
            del sys.modules[name]
        sys.modules.update(ours)
        sys.argv, sys.path[:], builtins.input = words, paths, read
        os.chdir(folder)


def _nobody_answers(prompt: object = "") -> str:
    raise EOFError(f"it asks for input: {prompt}")


def _is_ours(module: str) -> bool:
    return module.partition(".")[0] in _PACKAGES


class _Wide(TorchFunctionMode):
    """What the user's code makes a float32 is a float64, as all else is here."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        function = torch.Tensor.double if function is torch.Tensor.float else function
        wide = lambda one: torch.float64 if one is torch.float32 else one  # noqa: E731
        return function(*tree_map(wide, args), **tree_map(wide, kwargs or {}))


@contextmanager
def in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _Wide():
            yield
    finally:
        torch.set_default_dtype(before)


def made(source: str, *wanted: Input) -> nn.Module:
    """The module of FILE.py:CALLABLE, in float64 and in training."""
    file, _, name = source.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise Refused(f"{file}: there is no such file")
    module = _imported(path, source)
    found = getattr(module, name, None)
    if not callable(found):
        names = [
            each
            for each, value in vars(module).items()
            if callable(value) and getattr(value, "__module__", "") == module.__name__
        ]
        has = f"; it has {', '.join(names)}" if names else ""
        raise Refused(f"{file} has nothing to call named {name!r}{has}")
    torch.manual_seed(0)
    try:
        network = found if isinstance(found, nn.Module) else found()
    except (Exception, SystemExit) as error:
        raise Refused(f"{source} can't be called: {failure(error)}") from error
    if not isinstance(network, nn.Module):
        raise Refused(f"{source} gives {_article(type(network).__name__)}, and no torch.nn.Module")
    network = getattr(network, "_orig_mod", network)  # of torch.compile, which takes minutes
    _check(network, source)
    network = network.double()
    for module in network.modules():  # what is no buffer, such as a number on a device
        for own, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.dtype is torch.float32:
                setattr(module, own, value.double())
    if not network.training:  # parts that were put in evaluation by themselves stay so
        network.train()
    if any(map(is_lazy, _tensors(network))):
        _run(network, [one.random() for one in wanted])  # a batch says how large they are
        _check(network, source)
    return network


def _tensors(network: nn.Module) -> list[torch.Tensor]:
    return [*network.parameters(), *network.buffers()]


def _check(network: nn.Module, source: str) -> None:
    count = sum(one.numel() for one in network.parameters() if not is_lazy(one))
    if count > MOST_PARAMETERS:
        raise Refused(f"{source} has {count:,} parameters; 10^9 are the most")
    for path_of, parameter in network.named_parameters():
        if not parameter.requires_grad:
            raise Refused(f"{path_of} is frozen (requires_grad=False); bench trains all parameters")
    for path_of, module in network.named_modules():
        if is_parametrized(module):
            (first, *_) = module.parametrizations
            raise Refused(
                f"{path_of}.{first} is calculated in each step from others (parametrizations, as "
                "weight_norm and spectral_norm are); a factory that ends with "
                f"torch.nn.utils.parametrize.remove_parametrizations(..., {first!r}) gives the "
                "network without them"
            )


def _run(network: nn.Module, read: list[torch.Tensor]) -> Any:
    try:
        with in_float64():
            return network(*read)
    except (Exception, SystemExit) as error:
        shapes = " and ".join(str(list(one.shape)) for one in read)
        raise Refused(
            f"the network can't be run on a batch {shapes}: {failure(error)}; --input and "
            "--input-type say what it reads, once for each input, and its numbers are float64 here"
        ) from error


def exported(network: nn.Module, *wanted: Input) -> torch.export.ExportedProgram:
    """Its operations as the user wrote them, before any decomposition."""
    read, before = tuple(one.random() for one in wanted), _chance()
    _run(network, list(read))
    if _chance() != before:
        raise Refused(
            "the network draws from Python's or numpy's random numbers while it runs: what they "
            "decide, such as whether a block is left out, would be frozen; dropout is by torch's"
        )
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):  # the sentence says it
            warnings.simplefilter("ignore")
            with in_float64():
                return torch.export.export(network, read, strict=False)
    except (Exception, SystemExit) as error:
        plain = next((_PLAIN[known] for known in _PLAIN if known in str(error)), "")
        said = f"{plain}{_at(error)}" if plain else failure(error)
        raise Refused(f"torch.export can't follow the network: {said}") from error


def _chance() -> tuple[Any, ...]:
    """What Python's and numpy's next random numbers depend on."""
    _, state, place, *_ = np.random.get_state()
    return random.getstate(), bytes(state), place


def failure(error: BaseException) -> str:
    """An exception in one line: what and, in the user's files, where."""
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {said}{_at(error)}"


def _at(error: BaseException) -> str:
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(error.__traceback__)]
    place = user_place(frames)
    return f" ({place})" if place else ""


def user_place(frames: list[tuple[str, int]]) -> str:
    """The innermost of frames that is the user's: FILE.py:LINE; empty where none is."""
    for file, line in reversed(frames):
        is_ours = Path(file).parent in (_OURS, _ROOT / "peers" / "pytorch")
        if not file.startswith((*_LIBRARIES, "<")) and not is_ours and Path(file).exists():
            return f"{Path(file).name}:{line}"
    return ""


def _imported(path: Path, source: str) -> Any:
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "_network"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Refused(f"{path} is no Python file; {source} is to be FILE.py:CALLABLE")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    told = io.StringIO()
    try:
        with redirect_stderr(told):
            spec.loader.exec_module(module)
    except SystemExit as error:  # argparse has told the user's own usage
        raise Refused(
            f"{path} ends the program when it is imported{_at(error)}, as a script does that "
            f"parses options; {_GUARD}"
        ) from error
    except EOFError as error:
        raise Refused(f"{path} asks for input when it is imported{_at(error)}; {_GUARD}") from error
    except Exception as error:
        raise Refused(f"{path} can't be imported: {failure(error)}") from error
    sys.stderr.write(told.getvalue())
    return module


def _article(word: str) -> str:
    return f"{'an' if word[0].lower() in 'aeiou' else 'a'} {word}"
