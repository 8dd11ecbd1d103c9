# SPDX-License-Identifier: Apache-2.0
"""When a build folder is configured, and when afresh."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts import ROOT

from tools import build, console, cuda

NO_CUDA = cuda.Choice(reason="not in this test")


def write_cache(folder: Path, home: Path = ROOT, compiler: str = sys.executable) -> None:
    (folder / "build.ninja").touch()
    with (folder / "CMakeCache.txt").open("a", encoding="utf-8") as cache:
        cache.write(
            f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\nCMAKE_CXX_COMPILER:FILEPATH={compiler}\n"
        )
        cache.write(f"CMAKE_MAKE_PROGRAM:FILEPATH={sys.executable}\n")


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """CMake configures tmp_path by writing down its command, in the list returned."""
    commands: list[list[str]] = []

    def run_logged(_what: str, command: list[str], _log: Path) -> list[str]:
        commands.append(command)
        write_cache(tmp_path)
        lacks = "-DCROSSOVER_CUDA=AUTO" in command
        return ["-- No GPU backend: there is no cublasLt"] if lacks else []

    monkeypatch.setattr(build, "run_logged", run_logged)
    monkeypatch.setattr(build, "folder", lambda _: tmp_path)
    monkeypatch.setattr(build, "version_of", lambda *_: (3, 25))
    return commands


def configured(
    commands: list[list[str]], tests: bool = True, choice: cuda.Choice = NO_CUDA, all_: bool = False
) -> list[str]:
    """The command that CMake was started with, without a second one; empty where it was not."""
    commands.clear()
    build.configure("default", tests, choice, all_)
    build.configure("default", tests, choice, all_)
    return commands.pop(0) if commands else []


def test_a_folder_is_configured_once_and_keeps_its_tests_and_kernels(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(build.environment, "FOR_RUN", (tmp_path / "requirements.txt",))
    for tests, expected in (
        (True, ("-DCROSSOVER_TESTS=ON", "-DCROSSOVER_CUDA_GENERATIONS=newest")),
        (False, ("-DCROSSOVER_TESTS=ON", "=all", "-UCMAKE_CUDA_ARCHITECTURES")),
        (True, ()),
    ):
        command = " ".join(configured(commands, tests))
        assert all(word in command for word in expected) and bool(command) == bool(expected)
    (tmp_path / "requirements.txt").touch()
    command = configured(commands, tests=False)
    assert "-DCROSSOVER_TESTS=ON" in command and "-UCMAKE_CUDA_ARCHITECTURES" not in command
    assert configured(commands, tests=True) == []


def test_run_builds_no_tests_and_a_whole_test_kernels_for_every_gpu(
    commands: list[list[str]],
) -> None:
    command = configured(commands, tests=False)
    assert {"-DCROSSOVER_TESTS=OFF", "-DCROSSOVER_CUDA_GENERATIONS=all"} <= {*command}
    assert "-DCROSSOVER_TESTS=ON" in configured(commands)
    assert configured(commands, all_=True) == []


def test_another_compiler_reconfigures_and_another_toolkit_afresh(
    commands: list[list[str]], tmp_path: Path
) -> None:
    nvcc, other = tmp_path / "a" / "bin" / "nvcc", tmp_path / "b" / "bin" / "nvcc"
    first = cuda.Choice(str(nvcc), "13.0")
    compiler = None
    for choice, fresh in (
        (NO_CUDA, False),
        (first, False),
        (NO_CUDA, False),
        (first, False),
        (cuda.Choice(str(nvcc), "13.1"), True),
        (cuda.Choice(str(other), "13.1"), True),
        (NO_CUDA, False),
        (first, True),
    ):
        command = configured(commands, choice=choice)
        assert ("--fresh" in command) == fresh
        assert {*choice.switches} <= {*command}
        compiler = choice.nvcc or compiler
        if compiler:  # CMake keeps it, also where it is told to do without
            with (tmp_path / "CMakeCache.txt").open("a", encoding="utf-8") as cache:
                cache.write(f"CMAKE_CUDA_COMPILER:FILEPATH={compiler}\n")


def test_a_toolkit_that_lacks_something_is_no_reason_to_stop_unless_it_is_demanded(
    commands: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    choice = cuda.Choice("/usr/bin/nvcc", "13.0", required=False)
    assert "-DCROSSOVER_CUDA=AUTO" in configured(commands, choice=choice)
    assert "  building without CUDA: there is no cublasLt\n" in capsys.readouterr().err
    choice = cuda.Choice("/usr/bin/nvcc", "13.0")
    assert "-DCROSSOVER_CUDA=ON" in configured(commands, choice=choice)
    assert "building without CUDA" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: write_cache(folder, home=Path("/moved")),
        lambda folder: write_cache(folder, compiler="/gone/c++"),
        lambda folder: Path.unlink(folder / "build.ninja"),
    ],
)
def test_an_unsound_folder_is_configured_afresh(
    harm: Callable[[Path], None], commands: list[list[str]], tmp_path: Path
) -> None:
    assert "--fresh" not in configured(commands)
    harm(tmp_path)
    assert "--fresh" in configured(commands)


def test_a_cmake_that_is_too_old_is_said_so(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "version_of", lambda *_: (3, 22, 1))
    with pytest.raises(console.Failure, match=r"CMake 3\.22\.1 found, 3\.25 needed"):
        configured(commands)
    assert commands == []


def test_presets_have_their_folders() -> None:
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    for preset in presets["configurePresets"]:
        assert preset["binaryDir"] == str(build.folder(preset["name"])).replace(
            str(ROOT), "${sourceDir}"
        )
