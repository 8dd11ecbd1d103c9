# SPDX-License-Identifier: Apache-2.0
"""cmake/cuda.cmake on made-up installations: the toolkit's own files, linked into other layouts."""

import os
import re
import shutil
from pathlib import Path

import pytest
from scripts import ROOT, ran, script

TOOLKIT = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda").resolve()
LIBRARY = next(TOOLKIT.glob("lib64/libcublasLt.so.*"), Path())
MAJOR = LIBRARY.suffix.removeprefix(".")
PROJECT = {
    "CMakeLists.txt": f"""\
cmake_minimum_required(VERSION 3.25)
project(made_up LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
include("{ROOT}/cmake/cuda.cmake")
if(CROSSOVER_HAS_CUDA)
  add_executable(program program.cpp kernel.cu)
  target_link_libraries(program PRIVATE CUDA::cudart_static CUDA::cublasLt)
endif()
""",
    "kernel.cu": "__global__ void kernel() {}\n",
    "program.cpp": """\
#include <cublasLt.h>
#include <cstdio>
int main() { std::printf("%zu\\n", cublasLtGetVersion()); }
""",
}

pytestmark = [
    pytest.mark.skipif(
        not LIBRARY.name or not (TOOLKIT / "bin" / "nvcc").exists(),
        reason=f"{TOOLKIT} holds no CUDA toolkit",
    ),
    pytest.mark.slow,
]


class Installation:
    """A toolkit without cuBLASLt, an empty Python environment, and a compiler that is blind to what
    stands under /usr/local, where a machine may link its CUDA."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.toolkit = folder / "toolkit"
        self.site = folder / "environment" / "lib" / "python3.12" / "site-packages"
        self.site.mkdir(parents=True)
        (folder / "project").mkdir()
        for file, text in PROJECT.items():
            (folder / "project" / file).write_text(text, encoding="utf-8")
        shutil.copytree(TOOLKIT / "bin", self.toolkit / "bin", symlinks=True)  # nvcc looks around
        (self.toolkit / "nvvm").symlink_to(TOOLKIT / "nvvm")
        (self.toolkit / "targets" / "x86_64-linux").mkdir(parents=True)
        for name, target in (("include", "include"), ("lib64", "lib")):
            (self.toolkit / name).mkdir()
            for path in (TOOLKIT / name).iterdir():
                if not path.name.startswith(("cublas", "libcublas")):
                    (self.toolkit / name / path.name).symlink_to(path)
            (self.toolkit / "targets" / "x86_64-linux" / target).symlink_to(self.toolkit / name)
        (self.toolkit / "lib").symlink_to("lib64")
        verbose = printed_by("c++", "-E", "-x", "c++", "-v", "/dev/null")
        listed = verbose.partition("> search starts here:")[2].partition("End of search")[0]
        folders = [word for word in listed.split() if not word.startswith("/usr/local/")]
        more = ["-nostdinc", *(f"-isystem{folder}" for folder in folders), "-Wl,-nostdlib"]
        real = shutil.which("c++")
        self.compiler(f"import os, sys\nos.execv({real!r}, [{real!r}, *sys.argv[1:], *{more!r}])")

    def compiler(self, text: str) -> None:
        script(self.folder / "g++", text)

    def package(self, name: str) -> Path:
        """nvidia-cublas as pip installs it: versioned names alone, headers of its own."""
        for folder in ("lib", "include"):
            (self.site / "nvidia" / name / folder).mkdir(parents=True)
        path = self.site / "nvidia" / name / "lib" / LIBRARY.name
        path.symlink_to(LIBRARY.resolve())
        for header in (TOOLKIT / "include").glob("cublas*.h"):
            (self.site / "nvidia" / name / "include" / header.name).symlink_to(header)
        return path

    def sees(self, generations: str) -> None:
        """By this program nvcc asks the driver for its GPUs."""
        query = self.toolkit / "bin" / "__nvcc_device_query"
        query.unlink()
        script(query, f"print({generations!r}, end='')\nraise SystemExit({not generations:d})")

    def configure(self, *flags: str, code: int = 0) -> str:
        """What CMake says, which ends with that code."""
        variables = {
            "VIRTUAL_ENV": str(self.folder / "environment"),
            "CUDACXX": str(self.toolkit / "bin" / "nvcc"),
            "CUDAHOSTCXX": str(self.folder / "g++"),
            # By these a compiler may find the real ones.
            **dict.fromkeys(("LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH"), ""),
        }
        command = ["cmake", "-S", self.folder / "project", "-B", self.folder / "build", *flags]
        done = ran(*command, code=code, env=os.environ | variables, timeout=600)
        return done.stdout + done.stderr


def printed_by(*command: str | Path) -> str:
    done = ran(*command)
    return done.stdout + done.stderr


@pytest.fixture
def made_up(tmp_path: Path) -> Installation:
    return Installation(tmp_path)


def test_cublaslt_of_a_python_package_is_built_with_for_the_gpus_here(made_up):
    library = made_up.package(f"cu{MAJOR}")
    made_up.sees("80,90")
    printed = made_up.configure("-DCROSSOVER_CUDA=ON")
    assert f"-- cublasLt: {library}" in printed
    assert re.search(r"-- GPU backend: CUDA [\d.]+, for 80-real;90-real\n", printed)
    printed_by("cmake", "--build", made_up.folder / "build")
    assert int(printed_by(made_up.folder / "build" / "program")) >= 120000


def test_a_gpu_that_the_compiler_no_longer_knows_gets_no_code(made_up):
    made_up.package(f"cu{MAJOR}")
    made_up.sees("35")
    expected = r"-- No GPU backend: .*/nvcc makes no code for the GPU here, of generation 35: "
    assert re.search(expected, made_up.configure())


def test_without_a_gpu_there_is_code_for_every_generation_that_the_compiler_knows(made_up):
    library = made_up.package("cublas")  # as before CUDA 13
    made_up.sees("")
    printed = made_up.configure()
    assert f"-- cublasLt: {library}" in printed
    known = printed_by(made_up.toolkit / "bin" / "nvcc", "--list-gpu-code").split()
    (line,) = (line for line in printed.splitlines() if line.startswith("-- GPU backend: "))
    compiled = line.rpartition(" ")[2].replace("-real", "").split(";")
    assert {"75", "80", "90"} <= set(compiled)
    for generation in ("100", "110", "120"):
        assert (generation in compiled) == (f"sm_{generation}" in known), line


@pytest.mark.parametrize("mode", ["AUTO", "ON"])
def test_without_cublaslt_there_is_no_backend_and_on_fails(mode, made_up):
    (made_up.site / "nvidia" / "cublas" / "lib").mkdir(parents=True)
    (made_up.site / "nvidia" / "cublas" / "lib" / "libcublasLt.so.11").touch()  # of another CUDA
    printed = made_up.configure(f"-DCROSSOVER_CUDA={mode}", code=mode == "ON")
    lacking = f"cublasLt of CUDA {MAJOR} is neither in the toolkit of "
    assert lacking in " ".join(printed.split())
    assert ("-- No GPU backend: " in printed) == (mode == "AUTO")


@pytest.mark.parametrize("mode", ["AUTO", "ON"])
def test_a_compiler_that_nvcc_refuses_does_not_stop_auto(mode, made_up):
    made_up.package("cublas")
    refusal = "host_config.h:143:2: error: #error -- unsupported GNU version!"
    made_up.compiler(f"import sys\nprint({refusal!r}, file=sys.stderr)\nsys.exit(1)")
    printed = made_up.configure(f"-DCROSSOVER_CUDA={mode}", code=mode == "ON")
    builds_none = "builds no program here (host_config.h:143:2: error: #error -- unsupported"
    assert builds_none in " ".join(printed.split())
