# SPDX-License-Identifier: Apache-2.0
"""Which tests ./test repeats, and which it names as the slowest."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import script

from tools import build, passed, runners, sources


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(passed.ALL, raising=False)
    monkeypatch.setattr(runners, "ROOT", tmp_path)
    (tmp_path / "build").mkdir()
    return tmp_path


def append(path: Path, text: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


# --- ctest


@pytest.fixture
def ctest(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[bool, str]]:
    """A build with the tests `a` and `b`: whether all passed, and which ones ran."""
    monkeypatch.setattr(runners, "_FIXTURES", project / "fixtures")
    monkeypatch.setattr(build, "folder", lambda _: project)
    lines = []
    for name in "ab":
        (project / f"{name}.sh").write_text(f"#!/bin/sh\necho {name} >> {project}/ran\n", "utf-8")
        (project / f"{name}.sh").chmod(0o755)
        lines.append(f"add_test({name} {project}/{name}.sh)\n")
    (project / "CTestTestfile.cmake").write_text("".join(lines), encoding="utf-8")
    preset = {"name": "p", "generator": "Ninja", "binaryDir": str(project)}
    test = {"name": "p", "configurePreset": "p"}
    presets = {"version": 6, "configurePresets": [preset], "testPresets": [test]}
    (project / "CMakePresets.json").write_text(json.dumps(presets), encoding="utf-8")

    def run(quick: bool = False) -> tuple[bool, str]:
        (project / "ran").write_text("", encoding="utf-8")
        good = runners.run_ctest("p", 2, quick)
        return good, "".join(sorted((project / "ran").read_text(encoding="utf-8").split()))

    return run


def test_only_what_changed_since_it_passed_is_repeated(
    ctest: Callable[..., tuple[bool, str]],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert ctest() == (True, "ab")
    assert ctest() == (True, "")
    assert "ctest: 2 of 2 tests unchanged since they passed" in capfd.readouterr().out
    append(project / "b.sh", "exit 1\n")
    assert ctest() == ctest() == (False, "b")  # a failure is never taken for a pass
    (project / "fixtures").mkdir()
    append(project / "fixtures" / "data", "1")
    assert ctest() == (False, "ab")
    assert ctest() == (False, "b")
    monkeypatch.setenv("CI", "true")
    assert ctest() == (False, "ab")


def test_a_commit_alone_repeats_nothing(
    ctest: Callable[..., tuple[bool, str]], project: Path
) -> None:
    text = (project / "a.sh").read_text(encoding="utf-8")
    for tree, ran in (("-clean", "ab"), ("-dirty", ""), ("-other", "a")):
        (project / "a.sh").write_text(f"{text}exit 0\n{os.urandom(20).hex()}{tree}\0", "utf-8")
        assert ctest() == (True, ran)


def test_a_quick_run_leaves_slow_tests_out_and_forgets_no_pass(
    ctest: Callable[..., tuple[bool, str]], project: Path
) -> None:
    append(project / "CTestTestfile.cmake", "set_tests_properties(b PROPERTIES LABELS slow)\n")
    assert ctest(quick=True) == (True, "a")
    assert ctest() == (True, "b")
    append(project / "a.sh", "true\n")
    assert ctest(quick=True) == (True, "a")
    assert ctest() == (True, "")


# --- pytest

FILES = (
    *("src/a.cpp", "src/CMakeLists.txt", "docs/a.md", "plots/text.py", "tests/runs.py"),
    *("plots/tests/test_curves.py", "peers/tests/test_turns.py"),
    *("tests/test_bench.py", "tests/test_build.py"),
)
OF_PROGRAMS = {"bench", "build"}
ALL = {"curves", "turns", *OF_PROGRAMS}
PYTEST = """
import sys
report = [word for word in sys.argv if word.startswith("--junitxml=")][0].partition("=")[2]
files = [word for word in sys.argv if word.endswith(".py")]
print(*sys.argv, file=open("ran", "w"))
with open(report, "w") as out:
    print("<testsuites><testsuite>", file=out)
    for file in files:
        name = file.removesuffix(".py").replace("/", ".")
        attribute, text = OUTCOMES.get(file, ("classname", ""))
        for inside in ("", text):
            print(f'<testcase {attribute}="{name}">{inside}</testcase>', file=out)
    print("</testsuite></testsuites>", file=out)
