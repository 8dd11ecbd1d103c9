# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a worker: `bench --peer="PYTHON -m peers.pytorch"` (docs/method/peers.md)."""

from __future__ import annotations

import argparse
import gc
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from crossover_bench.peers.axes import (
    DEVICES,
    LAYOUTS,
    PAGES,
    SCRIPTS,
    torch_device,
    values_among,
)
from crossover_bench.peers.protocol import Answer, Configuration, serve
from crossover_bench.peers.pytorch import devices
from crossover_bench.peers.pytorch.counterparts import (
    AXES,
    BESIDE,
    ENVIRONMENTS,
    MODES,
    Wanted,
    counterparts,
    on_the_gpu,
)
from crossover_bench.peers.pytorch.ranks import SharesInTurn
from crossover_bench.peers.pytorch.rows import prepare
from crossover_bench.peers.pytorch.training import References, settle
from crossover_bench.peers.rows import Prepared, Served

_HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
# Variables that keep threads spinning for ever, with the values that do.
_SPINS = {
    "OMP_WAIT_POLICY": ("active",),
    "GOMP_SPINCOUNT": ("infinite", "infinity"),
    "KMP_BLOCKTIME": ("infinite",),
}


class Rows(Served):
    """The rows of one process. What a request asks for is a method; its answer is one object."""

    out_of_memory = (MemoryError, torch.cuda.OutOfMemoryError)
    out_of_memory_words = ("can't allocate memory", "backend out of memory")

    def __init__(self, wanted: Wanted | None = None) -> None:
        super().__init__()
        self._wanted = wanted or Wanted()
        self._flushes = settle()
        self._threads = torch.get_num_threads()
        self._references: dict[str, References] = {}  # by ranks
        self._start_seconds = 0.0

    def describe(self) -> Answer:
        """What a result file records of PyTorch, and what rows it has."""
        for name, values in _SPINS.items():
            if os.environ.get(name, "").lower() in values:
                text = (
                    f"{name}={os.environ[name]} keeps the threads of one side spinning while the "
                    "other computes; unset it"
                )
                return {"outcome": "failed", "error_message": text}
        gpu = None
        if kind := self._kind():
            device = torch.device(kind)
            start = time.perf_counter()
            torch.zeros(1, device=device)
            devices.waits_for(device)()
            self._start_seconds = time.perf_counter() - start
            gpu = devices.name_of(device)
        return {
            "program": "pytorch",
            "libraries": {"PyTorch": torch.__version__},
            "axes": [*AXES, torch_device(devices.kinds())],
            "version": torch.__version__,
            "python": platform.python_version(),
            "gpu": gpu,
            "torch_device": kind or None,
            "configuration": torch.__config__.show().strip(),
            "parallel": torch.__config__.parallel_info().strip(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "flush_to_zero": self._flushes and _flushed(),
            "huge_pages": _HUGE.read_text("ascii").strip() if _HUGE.exists() else "",
            "huge_page_memory": os.environ.get("THP_MEM_ALLOC_ENABLE", "") == "1",
        }

    def _kind(self) -> str:
        """PyTorch's name for the GPU that was asked for, or that is here."""
        named = self._wanted.torch_device
        return (named if devices.is_there(named) else "") if named else devices.first()

    def rows(self, configuration: Configuration, *, shape: Sequence[int] = ()) -> Answer:
        """Those that do the work of a row of bench's, whose network has samples of that shape, and
        the variables that each needs."""
        return {
            "rows": [
                {"configuration": row, "environment": _environment(row)}
                for row in (
                    *counterparts(configuration, self._wanted, shape),
                    *on_the_gpu(configuration, self._wanted, shape),
                )
            ]
        }

    def made(self, configuration: Configuration, counted: dict[str, Any] | None) -> Prepared:
        devices.require(configuration)
        return prepare(
            configuration, counted, self._references_of(configuration), self._start_seconds
        )

    def _references_of(self, configuration: Configuration) -> References:
        ranks = configuration.get("ranks", "1")
        if ranks not in self._references:
            self._references[ranks] = (
                References(self._threads, SharesInTurn, ranks=ranks)
                if int(ranks) > 1
                else References(self._threads)
            )
        return self._references[ranks]

    def freed(self, is_last: bool) -> None:
        if is_last:
            torch.compiler.reset()
        gc.collect()
        if kind := devices.first():
            devices.empty_cache(kind)


def _environment(configuration: Configuration) -> dict[str, str]:
    """What must stand when its process begins. One process has one number of ranks, on one device:
    that variable is read by nobody, but tells processes apart."""
    variables = dict(ENVIRONMENTS[configuration.get("pages", "default")])
    if "ranks" in configuration:
        where = f"{configuration['ranks']} on {configuration['device']}"
        variables["CROSSOVER_RANKS"] = where
    return variables


def _flushed() -> bool:
    """Whether every thread takes denormal numbers as zero."""
    denormal = torch.full((1 << 20,), 1e-39)
    return not bool((denormal * 0.5).any())


def _wanted(arguments: Sequence[str]) -> Wanted:
    parser = argparse.ArgumentParser(
        prog="python -m peers.pytorch",
        description="Answers bench's requests for rows of PyTorch's on standard input.",
        allow_abbrev=False,
    )

    def add(flag: str, known: Sequence[str], default: Sequence[str], what: str) -> None:
        text = f"{what}: {', '.join(known)} (default: {', '.join(default)})"
        parser.add_argument(
            f"--{flag}", type=values_among(known), default=tuple(default), help=text
        )

    add("devices", DEVICES, DEVICES, "of bench's rows those on")
    add("layout", LAYOUTS, LAYOUTS, "of images")
    add("mode", MODES, ("eager",), "torch.compile is compile, a CUDA graph of each step graph")
    add("pages", PAGES, ("default",), "of PyTorch's memory on the CPU")
    add("script", SCRIPTS, ("lean",), "batches that lie ready are lean, a loader is usual")
    parser.add_argument(
        "--beside",
        choices=BESIDE,
        default="all",
        help="of bench's rows all, or those that a default run has some beside: networks in f32, "
        "images in one layout, where this PyTorch sees the device",
    )
    parser.add_argument(
        "--torch-device",
        choices=devices.kinds(),
        default="",
        help="PyTorch's name of a GPU for which bench has no rows: trainings that bench has on the "
        "CPU are measured on it, too",
    )
    options = parser.parse_args(arguments)
    among, layouts = options.devices, options.layout
    if options.beside == "default":
        layouts = layouts[:1]
        seen = DEVICES if devices.first() else ("cpu",)
        among = tuple(device for device in among if device in seen)
    return Wanted(
        *(among, layouts, options.mode, options.pages, options.script),
        beside=options.beside,
        torch_device=options.torch_device if "cuda" in among else "",
    )


if __name__ == "__main__":
    serve(Rows(_wanted(sys.argv[1:])))
