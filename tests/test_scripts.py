# SPDX-License-Identifier: Apache-2.0
"""What ./run and ./test decide by themselves: arguments, logs, endings."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import ROOT, RUN, TEST

from tools import console, setup, sources

# --- arguments


def test_own_flags_are_taken_and_the_rest_goes_to_bench() -> None:
    parsed = RUN.parse(["--sweep=quick", "--no-report", "--setup-only", "--model=disc-10"])
    assert parsed.setup_only
    assert not parsed.report
    assert not parsed.help
    assert parsed.bench == ["--sweep=quick", "--model=disc-10"]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_is_ours_first(flag: str) -> None:
    assert RUN.parse(["--sweep=quick", flag]).help


@pytest.mark.parametrize(
    ("argument", "tells"),
    [
        ("--benchmark_list_tests", True),
        ("--benchmark_list_tests=true", True),
        ("--benchmark_list_tests=false", False),
        ("--benchmark_list_tests=0", False),
        ("--machine", True),
        ("--models", True),
        ("--commit", True),
        ("--cost", True),
        ("--model=disc-2", False),
        ("--benchmark_filter=--machine", False),
    ],
)
def test_flags_that_only_tell_something_make_no_results(argument: str, tells: bool) -> None:
    assert RUN.parse([argument]).only_tells is tells


def test_an_output_file_is_found_and_the_last_one_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert RUN.parse(["--sweep=quick"]).out is None
    assert RUN.parse(["--benchmark_out=a.json"]).out == tmp_path / "a.json"
    assert RUN.parse(["--out=a.json", "--out=/x/b.json"]).out == Path("/x/b.json")
    assert RUN.parse(["--benchmark_out_format=json"]).out is None


def test_stages_come_with_what_they_need() -> None:
    def names(*arguments: str) -> list[str]:
        return [stage.name for stage in TEST.chosen(arguments)]

    assert names() == [stage.name for stage in TEST.STAGES]
    assert names("--only=ruff") == ["ruff"]
    assert names("--only=ruff,ctest") == ["build", "ctest", "ruff"]


@pytest.mark.parametrize("argument", ["--only=nonsense", "--only=", "--fast", "ruff"])
def test_unknown_stages_and_arguments_are_usage_errors(argument: str) -> None:
    with pytest.raises(console.Failure) as caught:
        TEST.chosen([argument])
    assert caught.value.code == 2


@pytest.mark.parametrize("command", ["run", "test"])
def test_help_works_from_any_directory_and_sets_nothing_up(command: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [ROOT / command, "--help"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert f"usage: ./{command}" in done.stdout
    assert done.stderr == ""


def test_a_failed_stage_fails_those_that_need_it_and_a_skip_fails_only_in_ci(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fall_over() -> bool:
        raise console.Failure("a sentence")

    def skip() -> bool:
        raise TEST.Skip("not here")

    needing = TEST.Stage("b", "", lambda: True, needs="a")
    assert TEST._perform(needing, {"a": "FAILED"}) == "FAILED"
    assert TEST._perform(needing, {"a": "passed"}) == "passed"
    assert TEST._perform(TEST.Stage("c", "", fall_over), {}) == "FAILED"
    monkeypatch.delenv("CI", raising=False)
    assert TEST._perform(TEST.Stage("d", "", skip), {}) == "skipped"
    monkeypatch.setenv("CI", "true")
    assert TEST._perform(TEST.Stage("d", "", skip), {}) == "FAILED"


# --- commands, logs, endings


def test_a_failed_command_shows_its_last_lines_and_its_log(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "x.log"
    command = [sys.executable, "-c", "print(*range(100), sep='\\n'); raise SystemExit(3)"]
    with pytest.raises(console.CommandFailed) as caught:
        console.run_logged("Counting", command, log)
    text = str(caught.value)
    assert text.startswith("Counting failed (exit code 3)")
    assert text.splitlines()[1:-1] == [f"    {number}" for number in range(60, 100)]
    assert str(log) in text
    assert len(log.read_text(encoding="utf-8").splitlines()) == 100


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (console.Failure("a sentence", 2), 2, "./x: a sentence\n"),
        (console.Stopped(signal.SIGINT), 130, "\n./x: stopped; start it again"),
        (console.Stopped(signal.SIGTERM), 143, "\n./x: stopped; start it again"),
        (PermissionError(13, "Permission denied", "/f"), 1, "./x: /f: Permission denied\n"),
        (OSError(28, "No space left on device"), 1, "./x: No space left on device\n"),
    ],
)
def test_whatever_goes_wrong_ends_as_a_sentence(
    error: BaseException,
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def main(_: list[str]) -> int:
        raise error

    monkeypatch.setattr(console, "_heed_signals", lambda: None)
    assert console.guarded("./x", main) == code
    assert capsys.readouterr().err.startswith(said)


def test_a_build_folder_that_cannot_be_written_is_said_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "build").write_text("a file in the way", encoding="utf-8")
    monkeypatch.setattr(setup, "ROOT", tmp_path)
    with pytest.raises(console.Failure, match="cannot write in"), setup.alone():
        pass


# --- clang-tidy's memory


def test_a_source_is_looked_at_again_when_anything_it_depends_on_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    source, header = tmp_path / "src" / "a.cpp", tmp_path / "src" / "a.h"
    source.write_text("int a;\n", encoding="utf-8")
    header.write_text("int b;\n", encoding="utf-8")
    (tmp_path / ".clang-tidy").write_text("Checks: '*'\n", encoding="utf-8")
    database = tmp_path / "compile_commands.json"

    def write_database(flags: str) -> None:
        other = {"directory": "/", "file": "/usr/src/gtest.cc", "command": "c++"}
        ours = {"directory": str(tmp_path), "file": "src/a.cpp", "command": f"c++ {flags}"}
        database.write_text(json.dumps([other, ours]), encoding="utf-8")

    def key() -> str:
        keys = sources._tidy_keys("no-clang-tidy", tmp_path)
        assert list(keys) == [source]
        return keys[source]

    write_database("-O2")
    seen = {key()}
    assert key() in seen
    changes: list[Callable[[], object]] = [
        lambda: source.write_text("int c;\n", encoding="utf-8"),
        lambda: header.write_text("int d;\n", encoding="utf-8"),
        lambda: (tmp_path / ".clang-tidy").write_text("Checks: '-*'\n", encoding="utf-8"),
        lambda: write_database("-O3"),
    ]
    for change in changes:
        change()
        assert key() not in seen
        seen.add(key())
