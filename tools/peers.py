# SPDX-License-Identifier: Apache-2.0
"""The frameworks that ./run --with-peers measures beside bench, and how they are started."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools import environment, setup

# Those that have a package in peers/, and the words that choose among their rows.
FLAGS = {
    "pytorch": ("--devices", "--layout", "--mode", "--pages"),
    "jax": ("--devices", "--loop"),
    "onnxruntime": ("--devices",),
}


def named(said: str) -> tuple[tuple[str, ...], str | None]:
    """The frameworks that the value of --with-peers names; or PyTorch, with the interpreter that it
    is, if it says one."""
    names = tuple(dict.fromkeys(said.split(",")))
    if set(names) <= set(FLAGS):
        return names, None
    return ("pytorch",), said or None


def python_of(name: str, own: str | None = None) -> Path:
    """An interpreter with that framework: for PyTorch its `own`, if one was named; else that of its
    environment, made if need be."""
    if name == "pytorch" and own:
        return Path(own).absolute()
    made, files = _made_by_us(name)
    with setup.alone():
        made.ensure(files)
    return made.python


def _made_by_us(name: str) -> tuple[environment.Environment, Sequence[Path]]:
    if name == "jax":
        return environment.JAX, environment.FOR_JAX
    if name == "onnxruntime":
        return environment.PEERS, environment.FOR_ONNXRUNTIME
    return environment.PEERS, environment.FOR_PEERS


def beside(pythons: dict[str, Path], command: list[str]) -> list[str]:
    """The command that measures frameworks, each with its interpreter, in turn with what `command`
    has bench measure."""
    flags = {flag for name in pythons for flag in FLAGS[name]}
    added = []
    for name, python in pythons.items():
        own = [word for word in command if word.partition("=")[0] in FLAGS[name]]
        # A framework of the user's own may be found by PYTHONPATH alone.
        is_theirs = python != _made_by_us(name)[0].python
        added.append(environment.as_peer(python, f"peers.{name}", *own, own_paths=is_theirs))
    return [*(word for word in command if word.partition("=")[0] not in flags), *added]
