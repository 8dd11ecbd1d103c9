# SPDX-License-Identifier: Apache-2.0
"""Which tests ./test repeats, and which it names as the slowest."""

import json
import os
import re
import shutil
import subprocess
import sys
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
    for name in "ab":
        script(project / name, f"print({name!r}, file=open({str(project / 'ran')!r}, 'a'))\n")
        append(project / "CTestTestfile.cmake", f"add_test({name} {project}/{name})\n")
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
    append(project / "b", "exit(1)\n")
    assert ctest() == ctest() == (False, "b")  # a failure is never taken for a pass
    (project / "fixtures").mkdir()
    append(project / "fixtures" / "data", "1")
    assert ctest() == (False, "ab")
    assert ctest() == (False, "b")
    monkeypatch.setenv("CI", "true")
    assert ctest() == (False, "ab")


def test_a_commit_alone_changes_no_hash(tmp_path: Path) -> None:
    hashes = []
    for end in (b"-clean\0", b"-dirty\0", b"-other\0"):
        (tmp_path / "a").write_bytes(b"code\0" + os.urandom(20).hex().encode() + end)
        hashes.append(passed.of_files([tmp_path / "a"]))
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_quick_run_leaves_slow_tests_out_and_forgets_no_pass(
    ctest: Callable[..., tuple[bool, str]], project: Path
) -> None:
    append(project / "CTestTestfile.cmake", "set_tests_properties(b PROPERTIES LABELS slow)\n")
    assert [ctest(quick=True), ctest()] == [(True, "a"), (True, "b")]
    append(project / "a", "# more\n")
    assert [ctest(quick=True), ctest()] == [(True, "a"), (True, "")]


# --- pytest

FILES = (
    *("src/a.cpp", "src/CMakeLists.txt", "docs/a.md", "plots/text.py", "tests/runs.py"),
    *("plots/tests/test_curves.py", "peers/tests/test_turns.py"),
    *("tests/test_bench.py", "tests/test_build.py"),
)
OF_PROGRAMS = {"bench", "build"}
ALL = {"curves", "turns", *OF_PROGRAMS}


