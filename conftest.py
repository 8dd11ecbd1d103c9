# SPDX-License-Identifier: Apache-2.0
"""Tests in plots/ and peers/ read nothing that ./test does not repeat them for."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.runners import is_of_programs

_ROOT = Path(__file__).resolve().parent
_with_programs = True  # whether the test that runs may read what programs are made from


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if _with_programs or event not in ("open", "subprocess.Popen"):
        return
    name = arguments[0]
    if isinstance(name, str | os.PathLike) and is_of_programs(Path(os.path.abspath(name))):
        raise AssertionError(
            f"{name}: ./test does not repeat this test when that changes; move it to tests/"
        )


sys.addaudithook(_refuse)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _with_programs  # noqa: PLW0603 - hooks of Python's cannot be taken back
    _with_programs = item.path.is_relative_to(_ROOT / "tests")
    try:
        return (yield)
    finally:
        _with_programs = True
