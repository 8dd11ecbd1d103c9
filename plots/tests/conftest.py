# SPDX-License-Identifier: Apache-2.0
"""What several tests need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plots import loading
from plots.analysis.crossover import Comparison, comparisons
from plots.rows import File
from plots.tests import synthetic, synthetic_machines


@pytest.fixture(scope="session")
def five(tmp_path_factory) -> Path:
    """The folder of five machines' files, two without a GPU."""
    folder = tmp_path_factory.mktemp("five")
    synthetic_machines.write_all(folder)
    return folder


@pytest.fixture(scope="session")
def five_files(five) -> list[File]:
    """What the five files hold."""
    return loading.load_files([five])[0]


@pytest.fixture(scope="session")
def five_compared(five_files) -> list[list[Comparison]]:
    """Their comparisons()."""
    return [comparisons(file) for file in five_files]


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
