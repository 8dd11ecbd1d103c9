# SPDX-License-Identifier: Apache-2.0
"""How ./test builds and runs the fuzzers, and what it says of what they find."""

from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import TEST, script

from tools import console, fuzz

FINDS = """
prefix = next(word.split("=")[1] for word in sys.argv if word.startswith("-artifact_prefix="))
open(prefix + "crash-1", "w").write("input")
print("#12\\tNEW\\nthe sanitizer's words", file=sys.stderr)
sys.exit(77)
"""
FINE = "print('#9\\tNEW\\nstat::number_of_executed_units: 1234', file=sys.stderr)"


@pytest.fixture
def fuzzer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes the program of the only fuzzer, `one`; it notes in `ran` the options it is run with."""
    monkeypatch.setattr(fuzz, "ROOT", tmp_path)
    monkeypatch.setattr(fuzz, "LOGS", tmp_path)
    for name in ("SOURCES", "BUILD", "FINDINGS"):
        (tmp_path / name).mkdir()
        monkeypatch.setattr(fuzz, name, tmp_path / name)
    (fuzz.SOURCES / "one.cpp").write_text('"not tried";', encoding="utf-8")
    (fuzz.SOURCES / "one.dict").write_text('"extra"\n', encoding="utf-8")
    tried = tmp_path / "tried.cpp"
    tried.write_text('#include "x.h"\nf("--flag", "two words", "b\\n", "x", "y2");', "utf-8")
    (fuzz.BUILD / "one.sources").write_text(f"{tried}\n", encoding="utf-8")

    def made(text: str) -> Path:
        noting = f"import sys\nprint(*sys.argv[1:], file=open({str(tmp_path / 'ran')!r}, 'a'))\n"
        return script(fuzz.BUILD / "one", noting + text)

    return made


def test_every_fuzzer_is_built_and_has_inputs_to_start_from() -> None:
    cmake = (fuzz.SOURCES / "CMakeLists.txt").read_text(encoding="utf-8")
    for name in fuzz.names():
        assert f"add_fuzzer({name}\n" in cmake or f"add_fuzzer({name} " in cmake
        assert any((fuzz.SOURCES / "corpus" / name).iterdir())


def test_a_short_run_takes_literals_of_the_sources_that_it_tries(
    fuzzer: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    fuzzer(FINE)
    assert fuzz.short()
    assert "one: 1,234 executions, nothing found" in capsys.readouterr().out
    # Of the sources that are tried only those literals that a dictionary can hold.
    assert (fuzz.BUILD / "one.dict").read_text("utf-8").split() == ['"--flag"', '"y2"', '"extra"']


def test_what_is_found_is_kept_and_tried_again(
    fuzzer: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fuzzer(FINDS)
    assert not fuzz.short() and not fuzz.short()
    out = capsys.readouterr().out
    found = fuzz.FINDINGS / "one" / "crash-1"
    assert "the sanitizer's words" in out and f"one: 12 executions, FOUND {found}; again: " in out
    assert found.read_text(encoding="utf-8") == "input"
    _, again = (tmp_path / "ran").read_text(encoding="utf-8").splitlines()
    assert "-runs=20000 -seed=1 " in again and str(found.parent) in again.split()


@pytest.mark.parametrize(
    ("text", "said"),
    [(FINE, "1,234 executions, nothing found"), (FINDS, "12 executions, FOUND ")],
)
def test_a_long_run_takes_every_fuzzer_and_that_of_plots(
    text: str,
    said: str,
    fuzzer: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    python = fuzzer(text).with_name("python")
    of_plots = "import sys\nassert sys.argv[1:4] == ['-m', 'plots.tests.test_fuzz', '300']"
    monkeypatch.setattr(fuzz.environment, "PYTHON", script(python, f"{of_plots}\nprint('#77 x')"))
    assert fuzz.long(600) == (text == FINE)
    captured = capsys.readouterr()
    assert f"one: {said}" in captured.out
    assert "plots: 77 executions, nothing found" in captured.out
    assert "Fuzzing one, plots: 300 s each" in captured.err


def test_without_libfuzzer_the_stage_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    script(tmp_path / "clang++", f"print({str(tmp_path)!r})")
    with pytest.raises(console.Missing, match="libclang-rt-dev"):
        TEST._fuzz(None)
