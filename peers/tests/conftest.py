# SPDX-License-Identifier: Apache-2.0
"""Programs in place of bench and of the peer's interpreter."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FAKES = "peers.tests.fakes"


def _program(path: Path, part: str) -> Path:
    """A program that runs a part of the fakes, wherever it is started."""
    words = f'"{sys.executable}" -m {FAKES} {part}'
    path.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec {words} "$@"\n', encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def fakes(tmp_path) -> tuple[Path, Path]:
    """A bench and a peer's interpreter that compute nothing."""
    return _program(tmp_path / "bench", "bench"), _program(tmp_path / "python", "peer")
