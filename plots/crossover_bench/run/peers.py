# SPDX-License-Identifier: Apache-2.0
"""What ./run measures in turn with bench: other frameworks (--with-peers, or a PyTorch that is here
already), and the bench of another commit (--compare-with)."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crossover_bench.peers.frameworks import FRAMEWORKS
from crossover_bench.place import IS_CHECKOUT, ROOT
from crossover_bench.run import environment, setup
from crossover_bench.run.console import HOME, Failure, friendly, git, say

COMMITS = HOME / "build" / "other"
NO = "no"  # in place of their names
# Of a PyTorch that is found: which rows it has, and what they take of the run's time at most. A
# whole default sweep is to end within 8 minutes.
TORCH_DEVICE = "--torch-device="
OF_A_FOUND_ONE = ("--beside=default", "--script=usual,lean")
SHARE, SHARE_OF_A_BUDGET = "--peers-share=0.15", "--peers-share=0.25"


def named(text: str) -> tuple[tuple[str, ...], str | None]:
    """The frameworks that the value of --with-peers names; or PyTorch, with the interpreter that it
    names, if it names one."""
    names = tuple(dict.fromkeys(text.split(",")))
    if set(names) <= set(FRAMEWORKS):
        return names, None
    return ("pytorch",), text or None


def python_of(name: str, named_python: str | None = None) -> Path:
    """An interpreter with that framework: for PyTorch the one that was named, if any; else that of
    its environment, made if need be."""
    if name == "pytorch" and named_python:
        return Path(named_python).absolute()
    made = environment.OF_FRAMEWORKS[name]
    with setup.alone():
        made.ensure(environment.FOR_FRAMEWORKS[name])
    return made.python


@dataclass(frozen=True)
class Found:
    """A Python that has PyTorch."""

    python: Path
    version: str
    torch_device: str = ""  # PyTorch's name of the GPU that it sees


def found() -> Found | None:
    """The first Python here that can measure PyTorch. Of one that has it and can't, says why."""
    for python in _pythons():
        if _has_torch(python):
            told = _described(python)
            if version := told.get("version"):
                return Found(python, str(version), str(told.get("torch_device") or ""))
            say(f"PyTorch of {friendly(python)} is not measured: {told.get('error_message')}")
    return None


def _pythons() -> list[Path]:
    """Of the active environment, of conda's, ours of an installed copy, on the PATH, and that which
    --with-peers has made."""
    active = map(os.environ.get, ("VIRTUAL_ENV", "CONDA_PREFIX"))
    pythons = [Path(folder, "bin", "python") for folder in active if folder]
    pythons += [] if IS_CHECKOUT else [Path(sys.executable)]
    on_path = map(shutil.which, ("python3", "python"))
    pythons += [Path(python) for python in on_path if python]
    pythons.append(environment.PEERS.python)
    absolute = dict.fromkeys(python.absolute() for python in pythons)
    return [python for python in absolute if python.is_file()]


_HAS_TORCH = "import importlib.util; print(importlib.util.find_spec('torch') is not None)"
_SECONDS_TO_FIND, _SECONDS_TO_IMPORT = 10, 60


def _has_torch(python: Path) -> bool:
    """Without importing it, which takes seconds."""
    asked = [*shlex.split(_worker("pytorch", python))[:-2], "-c", _HAS_TORCH]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            asked,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_FIND,
            check=False,
        )
        return done.stdout.strip() == "True"
    return False


def _described(python: Path) -> dict[str, object]:
    """What it answers bench when it is asked to describe itself; why it does not."""
    try:
        done = subprocess.run(
            shlex.split(_worker("pytorch", python)),
            input=json.dumps({"do": "describe"}) + "\n",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_IMPORT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return {"error_message": " ".join(str(error).split())}
    with suppress(ValueError, IndexError):
        told = json.loads(done.stdout.splitlines()[-1])
        if isinstance(told, dict):
            return told
    last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return {"error_message": last.strip()}


def _worker(name: str, python: Path, *words: str) -> str:
    """The command that measures a framework by that interpreter."""
    # A framework of the user's own may be found by PYTHONPATH alone.
    is_theirs = python != environment.OF_FRAMEWORKS[name].python
    return environment.started(python, f"crossover_bench.peers.{name}", *words, own_paths=is_theirs)


def beside(pythons: dict[str, Path], command: list[str]) -> list[str]:
    """The command that measures frameworks, each with its interpreter, in turn with what `command`
    has bench measure."""
    flags = {flag for name in pythons for flag in FRAMEWORKS[name].flags}
    peers = []
    for name, python in pythons.items():
        words = [word for word in command if word.partition("=")[0] in FRAMEWORKS[name].flags]
        peers.append(f"--peer={_worker(name, python, *words)}")
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
