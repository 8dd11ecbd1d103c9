# SPDX-License-Identifier: Apache-2.0
"""Where ./run finds a CUDA compiler, or why it goes on without."""

import os
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from scripts import refused, script

from tools import console, cuda, environment


def nvcc_of(folder: Path, release: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return script(folder / "nvcc", f"print('Cuda compilation tools, release {release}, V1')")


def test_the_toolkit_is_the_one_that_cmake_finds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_path = nvcc_of(tmp_path / "bin", "12.4")
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.setenv("PATH", f"{on_path.parent}{os.pathsep}{os.environ['PATH']}")
    assert cuda.find_toolkit() == cuda.Choice(str(on_path), "12.4")
    named = nvcc_of(tmp_path / "named", "13.1")
    monkeypatch.setenv("CUDACXX", str(named))
    assert cuda.find_toolkit() == cuda.Choice(str(named), "13.1")
    nvcc_of(tmp_path / "named", "11.8")
    assert cuda.find_toolkit().nvcc is None
    assert "is of CUDA 11.8, older than 12" in cuda.find_toolkit().reason


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No toolkit, a driver for CUDA 13.2; names of the requirements asked for, as they come."""
    asked: list[str] = []
    nvcc = tmp_path / ".venv/lib/python3.11/site-packages/nvidia/cu13/bin"

    def ensure(requirements: tuple[Path, ...]) -> None:
        asked.extend(path.name for path in requirements)
        nvcc_of(nvcc, "13.0")

    monkeypatch.setattr(cuda, "find_toolkit", lambda: cuda.Choice(reason="no nvcc was found"))
    monkeypatch.setattr(cuda, "driver_version", lambda: (13, 2))
    monkeypatch.setattr(environment, "VENV", tmp_path / ".venv")
    monkeypatch.setattr(environment, "MAIN", SimpleNamespace(ensure=ensure))
    return asked


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_driver_without_a_toolkit_gets_the_wheels(mode: str, wheels: list[str]) -> None:
    choice = cuda.choose(mode)
    assert wheels == [
        "requirements-cuda.txt",
        "requirements-cudnn.txt",
        "requirements-cudnn-frontend.txt",
    ]
    assert choice.version == "13.0"
    assert choice.nvcc is not None
    root = Path(choice.nvcc).parent.parent
    assert root.parts[-2:] == ("nvidia", "cu13")
    assert f"-DCUDAToolkit_ROOT={root}" in choice.switches
    assert f"-DCROSSOVER_CUDA={mode.upper()}" in choice.switches


def test_a_toolkit_gets_headers_for_cudnn_and_tests_cudnn_itself_where_it_lacks_it(
    tmp_path: Path, wheels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(version: str, tests: bool) -> list[str]:
        toolkit = cuda.Choice(str(tmp_path / "bin" / "nvcc"), version)
        monkeypatch.setattr(cuda, "find_toolkit", lambda: toolkit)
        wheels.clear()
        assert cuda.choose("auto", tests) == replace(toolkit, required=False)
        return wheels

    headers = "requirements-cudnn-frontend.txt"
    assert asked("13.1", tests=True) == ["requirements-cudnn.txt", headers]
    assert asked("12.8", tests=True) == asked("13.1", tests=False) == [headers]
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "cudnn_version.h").touch()
    assert asked("13.1", tests=True) == [headers]
    monkeypatch.setattr(environment, "MAIN", SimpleNamespace(ensure=_no_network))
    assert asked("13.1", tests=True) == []


def _no_network(_: object) -> None:
    lines = ["Retrying", "ERROR: No matching distribution found", ""]
    raise console.CommandFailed("pip install", 1, lines, Path("pip.log"))


@pytest.mark.parametrize(
    ("driver", "said"),
    [
        (None, "no nvcc was found, and no NVIDIA driver is installed"),
        ((12, 8), "the driver here runs CUDA 12.8, for which there are no wheels"),
        ((13, 2), "could not be installed (pip: ERROR: No matching distribution found)"),
    ],
)
@pytest.mark.usefixtures("wheels")
def test_without_a_compiler_auto_goes_on_and_on_does_not(
    driver: tuple[int, int] | None,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(cuda, "driver_version", lambda: driver)
    monkeypatch.setattr(environment, "MAIN", SimpleNamespace(ensure=_no_network))
    assert cuda.choose("auto").switches == ["-DCROSSOVER_CUDA=OFF"]
    assert said in capsys.readouterr().err
    with refused(re.escape(said)):
        cuda.choose("on")


def test_off_asks_nobody(wheels: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda, "find_toolkit", lambda: cuda.Choice("/usr/bin/nvcc", "13.0"))
    assert cuda.choose("off").switches == ["-DCROSSOVER_CUDA=OFF"]
    assert wheels == []
