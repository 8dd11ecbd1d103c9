# SPDX-License-Identifier: Apache-2.0
"""Which cuDNN and NCCL the build takes (cmake/cuda_libraries.cmake), from made-up ones: CUDNN_ROOT
comes first, and NCCL_ROOT."""

import os
from pathlib import Path

import pytest
from scripts import ROOT, ran

SCRIPT = f"""\
cmake_minimum_required(VERSION 3.25)
set(CMAKE_FIND_LIBRARY_PREFIXES lib)
set(CMAKE_FIND_LIBRARY_SUFFIXES .so)
include("{ROOT}/cmake/cublaslt.cmake")
include("{ROOT}/cmake/cuda_libraries.cmake")
crossover_find_cuda_library(${{LIBRARY}} /nowhere 13 file headers reason)
message(NOTICE "${{file}}|${{headers}}|${{reason}}")
"""
HEADERS = {  # the first with the version
    "cudnn": {
        "cudnn_version.h": "#define CUDNN_MAJOR {}\n#define CUDNN_MINOR 1\n",
        "cudnn_frontend.h": "",
    },
    "nccl": {
        "nccl.h": "#define NCCL_VERSION_CODE {}\n"
        "#define NCCL_VERSION(X,Y,Z) (((X) <= 2 && (Y) <= 8) ? (X) * 1000 : (X) * 10000)\n"
    },
}


def find(tmp_path: Path, name: str, version: int) -> tuple[Path, list[str]]:
    """A root with a library of that file name and version, and what CMake finds there."""
    library = name.removeprefix("lib").partition(".")[0]
    root = tmp_path / library
    for folder in ("include", "lib"):
        (root / folder).mkdir(parents=True)
    for header, text in HEADERS[library].items():
        (root / "include" / header).write_text(text.format(version), encoding="utf-8")
    (root / "lib" / name).touch()
    variables = {**os.environ, f"{library.upper()}_ROOT": str(root)}
    script = tmp_path / "find.cmake"
    script.write_text(SCRIPT, encoding="utf-8")
    done = ran("cmake", f"-DLIBRARY={library}", "-P", script, env=variables)
    return root, done.stderr.strip().splitlines()[-1].split("|")


@pytest.mark.parametrize(
    ("name", "version", "old"),
    [
        ("libcudnn.so", 9, ""),
        ("libcudnn.so.9", 9, ""),
        ("libcudnn.so", 8, "of version 8, older than 9"),
        ("libnccl.so", 22809, ""),
        ("libnccl.so.2", 22809, ""),
        ("libnccl.so", 2708, "older than 2.13"),
    ],
)
def test_the_one_that_is_named_is_taken_unless_it_is_old(tmp_path, name, version, old):
    root, (file, folders, reason) = find(tmp_path, name, version)
    assert reason == (f"{root}/include/ is {old}" if old else "")
    if not old:
        assert file == str(root / "lib" / name)
        headers = len(HEADERS[name.removeprefix("lib").partition(".")[0]])
        assert [Path(folder) for folder in folders.split(";")] == [root / "include"] * headers
