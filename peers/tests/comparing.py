# SPDX-License-Identifier: Apache-2.0
"""Runs peers/compare.py as ./run does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def compare(
    bench: Path, python: Path, out: Path, *more: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "peers" / "compare.py")]
    command += [f"--bench={bench}", f"--python={python}", f"--out={out}", *more]
    return subprocess.run(
        command,
        capture_output=True,
        encoding="utf-8",
        cwd=out.parent,
        env={**os.environ, **variables},
        timeout=300,
        check=False,
    )
