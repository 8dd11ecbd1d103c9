# SPDX-License-Identifier: Apache-2.0
"""Which cuDNN the build takes (cmake/cudnn.cmake), from made-up ones: CUDNN_ROOT comes first."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPT = f"""
cmake_minimum_required(VERSION 3.25)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include({ROOT}/cmake/cublaslt.cmake)
include({ROOT}/cmake/cudnn.cmake)
crossover_find_cudnn(/nowhere 13 library headers frontend reason)
message(NOTICE "${{library}}|${{headers}}|${{frontend}}|${{reason}}")
"""


def find(tmp_path: Path, root: Path) -> list[str]:
    script = tmp_path / "find.cmake"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run(
        ["cmake", "-P", script],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "CUDNN_ROOT": str(root)},
    )
    return done.stderr.strip().splitlines()[-1].split("|")


def make(root: Path, major: int, name: str = "libcudnn.so") -> None:
    for folder in ("include", "lib"):
        (root / folder).mkdir(parents=True)
    version = f"#define CUDNN_MAJOR {major}\n#define CUDNN_MINOR 1\n"
    (root / "include" / "cudnn_version.h").write_text(version, encoding="utf-8")
    (root / "include" / "cudnn_frontend.h").touch()
    (root / "lib" / name).touch()


@pytest.mark.parametrize("name", ["libcudnn.so", "libcudnn.so.9"])
def test_the_one_that_is_named_is_taken(tmp_path: Path, name: str) -> None:
    root = tmp_path / "cudnn"
    make(root, 9, name)
    library, headers, frontend, reason = find(tmp_path, root)
    assert reason == ""
    assert Path(headers) == Path(frontend) == root / "include"
    assert library == str(root / "lib" / name)


def test_an_old_one_is_none(tmp_path: Path) -> None:
    root = tmp_path / "cudnn"
    make(root, 8)
    assert find(tmp_path, root)[3] == f"{root}/include/ is of version 8, older than 9"
