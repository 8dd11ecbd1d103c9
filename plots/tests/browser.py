# SPDX-License-Identifier: Apache-2.0
"""A headless browser, for the tests of pages; without one they are skipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None, reason="there is no Chromium here; apt-get install chromium"
    ),
    pytest.mark.slow,
]


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Opens `page`; prints its document as the scripts leave it, and what they complain of."""
    assert CHROMIUM
    finished = subprocess.run(
        [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={profile}",
            "--enable-logging=stderr",
            "--virtual-time-budget=10000",
            *options,
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished
