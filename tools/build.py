# SPDX-License-Identifier: Apache-2.0
"""Configuring and building a CMake preset, doing only what is left to do."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools import environment
from tools.console import LOGS, ROOT, Failure, cores, run_logged, say, stage, stored
from tools.cuda import Choice, driver_version
from tools.packages import BY_HAND, version_of
from tools.passed import of_files

BENCH = ROOT / "build" / "bench"
_CMAKE_NEEDED = (3, 25)
_STAMP_NAME = "configured.json"  # what the folder was last configured from, whole
_NO_CUDA = "-- No GPU backend: "
_TESTS = "-DCROSSOVER_TESTS=ON"
_EVERY = "-DCROSSOVER_CUDA_GENERATIONS=all"
_NEWEST = "-DCROSSOVER_CUDA_GENERATIONS=newest"


def folder(preset: str) -> Path:
    build = ROOT / "build"
    return build if preset == "default" else build / preset


def _is_stale(build: Path, before: dict[str, Any], cuda: Choice) -> bool:
    """Whether CMake would refuse its cache, or not let go of another CUDA compiler in it."""
    try:
        text = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False  # no cache, nothing to throw away
    cache = dict(re.findall(r"^(\w+):\w+=(.*)$", text, re.MULTILINE))
    tools = (cache.get("CMAKE_CXX_COMPILER"), cache.get("CMAKE_MAKE_PROGRAM"))
    if (
        cache.get("CMAKE_HOME_DIRECTORY") != str(ROOT)
        or not (build / "build.ninja").exists()
        or not all(tool and Path(tool).exists() for tool in tools)
    ):
        return True
    compiler = cache.get("CMAKE_CUDA_COMPILER")
    toolkit = (compiler, before.get("toolkit") or cuda.version)
    return None not in (cuda.nvcc, compiler) and toolkit != (cuda.nvcc, cuda.version)


def configure(preset: str, tests: bool, cuda: Choice, complete: bool = False) -> None:
    """Configure once; later changes to CMake's own files are noticed by the build itself."""
    build = folder(preset)
    before = stored(build / _STAMP_NAME)
    had = before.get("switches", [])
    # Kernels for every generation take four times as long as for one, which is enough for ./test
    # where there is no GPU. ./run and ./test --all have them all. A folder keeps what it had: they,
    # and the tests, serve those who need none.
    every = complete or not tests or _EVERY in had
    switches = [
        f"-DCMAKE_PREFIX_PATH={environment.VENV}",
        _TESTS if tests or _TESTS in had else "-DCROSSOVER_TESTS=OFF",
        _EVERY if every else _NEWEST,
        *cuda.switches,
    ]
    key = {
        "files": of_files((ROOT / "CMakePresets.json", *environment.FOR_RUN)),
        "switches": switches,
        # Without CUDA the cache still holds the compiler it had.
        "toolkit": cuda.version if cuda.nvcc else before.get("toolkit", ""),
    }
    stale = _is_stale(build, before, cuda)
    if before == key and not stale:
        return
    found = version_of("cmake", "--version")
    if found < _CMAKE_NEEDED:
        raise Failure(
            f"CMake {'.'.join(map(str, found)) or '(none)'} found, "
            f"{'.'.join(map(str, _CMAKE_NEEDED))} needed; see {BY_HAND}",
            code=2,
        )
    if cuda.nvcc is not None and not tests and driver_version() is None:
        say("no NVIDIA driver is installed here; --cuda=off builds much faster, without the GPU")
    (build / _STAMP_NAME).unlink(missing_ok=True)
    command = ["cmake", *(["--fresh"] if stale else []), "--preset", preset, *switches]
    if every and _NEWEST in had:
        command.append("-UCMAKE_CUDA_ARCHITECTURES")  # what the old choice came to
    with stage(f"Configuring ({preset})"):
        lines = run_logged(f"Configuring ({preset})", command, LOGS / f"configure-{preset}.log")
        for line in lines:
            if cuda.nvcc is not None and line.startswith(_NO_CUDA):
                say(f"  building without CUDA: {line.removeprefix(_NO_CUDA)}")
    (build / _STAMP_NAME).write_text(json.dumps(key, indent=2) + "\n", encoding="utf-8")


def _make(preset: str, *what: str) -> None:
    command = ["cmake", "--build", "--preset", preset, "--parallel", str(cores()), *what]
    with stage(f"Building ({preset})"):
        run_logged(f"Building ({preset})", command, LOGS / f"build-{preset}.log")


def program(cuda: Choice) -> None:
    """Bring bench up to date, and nothing else: measuring needs no test."""
    configure("default", False, cuda)
    _make("default", "--target", "bench")


def everything(preset: str, cuda: Choice, also: Sequence[str] = ()) -> None:
    """Bring a preset up to date, tests included.

    `also`: targets that are no part of `all`; with them for every generation of GPUs.
    """
    configure(preset, True, cuda, complete=bool(also))
    _make(preset, *(["--target", "all", *also] if also else []))
