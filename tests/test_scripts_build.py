# SPDX-License-Identifier: Apache-2.0
"""When a build folder is configured, and when afresh."""

import json
import sys
from pathlib import Path

import pytest
from scripts import ROOT

from tools import build, console, cuda


def build_folder(path: Path, home: Path, compiler: str = sys.executable) -> Path:
    (path / "build.ninja").write_text("", encoding="utf-8")
    (path / "CMakeCache.txt").write_text(
        f"CMAKE_HOME_DIRECTORY:INTERNAL={home}\nCMAKE_CXX_COMPILER:FILEPATH={compiler}\n"
        f"CMAKE_MAKE_PROGRAM:FILEPATH={sys.executable}\n",
        encoding="utf-8",
    )
    return path


def test_a_sound_cache_is_kept(tmp_path: Path) -> None:
    assert not build._is_stale(tmp_path)
    assert not build._is_stale(build_folder(tmp_path, ROOT))


def test_a_cache_is_dropped_when_moved_unfinished_or_without_compiler(tmp_path: Path) -> None:
    assert build._is_stale(build_folder(tmp_path, Path("/elsewhere")))
    assert build._is_stale(build_folder(tmp_path, ROOT, "/gone/c++"))
    (build_folder(tmp_path, ROOT) / "build.ninja").unlink()
    assert build._is_stale(tmp_path)


NO_CUDA = cuda.Choice(reason="not in this test")


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A folder that CMake configures by writing down its command, in the list returned."""
    commands: list[list[str]] = []

    def run_logged(_what: str, command: list[str], _log: Path) -> list[str]:
        commands.append(command)
        build_folder(tmp_path, ROOT)
        lacks = "-DCROSSOVER_CUDA=AUTO" in command
        return ["-- No GPU backend: there is no cublasLt"] if lacks else []

    monkeypatch.setattr(build, "run_logged", run_logged)
    monkeypatch.setattr(build, "folder", lambda _: tmp_path)
    monkeypatch.setattr(build, "version_of", lambda *_: (3, 25))
    return commands


def test_a_folder_is_configured_once_and_again_for_the_tests(configured: list[list[str]]) -> None:
    for tests, count in ((False, 1), (False, 1), (True, 2), (True, 2), (False, 2)):
        build.configure("default", tests, NO_CUDA)
        assert len(configured) == count
    assert "-DCROSSOVER_TESTS=OFF" in configured[0]
    assert "-DCROSSOVER_TESTS=ON" in configured[1]
    assert "--fresh" not in configured[0] + configured[1]


def test_another_compiler_reconfigures_and_another_toolkit_afresh(
    configured: list[list[str]], tmp_path: Path
) -> None:
    nvcc, other = tmp_path / "a" / "bin" / "nvcc", tmp_path / "b" / "bin" / "nvcc"
    first = cuda.Choice(str(nvcc), "13.0")
    compiler = None
    for choice, count, fresh in (
        (NO_CUDA, 1, False),
        (first, 2, False),
        (first, 2, False),
        (NO_CUDA, 3, False),
        (first, 4, False),
        (cuda.Choice(str(nvcc), "13.1"), 5, True),
        (cuda.Choice(str(other), "13.1"), 6, True),
        (NO_CUDA, 7, False),
        (NO_CUDA, 7, False),
        (first, 8, True),
    ):
        build.configure("default", True, choice)
        assert len(configured) == count
        assert ("--fresh" in configured[-1]) == fresh
        if choice.nvcc is None:
            assert "-DCROSSOVER_CUDA=OFF" in configured[-1]
        else:
            assert "-DCROSSOVER_CUDA=ON" in configured[-1]
            assert f"-DCMAKE_CUDA_COMPILER={choice.nvcc}" in configured[-1]
            compiler = choice.nvcc
        if compiler:  # CMake keeps it, also where it is told to do without
            with (tmp_path / "CMakeCache.txt").open("a", encoding="utf-8") as cache:
                cache.write(f"CMAKE_CUDA_COMPILER:FILEPATH={compiler}\n")


def test_kernels_for_every_gpu_are_built_by_run_and_then_kept(
    configured: list[list[str]],
) -> None:
    def generations(tests: bool, count: int) -> str:
        build.configure("default", tests, NO_CUDA)
        assert len(configured) == count
        (word,) = (word for word in configured[-1] if "GENERATIONS" in word)
        return word.partition("=")[2]

    assert generations(tests=True, count=1) == generations(tests=True, count=1) == "newest"
    assert generations(tests=False, count=2) == "all"
    assert "-UCMAKE_CUDA_ARCHITECTURES" in configured[-1]
    assert generations(tests=True, count=3) == generations(tests=False, count=3) == "all"
    assert "-UCMAKE_CUDA_ARCHITECTURES" not in configured[-1]


def test_a_whole_test_builds_kernels_for_every_gpu(configured: list[list[str]]) -> None:
    build.configure("default", True, NO_CUDA, complete=True)
    assert "-DCROSSOVER_CUDA_GENERATIONS=all" in configured[-1]


def test_a_toolkit_that_lacks_something_is_no_reason_to_stop_unless_it_is_demanded(
    configured: list[list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    build.configure("default", True, cuda.Choice("/usr/bin/nvcc", "13.0", required=False))
    assert "-DCROSSOVER_CUDA=AUTO" in configured[0]
    assert "  building without CUDA: there is no cublasLt\n" in capsys.readouterr().err
    build.configure("default", True, cuda.Choice("/usr/bin/nvcc", "13.0"))
    assert "-DCROSSOVER_CUDA=ON" in configured[1]
    assert "building without CUDA" not in capsys.readouterr().err


def test_an_unsound_folder_is_configured_afresh(
    configured: list[list[str]], tmp_path: Path
) -> None:
    build.configure("default", True, NO_CUDA)
    build_folder(tmp_path, Path("/elsewhere"))
    build.configure("default", True, NO_CUDA)
    assert "--fresh" in configured[1]


def test_a_cmake_that_is_too_old_is_said_so(
    configured: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "version_of", lambda *_: (3, 22, 1))
    with pytest.raises(console.Failure, match=r"CMake 3\.22\.1 found, 3\.25 needed"):
        build.configure("default", True, NO_CUDA)
    assert configured == []


def test_presets_have_their_folders() -> None:
    presets = json.loads((ROOT / "CMakePresets.json").read_text(encoding="utf-8"))
    folders = {
        preset["name"]: preset["binaryDir"]
        for preset in presets["configurePresets"]
        if "binaryDir" in preset and not preset.get("hidden")
    }
    for name, binary_folder in folders.items():
        resolved = binary_folder.replace("${sourceDir}", str(ROOT)).replace("${presetName}", name)
        assert Path(resolved) == build.folder(name)
