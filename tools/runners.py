# SPDX-License-Identifier: Apache-2.0
"""ctest and pytest, run on the tests of which something has changed since they passed."""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools import build, environment
from tools.console import ROOT
from tools.passed import Passed, digest, of_files, weekly
from tools.sources import COMPILED, every_file

_FIXTURES = ROOT / "tests" / "fixtures"
_NO_TESTS = 5  # pytest's exit code where all that it was given is slow


def _of_environment() -> str:
    """oneDNN and the Python packages, by what is pinned."""
    return json.dumps(environment.hashes(environment.FOR_TEST), sort_keys=True)


# ---- ctest


def _property(test: dict[str, Any], name: str) -> list[str]:
    values = (p["value"] for p in test.get("properties", []) if p["name"] == name)
    return next(values, [])


def _ctest_keys(tests: Iterable[dict[str, Any]]) -> dict[str, str]:
    """For each test that has a program; those for a GPU have none: whether there is one changes."""
    common = [_of_environment(), of_files(_FIXTURES.rglob("*"))]
    programs: dict[str, str] = {}
    keys: dict[str, str] = {}
    for test in tests:
        command = test.get("command", [])
        if not command or not Path(command[0]).is_file() or "gpu" in _property(test, "LABELS"):
            continue
        if command[0] not in programs:
            programs[command[0]] = of_files([Path(command[0])])
        parts = [*common, programs[command[0]], command, _property(test, "ENVIRONMENT")]
        keys[test["name"]] = digest([json.dumps(parts).encode()])
    return keys


def _cases(junit: Path) -> list[ElementTree.Element]:
    """Empty where there is no such report, or not a whole one."""
    try:
        return list(ElementTree.parse(junit).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return []


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


def is_of_programs(path: Path) -> bool:
    """A program that is built here, or a file that only programs are made from."""
    if not path.is_relative_to(ROOT):
        return False
    compiled = path.suffix in COMPILED or path.name == "CMakeLists.txt"
    return compiled or path.is_relative_to(ROOT / "build")


def _pytest_keys(programs: Iterable[Path]) -> dict[str, str]:
    """By test file, as pytest names it.

    A test may read all files of the project but other tests; those in plots/ and peers/ none that
    is_of_programs().
    """
    files = {path for path in every_file() if path.is_file()}
    tests = {path for path in files if path.match("tests/test_*.py")}
    packages = _of_environment()
    of_python = of_files(path for path in files - tests if not is_of_programs(path))
    of_all = of_files({*files - tests, *programs})
    keys: dict[str, str] = {}
    for test in sorted(tests):
        name = test.relative_to(ROOT).as_posix()
        parts = [packages, of_all if name.startswith("tests/") else of_python, of_files([test])]
        keys[name] = digest(part.encode() for part in parts)
    return keys


def _failed(report: Path, files: Iterable[str]) -> set[str] | None:
    """Those of `files` with a failure or an error; None if that is not known: of a file that could
    not be read the report has an error without the file's name."""
    bad = [c for c in _cases(report) if {"failure", "error"} & {part.tag for part in c}]
    failed = {f"{case.get('classname', '').replace('.', '/')}.py" for case in bad}
    return failed if failed and failed <= set(files) else None


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
    code = subprocess.run([*command, *ran], cwd=ROOT, check=False).returncode
    if not quick:
        failed = set() if code == 0 else _failed(report, ran) if code == 1 else None
        passed.record(ran, () if failed is None else ran.keys() - failed)
    return code == 0 or (quick and code == _NO_TESTS)


# ---- the slowest


def _of_gtest(label: str, since: float) -> Iterable[tuple[float, str]]:
    preset = "default" if label == "ctest" else label
    for file in (build.folder(preset) / "test-times").glob("*.json"):
        try:
            if file.stat().st_mtime < since:
                continue  # of a shard that was left out
            suites = json.loads(file.read_text(encoding="utf-8"))["testsuites"]
        except (OSError, ValueError, KeyError):
            continue  # of a program that crashed
        for suite in suites:
            for test in suite["testsuite"]:
                yield float(test["time"].rstrip("s")), f"{label}: {suite['name']}.{test['name']}"


def _of_pytest() -> Iterable[tuple[float, str]]:
    for case in _cases(ROOT / "build" / "pytest.xml"):
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        yield float(case.get("time", 0)), f"pytest: {name}"


def slowest(stages: Iterable[str], since: float, count: int = 10) -> list[str]:
    """Lines for the tests of these stages that took longest (wall clock), of those that ended after
    `since`, in seconds since the epoch."""
    times: list[tuple[float, str]] = []
    for stage in stages:
        if stage in ("ctest", "asan"):
            times += _of_gtest(stage, since)
        elif stage == "pytest":
            times += _of_pytest()
    return [f"{seconds:7.1f} s  {name}" for seconds, name in sorted(times, reverse=True)[:count]]