sys.exit(CODE)
"""


@pytest.fixture
def repeated(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., set[str]]:
    """Which test files run. One of a file's two tests may have an outcome: by the file's name, the
    attribute that names it in the report, and what it holds."""
    for name in FILES:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    (project / "build" / "bench").touch()
    monkeypatch.setattr(runners, "every_file", lambda: [project / name for name in FILES])
    monkeypatch.setattr(runners.environment, "PYTHON", project / "python")

    def run(code: int = 0, quick: bool = False, **outcome: tuple[str, str]) -> set[str]:
        outcomes = {f"tests/test_{name}.py": told for name, told in outcome.items()}
        script(project / "python", f"OUTCOMES = {outcomes}; CODE = {code}\n{PYTEST}")
        (project / "ran").write_text("", encoding="utf-8")
        good = runners.run_pytest(2, [project / "build" / "bench"], quick)
        words = (project / "ran").read_text(encoding="utf-8").split()
        assert good == (code == 0) or not words
        assert quick == ("not slow" in " ".join(words)) or not words
        return {Path(word).stem.removeprefix("test_") for word in words if word.endswith(".py")}

    return run


@pytest.mark.parametrize(
    ("changed", "repeats"),
    [
        *((name, OF_PROGRAMS) for name in ("src/a.cpp", "src/CMakeLists.txt", "build/bench")),
        *((name, ALL) for name in ("docs/a.md", "plots/text.py", "tests/runs.py")),
        ("tests/test_build.py", {"build"}),
        ("plots/tests/test_curves.py", {"curves"}),
    ],
)
def test_test_files_are_repeated_when_something_that_they_read_changes(
    repeated: Callable[..., set[str]], project: Path, changed: str, repeats: set[str]
) -> None:
    assert repeated() == ALL
    assert repeated() == set()
    append(project / changed, "\n# another line\n")
    assert repeated() == repeats
    assert repeated() == set()


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (1, ("classname", "<failure/>")),
        (1, ("name", "<error/>")),  # of a file that cannot be imported
        (0, ("classname", '<skipped message="there is no pdflatex here"/>')),
        (0, ("name", '<skipped message="torch is not installed"/>')),
    ],
)
def test_test_files_are_repeated_until_every_test_has_passed(
    repeated: Callable[..., set[str]],
    monkeypatch: pytest.MonkeyPatch,
    code: int,
    outcome: tuple[str, str],
) -> None:
    assert repeated(quick=True) == ALL  # and left tests out
    assert repeated(code=2) == ALL  # was interrupted
    assert repeated(code, bench=outcome) == ALL
    assert repeated(code, bench=outcome) == {"bench"}
    assert repeated(quick=True) == {"bench"}
    assert repeated(bench=("classname", '<skipped message="runs with ./test --all"/>')) == {"bench"}
    assert repeated() == set()
    monkeypatch.setenv("CI", "true")
    assert repeated() == ALL


def test_no_test_reads_another() -> None:
    """What one reads is hashed without the others."""
    tests = [path for path in sources.every_file() if path.match("tests/test_*.py")]
    imports = re.compile(r"^\s*(?:from|import) .*\btest_\w+", re.MULTILINE)
    assert tests and not [path for path in tests if imports.search(path.read_text("utf-8"))]


def test_the_slowest_tests_are_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "folder", lambda preset: project / "build" / preset)
    for name, seconds in (
        *(("default/test-times/x_0", 2), ("default/test-times/left_out", 100)),
        *(("asan/test-times/x_0", 30), ("pytest", 7.5)),
    ):
        path = project / "build" / f"{name}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<t><testcase classname="S" name="T" time="{seconds}"/></t>', "utf-8")
    os.utime(project / "build" / "default" / "test-times" / "left_out.xml", (1000, 1000))
    told = ["   30.0 s  asan: S.T", "    7.5 s  pytest: S.T", "    2.0 s  ctest: S.T"]
    assert runners.slowest(since=1001) == told
    assert runners.slowest(since=999) == ["  100.0 s  ctest: S.T", *told]