@pytest.fixture
def files(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*FILES, "build/bench"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    monkeypatch.setattr(runners, "every_file", lambda: {project / name for name in FILES})


@pytest.mark.parametrize(
    ("changed", "repeats"),
    [
        *((name, OF_PROGRAMS) for name in ("src/a.cpp", "src/CMakeLists.txt", "build/bench")),
        *((name, ALL) for name in ("docs/a.md", "plots/text.py", "tests/runs.py")),
        ("tests/test_build.py", {"build"}),
        ("plots/tests/test_curves.py", {"curves"}),
    ],
)
@pytest.mark.usefixtures("files")
def test_test_files_are_repeated_when_something_that_they_read_changes(
    project: Path, changed: str, repeats: set[str]
) -> None:
    before = runners._pytest_keys([project / "build" / "bench"])
    append(project / changed, "\n# another line\n")
    after = runners._pytest_keys([project / "build" / "bench"])
    changed_keys = {name for name in after if after[name] != before[name]}
    assert {Path(name).stem.removeprefix("test_") for name in changed_keys} == repeats


CASES = {
    "good": ("classname", ""),
    "weekly": ("classname", '<skipped message="runs with ./test --all"/>'),
    "bad": ("classname", "<failure/>"),
    "broken": ("name", "<error/>"),  # cannot be imported
    "skipped": ("classname", '<skipped message="there is no chromium here"/>'),
    "whole": ("name", '<skipped message="torch is not installed"/>'),
}


def test_a_file_has_passed_if_every_test_has(tmp_path: Path) -> None:
    cases = "".join(
        f'<testcase classname="t.{name}"/><testcase {attribute}="t.{name}">{text}</testcase>'
        for name, (attribute, text) in CASES.items()
    )
    (tmp_path / "x.xml").write_text(f"<s><s>{cases}</s></s>", encoding="utf-8")
    assert runners._passed_files(tmp_path / "x.xml") == {"t/good.py", "t/weekly.py"}
    (tmp_path / "x.xml").write_text(f"<s>{cases}", encoding="utf-8")  # it did not come to its end
    assert runners._passed_files(tmp_path / "x.xml") == set()


PYTEST = """
import os, sys
report = [word for word in sys.argv if word.startswith("--junitxml=")][0].partition("=")[2]
names = [word[:-3].replace("/", ".") for word in sys.argv if word.endswith(".py")]
open(report, "w").write("<s>" + "".join(f'<testcase classname="{n}"/>' for n in names) + "</s>")
print(*sys.argv, file=open("ran", "w"))
sys.exit(int(os.environ["CODE"]))
"""


@pytest.mark.usefixtures("files")
def test_what_has_passed_is_not_repeated(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runners.environment, "PYTHON", script(project / "python", PYTEST))

    def ran(code: int, quick: bool = False) -> int:
        monkeypatch.setenv("CODE", str(code))
        (project / "ran").write_text("", encoding="utf-8")
        assert runners.run_pytest(2, [], quick) == (code == 0)
        words = (project / "ran").read_text(encoding="utf-8")
        assert ("-m not slow" in words) == quick
        return words.count(".py")

    assert ran(0, quick=True) == 4  # and left tests out
    assert ran(2) == 4  # was interrupted
    assert ran(1) == 4
    assert ran(0) == 0
    monkeypatch.setenv("CI", "true")
    assert ran(0) == 4


def test_no_test_reads_another() -> None:
    """What one reads is hashed without the others."""
    tests = [path for path in sources.every_file() if path.match("tests/test_*.py")]
    imports = re.compile(r"^\s*(?:from|import) .*\btest_\w+", re.MULTILINE)
    assert tests and not [path for path in tests if imports.search(path.read_text("utf-8"))]


# A user's own, which only git can tell from the project's, and what is told by where it lies.
OF_GIT = {
    "plots/tests/mine.json": "{",
    "docs/NOTES.md": "[nowhere](nowhere.md)",
    "results/mine/cut-off.json": '{"context": {',
}
ANYWHERE = {
    "notes.py": "import   nothing_of_this_name",
    "scratch.cpp": "int   main( ) {}",
    "mine/tests/test_mine.py": "raise SystemExit('a test of its user')",
    "results/tries/mine/cut-off.json": '{"context": {',
}
LOOK = """
from pathlib import Path
from tools import runners, sources
assert sources.check_format(Path({0!r})) and sources.check_ruff(Path({0!r}))
print(*runners._pytest_keys([]))
print(*(path.parent.name for path in sources.tracked_results()))
"""


@pytest.mark.slow
@pytest.mark.parametrize("with_git", [True, False])
def test_what_a_user_keeps_in_the_checkout_changes_no_test(
    with_git: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as results of one's own, which ./run leaves there."""
    root = tmp_path / "crossover"
    for path in sources.tracked_files():
        copy = root / path.relative_to(sources.ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    for name in filter(re.compile("GIT_|PYTEST_").match, [*os.environ]):
        monkeypatch.delenv(name)
    for words in (["init", "-q"], ["add", "--all"]) if with_git else ():
        subprocess.run(["git", *words], cwd=root, check=True)
    own = {"results/mine/2026-01-01-abcdef0.json": sources.tracked_results()[0].read_text("utf-8")}
    for name, text in {**own, **ANYWHERE, **(OF_GIT if with_git else {})}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    echo = script(tmp_path / "echo", "import sys; print(*sys.argv)")

    def said(*command: str) -> str:
        whole = [sys.executable, *command]
        done = subprocess.run(whole, cwd=root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    looked_at = said("-c", LOOK.format(str(echo))).split()
    assert {str(root / "src/cpu/backend.cpp"), str(root / "tools/gpu_sweep")} <= {*looked_at}
    assert not [word for word in looked_at if Path(word).name in ("notes.py", "scratch.cpp")]
    assert {"amd-epyc-2c"} == {*looked_at} & {"amd-epyc-2c", "tries", *(["mine"] * with_git)}
    assert "tests/test_bench.py" in looked_at and "mine/tests/test_mine.py" not in looked_at
    if with_git:
        # As a clone made on Windows: its commands start here all the same.
        clone = ["-c", "core.autocrlf=true", "checkout-index", f"--prefix={tmp_path}/crlf/", "run"]
        subprocess.run(["git", *clone], cwd=root, check=True)
        assert (tmp_path / "crlf" / "run").read_bytes() == (root / "run").read_bytes()
        collected = said("-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider")
        assert "test_glance.py" in collected and not re.search("mine/|NOTES|abcdef0", collected)


def test_the_slowest_tests_are_told(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "folder", lambda preset: project / "build" / preset)
    for seconds, name in ((2, "default/test-times/x"), (30, "asan/test-times/x"), (7.5, "pytest")):
        path = project / "build" / f"{name}.xml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'<t><testcase classname="S" name="T" time="{seconds}"/></t>', "utf-8")
    os.utime(path, (1000, 1000))
    assert runners.slowest(since=1001) == ["   30.0 s  asan: S.T", "    2.0 s  ctest: S.T"]
    assert runners.slowest(since=999)[1] == "    7.5 s  pytest: S.T"
