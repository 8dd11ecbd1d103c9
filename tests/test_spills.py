# SPDX-License-Identifier: Apache-2.0
"""What the assembler makes of the kernels: sums stay in registers, vectors are loaded as such, f64
is where it is wanted, barriers of the grid drop what the first-level cache holds."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from scripts import ROOT, ran

from crossover_bench.run.environment import VENV
from tools.stages import weekly

KERNELS = ROOT / "src" / "cuda" / "kernels"
# Those that cmake/cuda.cmake lists: the assembler gives each other registers.
GENERATIONS = ("75", "80", "86", "89", "90", "100", "110", "120")
# The first with clusters, whose instructions faults() knows; the oldest and the newest with --all.
ALWAYS = "90"
WEEKLY = ("75", "90", "120")
INCLUDE = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'src' / 'cuda' / 'kernels' / 'device'}"]
SOURCES = sorted(path.stem for path in KERNELS.glob("*.cu"))
# For these registers are scarce: 15 seconds each. Others are small, or as simple as they look.
SCARCE = ("persistent", "batch_norm", "batch_norm_grad")
SMALL = ("optimizer", "gather_in_loop")
# Of a block, where it may have more than 256: its kernels share 65,536 registers.
THREADS = {"persistent": 512, "loss": 1024}
# Sums of losses, and factors of AdamW, are f64; functions have numbers that each thread converts.
F64 = {"train", "mean_loss", "loss_in_one_block", "elementwise_loss", "map", "map_grad"}
# Besides those whose template says how many numbers they take at once.
VECTORS = {"update", "gather_in_loop"}
# Of these, what they write is a number for each channel, column or row.
SUMS = re.compile(r"statistics|.*_sums")
# Of a driver that has loops in graphs.
RESOLVED_BY_THE_DRIVER = {"gather_in_loop": {"cudaGraphSetConditional"}}


def compiler() -> str | None:
    """The build's, or that of the PATH."""
    cache = ROOT / "build" / "CMakeCache.txt"
    text = cache.read_text(encoding="utf-8") if cache.is_file() else ""
    nvcc = re.search(r"^CMAKE_CUDA_COMPILER:[A-Z]+=(.+)$", text, re.MULTILINE)
    return shutil.which(nvcc[1] if nvcc else "nvcc")


def disassembler(nvcc: str) -> Path | None:
    """The toolkit's, that of the PATH, or that of requirements-cudnn.txt."""
    places = [Path(nvcc).with_name("nvdisasm"), Path(shutil.which("nvdisasm") or "/none")]
    places += VENV.glob("lib/python3*/site-packages/nvidia/*/bin/nvdisasm")
    return next(filter(Path.is_file, places), None)


def assembled(nvcc: str, source: str, generation: str, to: Path) -> str:
    """What the assembler says of the kernels, which are in the file `to` then."""
    if f"sm_{generation}" not in ran(nvcc, "--list-gpu-code").stdout.split():
        pytest.skip(f"this toolkit does not know sm_{generation}")
    flags = ("-std=c++20", "-O3", f"-arch=sm_{generation}", "-Xptxas=-v", "--cubin", *INCLUDE)
    return ran(nvcc, *flags, "-o", to, KERNELS / f"{source}.cu").stderr


def instructions(nvdisasm: Path, cubin: Path) -> Iterator[tuple[str, list[str]]]:
    """By kernel, its mangled name first."""
    text = ran(nvdisasm, "-c", cubin).stdout
    parts = re.split(r"^\.text\.(\S+):$", text, flags=re.MULTILINE)
    operation = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]+)", re.MULTILINE)
    for kernel, body in zip(parts[1::2], parts[2::2], strict=True):
        yield kernel, operation.findall(body)


