# SPDX-License-Identifier: Apache-2.0
"""Configuring and building a CMake preset; what is left to do, CMake and ninja see quickly."""

import re
from collections.abc import Sequence
from pathlib import Path

from crossover_bench.place import IS_CHECKOUT, ROOT, RUN
from crossover_bench.run import environment
from crossover_bench.run.console import (
    LOGS,
    CommandFailed,
    Failure,
    cores,
    output_of,
    run_logged,
    say,
    stage,
)
from crossover_bench.run.cuda import Choice, driver_version
from crossover_bench.run.drivers import OLDEST, OURS
from crossover_bench.run.progress import Progress

# What the processors of a level of x86-64 have. An installed copy has a bench for each level
# (cmake/wheel.cmake).
_V3 = {"avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
_V4 = {*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}


def fitting(folder: Path, cpuinfo: Path = Path("/proc/cpuinfo")) -> Path:
    """The build of bench in `folder` for the latest processors that this one is among."""
    for name, needed in (("bench-v4", _V4), ("bench-v3", _V3)):
        if (folder / name).exists():
            match = re.search(r"^flags\s*:(.*)$", cpuinfo.read_text(encoding="utf-8"), re.MULTILINE)
            if match and needed <= set(match[1].split()):
                return folder / name
    return folder / "bench"


BENCH = fitting(ROOT / "build")
_NO_CUDA = "-- No GPU backend: "
_KILLED = re.compile(r"Killed|signal 9|SIGKILL")  # gcc and clang, nvcc, and what ends the linker


def folder(preset: str) -> Path:
    build = ROOT / "build"
    return build if preset == "default" else build / preset


def _cache(build: Path) -> dict[str, str]:
    try:
        text = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    return dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))


def configure(preset: str, tests: bool, cuda: Choice, complete: bool = False) -> None:
    cache = _cache(folder(preset))
    # Where nvcc finds no GPU: kernels for every generation take four times as long as for one,
    # which is enough for ./test. Who runs them elsewhere has them all. A folder keeps what it had:
    # they, and the tests, serve those who need none.
    had = cache.get("CROSSOVER_CUDA_GENERATIONS")
    elsewhere = not tests and cuda.nvcc and (cuda.required or driver_version() is not None)
    every = complete or had == "all" or elsewhere
    # CMake does not let go of another CUDA compiler, nor of another version of one.
    known, now = cache.get("CROSSOVER_CUDA_CHECKED", ""), f"{cuda.nvcc}|{cuda.version}|"
    command: list[str | Path] = ["cmake", "--preset", preset, *cuda.switches]
    command += ["--fresh"] if cuda.nvcc and known and not known.startswith(now) else []
    command += ["-UCMAKE_CUDA_ARCHITECTURES"] if every and had == "newest" else []
    command.append(f"-DCROSSOVER_CUDA_GENERATIONS={'all' if every else 'newest'}")
    command.append(f"-DCROSSOVER_TESTS={'ON' if tests else cache.get('CROSSOVER_TESTS', 'OFF')}")
    command.append(f"-DCMAKE_PREFIX_PATH={environment.VENV}")
    what, log = f"Configuring ({preset})", LOGS / f"configure-{preset}.log"
    try:
        lines = run_logged(what, command, log)
    except CommandFailed:
        if not cache:
            raise
        lines = run_logged(what, [*command, "--fresh"], log)  # the repository or a compiler moved
    for line in lines:
        if cuda.nvcc is not None and line.startswith(_NO_CUDA):
            say(f"  building without CUDA: {line.removeprefix(_NO_CUDA)}")


def _make(preset: str, *what: str) -> None:
    command = ["cmake", "--build", "--preset", preset, "--parallel", str(cores()), *what]
    planned = output_of("cmake", "--build", folder(preset), *what, "--", "-n").splitlines()
    words = Progress(folder(preset), planned).words
    try:
        run_logged(f"Building ({preset})", command, LOGS / f"build-{preset}.log", words=words)
    except CommandFailed as failure:
        if not any(map(_KILLED.search, failure.lines)):
            raise
        raise Failure(
            f"{failure}\nThe kernel ended a compile, for lack of memory: add memory or swap, or "
            f"compile one source after another: taskset -c 0 {RUN} --setup-only"
        ) from None


def configured_with() -> Choice:
    """The CUDA that the default folder is configured with."""
    cache = _cache(folder("default"))
    nvcc, version, *_ = [*cache.get("CROSSOVER_CUDA_CHECKED", "").split("|"), ""]
    is_on = cache.get("CROSSOVER_CUDA") in ("AUTO", "ON")
    return Choice(nvcc if is_on and nvcc else None, version, required=False)


def cuda_major() -> int:
    """The CUDA that bench is, or would be, built for."""
    built = configured_with().version.partition(".")[0] if IS_CHECKOUT else ""
    return int(built) if built.isdecimal() and int(built) in OLDEST else OURS


def _is_done() -> bool:
    """Whether the GPU's part has nothing to compile, where there is a GPU for all generations."""
    cache = _cache(folder("default"))
    ninja = cache.get("CMAKE_MAKE_PROGRAM", "ninja")
    parts = ("crossover_cuda", "crossover_kernels")
    is_whole = cache.get("CROSSOVER_CUDA_GENERATIONS") == "all"
    left = output_of(ninja, "-C", folder("default"), "-n", *parts)
    return (is_whole or driver_version() is None) and "no work to do" in left


def program(cuda: Choice) -> None:
    """Bring bench up to date, and nothing else: measuring needs no test.

    A build with CUDA stays one for a run without, which bench takes as well: to remove the GPU's
    part, and compile it again for the next run or ./test, takes minutes.
    """
    if cuda.nvcc is None and BENCH.exists():
        built = configured_with()
        cuda = built if built.nvcc is not None and _is_done() else cuda
    with stage("Building (default)"):
        configure("default", False, cuda)
        _make("default", "--target", "bench")


def everything(preset: str, cuda: Choice, also: Sequence[str] = (), complete: bool = False) -> None:
    """Bring a preset up to date, tests included.

    `also`: targets that are no part of `all`. `complete`: for every generation of GPUs.
    """
    with stage(f"Building ({preset})"):
        configure(preset, True, cuda, complete)
        _make(preset, *(["--target", "all", *also] if also else []))
