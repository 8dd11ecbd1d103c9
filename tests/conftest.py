# SPDX-License-Identifier: Apache-2.0
"""Fixtures that several files of tests share."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest


def compare_script() -> Path | None:
    """Where libbenchmark-tools has put it."""
    if shutil.which("dpkg") is None:
        return None
    command = ["dpkg", "-L", "libbenchmark-tools"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.endswith("/compare.py")]
    return Path(found[0]) if found else None


@pytest.fixture(scope="module")
def compare() -> Callable[..., str]:
    """Runs compare.py and returns what it prints."""
    script = compare_script()
    if script is None:
        pytest.skip("libbenchmark-tools, which has compare.py, is not installed")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", script, "--no-color", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    probe = run("--help")
    if probe.returncode != 0:
        pytest.skip(f"{script} can't start: {probe.stderr.strip().splitlines()[-1]}")

    def output(*arguments: str | Path) -> str:
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return output
