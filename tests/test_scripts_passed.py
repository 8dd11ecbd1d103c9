# SPDX-License-Identifier: Apache-2.0
"""Which tests ./test repeats, and which it names as the slowest."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import ROOT

from tools import build, passed, runners

# --- ctest


@pytest.fixture
def ctest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[bool, list[str]]]:
    """A build with two tests, of which `b` passes if b.sh says so; tells which ones ran."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(passed.ALL, raising=False)
    monkeypatch.setattr(runners, "ROOT", tmp_path)
    monkeypatch.setattr(runners, "_FIXTURES", tmp_path / "fixtures")
    monkeypatch.setattr(build, "folder", lambda _: tmp_path)
    for name in ("a", "b"):
        program = tmp_path / f"{name}.sh"
        program.write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/ran\n", encoding="utf-8")
        program.chmod(0o755)
    (tmp_path / "CTestTestfile.cmake").write_text(
        f"add_test(a {tmp_path}/a.sh)\nadd_test(b {tmp_path}/b.sh)\n", encoding="utf-8"
    )
    (tmp_path / "CMakePresets.json").write_text(
        json.dumps(
            {
                "version": 6,
                "configurePresets": [
                    {"name": "p", "generator": "Ninja", "binaryDir": str(tmp_path)}
                ],
                "testPresets": [{"name": "p", "configurePreset": "p"}],
            }
        ),
        encoding="utf-8",
    )

    def run(quick: bool = False) -> tuple[bool, list[str]]:
        ran = tmp_path / "ran"
        ran.write_text("", encoding="utf-8")
        good = runners.run_ctest("p", 2, quick)
        return good, sorted(ran.read_text(encoding="utf-8").split())

    return run


