# SPDX-License-Identifier: Apache-2.0
"""The kernel that is made for one network, as NVRTC compiles it for GPUs that are not here: sums
stay in registers, threads find theirs, and shared memory is what the planner counts."""

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts import ROOT, ran
from test_spills import compiler

from crossover_bench.run.environment import VENV
from tools.stages import weekly

CUDA = ROOT / "src" / "cuda"
# Prints what the program hands to NVRTC: options, headers by name, the source, and the kernel's
# threads and floats of shared memory; parts end with RS, words with NUL.
PRINTS = r"""#include <cstdio>
#include <cstdlib>
#include "plan/tailored_text.h"
using namespace crossover;
int main(int count, char** words) {
  const auto number = [&](int i) { return std::atoi(words[i]); };
  cuda::tailored::Shape shape{.layers = count - 6,
                              .loss = LossFunction(number(2)),
                              .rule = cuda::KernelRule(number(3)),
                              .batch = number(4)};
  for (int l = 0; l <= shape.layers; ++l) shape.width[l] = number(5 + l);
  for (int l = 0; l + 1 < shape.layers; ++l) shape.activation[l] = Activation::relu;
  const auto turns = [](int) { return 1; };
  shape = fastest(shape, number(1) < 90 ? 1 : 8, 227 << 10, turns);
  for (const auto& one : cuda::tailored_options(number(1))) std::printf("%s%c", one.c_str(), 0);
  std::printf("\x1e");
  for (const auto& [name, text] : cuda::tailored_headers())
    std::printf("%s%c%s%c", name, 0, text, 0);
  std::printf("\x1e%s%c%d%c%d", cuda::tailored_source(shape).c_str(), 0, shape.threads, 0,
              layout_of(shape).floats);
}
"""
CROSS_ENTROPY, MSE = 0, 1
SGD, MOMENTUM, ADAMW = 0, 1, 2
# Loss, optimizer, batch and widths, as the catalogue has them.
NETWORKS = {
    "disc-2": (CROSS_ENTROPY, SGD, 100, 2, 4, 2),
    "disc-3": (CROSS_ENTROPY, SGD, 100, 2, 4, 8, 2),
    "disc-4": (CROSS_ENTROPY, SGD, 100, 2, 4, 8, 16, 2),
    "disc-5": (CROSS_ENTROPY, SGD, 100, 2, 4, 8, 16, 32, 2),
    "disc-6": (CROSS_ENTROPY, SGD, 100, 2, 4, 8, 16, 32, 64, 2),
    "disc-7": (CROSS_ENTROPY, SGD, 100, 2, 4, 8, 16, 32, 64, 128, 2),
    "heart": (CROSS_ENTROPY, ADAMW, 10, 29, 32, 16, 2),
    "policy": (CROSS_ENTROPY, ADAMW, 32, 4, 64, 64, 2),
    "anchor": (MSE, MOMENTUM, 20, 60, 5, 18, 13, 30),
}
GENERATIONS = (75, 80, 86, 87, 89, 90, 100, 110, 120, 121)
# Without --all: one of each kind of loops, by the generation that was measured.
FEW = {("disc-2", 90), ("heart", 90), ("disc-6", 89), ("disc-7", 90)}
FIRST_CLUSTERS = 90  # without which disc-7 does not fit


class Nvrtc:
    """The library, called as src/cuda/libraries/nvrtc_library.cpp does."""

    def __init__(self, file: Path) -> None:
        self._library = ctypes.CDLL(str(file))

    def _check(self, result: int, of: object = None) -> None:
        assert result == 0, of

    def _text(self, program: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._check(getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
        text = ctypes.create_string_buffer(size.value)
        self._check(getattr(self._library, f"nvrtcGet{what}")(program, text))
        return text.raw

    def compiled(
        self, source: str, headers: dict[str, str], options: list[str]
    ) -> tuple[bytes, str]:
        """The device's code, and what the assembler says."""

        def array(texts: list[str]) -> ctypes.Array[ctypes.c_char_p]:
            return (ctypes.c_char_p * len(texts))(*(text.encode() for text in texts))

        program = ctypes.c_void_p()
        self._check(
            self._library.nvrtcCreateProgram(
                ctypes.byref(program),
                source.encode(),
                b"tailored.cu",
                len(headers),
                array(list(headers.values())),
                array(list(headers)),
            )
        )
        words = [*options, "--ptxas-options=-v"]
        done = self._library.nvrtcCompileProgram(program, len(words), array(words))
        log = self._text(program, "ProgramLog").decode()
        assert done == 0, log
        code = self._text(program, "CUBIN")
        self._library.nvrtcDestroyProgram(ctypes.byref(program))
        return code, log


def library() -> Path | None:
    """The toolkit's, or that of requirements-cudnn.txt."""
    nvcc = compiler()
    folders = list(Path(nvcc).resolve().parent.parent.glob("lib*")) if nvcc else []
    folders += VENV.glob("lib/python3*/site-packages/nvidia/*/lib")
    return next((file for at in folders for file in sorted(at.glob("libnvrtc.so.*"))), None)


@pytest.fixture(scope="module")
def printed(tmp_path_factory) -> Path:
    """The program of PRINTS."""
    at = tmp_path_factory.mktemp("tailored")
    places = (f"-DPROJECT_SOURCE_DIR={ROOT}", f"-DPROJECT_BINARY_DIR={at}")
    ran("cmake", *places, "-P", ROOT / "cmake" / "tailored.cmake")
    (at / "prints.cpp").write_text(PRINTS, encoding="utf-8")
    include = (f"-I{ROOT / 'include'}", f"-I{CUDA}", f"-I{at / 'generated'}")
    sources = (at / "prints.cpp", CUDA / "plan" / "tailored_text.cpp")
    ran("c++", "-std=c++20", "-O0", *include, *sources, "-o", at / "prints")
    return at / "prints"


def parts(printed: Path, name: str, generation: int) -> Iterator[list[str]]:
    """Options, names and texts of headers, and the rest, as PRINTS says them."""
    words = [str(number) for number in (generation, *NETWORKS[name])]
    for part in ran(printed, *words).stdout.split("\x1e"):
        yield part.removesuffix("\0").split("\0")


def compiled(printed: Path, name: str, generation: int) -> tuple[bytes, str, int, int]:
    """The code, what the assembler says, threads, and floats of shared memory."""
    file = library()
    if file is None:
        pytest.skip("no NVRTC: nothing compiles the kernel")
    options, told, (source, threads, floats) = parts(printed, name, generation)
    headers = dict(zip(told[::2], told[1::2], strict=True))
    code, log = Nvrtc(file).compiled(source, headers, options)
    return code, log, int(threads), int(floats)


@pytest.mark.slow
@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("name", NETWORKS)
def test_a_kernel_is_compiled_for_each_network_and_generation(printed, name, generation):
    if not weekly() and (name, generation) not in FEW:
        pytest.skip("runs with ./test --all")
    if name == "disc-7" and generation < FIRST_CLUSTERS:
        pytest.skip("a block has too little shared memory")
    code, log, threads, floats = compiled(printed, name, generation)
    assert b"tailored_kernel" in code
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes", log)
    assert spills == [("0", "0", "0")], log
    (registers,) = re.findall(r"Used (\d+) registers", log)
    assert int(registers) * threads <= 65536, log
    assert "smem" not in log, "all of its shared memory is the launch's, of which there may be more"
    assert 4 * floats <= 227 << 10
