# SPDX-License-Identifier: Apache-2.0
"""What ./test runs and leaves out, and what it says of it."""

import json
import os
import subprocess
from pathlib import Path

import pytest
from scripts import script

from tools import fuzz, sources, stages, test
from tools.console import Failure, Missing
from tools.stages import Stage


def names(*arguments: str) -> list[str]:
    return [stage.name for stage in test.chosen(test.parse(arguments))]


def test_stages_come_with_what_they_need():
    assert names() == names("--all") == [stage.name for stage in test.STAGES]
    assert names("--only=ruff,ctest") == names("--only=ctest", "--only=ruff")
    assert names("--only=ruff,ctest") == ["build", "ruff", "ctest"]
    assert names("--only=pytest") == ["build", "asan-build", "pytest"]
    assert names("--quick", "--only=pytest") == ["build", "pytest"]
    assert {"build", "ctest", "pytest"} <= {*names("--quick")} <= {*names()} - {"asan-build"}


def test_a_stage_runs_after_what_it_needs_and_fails_with_it(capsys, monkeypatch):
    def lacks(_: object) -> bool:
        raise Missing("not here")

    def fails(_: object) -> bool:
        raise Failure("a sentence")

    runs = {"good": lambda _: True, "bad": lambda _: False, "lacks": lacks, "fails": fails}
    table = [Stage(name, "described", run) for name, run in runs.items()]
    table.append(Stage("after", "", lambda _: True, ("good",)))
    table.append(Stage("never", "", lacks, ("good", "bad")))
    monkeypatch.delenv("CI", raising=False)
    ends = dict.fromkeys(("good", "after"), "passed") | dict.fromkeys(("bad", "fails"), "FAILED")
    ends |= {"lacks": "skipped", "never": "not run without bad"}
    results = stages.run_all(table, None)
    assert {name: result.verdict for name, result in results.items()} == ends
    out = capsys.readouterr().out
    assert "a sentence\n" in out and "good: described\n" in out and "skipped: not here\n" in out
    monkeypatch.setenv("CI", "true")
    assert stages.run_all(table[2:3], None)["lacks"].verdict == "FAILED"


