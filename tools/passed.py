# SPDX-License-Identifier: Apache-2.0
"""What tests passed on, so that ./test repeats only those of which something has changed."""

import hashlib
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from tools import build, environment
from tools.console import ROOT
from tools.readers import Readers
from tools.sources import every_file

_ABOUT = "about:"
ALL = "CROSSOVER_TEST_ALL"  # tests that thin out their cases run all of them
_FIXTURES = ROOT / "tests" / "fixtures"


def repeats_everything() -> bool:
    """Continuous integration and ./test --all take no earlier result's word."""
    return bool(os.environ.get("CI") or os.environ.get(ALL))


class Passed:
    """Keys of tests that passed, kept in a file; a key hashes all that the test depends on."""

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            content = json.loads(file.read_text(encoding="utf-8"))
            self._keys: dict[str, str] = content if isinstance(content, dict) else {}
        except (OSError, ValueError):
            self._keys = {}

    def unchanged(self, keys: Mapping[str, str]) -> set[str]:
        if repeats_everything():
            return set()
        return {name for name, key in keys.items() if self._keys.get(name) == key}

    def is_known(self, name: str, about: str) -> bool:
        """It passed, whatever else has changed, with what it is about as it is."""
        known = self._keys.get(_ABOUT + name, "") == about and name in self._keys
        return known and not repeats_everything()

    def write(self, keys: Mapping[str, str], keep: Iterable[str] = ()) -> None:
        """These, and of the tests in `keep` what they passed on before."""
        kept = [name for test in keep for name in (test, _ABOUT + test) if name in self._keys]
        content = {**{name: self._keys[name] for name in kept}, **keys}
        self._file.write_text(json.dumps(content, indent=1, sort_keys=True), encoding="utf-8")


