# SPDX-License-Identifier: Apache-2.0
"""How ./test builds and runs the fuzzers, and what it says of what they find."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import TEST, script

from tools import console, fuzz, passed


@pytest.fixture
def fuzzer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes the program of the only fuzzer, `one`; it notes in `ran` the options it is run with."""
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv(passed.ALL, raising=False)
    sources, folder = tmp_path / "sources", tmp_path / "build"
    for name, path in (
        ("ROOT", tmp_path),
        ("SOURCES", sources),
        ("BUILD", folder),
        ("FINDINGS", folder / "findings"),
        ("LOGS", tmp_path),
    ):
        monkeypatch.setattr(fuzz, name, path)
    sources.mkdir()
    folder.mkdir()
    (sources / "one.cpp").write_text('#include "x.h"\n"not tried";', encoding="utf-8")
    tried = tmp_path / "tried.cpp"
    tried.write_text(
        '#include "x.h"\nf("--flag", "two words", "b\\n", "x", "y2");', encoding="utf-8"
    )
    (folder / "one.sources").write_text(f"{tried}\n", encoding="utf-8")

    def made(text: str) -> Path:
        noting = f"import sys\nprint(*sys.argv[1:], file=open({str(tmp_path / 'ran')!r}, 'a'))\n"
        script(folder / "one", noting + text)
        return folder / "one"

    return made


FINDS = """
prefix = next(word.split("=")[1] for word in sys.argv if word.startswith("-artifact_prefix="))
open(prefix + "crash-1", "w").write("input")
print("#12\\tNEW\\nthe sanitizer's words", file=sys.stderr)
sys.exit(77)
"""
FINE = "print('#9\\tNEW\\nstat::number_of_executed_units: 1234', file=sys.stderr)"


def runs(folder: Path) -> int:
    ran = folder / "ran"
    return len(ran.read_text(encoding="utf-8").splitlines()) if ran.exists() else 0


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("10m", 600), ("2h", 7200)])
def test_a_duration_is_seconds(text: str, seconds: int) -> None:
    assert TEST.parse([f"--fuzz={text}"]).fuzz == seconds


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--fuzz"], ["--fuzz="], ["--fuzz=10"], ["--fuzz=0m"], ["--fuzz=1d"], ["--fuzz=-1m"]),
        *(["--fuzz=1m", flag] for flag in ("--quick", "--all", "--only=ruff")),
    ],
)
def test_what_is_no_duration_and_what_goes_with_none(arguments: list[str]) -> None:
    with pytest.raises(console.Failure) as caught:
        TEST.parse(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize(("targets", "at_once", "each"), [(4, 2, 300), (3, 2, 300), (4, 9, 600)])
def test_the_time_is_split_so_that_all_end_in_it(targets: int, at_once: int, each: int) -> None:
    assert fuzz.share(600, targets, at_once) == each


def test_every_fuzzer_is_built_and_has_inputs_to_start_from() -> None:
    cmake = (fuzz.SOURCES / "CMakeLists.txt").read_text(encoding="utf-8")
    for name in fuzz.names():
        assert f"add_fuzzer({name}\n" in cmake or f"add_fuzzer({name} " in cmake
        assert any((fuzz.SOURCES / "corpus" / name).iterdir())


def test_the_dictionary_has_the_words_of_what_is_tried(fuzzer: Callable[[str], Path]) -> None:
    (fuzz.SOURCES / "one.dict").write_text('"extra"\n', encoding="utf-8")
    words = fuzz.dictionary("one").read_text(encoding="utf-8").splitlines()
    assert words == ['"--flag"', '"y2"', '"extra"']


def test_only_what_changed_since_it_passed_is_run_again(
    fuzzer: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fuzzer(FINE)
    assert fuzz.short() and runs(tmp_path) == 1
    assert "one: 1,234 executions, nothing found" in capsys.readouterr().out
    assert fuzz.short() and runs(tmp_path) == 1
    assert "unchanged since it passed: one" in capsys.readouterr().out
    (fuzz.SOURCES / "corpus" / "one" / "input").write_text("new", encoding="utf-8")
    assert fuzz.short() and runs(tmp_path) == 2


def test_what_is_found_is_kept_and_tried_again(
    fuzzer: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fuzzer(FINDS)
    assert not fuzz.short() and not fuzz.short()
    assert runs(tmp_path) == 2
    out = capsys.readouterr().out
    assert "the sanitizer's words" in out and "one: 12 executions, FOUND " in out
    found = fuzz.FINDINGS / "one" / "crash-1"
    assert str(found) in out and found.read_text(encoding="utf-8") == "input"
    words = (tmp_path / "ran").read_text(encoding="utf-8").split()
    assert f"-runs={fuzz.short_runs('one')}" in words and "-seed=1" in words
    assert str(found.parent) in words  # among the inputs that the next run starts from


@pytest.mark.parametrize(("text", "good"), [(FINE, True), (FINDS, False)])
def test_a_long_run_takes_every_fuzzer_and_that_of_plots(
    text: str,
    good: bool,
    fuzzer: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    python = fuzzer(text).with_name("python")
    monkeypatch.setattr(fuzz.environment, "PYTHON", script(python, FINE_AS_PLOTS))
    assert fuzz.long(600) == good
    captured = capsys.readouterr()
    assert f"one: {'1,234 executions, nothing' if good else '12 executions, FOUND'}" in captured.out
    assert "plots: 77 executions, nothing found" in captured.out
    assert f"Fuzzing one, plots: {fuzz.share(600, 2, console.cores())} s each" in captured.err


FINE_AS_PLOTS = (
    "import sys\nassert sys.argv[1:3] == ['-m', 'plots.tests.test_fuzz']\nprint('#77 x')"
)


def test_without_clang_the_stage_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(console.Missing, match=r"clang\+\+ is not installed"):
        TEST._fuzz()
    script(tmp_path / "clang++", f"import sys\nsys.exit('no {sys.platform} runtime')")
    with pytest.raises(console.Missing, match=r"libclang-rt-dev: no .* runtime"):
        TEST._fuzz()
