# SPDX-License-Identifier: Apache-2.0
"""From a bare machine to one that can build: system packages, then the Python environment."""

from collections.abc import Iterator
from contextlib import contextmanager

from crossover_bench.place import RUN
from crossover_bench.run import cuda, environment, packages
from crossover_bench.run.console import HOME, Failure, friendly, say

# What compilers, CMake or lists of folders take for the end of a path, or for something else.
_UNFIT = set(',:;"\\#\n')


def _check_name() -> None:
    """Failure for a folder in which the build would fail after minutes."""
    unfit = sorted(_UNFIT & {*str(HOME)})
    if unfit:
        raise Failure(
            f"{HOME} can't be built in: compilers and CMake divide paths at {unfit[0]!r}; move "
            "the checkout to a folder without it",
            2,
        )


@contextmanager
def alone(preset: str = "default") -> Iterator[None]:
    """One set-up and build of a folder at a time: two would undo each other's work."""
    # Imported here, as Windows has none, where nothing is built.
    import fcntl  # noqa: PLC0415

    _check_name()
    folder = HOME / "build"
    try:
        folder.mkdir(parents=True, exist_ok=True)
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
            say(f"another {RUN} or ./test is building here; waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def for_run(mode: str, ranks: bool = False) -> cuda.Choice:
    """Everything installed for ./run, with `ranks` MPI too; what to tell CMake of CUDA."""
    packages.ensure((*packages.FOR_RUN, *packages.FOR_RANKS) if ranks else packages.FOR_RUN)
    environment.MAIN.ensure(environment.FOR_RUN)
    environment.install_command()
    return cuda.choose(mode)


def for_test(mode: str, fuzzes: bool = False) -> cuda.Choice:
    """The same for ./test."""
    packages.ensure((*packages.FOR_TEST, *packages.FOR_FUZZ) if fuzzes else packages.FOR_TEST)
    environment.MAIN.ensure(environment.FOR_TEST)
    return cuda.choose(mode, tests=True)