def faults(kernel: str, code: list[str]) -> Iterator[str]:
    mangled = re.search(r"\d([a-z_]+)_kernel(?=[IE])", kernel)
    name = mangled[1] if mangled else kernel

    def uses(operations: str) -> bool:
        return any(re.match(operations, instruction) for instruction in code)

    # A sine of large numbers takes digits of pi from there.
    if uses(r"LDL|STL") and "functions4Sine" not in kernel:
        yield "uses local memory"
    if name not in F64 and uses(r"D(ADD|FMA|MUL|SETP)|F2F\.\w*F64|F2F\.F32\.F64|I2F\.F64"):
        yield "computes in f64"
    # Of attention it is the columns of a lane.
    takes_several = re.search(r"_kernelI\w*Li[48]E", kernel) and not name.startswith("attention")
    if name in VECTORS or takes_several:
        if not uses(r"LDG\.E\.(\w+\.)*128"):
            yield "loads no 128 bits at once"
        if not SUMS.fullmatch(name) and not uses(r"STG\.E\.(\w+\.)*(64|128)"):
            yield "stores no 64 or 128 bits at once"
    if "WholeGrid" in kernel:
        if uses(r"LDG\.\S*CONSTANT"):
            yield "loads by the cache that no barrier cleans"
        # A thread that waits polls; then comes whatever it loads first.
        after = re.split(r"(?:LD\.E\.STRONG\.GPU )+", " ".join(code))[1:]
        first = [re.search(r"CCTL\.IVALL|LDG\S*|$", part) for part in after]
        if not first or any(load is None or load[0] != "CCTL.IVALL" for load in first):
            yield "keeps the first-level cache at a barrier of the grid"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "generation"),
    [(s, g) for s in SOURCES for g in (GENERATIONS if s in SCARCE else WEEKLY)],
)
def test_kernels_are_assembled_as_they_are_meant(tmp_path, source, generation):
    if not weekly() and (generation != ALWAYS or source not in (*SCARCE, *SMALL)):
        pytest.skip("runs with ./test --all")
    nvcc = compiler()
    if nvcc is None:
        pytest.skip("no CUDA toolkit: nothing assembles kernels")
    cubin = tmp_path / f"{source}.cubin"
    told = assembled(nvcc, source, generation, cubin)
    used = re.findall(
        r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", told
    )
    assert set(used) == {("0", "0", "0")}, told
    registers = [int(number) for number in re.findall(r"Used (\d+) registers", told)]
    assert max(registers) * THREADS.get(source, 256) <= 65536, told
    symbols = [line.split() for line in ran("readelf", "-sW", cubin).stdout.splitlines()]
    unresolved = {words[7] for words in symbols if "UND" in words and words[7:]}
    ours = {name for name in unresolved if not name.startswith(".nv.")}
    assert ours == RESOLVED_BY_THE_DRIVER.get(source, set())
    if generation != ALWAYS:
        return
    nvdisasm = disassembler(nvcc)
    if nvdisasm is None:
        pytest.skip("no nvdisasm (requirements-cudnn.txt): the code was assembled, and not read")
    read = dict(instructions(nvdisasm, cubin))
    assert len(read) == len(registers)
    wrong = [f"{kernel} {fault}" for kernel, code in read.items() for fault in faults(kernel, code)]
    assert not wrong


def test_what_is_wrong_with_code_is_found():
    """Each fault alone, in code that is right but for it."""
    vectors, grid = "_ZN4cuda10add_kernelILi4EfEEvv", "_ZN12train_kernelI9WholeGridLb0EEEv"
    good = ["LDG.E.128", "FADD", "STG.E.128"]
    barrier = ["BAR.SYNC", "ATOM.E.ADD.STRONG.GPU", "LD.E.STRONG.GPU", "CCTL.IVALL", "LDG.E"]
    assert not list(faults(vectors, good)) and not list(faults(grid, barrier))
    assert list(faults(vectors, ["LDG.E", *good[1:]])) == ["loads no 128 bits at once"]
    assert list(faults(vectors, [*good, "LDL"])) == ["uses local memory"]
    assert list(faults(vectors, [*good[:2], "STG.E"])) == ["stores no 64 or 128 bits at once"]
    assert list(faults(vectors, [*good, "DFMA"])) == ["computes in f64"]
    kept = "keeps the first-level cache at a barrier of the grid"
    assert list(faults(grid, [*barrier[:3], *barrier[4:]])) == [kept]
    stale = "loads by the cache that no barrier cleans"
    assert list(faults(grid, [*barrier, "LDG.E.128.CONSTANT"])) == [stale]
