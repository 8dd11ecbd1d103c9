# SPDX-License-Identifier: Apache-2.0
"""Kernels whose sums must stay in registers, as the assembler says for each GPU of the build."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.passed import weekly

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ROOT / "src" / "cuda" / "kernels"
# Those that cmake/cuda.cmake lists: the assembler gives each other registers.
GENERATIONS = ("75", "80", "86", "89", "90", "100", "110", "120")
# The oldest, the newest, and the first with clusters; each takes 15 seconds.
ALWAYS = ("75", "90", "120")
INCLUDE = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'src' / 'cuda' / 'kernels' / 'device'}"]
# By source, how many kernels it has.
SOURCES = {
    "persistent": 6,  # one block, a cluster or all; timed, or keeping activations
    "batch_norm": 17,  # two for each type and for plain f32, by vectors or not; and one that joins
    "batch_norm_grad": 17,
}


def compiler() -> str | None:
    """The build's, or that of the PATH."""
    cache = ROOT / "build" / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.is_file() else ""
    found = re.search(r"^CMAKE_CUDA_COMPILER:[A-Z]+=(.+)$", text, re.MULTILINE)
    return shutil.which(found.group(1) if found else "nvcc")


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("source", SOURCES)
def test_kernels_keep_their_sums_in_registers(tmp_path: Path, source: str, generation: str) -> None:
    if generation not in ALWAYS and not weekly():
        pytest.skip("runs with ./test --all")
    nvcc = compiler()
    if nvcc is None:
        pytest.skip("no CUDA toolkit: nothing assembles kernels")
    told = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=True)
    if f"sm_{generation}" not in told.stdout.split():
        pytest.skip(f"this toolkit does not know sm_{generation}")
    done = subprocess.run(
        [
            *(nvcc, "-std=c++20", "-O3", f"-arch=sm_{generation}", "-Xptxas=-v", "--cubin"),
            *INCLUDE,
            *("-o", tmp_path / f"{source}.cubin", KERNELS / f"{source}.cu"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    used = re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr
    )
    assert used == [("0", "0", "0")] * SOURCES[source], done.stderr
