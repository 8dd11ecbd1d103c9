# SPDX-License-Identifier: Apache-2.0
"""A call in a new process. It is started anew and never forked, as a device's library does not
survive a fork; what a notebook or a script defines gets there by cloudpickle."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from types import FunctionType
from typing import Any

from crossover_bench.words.text import printable

_START = (
    "import pickle, sys; path, *call = pickle.load(sys.stdin.buffer); sys.path[:] = path; "
    "from crossover_bench.spawned import serve; serve(*call)"
)


class NotSentError(ValueError):
    """Why something can't be sent to another process, a clause with the remedy."""


class EndedError(RuntimeError):
    """How a process ended that gave no result, in a clause."""


class _ByName(pickle.Pickler):
    """Refuses what the other process would look for in its own __main__."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | FunctionType) and value.__module__ == "__main__":
            raise NotSentError(
                f"{value.__name__} is defined in __main__, which another process does not have"
            )
        return NotImplemented


def pickled(value: object) -> bytes:
    """`value` for another process; raises NotSentError where that can't be."""
    written, remedy = io.BytesIO(), "define it in a module of its own"
    if find_spec("cloudpickle"):
        pickler = import_module("cloudpickle").Pickler
    else:
        pickler, remedy = _ByName, f"install cloudpickle, or {remedy}"
    try:
        pickler(written).dump(value)
    except NotSentError as error:
        raise NotSentError(f"{error}; {remedy}") from error
    except Exception as error:  # pickling may raise anything
        reason = printable(f"{type(error).__name__}: {error}", 160)
        raise NotSentError(f"it can't be pickled ({reason}); {remedy}") from error
    return written.getvalue()


def call(function: Callable[[Any], Any], sent: bytes, seconds: float | None = None) -> Any:
    """What `function`, which stands in a module of this package, gives of the pickled value. Raises
    EndedError where the process ends without it, subprocess.TimeoutExpired where it takes longer
    than so many seconds: then it is ended."""
    task = sys.path, function.__module__, function.__qualname__, sent
    done = subprocess.run(
        [sys.executable, "-P", "-c", _START],
        input=pickle.dumps(task),
        capture_output=True,
        timeout=seconds,
        check=False,
    )
    try:
        return pickle.loads(done.stdout)
    except Exception as error:  # what it wrote is no pickle: it ended before
        last = (done.stderr.decode(errors="replace").strip().splitlines() or ["nothing"])[-1]
        raise EndedError(
            f"exit code {done.returncode} and without a result; it said: {printable(last, 160)}"
        ) from error


def serve(module: str, function: str, sent: bytes) -> None:
    """Makes a call in this process, and writes its result to standard output, which what is printed
    meanwhile does not reach."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    result = getattr(import_module(module), function)(pickle.loads(sent))
    with answer:
        pickle.dump(result, answer)
