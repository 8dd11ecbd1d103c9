# SPDX-License-Identifier: Apache-2.0
"""What ./test runs, repeats, and leaves out, and what it says of it."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import TEST, script

from tools import console, sources, stages
from tools.stages import Result, Stage

# --- which stages


def names(*arguments: str) -> list[str]:
    return [stage.name for stage in TEST.chosen(TEST.parse(arguments))]


def test_stages_come_with_what_they_need() -> None:
    assert names() == names("--all") == [stage.name for stage in TEST.STAGES]
    assert names("--only=ruff") == ["ruff"]
    assert names("--only=ruff,ctest") == names("--only=ctest", "--only=ruff")
    assert names("--only=ruff,ctest") == ["build", "ruff", "ctest"]
    assert names("--only=pytest") == ["build", "asan-build", "pytest"]


def test_quick_builds_no_sanitizers() -> None:
    assert "asan-build" not in names("--quick")
    assert "asan-build" not in names("--quick", "--only=pytest")
    assert {"build", "ctest", "pytest"} <= set(names("--quick"))


@pytest.mark.parametrize(
    "arguments",
    [("--only=nonsense",), ("--only=",), ("--fast",), ("ruff",), ("--all", "--quick")],
)
def test_unknown_stages_and_arguments_are_usage_errors(arguments: tuple[str, ...]) -> None:
    with pytest.raises(console.Failure) as caught:
        TEST.parse(arguments)
    assert caught.value.code == 2


# --- stages side by side


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Result]]:
    """Runs stages, each given as name, Python text, and the names it needs."""
    monkeypatch.setattr(stages, "LOGS", tmp_path)

    def run(*table: tuple[str, str, tuple[str, ...]]) -> dict[str, Result]:
        texts = {name: text for name, text, _ in table}
        return stages.run_all(
            [Stage(name, "described", lambda: True, needs) for name, _, needs in table],
            lambda stage: [sys.executable, "-c", texts[stage.name]],
        )

    return run


def test_a_failed_stage_fails_those_that_need_it_and_no_other(
    results: Callable[..., dict[str, Result]], capfd: pytest.CaptureFixture[str]
) -> None:
    bad = "print('its words'); raise SystemExit(1)"
    got = results(("a", bad, ()), ("b", "", ("a",)), ("c", "", ("b",)), ("d", "", ()))
    verdicts = {name: result.verdict for name, result in got.items()}
    assert verdicts == {"a": "FAILED", "b": "FAILED", "c": "FAILED", "d": "passed"}
    out = capfd.readouterr().out
    assert "== a: described\nits words\n== a: FAILED after" in out
    assert "== b: not run: a did not pass" in out


@pytest.mark.slow
def test_a_stage_starts_after_what_it_needs(
    results: Callable[..., dict[str, Result]], tmp_path: Path
) -> None:
    made = tmp_path / "made"
    write = f"import time; time.sleep(0.3); open({str(made)!r}, 'w')"
    got = results(("a", write, ()), ("b", f"open({str(made)!r})", ("a",)))
    assert got["b"].verdict == "passed"


def test_a_skip_fails_only_in_ci(
    results: Callable[..., dict[str, Result]], monkeypatch: pytest.MonkeyPatch
) -> None:
    skip = ("a", f"raise SystemExit({stages.SKIPPED})", ())
    monkeypatch.delenv("CI", raising=False)
    assert results(skip)["a"].verdict == "skipped"
    monkeypatch.setenv("CI", "true")
    assert results(skip)["a"].verdict == "FAILED"


@pytest.mark.slow
def test_processor_time_is_that_of_all_processes(
    results: Callable[..., dict[str, Result]],
) -> None:
    # A child that works until the kernel has counted half a second of it.
    work = "import time\nwhile time.process_time() < 0.5: pass"
    text = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {work!r}])"
    assert results(("a", text, ()))["a"].processor_seconds > 0.5


def test_a_stage_says_in_a_sentence_what_went_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    def fall_over() -> bool:
        raise console.Failure("a sentence")

    def skip() -> bool:
        raise console.Missing("not here")

    assert TEST.perform(Stage("c", "", fall_over)) == 1
    assert TEST.perform(Stage("d", "", skip)) == stages.SKIPPED
    assert capsys.readouterr().out == "c: a sentence\nskipped: not here\n"


# --- clang-tidy


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one source, its header, and a header of others; built in build/."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    monkeypatch.setattr(sources, "_TIDIED_FOLDERS", {tmp_path / "src"})
    for name in ("src/a.cpp", "src/a.h", "src/other.h", ".clang-tidy"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("// one\n", encoding="utf-8")
    (tmp_path / "src" / "a.cpp").write_text('#include "a.h"\n', encoding="utf-8")
    (tmp_path / "build").mkdir()
    write_database(tmp_path, "-O2")
    return tmp_path


def write_database(tree: Path, flags: str) -> None:
    command = f"ccache c++ {flags} -o a.o -c a"
    other = {"directory": "/", "file": "/usr/src/gtest.cc", "command": command}
    ours = {"directory": str(tree), "file": "src/a.cpp", "command": command}
    path = tree / "build" / "compile_commands.json"
    path.write_text(json.dumps([other, ours]), encoding="utf-8")


def looked_at(tree: Path, tidy: str = "true") -> list[str]:
    """The sources that clang-tidy, of which `tidy` stands in the place, is started with."""
    ran = tree / "build" / "ran"
    ran.write_text("", encoding="utf-8")
    program = script(
        tree / "build" / "tidy",
        f"import sys, subprocess\nprint(*sys.argv[-3:], file=open({str(ran)!r}, 'a'))\n"
        f"sys.exit(subprocess.run([{tidy!r}]).returncode)",
    )
    assert sources.check_tidy(str(program), tree / "build") == (tidy == "true")
    lines = ran.read_text(encoding="utf-8").splitlines()
    assert all(line.split()[1] == "--" for line in lines)
    return sorted(Path(line.split()[0]).name for line in lines)


def append(path: Path, text: str = "// more\n") -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


def test_a_source_is_looked_at_again_when_something_that_it_reads_changes(tree: Path) -> None:
    assert looked_at(tree) == ["a.cpp"]
    assert looked_at(tree) == []
    for name in ("src/a.h", ".clang-tidy", "src/a.cpp"):
        append(tree / name)
        assert looked_at(tree, "false") == looked_at(tree) == ["a.cpp"]
        assert looked_at(tree) == []
    write_database(tree, "-O3")
    assert looked_at(tree) == ["a.cpp"]
    append(tree / "src" / "other.h")
    assert looked_at(tree) == []


def test_what_headers_include_in_other_folders_counts(tree: Path) -> None:
    far = tree / "include" / "own" / "far.h"
    far.parent.mkdir(parents=True)
    far.touch()
    write_database(tree, f"-I{tree / 'include'}")
    append(tree / "src" / "a.h", "  # include <own/far.h>\n")
    assert looked_at(tree) == ["a.cpp"]
    append(far)
    assert looked_at(tree) == [], "not in quotation marks: not ours"
    append(tree / "src" / "a.h", '  # include "own/far.h"\n')
    assert looked_at(tree) == ["a.cpp"]
    append(far)
    assert looked_at(tree) == ["a.cpp"]


def test_sources_that_are_compiled_together_are_looked_at_one_by_one(tree: Path) -> None:
    together = tree / "build" / "CMakeFiles" / "a.dir" / "Unity" / "unity_0_cxx.cxx"
    together.parent.mkdir(parents=True)
    together.write_text(f'#include "{tree}/src/a.cpp"\n#include "/b.cpp"\n', encoding="utf-8")
    entry = {
        "directory": str(tree),
        "file": str(together),
        "command": f"c++ -O2 -o unity_0.o -c {together}",
    }
    database = tree / "build" / "compile_commands.json"
    database.write_text(json.dumps([entry]), encoding="utf-8")
    assert looked_at(tree) == ["a.cpp"]
    assert (tree / "build" / "ran").read_text("utf-8") == f"{tree / 'src' / 'a.cpp'} -- -O2\n"


def test_what_differs_from_main_is_looked_at(tree: Path) -> None:
    def git(*words: str) -> None:
        identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        subprocess.run(["git", *identity, *words], cwd=tree, env=environment, check=True)

    assert sources.changed_files() is None
    git("init", "-q", "-b", "main")
    git("add", "src", ".clang-tidy")
    git("commit", "-q", "-m", "one")
    assert sources.changed_files() is None  # nothing came before
    (tree / "src" / "a.h").write_text("// two\n", encoding="utf-8")
    git("commit", "-q", "-a", "-m", "two")
    new = {tree / "build" / "compile_commands.json"}  # as nothing is ignored here
    assert sources.changed_files() == {tree / "src" / "a.h"} | new
    git("switch", "-q", "-c", "branch")
    (tree / "src" / "other.h").write_text("// two\n", encoding="utf-8")
    git("commit", "-q", "-a", "-m", "three")
    (tree / "src" / "a.cpp").write_text("// two\n", encoding="utf-8")
    assert sources.changed_files() == {tree / "src" / "other.h", tree / "src" / "a.cpp"} | new


def test_what_changed_is_looked_at_and_of_what_includes_it_some(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    header = Path("a.h")
    changed = [Path(f"changed{i}.cpp") for i in range(4)]
    including = [Path(f"including{i}.cpp") for i in range(4)]
    reached = {path: {path, header} for path in changed + including}
    reached[Path("far.cpp")] = {Path("far.cpp")}
    monkeypatch.setattr(sources, "changed_files", lambda: {header, *changed})
    monkeypatch.setattr(sources, "_MOST_LOOKS", 2)
    assert sources._chosen(reached) == changed + including[:2]
    assert "2 that include what changed are left to --all" in capsys.readouterr().out
    monkeypatch.setattr(sources, "changed_files", lambda: None)
    assert sources._chosen(reached) == sorted(reached)
