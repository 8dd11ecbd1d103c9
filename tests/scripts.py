# SPDX-License-Identifier: Apache-2.0
"""What tests share that start other programs than bench, or let some stand in for them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from crossover_bench.run.console import Failure

ROOT = Path(__file__).resolve().parent.parent


def script(path: Path, text: str) -> Path:
    """A program in Python. Its second line is one of the shell's, too, as the first line can name
    no interpreter that has a space in its path."""
    begin = f'#!/bin/sh\n"exec" "{sys.executable}" "$0" "$@"\n'
    path.write_text(f"{begin}{text}", encoding="utf-8")
    path.chmod(0o755)
    return path


def ran(*command: str | Path, code: int | None = 0, **how: Any) -> subprocess.CompletedProcess[str]:
    """What a command printed, which ended with that code; None: with whatever code."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, **how)
    assert code in (None, done.returncode), done.stdout + done.stderr
    return done


@contextmanager
def refused(sentence: str) -> Iterator[None]:
    """What is within ends with a sentence that matches, and exit code 2."""
    with pytest.raises(Failure, match=sentence) as caught:
        yield
    assert caught.value.code == 2
