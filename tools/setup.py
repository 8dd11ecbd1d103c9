# SPDX-License-Identifier: Apache-2.0
"""From a bare machine to one that can build: system packages, then the Python environment."""

import fcntl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tools import cuda, environment, packages
from tools.console import ROOT, CommandFailed, Failure, friendly, say


@contextmanager
def alone(preset: str = "default") -> Iterator[None]:
    """One set-up and build of a folder at a time: two would undo each other's work."""
    folder = ROOT / "build"
    try:
        folder.mkdir(exist_ok=True)
        name = "setup.lock" if preset == "default" else f"setup-{preset}.lock"
        file = (folder / name).open("w", encoding="utf-8")
    except OSError as error:
        raise Failure(
            f"cannot write in {friendly(folder)}: {error.strerror}. The build goes there: make "
            "it yours, or work in a clone of your own.",
            code=2,
        ) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another ./run or ./test is building here; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _python_packages(requirements: Sequence[Path]) -> None:
    try:
        environment.ensure(requirements)
    except CommandFailed as failure:
        raise Failure(
            f"{failure}\nCheck that the Python package index (or the mirror in pip's "
            "configuration) can be reached, and start this again."
        ) from None


def for_run(mode: str) -> cuda.Choice:
    packages.ensure(packages.FOR_RUN)
    _python_packages(environment.FOR_RUN)
    return cuda.choose(mode)


def for_peers() -> Path:
    """The interpreter of an environment with PyTorch."""
    try:
        environment.PEERS.ensure(environment.FOR_PEERS)
    except CommandFailed as failure:
        raise Failure(
            f"{failure}\nPyTorch could not be installed: check that the Python package index can "
            "be reached and that 6 GB are free, or name an interpreter that has torch: "
            "--with-peers=PYTHON"
        ) from None
    return environment.PEERS.python


def for_test(mode: str) -> cuda.Choice:
    packages.ensure(packages.FOR_TEST)
    _python_packages(environment.FOR_TEST)
    return cuda.choose(mode, tests=True)
