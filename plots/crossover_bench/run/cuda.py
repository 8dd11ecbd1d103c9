# SPDX-License-Identifier: Apache-2.0
"""Where the CUDA compiler comes from: a toolkit that is there, Python wheels, or nowhere."""

import contextlib
import ctypes
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from crossover_bench.place import ROOT
from crossover_bench.run import environment
from crossover_bench.run.console import CommandFailed, Failure, say
from crossover_bench.run.packages import BY_HAND

MODES = ("auto", "on", "off")
FLAG = "--cuda="
_FIND = ROOT / "cmake" / "find_toolkit.cmake"
_WHEELS_FOR = (13, 0)  # what requirements-cuda.txt holds; later drivers run it as well


@dataclass(frozen=True)
class Choice:
    """What CMake is told: the compiler to use, or that there is none, and why."""

    nvcc: str | None = None
    version: str = ""
    reason: str = ""
    required: bool = True  # else CMake goes on without where the toolkit lacks something

    @property
    def switches(self) -> list[str]:
        if self.nvcc is None:
            return ["-DCROSSOVER_CUDA=OFF"]
        root = Path(self.nvcc).resolve().parent.parent
        return [
            f"-DCROSSOVER_CUDA={'ON' if self.required else 'AUTO'}",
            f"-DCMAKE_CUDA_COMPILER={self.nvcc}",
            f"-DCUDAToolkit_ROOT={root}",
        ]


def parse(argument: str) -> str | None:
    """The mode that an argument names; None where it is some other argument."""
    if argument != FLAG.rstrip("=") and not argument.startswith(FLAG):
        return None
    mode = argument.partition("=")[2]
    if mode not in MODES:
        raise Failure(f"{argument}: use {FLAG}{'|'.join(MODES)}", 2)
    return mode


def find_toolkit() -> Choice:
    """The toolkit that CMake's own search finds, or its reason why there is none."""
    try:
        done = subprocess.run(
            ["cmake", "-P", _FIND], capture_output=True, text=True, timeout=60, check=True
        )
        nvcc, version, reason = done.stderr.strip().splitlines()[-1].split("|", 2)
    except (OSError, subprocess.SubprocessError, IndexError, ValueError):
        return Choice(reason=f"cmake -P {_FIND.name} does not answer")
    return Choice(nvcc or None, version, reason)


def driver_version() -> tuple[int, int] | None:
    """The newest CUDA that the NVIDIA driver here runs, e.g. (13, 0); None without a driver."""
    number = ctypes.c_int(0)
    with contextlib.suppress(OSError, AttributeError):
        if ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(number)) == 0:
            return number.value // 1000, number.value % 1000 // 10
    return None


def _from_driver(no_toolkit: str) -> Choice:
    """The compiler of the wheels, where the driver runs what that builds."""
    driver, wanted = driver_version(), ".".join(map(str, _WHEELS_FOR))
    if driver is None:
        return Choice(reason=f"{no_toolkit}, and no NVIDIA driver is installed")
    if driver < _WHEELS_FOR:
        return Choice(
            reason=f"{no_toolkit}, and the driver here runs CUDA {driver[0]}.{driver[1]}, for "
            f"which there are no wheels with a compiler: update the driver to one for CUDA "
            f"{wanted}, or install a toolkit >= 12 that it runs (apt install nvidia-cuda-toolkit "
            f"in Debian 13, from non-free)"
        )
    try:
        environment.MAIN.ensure(environment.FOR_CUDA)
        for nvcc in sorted(environment.VENV.glob("lib/python*/site-packages/nvidia/cu13/bin/nvcc")):
            return Choice(str(nvcc), wanted)
        why = f" (the wheels in {environment.FOR_CUDA[0].name} hold no nvcc)"
    except CommandFailed as failure:
        last = next((line.strip() for line in reversed(failure.lines) if line.strip()), "")
        why = f" (pip: {last})" if last else ""
    except Failure as failure:
        why = f" ({failure})"
    return Choice(reason=f"{no_toolkit}, and its Python wheels could not be installed{why}")


def choose(mode: str, tests: bool = False) -> Choice:
    """The compiler to build with; none is a Failure if the mode is "on". Needs CMake and .venv.

    Where nothing can be measured on a GPU, none is compiled for, which takes minutes. `tests` are
    compiled all the same, and with cuDNN, of which one asks the plans.
    """
    if mode == "off":
        return Choice(reason="--cuda=off")
    if mode == "auto" and not tests and driver_version() is None:
        say("building without CUDA: no NVIDIA driver is installed here; --cuda=on builds with it")
        return Choice(reason="no NVIDIA driver is installed")
    choice = find_toolkit()
    if choice.nvcc is None:
        choice = _from_driver(choice.reason)
    else:
        # cuDNN's headers; for tests also the library, where the toolkit lacks it and a wheel fits.
        # Without them the build goes on, and says that the GPU gets no convolutions.
        toolkit = Path(choice.nvcc).resolve().parent.parent
        has_it = (toolkit / "include" / "cudnn_version.h").exists()
        fits = choice.version.split(".", maxsplit=1)[0] == str(_WHEELS_FOR[0])
        adds_it = tests and fits and not has_it
        with contextlib.suppress(CommandFailed):
            environment.MAIN.ensure(environment.FOR_CUDNN if adds_it else environment.FOR_TOOLKIT)
    if choice.nvcc is None:
        if mode == "on":
            raise Failure(f"--cuda=on, but {choice.reason}; see {BY_HAND}", 2)
        say(f"building without CUDA: {choice.reason}")
    return replace(choice, required=mode == "on")
