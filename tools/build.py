# SPDX-License-Identifier: Apache-2.0
"""Configuring and building a CMake preset, doing only what is left to do."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from tools import environment
from tools.console import LOGS, ROOT, Failure, cores, run_logged, say, stage, stored
from tools.cuda import Choice
from tools.packages import BY_HAND, version_of

BENCH = ROOT / "build" / "bench"
_CMAKE_NEEDED = (3, 25)
_STAMP_NAME = "configured.json"  # what the folder was last configured from, whole
_NO_CUDA = "-- No GPU backend: "


def folder(preset: str) -> Path:
    build = ROOT / "build"
    return build if preset == "default" else build / preset


def _cached(build: Path, name: str) -> str | None:
    """A value from a build folder's CMake cache."""
    try:
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(rf"^{re.escape(name)}:\w+=(.*)$", cache, re.MULTILINE)
    return match[1] if match else None


def _is_stale(build: Path) -> bool:
    """Whether the cache is one that CMake would refuse, or that never came to an end."""
    home = _cached(build, "CMAKE_HOME_DIRECTORY")
    if home is None:
        return False  # no cache, nothing to throw away
    if home != str(ROOT) or not (build / "build.ninja").exists():
        return True
    tools = (_cached(build, "CMAKE_CXX_COMPILER"), _cached(build, "CMAKE_MAKE_PROGRAM"))
    return not all(tool and Path(tool).exists() for tool in tools)


def _is_other_toolkit(build: Path, before: dict[str, object], cuda: Choice) -> bool:
    """Whether CMake's cache holds another CUDA compiler, which it would not let go of."""
    cached = _cached(build, "CMAKE_CUDA_COMPILER")
    if cuda.nvcc is None or cached is None:
        return False
    return cached != cuda.nvcc or (before.get("toolkit") or cuda.version) != cuda.version


def configure(preset: str, tests: bool, cuda: Choice, complete: bool = False) -> None:
    """Configure once; later changes to CMake's own files are noticed by the build itself."""
    build = folder(preset)
    presets = (ROOT / "CMakePresets.json").read_bytes()
    before = stored(build / _STAMP_NAME)
    key = {
        "presets": hashlib.sha256(presets).hexdigest(),
        "requirements": environment.hashes(environment.FOR_RUN),
        "prefix": str(environment.VENV),
        "cuda": cuda.nvcc,
        "cuda_required": cuda.required,
        # Without CUDA the cache still holds the compiler it had.
        "toolkit": cuda.version if cuda.nvcc else before.get("toolkit", ""),
    }
    stale = _is_stale(build) or _is_other_toolkit(build, before, cuda)
    # Kernels for every generation take four times as long as for one, which is enough for ./test
    # where there is no GPU. ./run and ./test --all have them all.
    complete = complete or not tests or before.get("generations") == "all"
    key["generations"] = "all" if complete else "newest"
    # A folder with the tests serves those who need none; they are not taken out again.
    if not stale and before in ({**key, "tests": True}, {**key, "tests": tests}):
        return
    found = version_of("cmake", "--version")
    if found < _CMAKE_NEEDED:
        raise Failure(
            f"CMake {'.'.join(map(str, found)) or '(none)'} found, "
            f"{'.'.join(map(str, _CMAKE_NEEDED))} needed; see {BY_HAND}",
            code=2,
        )
    (build / _STAMP_NAME).unlink(missing_ok=True)
    switches = [
        f"-DCMAKE_PREFIX_PATH={environment.VENV}",
        f"-DCROSSOVER_TESTS={'ON' if tests else 'OFF'}",
        f"-DCROSSOVER_CUDA_GENERATIONS={key['generations']}",
        *cuda.switches,
    ]
    command = ["cmake", "--preset", preset, *switches]
    if stale:
        command.insert(1, "--fresh")
    elif before.get("generations", key["generations"]) != key["generations"]:
        command.append("-UCMAKE_CUDA_ARCHITECTURES")  # what the old choice came to
    with stage(f"Configuring ({preset})"):
        lines = run_logged(f"Configuring ({preset})", command, LOGS / f"configure-{preset}.log")
        for line in lines:
            if cuda.nvcc is not None and line.startswith(_NO_CUDA):
                say(f"  building without CUDA: {line.removeprefix(_NO_CUDA)}")
    content = json.dumps({**key, "tests": tests}, indent=2)
    (build / _STAMP_NAME).write_text(content + "\n", encoding="utf-8")


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