def digest(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.hexdigest()


def _of_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


# bench/file/built_from.h: what a program says of its commit, whatever its tests.
_TREE = re.compile(rb"[0-9a-f]{40}-(?:clean|dirty)\0")


def _of_program(path: Path) -> bytes:
    """A commit alone changes no result of its tests."""
    return hashlib.sha256(_TREE.sub(b"", path.read_bytes())).digest()


def _of_files(paths: Iterable[Path]) -> list[bytes]:
    parts: list[bytes] = []
    for path in sorted(paths):
        if path.is_file():
            parts += [str(path.relative_to(ROOT)).encode(), _of_file(path)]
    return parts


def _of_environment() -> bytes:
    """oneDNN and the Python packages, by what is pinned."""
    return json.dumps(environment.hashes(environment.FOR_TEST), sort_keys=True).encode()


# ---- ctest


def _listed(folder: Path) -> list[dict[str, Any]]:
    command: list[str | Path] = ["ctest", "--test-dir", folder, "--show-only=json-v1"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return json.loads(listed)["tests"]


def _property(test: dict[str, Any], name: str) -> list[str]:
    values = (p["value"] for p in test.get("properties", []) if p["name"] == name)
    return next(values, [])


def _ctest_keys(tests: list[dict[str, Any]]) -> dict[str, str]:
    """For each test that has a program; those for a GPU have none: whether there is one changes."""
    common = [_of_environment(), *_of_files(_FIXTURES.rglob("*"))]
    programs: dict[str, bytes] = {}
    keys: dict[str, str] = {}
    for test in tests:
        command = test.get("command", [])
        if not command or not Path(command[0]).is_file() or "gpu" in _property(test, "LABELS"):
            continue
        if command[0] not in programs:
            programs[command[0]] = _of_program(Path(command[0]))
        words = json.dumps([command, _property(test, "ENVIRONMENT")]).encode()
        keys[test["name"]] = digest([*common, programs[command[0]], words])
    return keys


def _about(tests: list[dict[str, Any]]) -> dict[str, str]:
    """For each test with labels "about:FOLDER": what those folders hold."""
    files = every_file()
    digests: dict[tuple[str, ...], str] = {}
    found: dict[str, str] = {}
    for test in tests:
        labels = _property(test, "LABELS")
        folders = tuple(x.removeprefix(_ABOUT) for x in labels if x.startswith(_ABOUT))
        if folders and folders not in digests:
            roots = {ROOT / folder for folder in folders}
            inside = [path for path in files if not roots.isdisjoint(path.parents)]
            programs_of = [path for path in inside if path.suffix != ".py"]
            digests[folders] = digest(_of_files(programs_of))
        if folders:
            found[test["name"]] = digests[folders]
    return found


def _left_out(passed: Passed, keys: Mapping[str, str], about: Mapping[str, str]) -> set[str]:
    """Of the shards of a program, each with as much of everything as another, three quarters, if
    they passed before and what has changed is not what they are about. Others after each change."""
    groups: dict[str, list[str]] = {}
    for name in about.keys() & keys.keys():
        groups.setdefault(name.rpartition("_")[0] or name, []).append(name)
    left: set[str] = set()
    for names in groups.values():
        known = {name for name in names if passed.is_known(name, about[name])}
        chosen = sorted(names, key=lambda name: keys[name])[: math.ceil(len(names) / 4)]
        left |= known.difference(chosen)
    return left


def _successes(junit: Path) -> set[str]:
    try:
        cases = ElementTree.parse(junit).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return set()
    return {case.get("name", "") for case in cases if case.get("status") == "run"}


def run_ctest(preset: str, jobs: int, quick: bool = False) -> bool:
    """The preset's tests whose program, fixtures or environment changed since they passed."""
    folder = build.folder(preset)
    # The preset leaves out what its build leaves out.
    run_all = bool(os.environ.get(ALL))
    chosen = ["--test-dir", str(folder)] if run_all else ["--preset", preset]
    tests = _listed(folder)
    if not run_all:
        tests = [
            t for t in tests if preset != "default" or "emulation" not in _property(t, "LABELS")
        ]
    keys = _ctest_keys(tests)
    passed = Passed(folder / "tests-passed.json")
    unchanged = passed.unchanged(keys)
    slow = {t["name"] for t in tests if quick and "slow" in _property(t, "LABELS")} - unchanged
    about = _about(tests)
    far = {name: about.get(name, "") for name in keys} if quick else about
    left_out = _left_out(passed, keys, far) - unchanged - slow
    not_run = unchanged | slow | left_out
    for old in (folder / "test-times").glob("*.json"):
        if old.stem not in not_run:
            old.unlink()
    if unchanged:
        print(f"ctest: {len(unchanged)} of {len(tests)} tests unchanged since they passed")
    if slow:
        print(f"ctest: {len(slow)} slow tests left out by --quick")
    if left_out:
        why = "with --quick" if quick else "after a change far from what they are about"
        print(
            f"ctest: {len(left_out)} of {len(tests)} tests left out: shards that passed before, of"
            f" which a quarter is repeated {why}"
        )
    if len(not_run) == len(tests):
        print("100% tests passed (none to repeat)", flush=True)
        return True
    junit = folder / "ctest.xml"
    junit.unlink(missing_ok=True)
    command = ["ctest", *chosen, "--output-on-failure", "--parallel", str(jobs)]
    command += ["--output-junit", str(junit)]
    if not_run:
        command += ["--exclude-regex", f"^({'|'.join(sorted(not_run))})$"]
    sys.stdout.flush()
    good = subprocess.run(command, cwd=ROOT, check=False).returncode == 0
    still = unchanged | _successes(junit)
    now = {name: key for name, key in keys.items() if name in still}
    now |= {_ABOUT + name: about[name] for name in still & about.keys()}
    passed.write(now, keep=left_out | slow)
    return good


# ---- pytest


def _pytest_keys(programs: Iterable[Path]) -> dict[str, str]:
    """By test file, as pytest names it."""
    readers = Readers(set(every_file()), set(programs))
    packages = _of_environment()
    digests = {path: [_of_program(path)] for path in programs if path.is_file()}
    keys: dict[str, str] = {}
    for test in readers.tests:
        parts = [packages]
        for path in sorted(readers.read_by(test)):
            if path not in digests:
                digests[path] = _of_files([path])
            parts += digests[path]
        keys[test.relative_to(ROOT).as_posix()] = digest(parts)
    return keys


def _failed(report: Path, files: Iterable[str]) -> set[str] | None:
    """Those of `files` with a failure or an error; None if that is not known: of a file that could
    not be read the report has an error without the file's name."""
    try:
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    except (OSError, ElementTree.ParseError):
        return None
    bad = [c for c in cases if c.find("failure") is not None or c.find("error") is not None]
    failed = {f"{case.get('classname', '').replace('.', '/')}.py" for case in bad}
    return failed if failed and failed <= set(files) else None


def run_pytest(jobs: int, programs: Iterable[Path], quick: bool) -> bool:
    """The test files of which something that they read has changed since they passed."""
    keys = _pytest_keys(programs)
    passed = Passed(ROOT / "build" / "pytest-passed.json")
    report = ROOT / "build" / "pytest.xml"
    report.unlink(missing_ok=True)
    unchanged = passed.unchanged(keys)
    if unchanged:
        print(f"pytest: {len(unchanged)} of {len(keys)} files of tests passed, and read the same")
    if len(unchanged) == len(keys):
        return True
    command = [environment.PYTHON, "-m", "pytest", "-q", f"--numprocesses={jobs}"]
    command += ["--dist=worksteal", f"--junitxml={report}"]
    if quick:
        command += ["-m", "not slow"]
    command += sorted(keys.keys() - unchanged)
    sys.stdout.flush()
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if not quick:
        failed = _failed(report, keys) if code == 1 else set() if code == 0 else None
        good = set(keys) - failed if failed is not None else unchanged
        passed.write({name: keys[name] for name in good})
    return code == 0


# ---- the slowest


def _of_gtest(label: str, folder: Path, since: float) -> Iterable[tuple[float, str]]:
    for file in (folder / "test-times").glob("*.json"):
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
    try:
        cases = ElementTree.parse(ROOT / "build" / "pytest.xml").getroot().iter("testcase")
    except (OSError, ElementTree.ParseError):
        return
    for case in cases:
        name = f"{case.get('classname', '')}.{case.get('name', '')}"
        yield float(case.get("time", 0)), f"pytest: {name}"


def slowest(stages: Iterable[str], since: float, count: int = 10) -> list[str]:
    """Lines for the tests of these stages that took longest (wall clock), of those that ended after
    `since`, in seconds since the epoch."""
    times: list[tuple[float, str]] = []
    for stage in stages:
        if stage == "ctest":
            times += _of_gtest("ctest", build.folder("default"), since)
        elif stage == "asan":
            times += _of_gtest("asan", build.folder("asan"), since)
        elif stage == "pytest":
            times += _of_pytest()
    return [f"{seconds:7.1f} s  {name}" for seconds, name in sorted(times, reverse=True)[:count]]
