# SPDX-License-Identifier: Apache-2.0
"""What ./test runs and leaves out, and what it says of it."""

import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripts import ran, script

from crossover_bench.run import console, cuda
from crossover_bench.run.console import Failure, Missing
from tools import arm64, fuzz, sources, stages, test
from tools.stages import Stage


def names(*arguments: str) -> list[str]:
    return [stage.name for stage in test.chosen(test.parse(arguments))]


def test_stages_come_with_what_they_need():
    assert names("--all") == [stage.name for stage in test.STAGES]
    assert {*names("--all")} - {*names()} == {*test.LONG}
    assert {*names("--only=slow,asan,fuzz,outside,arm64")} == {"build", *test.LONG}
    assert names("--only=ruff,ctest") == names("--only=ctest", "--only=ruff")
    assert names("--only=ruff,ctest") == ["build", "ruff", "ctest"]
    assert {"build", "ctest", "pytest"} < {*names("--quick")} < {*names()}


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


def test_what_the_emulation_of_arm_lacks_is_said(monkeypatch):
    monkeypatch.setattr(arm64.shutil, "which", lambda name: None if "++" in name else name)
    with pytest.raises(Missing, match=r"^aarch64-linux-gnu-g\+\+: not installed"):
        arm64.make()


def test_what_tests_leave_behind_goes(tmp_path, monkeypatch):
    """Such as the file of a test that was killed."""
    places = []

    def leaves(_: object) -> bool:
        places.append(Path(ran("mktemp").stdout.strip()))
        return places[0].exists()

    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(test.setup, "HOME", tmp_path)
    monkeypatch.setattr(test.setup, "for_test", lambda *_: None)
    monkeypatch.setattr(test, "chosen", lambda _: [Stage("leaves", "", leaves)])
    assert test.main([]) == 0
    assert tmp_path in places[0].parents
    assert [path.name for path in tmp_path.iterdir()] == ["build"], "with the lock"


@pytest.mark.parametrize("mode", ["auto", "off"])
def test_tests_are_compiled_for_a_gpu_that_is_not_there(mode, tmp_path, monkeypatch):
    """Where there is a toolkit: nothing measures on it, but its sources must compile."""
    toolkit = cuda.Choice("/t/bin/nvcc", "13.0")
    built: list[cuda.Choice] = []
    monkeypatch.setattr(test.setup, "HOME", tmp_path)
    monkeypatch.setattr(cuda, "find_toolkit", lambda: toolkit)
    monkeypatch.setattr(cuda, "driver_version", lambda: None)
    monkeypatch.setattr(cuda.environment, "MAIN", SimpleNamespace(ensure=lambda _: None))
    everything = lambda *words, complete: built.append(words[1])  # noqa: E731
    monkeypatch.setattr(test.build, "everything", everything)
    assert test._build(test.parse([f"--cuda={mode}"]))
    assert [choice.nvcc for choice in built] == [toolkit.nvcc if mode == "auto" else None]


# --- which files are the project's


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout within somebody else's repository."""
    root = tmp_path / "checkout"
    for module in (sources, console):
        monkeypatch.setattr(module, "ROOT", root)
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)  # of another repository
    for name in ("src/a.cpp", "run", "results/a/1.json", "tools/one.py"):
        append(root / name)
    git(tmp_path, "init", "-q")
    return root


def append(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write("// more\n")


def git(tree: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
    ran("git", *identity, *words, cwd=tree)


def test_what_a_user_keeps_in_the_checkout_is_not_looked_at(tree):
    """Such as results of one's own, which ./run leaves there; .ci/run has ./test meet some."""
    ours = {path for path in tree.rglob("*") if path.is_file()}
    for name in ("notes.py", "scratch.cpp", "results/tries/mine/cut-off.json", "build/made.cpp"):
        append(tree / name)
    assert sources.tracked_files() == ours  # without git by where they lie
    append(tree / "results" / "mine" / "1.json")
    git(tree, "init", "-q")
    git(tree, "add", *map(str, ours))
    assert sources.tracked_files() == ours
    assert sources.tracked_results() == [tree / "results" / "a" / "1.json"]


def test_what_differs_from_main_is_known(tree):
    def committed() -> None:
        git(tree, "add", "src")
        git(tree, "commit", "-q", "-m", "one")

    assert sources.changed_files() is None
    git(tree, "init", "-q", "-b", "main")
    committed()
    assert sources.changed_files() is None  # nothing came before
    append(tree / "src" / "b.cpp")
    committed()
    assert sources.changed_files() == {tree / "src" / "b.cpp"}
    git(tree, "switch", "-q", "-c", "branch")
    append(tree / "src" / "c.cpp")
    committed()
    append(tree / "src" / "a.cpp")
    append(tree / "src" / "not_added.cpp")
    names = {path.name for path in sources.changed_files() or ()}
    assert names == {"a.cpp", "c.cpp"}


# --- the fuzzers


def test_every_fuzzer_is_built_and_has_inputs_to_start_from():
    cmake = (fuzz.SOURCES / "CMakeLists.txt").read_text(encoding="utf-8")
    for name in fuzz.names():
        assert f"add_fuzzer({name}\n" in cmake or f"add_fuzzer({name} " in cmake
        assert fuzz.seeds(name)


FINDS = """
import json, sys
print(json.dumps(sys.argv[1:]), file=open({ran!r}, "a"))
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
    (fuzz.SOURCES / "seeds.py").write_text('SEEDS = {"one": {"help": b"--help"}}', "utf-8")
    script(fuzz.BUILD / "one", FINDS.format(ran=str(tmp_path / "ran")))
    assert not fuzz.short() and not fuzz.short()
    out = capsys.readouterr().out
    crash = fuzz.FINDINGS / "one" / "crash-1"
    assert "the sanitizer's words" in out and f"one: 12 executions, FOUND {crash}; again: " in out
    _, again = map(json.loads, (tmp_path / "ran").read_text(encoding="utf-8").splitlines())
    seed = fuzz.BUILD / "seeds" / "one" / "help"
    assert seed.read_bytes() == b"--help"
    assert {"-runs=20000", "-seed=1", str(seed.parent), str(crash.parent)} <= {*again}