# --- clang-tidy


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one source, its header, a header of others, and one in another folder."""
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "_TIDIED_FOLDERS", {tmp_path / "src"})
    for name in ("src/a.cpp", "src/a.h", "src/other.h", "include/own/far.h", ".clang-tidy"):
        append(tmp_path / name, '#include "a.h"\n' if name == "src/a.cpp" else "// one\n")
    write_database(tmp_path, "-O2")
    return tmp_path


def without_git() -> dict[str, str]:
    """The environment without what would name another repository."""
    return {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}


def append(path: Path, text: str = "// more\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def write_database(tree: Path, flags: str, file: str = "src/a.cpp") -> None:
    command = f"ccache c++ -I{tree / 'include'} {flags} -o a.o -c a"
    other = {"directory": "/", "file": "/usr/src/gtest.cc", "command": command}
    ours = {"directory": str(tree), "file": file, "command": command}
    (tree / "build").mkdir(exist_ok=True)
    (tree / "build" / "compile_commands.json").write_text(json.dumps([other, ours]), "utf-8")


def looked_at(tree: Path, code: int = 0) -> list[str]:
    """How what run-clang-tidy, which ends with that code, looks at is compiled."""
    program = script(tree / "build" / "run-clang-tidy", f"import sys; sys.exit({code})")
    assert sources.check_tidy(str(program), tree / "build") == (code == 0)
    alone = (tree / "build" / "tidy" / "compile_commands.json").read_text(encoding="utf-8")
    return [" ".join(one["arguments"]).replace(f"{tree}/", "") for one in json.loads(alone)]


A = ["c++ -Iinclude -O2 src/a.cpp"]


def test_sources_are_looked_at_as_they_are_compiled(tree):
    assert [looked_at(tree), looked_at(tree, 1)] == [A, A]
    together = tree / "build" / "unity_0_cxx.cxx"  # sources that are compiled as one
    together.write_text(f'#include "{tree}/src/a.cpp"\n#include "/b.cpp"\n', encoding="utf-8")
    write_database(tree, "-O3", str(together))
    assert looked_at(tree) == ["c++ -Iinclude -O3 src/a.cpp"]


def test_what_differs_from_main_is_looked_at(tree):
    def commit(*words: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        for command in (words, ("add", "src"), (*identity, "commit", "-q", "-m", "one")):
            subprocess.run(["git", *command], cwd=tree, env=without_git(), check=True)

    def changed() -> set[str]:
        paths = sources.changed_files() or set()
        return {path.name for path in paths if path.parent.name == "src"}

    assert sources.changed_files() is None
    commit("init", "-q", "-b", "main")
    assert sources.changed_files() is None  # nothing came before
    append(tree / "src" / "a.h")
    commit("status", "-s")
    assert changed() == {"a.h"}
    append(tree / "src" / "other.h")
    commit("switch", "-q", "-c", "branch")
    assert changed() == {"other.h"}
    append(tree / "src" / "new.h")
    commit("status", "-s")
    append(tree / "src" / "a.cpp")
    append(tree / "src" / "newer.cpp")
    assert changed() == {"a.cpp", "new.h", "newer.cpp", "other.h"}


def test_what_includes_what_differs_is_looked_at(tree):
    far = tree / "include" / "own" / "far.h"
    append(tree / "src" / "a.h", '#include "own/far.h"\n')
    assert sources._including({far}) == {tree / "src" / "a.h", tree / "src" / "a.cpp"}


def test_what_a_user_keeps_in_the_checkout_is_not_looked_at(tree):
    """Such as results of one's own, which ./run leaves there; .ci/run has ./test meet some."""
    own = ("notes.py", "scratch.cpp", "results/tries/mine/cut-off.json", "build/made.cpp")
    ours = ("run", "results/a/1.json", "tools/one.py")
    for name in (*own, *ours):
        append(tree / name)
    known = {tree / name for name in ("src/a.cpp", "src/a.h", *ours)}
    found = sources.tracked_files()  # without git by where they lie
    assert known <= found and not found & {tree / name for name in own}
    append(tree / "results" / "mine" / "1.json")
    for words in (["init", "-q"], ["add", "src", *ours]):
        subprocess.run(["git", *words], cwd=tree, env=without_git(), check=True)
    assert sources.tracked_files() == {*known, tree / "src" / "other.h"}
    assert sources.tracked_results() == [tree / "results" / "a" / "1.json"]
    assert tree / "src" / "new.h" not in sources.every_file()
    append(tree / "src" / "new.h")
    append(tree / "mine" / "new.h")
    assert {tree / "src" / "new.h"} == sources.every_file() - sources.tracked_files()


# --- the fuzzers


def test_every_fuzzer_is_built_and_has_inputs_to_start_from():
    cmake = (fuzz.SOURCES / "CMakeLists.txt").read_text(encoding="utf-8")
    for name in fuzz.names():
        assert f"add_fuzzer({name}\n" in cmake or f"add_fuzzer({name} " in cmake
        assert any((fuzz.SOURCES / "corpus" / name).iterdir())


FINDS = """
import sys
print(*sys.argv[1:], file=open({ran!r}, "a"))
prefix = next(word.split("=")[1] for word in sys.argv if word.startswith("-artifact_prefix="))
open(prefix + "crash-1", "w").write("input")
print("#12\\tNEW\\nthe sanitizer's words", file=sys.stderr)
sys.exit(77)
"""


def test_what_is_found_is_kept_and_tried_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(fuzz, "LOGS", tmp_path)
    for name in ("SOURCES", "BUILD", "FINDINGS"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(fuzz, name, tmp_path / name)
    (fuzz.SOURCES / "one.cpp").touch()
    script(fuzz.BUILD / "one", FINDS.format(ran=str(tmp_path / "ran")))
    assert not fuzz.short() and not fuzz.short()
    out = capsys.readouterr().out
    found = fuzz.FINDINGS / "one" / "crash-1"
    assert "the sanitizer's words" in out and f"one: 12 executions, FOUND {found}; again: " in out
    _, again = (tmp_path / "ran").read_text(encoding="utf-8").splitlines()
    assert "-runs=20000 -seed=1 " in again and str(found.parent) in again.split()
