# SPDX-License-Identifier: Apache-2.0
"""FILE.py:CALLABLE: a module as its user makes it, and the graph that torch.export finds in it."""

from __future__ import annotations

import importlib.util
import io
import logging
import sys
import traceback
import warnings
from contextlib import redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from networks.builder import MOST_PARAMETERS
from networks.values import BATCH, Refused

_TORCH, _OURS = f"{Path(torch.__file__).parent}/", Path(__file__).parent


@dataclass(frozen=True)
class Input:
    """What a network reads as one of its arguments: a sample, () of a single token or number, and
    how a batch of them lies."""

    shape: tuple[int, ...]
    tokens: int = 0  # how many there are; 0: numbers, not tokens
    batch_axis: int = 0

    def random(self) -> torch.Tensor:
        shape = [*self.shape]
        shape.insert(self.batch_axis, BATCH)
        if self.tokens:
            return torch.randint(self.tokens, shape)
        return torch.randn(shape, dtype=torch.float64)


def made(source: str) -> nn.Module:
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
    except Exception as error:
        raise Refused(f"{source} can't be called: {failure(error)}") from error
    if not isinstance(network, nn.Module):
        raise Refused(f"{source} gives {_article(type(network).__name__)}, and no torch.nn.Module")
    count = sum(parameter.numel() for parameter in network.parameters())
    if count > MOST_PARAMETERS:
        raise Refused(f"{source} has {count:,} parameters; 10^9 are the most")
    for path_of, parameter in network.named_parameters():
        if not parameter.requires_grad:
            raise Refused(f"{path_of} is frozen (requires_grad=False); bench trains all parameters")
    return network.double().train()


def exported(network: nn.Module, *wanted: Input) -> torch.export.ExportedProgram:
    """Its operations as the user wrote them, before any decomposition."""
    read = tuple(one.random() for one in wanted)
    try:
        given = network(*read)
    except Exception as error:
        shapes = " and ".join(str(list(one.shape)) for one in read)
        raise Refused(
            f"the network can't be run on a batch {shapes}: {failure(error)}; --input and "
            "--input-type say what it reads, once for each input, and its numbers are float64 here"
        ) from error
    if not isinstance(given, torch.Tensor):
        has = f"{len(given)} outputs" if isinstance(given, (tuple, list, dict)) else "no tensor"
        raise Refused(f"the network gives {has}; one tensor can be trained")
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):  # the sentence says it
            warnings.simplefilter("ignore")
            return torch.export.export(network, read, strict=False)
    except Exception as error:
        raise Refused(f"torch.export can't follow the network: {failure(error)}") from error


def failure(error: Exception) -> str:
    """An exception in one line: what and, in the user's files, where."""
    said = " ".join(str(error).split())[:300]
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(error.__traceback__)]
    place = user_place(frames)
    return f"{type(error).__name__}: {said}" + (f" ({place})" if place else "")


def user_place(frames: list[tuple[str, int]]) -> str:
    """The innermost of frames that is the user's: FILE.py:LINE; empty where none is."""
    for file, line in reversed(frames):
        is_users = not file.startswith((_TORCH, "<")) and Path(file).parent != _OURS
        if is_users and Path(file).exists():
            return f"{Path(file).name}:{line}"
    return ""


def _imported(path: Path, source: str) -> Any:
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "_network"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Refused(f"{path} is no Python file; {source} is to be FILE.py:CALLABLE")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.append(str(path.parent.absolute()))  # as if the user had started it
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise Refused(f"{path} can't be imported: {failure(error)}") from error
    return module


def _article(word: str) -> str:
    return f"{'an' if word[0].lower() in 'aeiou' else 'a'} {word}"
