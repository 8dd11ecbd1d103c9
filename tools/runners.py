# SPDX-License-Identifier: Apache-2.0
"""ctest and pytest as ./test runs them, and which tests took longest."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from tools import build, environment
from tools.console import ROOT, cores
from tools.stages import weekly


def _passes(command: Sequence[str], variables: dict[str, str] | None = None) -> bool:
    sys.stdout.flush()
    done = subprocess.run(command, cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def run_ctest(preset: str, quick: bool = False) -> bool:
    """The preset's tests; `quick`: no slow ones."""
    left_out = ["emulation"] if preset == "default" and not weekly() else []
    left_out += ["slow"] if quick else []
    command = ["ctest", "--test-dir", str(build.folder(preset)), "--output-on-failure"]
    command += ["--parallel", str(cores())]
    command += ["--label-exclude", f"^({'|'.join(left_out)})$"] if left_out else []
    return _passes(command)


def run_pytest(quick: bool = False) -> bool:
    """All tests; `quick`: no slow ones."""
    report = ROOT / "build" / "pytest.xml"
    report.unlink(missing_ok=True)
    command = [str(environment.PYTHON), "-m", "pytest", "-q", f"--numprocesses={cores()}"]
    command += ["--dist=worksteal", f"--junitxml={report}", *(["-m", "not slow"] if quick else [])]
    return _passes(command, environment.variables())


def slowest(since: float, count: int = 10) -> list[str]:
    """Lines for the tests that took longest (wall clock), of those that ended after `since`, in
    seconds since the epoch."""
    times: list[tuple[float, str]] = []
    for label, files in (
        ("ctest", build.folder("default").glob("test-times/*.xml")),
        ("asan", build.folder("asan").glob("test-times/*.xml")),
        ("pytest", ROOT.glob("build/pytest.xml")),
    ):
        for case in (c for path in files if path.stat().st_mtime >= since for c in _cases(path)):
            name = f"{label}: {case.get('classname')}.{case.get('name')}"
            times.append((float(case.get("time", 0)), name))
    return [f"{seconds:7.1f} s  {name}" for seconds, name in sorted(times, reverse=True)[:count]]


def _cases(junit: Path) -> Iterator[ElementTree.Element]:
    """None where there is no whole report."""
    try:
        return ElementTree.parse(junit).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return iter(())
