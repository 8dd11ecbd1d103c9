# SPDX-License-Identifier: Apache-2.0
"""FILE.py:NAME, a user's file as if its user had started it, and what goes wrong there in one
sentence. The importer and the worker that trains modules as they are both read files so."""

from __future__ import annotations

import importlib.util
import io
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import nn

from crossover_bench.peers.tasks import Unsupported
from crossover_bench.place import PACKAGE

_OURS = [PACKAGE / folder for folder in ("networks", "peers", "peers/pytorch", "in_hand")]
_LIBRARIES = tuple(f"{sysconfig.get_path(kind)}/" for kind in ("stdlib", "purelib", "platlib"))
_LIBRARIES += (f"{Path(torch.__file__).parent}/",)


class _TrainsError(Exception):
    """A file that is imported trains."""


_files: dict[Path, Any] = {}


def loaded(source: str) -> Any:
    """What FILE.py:NAME says. The file's folder comes first among those that it imports from."""
    file, _, name = source.rpartition(":")
    path = Path(file).absolute()
    if not path.is_file():
        raise Unsupported(f"{file}: there is no such file")
    if path not in _files:
        _files[path] = _imported(path)
    if not hasattr(_files[path], name):
        module = _files[path]
        names = [key for key, value in vars(module).items() if _is_of(value, module)]
        has = f"; it has {', '.join(names)}" if names else ""
        raise Unsupported(f"{path.name} has nothing named {name!r}{has}")
    return getattr(_files[path], name)


def module_of(source: str, **sizes: Any) -> nn.Module:
    """What FILE.py:CALLABLE gives, called with these, or the module that it is."""
    given, path = loaded(source), Path(source.rpartition(":")[0])
    called = f"{path.name}:{source.rpartition(':')[2]}"
    if not callable(given):
        raise Unsupported(f"{called} is nothing to call")
    make = partial(deepcopy, given) if isinstance(given, nn.Module) else given
    with alone(path):
        network = given_by(f"{called} can't be called", make, **sizes)
    if not isinstance(network, nn.Module):
        kind = type(network).__name__
        raise Unsupported(f"{called} gives a value of type {kind}, and no torch.nn.Module")
    return network


def _is_of(value: Any, module: Any) -> bool:
    return callable(value) and getattr(value, "__module__", "") == module.__name__


def _imported(path: Path) -> Any:
    others = [text for text in sys.path if text and Path(text).absolute() != path.parent]
    sys.path[:] = [str(path.parent), *others]
    sys.modules.pop("peers", None)  # a checkout's for crossover_bench.peers: theirs comes first
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else "_network"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Unsupported(f"{path.name} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with alone(path):
        given_by(f"{path.name} can't be imported", spec.loader.exec_module, module)
    return module


def given_by(what: str, call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What the user's code gives; Unsupported in one sentence where it does something else."""
    try:
        return call(*given, **named)
    except (SystemExit, EOFError, _TrainsError) as error:
        does: dict[type[BaseException], str] = {EOFError: "asks for input", _TrainsError: "trains"}
        raise Unsupported(
            f"{what}: it {does.get(type(error), 'ends the program')}{place(error)}; what only a "
            'script does belongs under if __name__ == "__main__":'
        ) from error
    except Exception as error:
        raise Unsupported(f"{what}: {failure(error)}") from error


@contextmanager
def alone(path: Path) -> Iterator[None]:
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


@contextmanager
def left_as_found() -> Iterator[None]:
    """What a user's file changes of where modules and files are found is undone behind it."""
    paths, folder = sys.path[:], Path.cwd()
    try:
        yield
    finally:
        sys.path[:] = paths
        os.chdir(folder)


def failure(error: BaseException) -> str:
    """An exception in one line: what and, in the user's files, where."""
    told = " ".join(str(error).split())[:300]
    lacks = isinstance(error, ModuleNotFoundError)
    remedy = f"; what it needs is to be installed beside PyTorch, for {sys.executable}"
    return type(error).__name__ + (f": {told}" if told else "") + place(error) + remedy * lacks


def place(error: BaseException) -> str:
    """ " (net.py:7)", of the innermost line of the user's; empty where there is none."""
    frames = [(f.filename, f.lineno or 0) for f in traceback.extract_tb(error.__traceback__)]
    where = user_place(frames)
    return f" ({where})" if where else ""


def user_place(frames: list[tuple[str, int]]) -> str:
    """The innermost of frames that is the user's: FILE.py:LINE; empty where none is."""
    for file, line in reversed(frames):
        is_ours = Path(file).parent in _OURS
        if not file.startswith((*_LIBRARIES, "<")) and not is_ours and Path(file).exists():
            return f"{Path(file).name}:{line}"
    return ""
