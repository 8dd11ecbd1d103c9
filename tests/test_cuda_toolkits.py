# SPDX-License-Identifier: Apache-2.0
"""cmake/cuda.cmake on made-up installations: the toolkit's own files, linked into other layouts."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from scripts import ROOT, script

TOOLKIT = Path(os.environ.get("CUDA_HOME") or "/usr/local/cuda").resolve()
PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(made_up LANGUAGES CXX)
set(CMAKE_CXX_STANDARD 20)
include({root}/cmake/cuda.cmake)
if(CROSSOVER_HAS_CUDA)
  add_executable(program program.cpp kernel.cu)
  target_link_libraries(program PRIVATE CUDA::cudart_static CUDA::cublasLt)
endif()
"""
PROGRAM = """\
#include <cublasLt.h>
#include <cstdio>
int main() { std::printf("%zu\\n", cublasLtGetVersion()); }
"""

pytestmark = [
    pytest.mark.skipif(
        not list(TOOLKIT.glob("lib64/libcublasLt.so.*")) or not (TOOLKIT / "bin" / "nvcc").exists(),
        reason=f"{TOOLKIT} holds no CUDA toolkit",
    ),
    pytest.mark.slow,
]


@pytest.fixture
def toolkit(tmp_path: Path) -> Path:
    """A CUDA toolkit without cuBLASLt."""
    made_up = tmp_path / "toolkit"
    shutil.copytree(TOOLKIT / "bin", made_up / "bin", symlinks=True)  # nvcc looks around itself
    (made_up / "nvvm").symlink_to(TOOLKIT / "nvvm")
    for folder in ("include", "lib64"):
        (made_up / folder).mkdir()
        for path in (TOOLKIT / folder).iterdir():
            if not path.name.startswith(("cublas", "libcublas")):
                (made_up / folder / path.name).symlink_to(path)
    (made_up / "lib").symlink_to("lib64")
    (made_up / "targets" / "x86_64-linux").mkdir(parents=True)
    for folder in ("include", "lib"):
        (made_up / "targets" / "x86_64-linux" / folder).symlink_to(made_up / folder)
    return made_up


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A Python environment, empty yet: its site-packages."""
    site = tmp_path / "environment" / "lib" / "python3.12" / "site-packages"
    site.mkdir(parents=True)
    return site


def package(site: Path, name: str) -> Path:
    """nvidia-cublas as pip installs it: versioned names alone, headers of its own."""
    (library,) = TOOLKIT.glob("lib64/libcublasLt.so.*")
    for folder in ("lib", "include"):
        (site / "nvidia" / name / folder).mkdir(parents=True)
    path = site / "nvidia" / name / "lib" / library.name
    path.symlink_to(library.resolve())
    for header in (TOOLKIT / "include").glob("cublas*.h"):
        (site / "nvidia" / name / "include" / header.name).symlink_to(header)
    return path


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """The compiler, blind to what stands under /usr/local, where a machine may link its CUDA."""
    said = subprocess.run(
        ["c++", "-E", "-x", "c++", "-v", "/dev/null"], capture_output=True, text=True, check=True
    ).stderr
    listed = said.partition("#include <...> search starts here:")[2].partition("End of search")[0]
    folders = [word for word in listed.split() if not word.startswith("/usr/local/")]
    more = ["-nostdinc", *(f"-isystem{folder}" for folder in folders), "-Wl,-nostdlib"]
    real = shutil.which("c++")
    text = f"import os, sys\nos.execv({real!r}, [{real!r}, *sys.argv[1:], *{more!r}])"
    return script(tmp_path / "g++", text)


def configure(
    folder: Path, toolkit: Path, host: Path, *flags: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    source = folder / "source"
    source.mkdir(exist_ok=True)
    (source / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT), encoding="utf-8")
    (source / "program.cpp").write_text(PROGRAM, encoding="utf-8")
    (source / "kernel.cu").write_text("__global__ void kernel() {}\n", encoding="utf-8")
    variables.setdefault("VIRTUAL_ENV", str(folder / "environment"))
    variables |= {"CUDACXX": str(toolkit / "bin" / "nvcc"), "CUDAHOSTCXX": str(host)}
    # By these a compiler may find the real ones.
    variables |= dict.fromkeys(("LIBRARY_PATH", "CPATH", "CPLUS_INCLUDE_PATH"), "")
    return subprocess.run(
        ["cmake", "-S", source, "-B", folder / "build", *flags],
        capture_output=True,
        text=True,
        env=os.environ | variables,
        timeout=120,
        check=False,
    )


def name_of_major() -> str:
    (library,) = TOOLKIT.glob("lib64/libcublasLt.so.*")
    return "cu" + library.suffix.removeprefix(".")


def test_cublaslt_of_a_python_package_is_built_with(
    tmp_path: Path, toolkit: Path, environment: Path, host: Path
) -> None:
    library = package(environment, name_of_major())
    done = configure(
        tmp_path, toolkit, host, "-DCROSSOVER_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=80"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"-- cublasLt: {library}" in done.stdout
    subprocess.run(["cmake", "--build", tmp_path / "build"], capture_output=True, check=True)
    said = subprocess.run([tmp_path / "build" / "program"], capture_output=True, check=True).stdout
    assert int(said) >= 120000


def sees(toolkit: Path, generations: str) -> None:
    """By this program nvcc asks the driver for its GPUs."""
    query = toolkit / "bin" / "__nvcc_device_query"
    query.unlink()
    script(query, f"print({generations!r}, end='')\nraise SystemExit({not generations:d})")


@pytest.mark.parametrize(
    ("generations", "said"),
    [
        ("80,90", r"-- GPU backend: CUDA [\d.]+, for 80-real;90-real\n"),
        ("35", r"-- No GPU backend: .*/nvcc makes no code for the GPU here, of generation 35: "),
    ],
)
def test_kernels_are_for_the_gpus_here_if_the_compiler_still_knows_them(
    generations: str, said: str, tmp_path: Path, toolkit: Path, host: Path
) -> None:
    package(tmp_path / "environment/lib/python3.12/site-packages", name_of_major())
    sees(toolkit, generations)
    done = configure(tmp_path, toolkit, host)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(said, done.stdout), done.stdout


def test_without_a_gpu_there_is_code_for_every_generation_that_the_compiler_knows(
    tmp_path: Path, toolkit: Path, environment: Path, host: Path
) -> None:
    library = package(environment, "cublas")  # as before CUDA 13
    sees(toolkit, "")
    done = configure(tmp_path, toolkit, host)
    assert f"-- cublasLt: {library}" in done.stdout
    known = subprocess.run(
        [toolkit / "bin" / "nvcc", "--list-gpu-code"], capture_output=True, text=True, check=True
    ).stdout.split()
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("-- GPU backend: "))
    compiled = line.rpartition(" ")[2].replace("-real", "").split(";")
    assert {"75", "80", "90"} <= set(compiled)
    for generation in ("100", "110", "120"):
        assert (generation in compiled) == (f"sm_{generation}" in known), line


LACKING = "cublasLt of CUDA {major} is neither in the toolkit of "


@pytest.mark.parametrize("mode", ["AUTO", "ON"])
def test_without_cublaslt_there_is_no_backend_and_on_fails(
    mode: str, tmp_path: Path, toolkit: Path, environment: Path, host: Path
) -> None:
    (environment / "nvidia" / "cublas" / "lib").mkdir(parents=True)
    (environment / "nvidia" / "cublas" / "lib" / "libcublasLt.so.11").touch()  # of another CUDA
    done = configure(tmp_path, toolkit, host, f"-DCROSSOVER_CUDA={mode}")
    assert done.returncode == (mode == "ON"), done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert LACKING.format(major=name_of_major().removeprefix("cu")) in said
    assert ("-- No GPU backend: " in said) == (mode == "AUTO")


@pytest.mark.parametrize("mode", ["AUTO", "ON"])
def test_a_compiler_that_nvcc_refuses_does_not_stop_auto(
    mode: str, tmp_path: Path, toolkit: Path, environment: Path
) -> None:
    package(environment, "cublas")
    refusal = "host_config.h:143:2: error: #error -- unsupported GNU version!"
    text = f"import sys\nprint({refusal!r}, file=sys.stderr)\nsys.exit(1)"
    host = script(tmp_path / "g++", text)
    done = configure(tmp_path, toolkit, host, f"-DCROSSOVER_CUDA={mode}")
    assert done.returncode == (mode == "ON"), done.stdout + done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "builds no program here (host_config.h:143:2: error: #error -- unsupported" in said
