# SPDX-License-Identifier: Apache-2.0
"""Which NCCL the build takes (cmake/nccl.cmake), from made-up ones: NCCL_ROOT comes first."""

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
include({ROOT}/cmake/nccl.cmake)
crossover_find_nccl(/nowhere 13 library headers reason)
message(NOTICE "${{library}}|${{headers}}|${{reason}}")
"""


def find(tmp_path: Path, version: int, name: str) -> tuple[Path, list[str]]:
    """A root with an NCCL of that version and file name, and what CMake finds there."""
    root = tmp_path / "nccl"
    for folder in ("include", "lib"):
        (root / folder).mkdir(parents=True)
    code = f"#define NCCL_VERSION_CODE {version}\n"
    code += "#define NCCL_VERSION(X,Y,Z) (((X) <= 2 && (Y) <= 8) ? (X) * 1000 : (X) * 10000)\n"
    (root / "include" / "nccl.h").write_text(code, encoding="utf-8")
    (root / "lib" / name).touch()
    script = tmp_path / "find.cmake"
    script.write_text(SCRIPT, encoding="utf-8")
    variables = {**os.environ, "NCCL_ROOT": str(root)}
    done = subprocess.run(
        ["cmake", "-P", script], capture_output=True, text=True, check=True, env=variables
    )
    return root, done.stderr.strip().splitlines()[-1].split("|")


@pytest.mark.parametrize("name", ["libnccl.so", "libnccl.so.2"])
def test_the_one_that_is_named_is_taken(tmp_path: Path, name: str) -> None:
    root, (library, headers, reason) = find(tmp_path, 22809, name)
    assert reason == ""
    assert (library, Path(headers)) == (str(root / "lib" / name), root / "include")


def test_an_old_one_is_none(tmp_path: Path) -> None:
    root, found = find(tmp_path, 2708, "libnccl.so")
    assert found[2] == f"{root}/include/ is older than 2.13"
