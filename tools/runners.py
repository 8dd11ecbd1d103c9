# SPDX-License-Identifier: Apache-2.0
"""ctest and pytest, run on the tests of which something has changed since they passed."""

import json
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools import build, environment
from tools.console import ROOT
from tools.passed import Passed, digest, of_files, weekly
from tools.sources import COMPILED, every_file

_FIXTURES = ROOT / "tests" / "fixtures"
_TESTS = ("plots/tests", "peers/tests", "networks/tests", "tests")
_NO_TESTS = 5  # pytest's exit code where all that it was given is slow


def _cases(junit: Path) -> list[ElementTree.Element]:
    """Empty where there is no such report, or not a whole one."""
    try:
        return list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


# ---- ctest


def _property(test: dict[str, Any], name: str) -> list[str]:
    values = (p["value"] for p in test.get("properties", []) if p["name"] == name)
    return next(values, [])


def _ctest_keys(tests: Iterable[dict[str, Any]]) -> dict[str, str]:
    """For each test that has a program; those for a GPU have none: whether there is one changes."""
    common = of_files([*environment.FOR_TEST, *_FIXTURES.rglob("*")])
    of_program = cache(lambda program: of_files([Path(program)]))
    keys: dict[str, str] = {}
    for test in tests:
        command, variables = test.get("command", []), _property(test, "ENVIRONMENT")
        if command and Path(command[0]).is_file() and "gpu" not in _property(test, "LABELS"):
            keys[test["name"]] = digest(common, of_program(command[0]), command, variables)
    return keys


def run_ctest(preset: str, jobs: int, quick: bool = False) -> bool:
    """The preset's tests of which something changed since they passed; `quick`: no slow ones."""
    folder = build.folder(preset)
    # A preset leaves out what its build leaves out.
    command = ["ctest", *(["--test-dir", str(folder)] if weekly() else ["--preset", preset])]
    listed = subprocess.run(
        [*command, "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    tests = json.loads(listed.stdout)["tests"]
    keys = _ctest_keys(tests)
    passed = Passed(folder / "tests-passed.json")
    unchanged = passed.unchanged(keys)
    slow = {t["name"] for t in tests if quick and "slow" in _property(t, "LABELS")} - unchanged
    if unchanged:
        print(f"ctest: {len(unchanged)} of {len(tests)} tests unchanged since they passed")
    if slow:
        print(f"ctest: {len(slow)} slow tests left out by --quick")
    not_run = unchanged | slow
    if len(not_run) == len(tests):
        print("100% tests passed (none to repeat)", flush=True)
        return True
    junit = folder / "ctest.xml"
    junit.unlink(missing_ok=True)
    command += ["--output-on-failure", "--parallel", str(jobs), "--output-junit", str(junit)]
    if not_run:
        command += ["--exclude-regex", f"^({'|'.join(sorted(not_run))})$"]
    sys.stdout.flush()
    good = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    successes = {case.get("name", "") for case in _cases(junit) if case.get("status") == "run"}
    ran = {name: key for name, key in keys.items() if name not in not_run}
    passed.record(ran, successes & ran.keys())
    return good


# ---- pytest


def _pytest_keys(programs: Iterable[Path]) -> dict[str, str]:
    """By test file, as pytest names it.

    A test may read all files of the project but other tests; those in plots/, peers/ and
    networks/ none that programs are made from.
    """
    files = every_file()
    tests = {ROOT / folder / path.name for folder in _TESTS for path in files}
    tests = {path for path in files & tests if path.match("test_*.py") and path.is_file()}
    of_programs = {p for p in files if p.suffix in COMPILED or p.name == "CMakeLists.txt"}
    of_python = of_files(files - tests - of_programs)
    of_all = of_files({*files - tests, *programs})
    keys: dict[str, str] = {}
    for test in sorted(tests):
        name = test.relative_to(ROOT).as_posix()
        read = of_all if name.startswith("tests/") else of_python
        keys[name] = digest(read, test.read_bytes())
    return keys


def _passed_files(report: Path) -> set[str]:
    """Those without a failure, and without a skip: what a test lacks may be there next time. What
    only --all runs, it repeats anyway."""
    passed, others = set(), set()
    for case in _cases(report):
        # A file that cannot be imported, or is skipped whole, is a case without a class.
        name = case.get("classname") or case.get("name", "")
        bad = [part for part in case if part.tag in ("failure", "error", "skipped")]
        good = all("./test --all" in part.get("message", "") for part in bad)
        (passed if good else others).add(f"{name.replace('.', '/')}.py")
    return passed - others


def run_pytest(jobs: int, programs: Iterable[Path], quick: bool) -> bool:
    """The test files of which something changed since they passed; `quick`: no slow tests."""
    keys = _pytest_keys(programs)
    passed = Passed(ROOT / "build" / "pytest-passed.json")
    unchanged = passed.unchanged(keys)
    if unchanged:
        print(f"pytest: {len(unchanged)} of {len(keys)} files of tests unchanged since they passed")
    ran = {name: key for name, key in keys.items() if name not in unchanged}
    if not ran:
        return True
    report = ROOT / "build" / "pytest.xml"
    report.unlink(missing_ok=True)
    command = [environment.PYTHON, "-m", "pytest", "-q", f"--numprocesses={jobs}"]
    command += ["--dist=worksteal", f"--junitxml={report}", *(["-m", "not slow"] if quick else [])]
    sys.stdout.flush()
    variables = environment.variables()
    code = subprocess.run([*command, *ran], cwd=ROOT, env=variables, check=False).returncode
    if not quick and code in (0, 1):  # else it did not come to its end
        passed.record(ran, _passed_files(report) & ran.keys())
    return code == 0 or (quick and code == _NO_TESTS)


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
