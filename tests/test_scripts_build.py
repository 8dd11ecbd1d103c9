# SPDX-License-Identifier: Apache-2.0
"""What CMake is told to configure, and when afresh."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tools import build, console, cuda

Configure = Callable[..., set[str]]
NO_CUDA = cuda.Choice(reason="not in this test")
TOOLKIT = cuda.Choice("/t/bin/nvcc", "13.0")


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """The words that CMake is started with, which keeps in its cache what it is told, and the
    toolkit. It refuses a folder that holds a file `moved`."""
    commands: list[list[str]] = []

    def run_logged(_what: str, command: list[str], log: Path) -> list[str]:
        commands.append(command)
        if (tmp_path / "moved").exists() and "--fresh" not in command:
            raise console.CommandFailed("Configuring", 1, [], log)
        cache = build._cache(tmp_path)
        cache |= dict(word[2:].split("=") for word in command if word.startswith("-DCROSSOVER"))
        if checked:
            cache["CROSSOVER_CUDA_CHECKED"] = f"{checked[-1].nvcc}|{checked[-1].version}||"
        text = "".join(f"{name}:INTERNAL={value}\n" for name, value in cache.items())
        (tmp_path / "CMakeCache.txt").write_text(text, encoding="utf-8")
        return ["-- No GPU backend: there is no cublasLt"]

    checked: list[cuda.Choice] = []
    monkeypatch.setattr(build, "run_logged", run_logged)
    monkeypatch.setattr(build, "folder", lambda _: tmp_path)

    def run(tests: bool = True, choice: cuda.Choice = NO_CUDA, complete: bool = False) -> set[str]:
        checked.extend([choice] if choice.nvcc else [])
        build.configure("default", tests, choice, complete)
        return {*map(str, commands[-1])}

    return run


@pytest.mark.parametrize(
    ("asked", "tests", "generations"),
    [
        ([(True, False)], "ON", "newest"),
        ([(False, False)], "OFF", "all"),
        ([(True, True)], "ON", "all"),
        ([(True, False), (False, False)], "ON", "all"),
        ([(False, False), (True, False)], "ON", "all"),
    ],
)
def test_a_folder_keeps_its_tests_and_kernels(asked, tests, generations, configured):
    for with_tests, complete in asked:
        words = configured(with_tests, complete=complete)
    wanted = {f"-DCROSSOVER_TESTS={tests}", f"-DCROSSOVER_CUDA_GENERATIONS={generations}"}
    assert wanted <= words
    changed = asked == [(True, False), (False, False)]
    assert ("-UCMAKE_CUDA_ARCHITECTURES" in words) == changed, "what the old choice came to"


def test_another_toolkit_is_configured_afresh(configured):
    for choice, fresh in (
        (NO_CUDA, False),
        (TOOLKIT, False),
        (NO_CUDA, False),
        (TOOLKIT, False),
        (cuda.Choice("/t/bin/nvcc", "13.1"), True),
        (cuda.Choice("/u/bin/nvcc", "13.1"), True),
        (NO_CUDA, False),
        (TOOLKIT, True),
    ):
        words = configured(choice=choice)
        assert ("--fresh" in words) == fresh
        assert {*choice.switches} <= words


@pytest.mark.parametrize("is_done", [True, False])
def test_a_build_with_cuda_serves_a_run_without(is_done, configured, tmp_path, monkeypatch):
    """While its part has nothing to compile."""
    configured(tests=False, choice=TOOLKIT)
    lines = ["rule make", "  command = touch $out"]
    lines += [f"build {part}: make" for part in ("crossover_cuda", "crossover_kernels")]
    (tmp_path / "build.ninja").write_text("\n".join([*lines, ""]), encoding="utf-8")
    if is_done:
        subprocess.run(["ninja", "-C", tmp_path], check=True, stdout=subprocess.DEVNULL)
    choices: list[cuda.Choice] = []
    monkeypatch.setattr(build, "BENCH", tmp_path / "build.ninja")
    monkeypatch.setattr(build, "configure", lambda *words: choices.append(words[2]))
    monkeypatch.setattr(build, "_make", lambda *_: None)
    build.program(cuda.choose("off"))
    assert [choice.nvcc for choice in choices] == [TOOLKIT.nvcc if is_done else None]


def test_a_folder_that_cmake_refuses_is_configured_afresh_and_a_new_one_not(configured, tmp_path):
    (tmp_path / "moved").touch()
    with pytest.raises(console.CommandFailed):
        configured()
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/moved\n", "utf-8")
    assert "--fresh" in configured()


def test_a_toolkit_that_lacks_something_is_told(configured, capsys):
    assert "-DCROSSOVER_CUDA=OFF" in configured()
    assert capsys.readouterr().err == ""
    assert "-DCROSSOVER_CUDA=AUTO" in configured(choice=cuda.Choice("/n", "13.0", required=False))
    assert "  building without CUDA: there is no cublasLt\n" in capsys.readouterr().err
