# SPDX-License-Identifier: Apache-2.0
"""The kernel whose sums must stay in registers, as the assembler says for each GPU of the build."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from bench_runs import BENCH, ROOT

KERNEL = ROOT / "src" / "cuda" / "kernels" / "persistent.cu"
GENERATIONS = re.compile(r"\d+")

pytestmark = pytest.mark.program


def cached(name: str) -> str:
    """What CMake's cache of the build at hand says."""
    cache = BENCH.parent / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.is_file() else ""
    found = re.search(rf"^{name}:[A-Z]+=(.*)$", text, re.MULTILINE)
    return found.group(1) if found else ""


def compiler() -> str | None:
    return shutil.which(cached("CMAKE_CUDA_COMPILER") or "nvcc")


def known_generations(nvcc: str) -> list[str]:
    """Of those that the build is for the ones that the toolkit has; its newest where there are
    none, as in a build without a GPU backend or for the GPU at hand."""
    told = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True)
    known = re.findall(r"sm_(\d+)$", told.stdout, re.MULTILINE)
    wanted = GENERATIONS.findall(cached("CMAKE_CUDA_ARCHITECTURES"))
    return [one for one in dict.fromkeys(wanted) if one in known] or known[-1:]


def test_the_training_kernel_keeps_its_sums_in_registers(tmp_path: Path) -> None:
    nvcc = compiler()
    if nvcc is None:
        pytest.skip("no CUDA toolkit: nothing assembles kernels")
    for generation in known_generations(nvcc):
        done = subprocess.run(
            [
                *(nvcc, "-std=c++20", "-O3", f"-arch=sm_{generation}", "-Xptxas=-v", "--cubin"),
                *(f"-I{ROOT / 'include'}", f"-I{ROOT / 'src' / 'cuda' / 'device'}"),
                *("-o", tmp_path / "persistent.cubin", KERNEL),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        used = re.findall(
            r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads",
            done.stderr,
        )
        assert used == [("0", "0", "0")] * 2, f"sm_{generation}: {done.stderr}"
