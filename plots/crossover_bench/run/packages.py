# SPDX-License-Identifier: Apache-2.0
"""System packages: what is missing here, and getting it through apt or saying what to ask for."""

import importlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from crossover_bench.run.console import (
    LOGS,
    CommandFailed,
    Failure,
    output_of,
    run_logged,
    say,
    stage,
)

_APT_LISTS = Path("/var/lib/apt/lists")
_OMP_H = Path("/usr/lib/llvm-14/lib/clang/14.0.6/include/omp.h")
BY_HAND = "docs/building.md"


@dataclass(frozen=True)
class Need:
    """Something the build uses: its Debian and Ubuntu package, and how to see whether it is there.

    That asks for the thing itself: it may come from elsewhere, and a package be too old.
    """

    package: str
    description: str
    present: Callable[[], bool]
    # Where there is no such package it is not asked for: what uses it skips itself and says so.
    optional: bool = False


def _compiler() -> list[str]:
    return (os.environ.get("CXX") or "c++").split()


def version_of(*command: str) -> tuple[int, ...]:
    """The first dotted number that a command prints, e.g. (3, 25, 1); () where there is none."""
    match = re.search(r"\d+(?:\.\d+)*", output_of(*command))
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _has_program(*names: str) -> Callable[[], bool]:
    return lambda: any(shutil.which(name) for name in names)


def _has_header(header: str) -> Callable[[], bool]:
    def present() -> bool:
        prefixes = os.environ.get("CMAKE_PREFIX_PATH", "").split(os.pathsep)
        prefixes.append(os.environ.get("CONDA_PREFIX", ""))
        includes = [f"-I{prefix}/include" for prefix in prefixes if prefix]
        look = [*_compiler(), *includes, "-std=c++20", "-E", "-P", "-x", "c++", "-"]
        text = f"#if __has_include(<{header}>)\nfound\n#endif\n"
        return "found" in output_of(*look, given=text)

    return present


def has_fuzzer() -> bool:
    folder = output_of("clang++", "-print-runtime-dir").strip()
    return bool(folder) and any(Path(folder).glob("libclang_rt.fuzzer*"))


def _has_venv() -> bool:
    # Debian splits ensurepip off, so `import venv` alone says nothing. An installation by a
    # child process is seen only after the finders' caches are dropped.
    importlib.invalidate_caches()
    return all(importlib.util.find_spec(module) for module in ("ensurepip", "venv"))


# For x86-64 a Python package brings it (requirements.txt). Where the distribution's is older than
# version 3, as Debian 12's, CMake fetches the source.
_ONEDNN = Need("libdnnl-dev", "oneDNN", _has_header("oneapi/dnnl/dnnl.hpp"), optional=True)

FOR_RUN: tuple[Need, ...] = (
    # clang counts its versions differently from gcc; both have C++20 from 11 on.
    Need(
        "g++",
        "a C++20 compiler (g++ >= 11, or clang)",
        lambda: version_of(*_compiler(), "-dumpversion") >= (11,),
    ),
    Need("cmake", "CMake >= 3.25", lambda: version_of("cmake", "--version") >= (3, 25)),
    Need("ninja-build", "Ninja", _has_program("ninja", "ninja-build")),
    Need("git", "git", _has_program("git")),
    Need("python3-venv", "Python's venv module with ensurepip", _has_venv),
    Need("libbenchmark-dev", "Google Benchmark >= 1.7", _has_header("benchmark/benchmark.h")),
    Need("libhwy-dev", "Highway >= 1.0", _has_header("hwy/highway.h")),
    Need("nlohmann-json3-dev", "nlohmann-json", _has_header("nlohmann/json.hpp")),
    *([_ONEDNN] if platform.machine() == "aarch64" else []),
)


# Asked for by --ranks alone: any MPI will do.
FOR_RANKS: tuple[Need, ...] = (
    Need(
        "libopenmpi-dev",
        "an MPI to build with (mpicxx)",
        lambda: any(output_of("mpicxx", flag).strip() for flag in ("--showme:version", "-show")),
    ),
    Need("openmpi-bin", "mpirun", _has_program("mpirun")),
)

FOR_TEST: tuple[Need, ...] = (
    *FOR_RUN,
    *(replace(need, optional=True) for need in FOR_RANKS),
    Need("libgtest-dev", "GoogleTest", _has_header("gtest/gtest.h")),
    Need("libgmock-dev", "GoogleMock", _has_header("gmock/gmock.h")),
    Need(
        "libbenchmark-tools",
        "Google Benchmark's compare.py",
        Path("/usr/share/benchmark/compare.py").exists,
        optional=True,
    ),
    # One version everywhere, as others find other faults; and the omp.h that it can read.
    Need("clang-tidy-14", "clang-tidy 14", _has_program("clang-tidy-14"), optional=True),
    Need("libomp-14-dev", "clang 14's omp.h", _OMP_H.exists, optional=True),
)

