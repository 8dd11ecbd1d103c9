# SPDX-License-Identifier: Apache-2.0
"""From a bare machine to one that can build: system packages, then the Python environment."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from tools import environment, packages
from tools.console import ROOT, Failure, friendly, say


@contextmanager
def alone() -> Iterator[None]:
    """One set-up and build at a time: two in one folder would undo each other's work."""
    folder = ROOT / "build"
    try:
        folder.mkdir(exist_ok=True)
        file = (folder / "setup.lock").open("w", encoding="utf-8")
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


def for_run() -> None:
    packages.ensure(packages.FOR_RUN)
    environment.ensure(environment.FOR_RUN)


def for_test() -> None:
    packages.ensure(packages.FOR_TEST)
    environment.ensure(environment.FOR_TEST)
