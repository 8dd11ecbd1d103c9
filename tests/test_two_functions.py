# SPDX-License-Identifier: Apache-2.0
"""crossover::two in a project of its user's: what docs/howto/two-functions.md shows, and the
examples, built outside the tree and run for a second."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from scripts import ROOT, ran

from crossover_bench.files import loading
from crossover_bench.run.cuda import find_toolkit
from crossover_bench.shell import cli
from tools.stages import weekly

PAGE = (ROOT / "docs" / "howto" / "two-functions.md").read_text("utf-8")
EXAMPLES = ROOT / "examples" / "two"
SHORT = ("--benchmark_repetitions=5", "--benchmark_min_time=0.001", "--refine=off")


def block(language: str) -> str:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)[0]


def test_a_first_use_is_thirty_lines():
    lines = [line for text in map(block, ("cpp", "cmake")) for line in text.splitlines()]
    assert len([line for line in lines if line.strip()]) <= 30
    for example in EXAMPLES.glob("*.cpp"):
        assert 60 <= len(example.read_text("utf-8").splitlines()) <= 100, example


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's project and the examples, which bring no oneDNN, no Highway and no CUDA."""
    folder = tmp_path_factory.mktemp("two")
    (folder / "main.cpp").write_text(block("cpp"), "utf-8")
    lists = block("cmake").replace("/path/to/crossover", str(ROOT))
    more = f"add_subdirectory({EXAMPLES} examples)\n"
    (folder / "CMakeLists.txt").write_text(lists + more, "utf-8")
    made = folder / "build"
    flags = ("-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_DISABLE_FIND_PACKAGE_dnnl=ON")
    flags += ("-DCMAKE_CUDA_COMPILER=NOTFOUND",)
    told = ran("cmake", "-S", folder, "-B", made, *flags).stdout
    assert not re.search("oneDNN|Highway|CUDA|GoogleTest", told), told
    ran("cmake", "--build", made, f"-j{os.cpu_count() or 1}")
    return made


@pytest.mark.slow
@pytest.mark.skipif(not weekly(), reason="compiles the harness for a minute: ./test --all")
@pytest.mark.parametrize("name", ["scan", *(path.stem for path in EXAMPLES.glob("*.cpp"))])
def test_a_program_measures_and_is_answered(name, build, tmp_path, capsys):
    program = build / (name if name == "scan" else f"examples/{name}")
    if name == "fft" and not program.exists():
        pytest.skip("its example needs FFTW: Debian's package is libfftw3-dev")
    result = tmp_path / f"{name}.json"
    sizes = "[0-9]{1,2}" if name == "fft" else "[0-9]{4,5}"
    ran(program, f"--benchmark_filter=size:{sizes}/", f"--out={result}", *SHORT)
    assert cli.main(["validate", str(result)]) == 0
    file = loading.load_file(result)
    assert len(file.functions) >= 4 and not any(row.failure for row in file.functions)
    assert json.loads(result.read_text("utf-8"))["context"]["executable"] == name
    capsys.readouterr()
    assert cli.main(["two", str(result)]) == 0
    told = capsys.readouterr().out
    sides = {row.configuration["side"] for row in file.functions}
    assert len(sides) > 1 and all(side in told for side in sides), told


@pytest.mark.slow
@pytest.mark.skipif(not weekly(), reason="ten seconds of nvcc for each: ./test --all")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.cpp")), ids=lambda path: path.stem)
def test_the_sides_on_a_gpu_compile(path, tmp_path):
    toolkit = find_toolkit()
    if toolkit.nvcc is None:
        pytest.skip(toolkit.reason)
    if path.stem == "fft" and not Path("/usr/include/fftw3.h").exists():
        pytest.skip("its example needs FFTW: Debian's package is libfftw3-dev")
    flags = ("-std=c++20", "-arch=sm_90", "-I", ROOT / "include", "-o", tmp_path / "sides.o")
    ran(toolkit.nvcc, "-x", "cu", *flags, "-c", path)