# Of whatever version is the distribution's own, as that can read its C++ library.
FOR_FUZZ: tuple[Need, ...] = (
    Need("clang", "clang", _has_program("clang++"), optional=True),
    Need("libclang-rt-dev", "clang's libFuzzer", has_fuzzer, optional=True),
)


def has_apt() -> bool:
    return shutil.which("apt-get") is not None


def offered(packages: Sequence[str]) -> set[str]:
    """Those of `packages` that this release has; all, while apt has no lists to look in."""
    if not any(_APT_LISTS.glob("*_Packages*")):
        return set(packages)
    shown = output_of("apt-cache", "policy", *packages)
    return set(re.findall(r"^(\S+):\n.*\n +Candidate: \d", shown, re.MULTILINE))


def missing(needs: Sequence[Need]) -> list[Need]:
    """What is not here; of what is optional only what apt could install."""
    lacking = [need for need in needs if not need.present()]
    optional = [need.package for need in lacking if need.optional]
    available = offered(optional) if optional and has_apt() else ()
    return [need for need in lacking if not need.optional or need.package in available]


def install_line(packages: Sequence[str]) -> str:
    return " ".join(["apt-get install -y --no-install-recommends", *packages])


def _privilege() -> list[str] | None:
    """What to put before apt-get: nothing as root, sudo where it works, None where neither."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo") is None:
        return None
    may_ask = sys.stdin.isatty()
    if may_ask:
        say("installing needs root; sudo may ask for your password")
    command = ["sudo", "true"] if may_ask else ["sudo", "-n", "true"]
    done = subprocess.run(command, capture_output=not may_ask, check=False)
    return ["sudo"] if done.returncode == 0 else None


def _apt(privilege: Sequence[str], log: str, *command: str) -> None:
    settings = ["DEBIAN_FRONTEND=noninteractive", "NEEDRESTART_SUSPEND=1", "LC_ALL=C.UTF-8"]
    whole = [*privilege, "env", *settings, *command]
    # dpkg, cut off half-way, leaves packages that have to be repaired.
    run_logged(log, whole, LOGS / f"{log}.log", patience=10 if log == "apt-update" else 600)


def _size(packages: Sequence[str]) -> str:
    """What they and what they need come to, where apt can tell."""
    told = output_of(*install_line(["--print-uris", *packages]).split())
    total = sum(int(size) for size in re.findall(r"^'\S+' \S+ (\d+)", told, re.MULTILINE))
    return f" ({total / 1e6:.0f} MB to download)" if total else ""


def _install(packages: Sequence[str], privilege: Sequence[str]) -> None:
    say(f"to install with apt: {' '.join(packages)}{_size(packages)}")
    with stage(f"Installing {len(packages)} system packages"):
        try:
            with suppress(CommandFailed):  # finishes an installation that was interrupted
                _apt(privilege, "dpkg-configure", "dpkg", "--configure", "-a")
            # A machine that has just booted may be upgrading itself: wait for its lock.
            line = install_line(packages).replace("get", "get -q -o DPkg::Lock::Timeout=300", 1)
            _apt(privilege, "apt-install", *line.split())
        except CommandFailed as failure:
            raise Failure(
                f"{failure}\nCheck the network and apt's sources (apt-get update must work), then "
                f"try again; if this release lacks a package, see {BY_HAND}. The command is:\n\n"
                f"    {install_line(packages)}"
            ) from None


def ensure(needs: Sequence[Need]) -> None:
    """Return with everything there, or say exactly what is missing and who can change that."""
    lacking = missing(needs)
    if not lacking:
        return
    if not has_apt():
        listing = "\n".join(f"    {need.description}" for need in lacking)
        raise Failure(
            f"missing, and there is no apt to install it with:\n\n{listing}\n\n"
            f"See {BY_HAND}, for where to get them, and start this again.",
            code=2,
        )
    privilege = _privilege()
    if privilege is None:
        raise Failure(
            "system packages are missing, and installing them needs root. Ask this machine's "
            "administrator for\n\n"
            f"    {install_line([need.package for need in lacking])}\n\nand start this again.",
            code=2,
        )
    with stage("Refreshing apt's package lists"):
        try:
            _apt(privilege, "apt-update", "apt-get", "-q", "update")
        except CommandFailed:
            # One broken third-party source is no reason to give up; the installation decides.
            say("  some package lists could not be refreshed; going on with the others")
    wanted = missing(needs)  # now that apt can tell what this release has
    if wanted:
        _install([need.package for need in wanted], privilege)
    if still := missing(needs):
        raise Failure(
            f"apt has installed {' '.join(need.package for need in still)}, but "
            f"{', '.join(need.description for need in still)} cannot be found "
            f"(Python here is {sys.executable}). See {BY_HAND}.",
            code=2,
        )
