# SPDX-License-Identifier: Apache-2.0
"""What of a GPU this machine has before anything is built: NVIDIA's driver, and the one that WSL
lends; a sentence each, for --check."""

import ctypes
import importlib.util
import platform
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from crossover_bench.words.text import printable

# By the major version of CUDA, the oldest driver that runs what was built for it:
# https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html, table 1.
OLDEST = {12: 525, 13: 580}
OURS = 13  # of the wheel and of requirements-cuda.txt
_NVML = ("libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1", "nvml.dll")
_WITHOUT = (
    "without it the CPU is measured, and crossover_bench.ask and two measure the GPU in your own "
    "PyTorch"
)


def nvidia_driver() -> str:
    """Its version, "580.159"; empty where there is none."""
    for name in _NVML:
        with suppress(OSError, AttributeError):
            library, text = ctypes.CDLL(name), ctypes.create_string_buffer(96)
            if library.nvmlInit_v2() == 0 and not library.nvmlSystemGetDriverVersion(text, 95):
                return printable(text.value.decode("ascii", "replace"), 40)
    return ""


def nvidia_words(driver: str, major: int = OURS) -> str:
    """Which driver is there, which is needed by what was built for that CUDA, and what works
    without."""
    needed = f"{OLDEST[major]} or newer (CUDA {major})"
    number = re.match(r"\d+", driver)
    if number is None:
        return f"No NVIDIA driver is here, and bench's GPU part needs {needed}: {_WITHOUT}."
    if int(number[0]) < OLDEST[major]:
        return f"NVIDIA's driver here is {driver}, and bench needs {needed}: {_WITHOUT}."
    return f"NVIDIA's driver here is {driver}, which is what bench needs: {needed}."


@dataclass(frozen=True)
class Wsl:
    """Windows' Linux: its version, and whether Windows lends it a GPU (/dev/dxg)."""

    version: int
    has_gpu: bool

    @property
    def words(self) -> str:
        """What it means for a measurement."""
        if self.version == 1:
            return "This is WSL 1, which has no GPU: wsl --set-version changes it to 2."
        if not self.has_gpu:
            return (
                "This is WSL 2, and Windows lends it no GPU (/dev/dxg is missing): install the "
                "card's driver in Windows, none here, and restart it by wsl --shutdown."
            )
        return (
            "This is WSL 2 with a GPU (/dev/dxg), whose driver is that of Windows: clocks, "
            "throttling and energy may be missing in the rows, and each launch passes through "
            "Windows, so that times are of WSL and not of Linux on this card."
        )


def wsl(root: Path = Path("/")) -> Wsl | None:
    """Whether this is WSL; None elsewhere."""
    with suppress(OSError):
        kernel = (root / "proc/sys/kernel/osrelease").read_text("utf-8", errors="replace").lower()
        if "microsoft" in kernel or "wsl" in kernel:
            # The kernel of the first is no Linux, and calls itself 4.4.0-19041-Microsoft.
            is_first = kernel.startswith("4.4.") and "wsl2" not in kernel
            return Wsl(1 if is_first else 2, (root / "dev/dxg").exists())
    return None


def words(major: int = OURS, root: Path = Path("/")) -> Iterator[str]:
    """A sentence each on what there is."""
    if found_wsl := wsl(root):
        yield found_wsl.words
    if sys.platform == "darwin":
        yield (
            f"macOS has no CUDA ({platform.machine()}): crossover_bench.ask and two measure an "
            "Apple GPU in PyTorch, by its device mps."
        )
        return
    yield nvidia_words(nvidia_driver(), major)


def pytorch_words() -> str:
    """What a copy without bench measures, by the PyTorch of this Python; a sentence."""
    if importlib.util.find_spec("torch") is None:
        return (
            "This copy has no bench, and this Python no PyTorch: with one, crossover_bench.ask "
            "measures your training loop, and two any functions."
        )
    # NumPy and the like: ./run starts without them.
    from crossover_bench.peers.pytorch import devices  # noqa: PLC0415

    kind = devices.first()
    if not kind:
        return (
            "This copy has no bench, and PyTorch sees no GPU here: crossover_bench.ask measures "
            "the CPU, and predicts cards."
        )
    name = devices.name_of(devices.of_kind(kind))
    return (
        f"This copy has no bench; PyTorch sees {printable(name, 60)} ({kind}), which "
        "crossover_bench.ask and two measure."
    )
