# SPDX-License-Identifier: Apache-2.0
"""The frameworks that ./run --with-peers measures beside bench, and how they are started."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tools import environment, setup
from tools.console import ROOT

# Those that have a package in peers/, and the words that choose among their rows.
FLAGS = {
    "pytorch": ("--devices", "--layout", "--mode", "--pages"),
    "jax": ("--devices", "--loop"),
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
    made, files = environment.PEERS, environment.FOR_PEERS
    if name == "jax":
        made, files = environment.JAX, environment.FOR_JAX
    with setup.alone():
        made.ensure(files)
    return made.python


def beside(pythons: dict[str, Path], command: list[str]) -> list[str]:
    """The command that measures frameworks, each with its interpreter, in turn with what `command`
    has bench measure."""
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    flags = {flag for name in pythons for flag in FLAGS[name]}
    added = []
    for name, python in pythons.items():
        own = [word for word in command if word.partition("=")[0] in FLAGS[name]]
        # -P: what lies in the current folder, a peers.py say, is not what is meant.
        peer = ["env", f"PYTHONPATH={paths}", str(python), "-P", "-m", f"peers.{name}", *own]
        added.append(f"--peer={shlex.join(peer)}")
    return [*(word for word in command if word.partition("=")[0] not in flags), *added]
