# SPDX-License-Identifier: Apache-2.0
"""What several tests need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plots.tests import synthetic


@pytest.fixture
def small() -> dict[str, Any]:
    """A valid file with one row of three repetitions, whose median is 20 ms."""
    entries = synthetic.samples(synthetic.cpu_configuration("disc-3", 2), [0.030, 0.010, 0.020])
    return synthetic.document(entries)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes a document below the test's folder and returns its path."""
    return lambda content, name="file.json": synthetic.write(tmp_path / name, content)


@pytest.fixture(autouse=True)
def _line_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
