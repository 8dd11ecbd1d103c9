# SPDX-License-Identifier: Apache-2.0
"""The commands ./run and ./test as modules, and programs that stand in for others."""

import importlib
import importlib.util
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from tools.console import Failure

ROOT = Path(__file__).resolve().parent.parent


def load(name: str) -> ModuleType:
    """A command without .py as a module."""
    loader = SourceFileLoader(f"command_{name}", str(ROOT / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    handler = signal.getsignal(signal.SIGINT)
    cached = sys.dont_write_bytecode
    try:
        sys.dont_write_bytecode = True  # it would lie beside the commands as `runc`, `testc`
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = cached
        signal.signal(signal.SIGINT, handler)
    return module


RUN = importlib.import_module("tools.run")
TEST = load("test")


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    path.chmod(0o755)
    return path


@contextmanager
def refused(said: str) -> Iterator[None]:
    """What is within ends with a sentence that matches, and exit code 2."""
    with pytest.raises(Failure, match=said) as caught:
        yield
    assert caught.value.code == 2
