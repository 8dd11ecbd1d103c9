# SPDX-License-Identifier: Apache-2.0
"""Configuring and building a CMake preset, doing only what is left to do."""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path

from tools import environment
from tools.console import LOGS, ROOT, Failure, cores, run_logged, stage
from tools.cuda import Choice
from tools.packages import BY_HAND, version_of

BENCH = ROOT / "build" / "bench"
_CMAKE_NEEDED = (3, 25)
_STAMP_NAME = "configured.json"


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


def _stamp(build: Path) -> dict[str, object]:
    """What the folder was last configured from, whole."""
    try:
        content = json.loads((build / _STAMP_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def configure(preset: str, tests: bool, cuda: Choice) -> None:
    """Configure once; later changes to CMake's own files are noticed by the build itself."""
    build = folder(preset)
    presets = (ROOT / "CMakePresets.json").read_bytes()
    before = _stamp(build)
    key = {
        "presets": hashlib.sha256(presets).hexdigest(),
        "requirements": environment.hashes(environment.FOR_RUN),
        "prefix": str(environment.VENV),
        "cuda": cuda.nvcc,
        # Without CUDA the cache still holds the compiler it had.
        "toolkit": cuda.version if cuda.nvcc else before.get("toolkit", ""),
    }
    stale = _is_stale(build) or _is_other_toolkit(build, before, cuda)
    # A folder with the tests serves those who need none, and kernels for every GPU those who need
    # them for one: neither is taken out again. Without a GPU here ./test needs no more than one
    # generation of them (a compilation of all takes four times as long); ./run builds all.
    generations = before.get("generations") if tests and not stale else "all"
    key["generations"] = generations or ("newest" if tests else "all")
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
        run_logged(f"Configuring ({preset})", command, LOGS / f"configure-{preset}.log")
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
    """Bring a preset up to date, tests included, and targets that are no part of `all`."""
    configure(preset, True, cuda)
    _make(preset, *(["--target", "all", *also] if also else []))