def test_only_what_changed_since_it_passed_is_repeated(
    ctest: Callable[..., tuple[bool, list[str]]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert ctest() == (True, ["a", "b"])
    assert ctest() == (True, [])
    assert "ctest: 2 of 2 tests unchanged since they passed" in capfd.readouterr().out
    with (tmp_path / "b.sh").open("a", encoding="utf-8") as file:
        file.write("exit 1\n")
    assert ctest() == (False, ["b"])
    assert ctest() == (False, ["b"])  # a failure is never taken for a pass
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures" / "data").write_text("1", encoding="utf-8")
    assert ctest() == (False, ["a", "b"])
    assert ctest() == (False, ["b"])
    monkeypatch.setenv("CI", "true")
    assert ctest() == (False, ["a", "b"])


def test_a_commit_alone_repeats_nothing(
    ctest: Callable[..., tuple[bool, list[str]]], tmp_path: Path
) -> None:
    program = tmp_path / "a.sh"
    script = program.read_text(encoding="utf-8")
    for tree in ("ab" * 20 + "-clean", "cd" * 20 + "-dirty"):
        program.write_text(f"{script}exit 0\n{tree}\0", encoding="utf-8")
        ctest()
    assert ctest() == (True, [])
    program.write_text(f"{script}exit 0\n{'ef' * 20}-clean\0", encoding="utf-8")
    assert ctest() == (True, [])
    program.write_text(f"{script}exit 0\n{'ef' * 20}-other\0", encoding="utf-8")
    assert ctest() == (True, ["a"])


def test_a_quick_run_leaves_slow_tests_out_and_forgets_no_pass(
    ctest: Callable[..., tuple[bool, list[str]]], tmp_path: Path
) -> None:
    with (tmp_path / "CTestTestfile.cmake").open("a", encoding="utf-8") as file:
        file.write("set_tests_properties(b PROPERTIES LABELS slow)\n")
    assert ctest(quick=True) == (True, ["a"])
    assert ctest() == (True, ["b"])
    with (tmp_path / "a.sh").open("a", encoding="utf-8") as file:
        file.write("true\n")
    assert ctest(quick=True) == (True, ["a"])
    assert ctest() == (True, [])


# --- pytest

PROJECT = (
    *("src/a.cpp", "src/CMakeLists.txt", "docs/a.md", "plots/text.py", "tests/runs.py"),
    *("plots/tests/test_curves.py", "peers/tests/test_turns.py"),
    *("tests/test_bench.py", "tests/test_build.py"),
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(passed.ALL, raising=False)
    monkeypatch.setattr(runners, "ROOT", tmp_path)
    for name in PROJECT:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "bench").touch()
    monkeypatch.setattr(runners, "every_file", lambda: [tmp_path / name for name in PROJECT])
    monkeypatch.setattr(runners.environment, "PYTHON", tmp_path / "python")
    return tmp_path


def repeated(project: Path, failing: str = "", quick: bool = False, named: bool = True) -> set[str]:
    """The test files that run_pytest() runs; the one called `failing` fails, by its name in the
    report or without."""
    (project / "python").write_text(
        f"""#!{sys.executable}
import sys
report = [word for word in sys.argv if word.startswith("--junitxml=")][0].partition("=")[2]
failing, named = {failing!r}, {named}
files = [word for word in sys.argv if word.endswith(".py")]
print(*sys.argv, file=open({str(project / "ran")!r}, "w"))
with open(report, "w") as out:
    print("<testsuites><testsuite>", file=out)
    for file in files:
        name = file.removesuffix(".py").replace("/", ".") if named else ""
        text = "<failure/>" if file == failing else ""
        print(f'<testcase classname="{{name}}" name="n">{{text}}</testcase>', file=out)
    print("</testsuite></testsuites>", file=out)
sys.exit(1 if failing in files else 0)
""",
        encoding="utf-8",
    )
    (project / "python").chmod(0o755)
    ran = project / "ran"
    ran.unlink(missing_ok=True)
    good = runners.run_pytest(2, [project / "build" / "bench"], quick)
    words = ran.read_text(encoding="utf-8").split() if ran.exists() else []
    assert good == (failing not in words)
    assert quick == ("not slow" in " ".join(words)) or not words
    return {Path(word).stem.removeprefix("test_") for word in words if word.endswith(".py")}


OF_PROGRAMS = {"bench", "build"}
ALL = {"curves", "turns", *OF_PROGRAMS}


@pytest.mark.parametrize(
    ("changed", "repeats"),
    [
        ("src/a.cpp", OF_PROGRAMS),
        ("src/CMakeLists.txt", OF_PROGRAMS),
        ("build/bench", OF_PROGRAMS),
        ("docs/a.md", ALL),
        ("plots/text.py", ALL),
        ("tests/runs.py", ALL),
        ("tests/test_build.py", {"build"}),
        ("plots/tests/test_curves.py", {"curves"}),
    ],
)
def test_test_files_are_repeated_when_something_that_they_read_changes(
    project: Path, changed: str, repeats: set[str]
) -> None:
    assert repeated(project) == ALL
    assert repeated(project) == set()
    with (project / changed).open("a", encoding="utf-8") as file:
        file.write("\n# another line\n")
    assert repeated(project) == repeats
    assert repeated(project) == set()


def test_test_files_are_repeated_until_they_pass(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repeated(project, quick=True) == ALL  # and left tests out
    assert repeated(project, failing="tests/test_bench.py", named=False) == ALL
    assert repeated(project, failing="tests/test_bench.py") == ALL  # which it was, nobody said
    assert repeated(project, failing="tests/test_bench.py") == {"bench"}
    assert repeated(project, quick=True) == {"bench"}
    assert repeated(project) == {"bench"}
    assert repeated(project) == set()
    monkeypatch.setenv("CI", "true")
    assert repeated(project) == ALL


def test_no_test_reads_another() -> None:
    """What one reads is hashed without the others."""
    tests = [
        path
        for part in ("plots/tests", "peers/tests", "tests")
        for path in (ROOT / part).glob("test_*.py")
    ]
    imports = re.compile(r"^\s*(?:from|import) .*\btest_\w+", re.MULTILINE)
    assert tests and not [path for path in tests if imports.search(path.read_text("utf-8"))]


# --- the slowest


def test_the_slowest_tests_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners, "ROOT", tmp_path)
    monkeypatch.setattr(build, "folder", lambda preset: tmp_path / "build" / preset)
    for preset, seconds in (("default", 2), ("asan", 30)):
        times = tmp_path / "build" / preset / "test-times"
        times.mkdir(parents=True)
        suite = {"name": "S", "testsuite": [{"name": "T", "time": f"{seconds}s"}]}
        (times / "x_0.json").write_text(json.dumps({"testsuites": [suite]}), encoding="utf-8")
        suite = {"name": "S", "testsuite": [{"name": "LeftOut", "time": "100s"}]}
        (times / "x_1.json").write_text(json.dumps({"testsuites": [suite]}), encoding="utf-8")
        os.utime(times / "x_1.json", (1000, 1000))
    (tmp_path / "build" / "pytest.xml").write_text(
        '<testsuites><testsuite><testcase classname="c" name="n" time="7.5"/>'
        "</testsuite></testsuites>",
        encoding="utf-8",
    )
    told = [line.split(maxsplit=2) for line in runners.slowest(["ctest", "asan", "pytest"], 1001)]
    assert told == [
        ["30.0", "s", "asan: S.T"],
        ["7.5", "s", "pytest: c.n"],
        ["2.0", "s", "ctest: S.T"],
    ]
    assert len(runners.slowest(["ctest"], 1001)) == 1
    assert "LeftOut" in runners.slowest(["ctest"], 999)[0]
