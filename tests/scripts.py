# SPDX-License-Identifier: Apache-2.0
"""What tests of ./run and ./test share: programs that stand in for others."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.console import Failure

ROOT = Path(__file__).resolve().parent.parent


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
