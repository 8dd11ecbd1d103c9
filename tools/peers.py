# SPDX-License-Identifier: Apache-2.0
"""What ./run measures in turn with bench: other frameworks (--with-peers), and the bench of another
commit (--compare-with)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tools import environment, setup
from tools.console import HOME, ROOT, Failure, friendly, git, say

# The frameworks that have a package in peers/, and the words that choose among their rows.
FLAGS = {
    "pytorch": ("--devices", "--layout", "--mode", "--pages", "--script"),
    "jax": ("--devices", "--loop"),
    "onnxruntime": ("--devices",),
}
COMMITS = HOME / "build" / "other"


def named(text: str) -> tuple[tuple[str, ...], str | None]:
    """The frameworks that the value of --with-peers names; or PyTorch, with the interpreter that it
    names, if it names one."""
    names = tuple(dict.fromkeys(text.split(",")))
    if set(names) <= set(FLAGS):
        return names, None
    return ("pytorch",), text or None


def python_of(name: str, named_python: str | None = None) -> Path:
    """An interpreter with that framework: for PyTorch the one that was named, if any; else that of
    its environment, made if need be."""
    if name == "pytorch" and named_python:
        return Path(named_python).absolute()
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
    peers = []
    for name, python in pythons.items():
        words = [word for word in command if word.partition("=")[0] in FLAGS[name]]
        # A framework of the user's own may be found by PYTHONPATH alone.
        is_theirs = python != _made_by_us(name)[0].python
        peers.append(environment.as_peer(python, f"peers.{name}", *words, own_paths=is_theirs))
    return [*(word for word in command if word.partition("=")[0] not in flags), *peers]


def commit_named(word: str) -> str:
    """The whole name of a commit; Failure where there is none."""
    answer = git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{word}^{{commit}}")
    if answer.returncode != 0:
        raise Failure(f"--compare-with={word}: git knows no such commit here", 2)
    return answer.stdout.strip()


def built(commit: str, cuda: str) -> tuple[str, Path]:
    """Check a commit out beside this one, and build it; its short name and its bench."""
    name = commit[:7]
    folder = COMMITS / name
    if not (folder / "run").exists():
        cloned = git("clone", "--quiet", "--shared", "--no-checkout", ROOT, folder)
        moved = git("-C", folder, "checkout", "--quiet", "--detach", commit)
        if cloned.returncode or moved.returncode:
            raise Failure(f"--compare-with={name}: {(cloned.stderr or moved.stderr).strip()}")
    say(f"building {name} in {friendly(folder)}")
    set_up = [str(folder / "run"), "--setup-only", f"--cuda={cuda}"]
    if subprocess.run(set_up, stdin=subprocess.DEVNULL, check=False).returncode != 0:
        raise Failure(f"--compare-with={name}: it can't be built (above); name a later commit")
    return name, folder / "build" / "bench"
