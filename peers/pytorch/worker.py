# SPDX-License-Identifier: Apache-2.0
"""Answers requests for rows: in its own process, a line of JSON each way (docs/method/peers.md)."""

from __future__ import annotations

import gc
import os
import platform
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch

from peers.protocol import Requests, serve
from peers.pytorch.rows import Prepared, prepare, repetition
from peers.pytorch.verification import Mismatch, References

_HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")


class Rows:
    """The rows of one process. What a request asks for is a method; its answer is one object."""

    def __init__(self) -> None:
        self._rows: dict[str, Prepared] = {}
        # Before any other thread of OpenMP is made: those inherit it.
        self._flushes = torch.set_flush_denormal(True)
        self._references = References(torch.get_num_threads())
        self._start_seconds = 0.0
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cudnn.allow_tf32 = False

    def describe(self) -> dict[str, Any]:
        """What a result file records of PyTorch."""
        gpu = None
        if torch.cuda.is_available():
            start = time.perf_counter()
            torch.cuda.init()
            torch.cuda.synchronize()
            self._start_seconds = time.perf_counter() - start
            gpu = torch.cuda.get_device_name()
        return {
            "version": torch.__version__,
            "python": platform.python_version(),
            "gpu": gpu,
            "configuration": torch.__config__.show().strip(),
            "parallel": torch.__config__.parallel_info().strip(),
            "capability": torch.backends.cpu.get_cpu_capability(),
            "flush_to_zero": self._flushes and _flushed(),
            "huge_pages": _HUGE.read_text("ascii").strip() if _HUGE.exists() else "",
            "huge_page_memory": os.environ.get("THP_MEM_ALLOC_ENABLE", "") == "1",
        }

    def prepare(
        self, row: str, configuration: dict[str, str], counted: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Makes and verifies a row: its facts, or how it ended."""
        try:
            made = prepare(configuration, counted, self._references, self._start_seconds)
        except Exception as error:
            return self._ended(row, error)
        self._rows[row] = made
        return {"facts": made.facts, "once": made.once}

    def repeat(self, row: str, min_time_seconds: float) -> dict[str, Any]:
        """One repetition: its times, or how it ended."""
        try:
            return {"times": repetition(self._rows[row], min_time_seconds)}
        except Exception as error:
            return self._ended(row, error)

    def release(self, row: str) -> dict[str, Any]:
        """Frees what the row holds."""
        self._rows.pop(row, None)
        if not self._rows:
            torch.compiler.reset()
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return {}

    def _ended(self, row: str, error: Exception) -> dict[str, Any]:
        self.release(row)
        said = " ".join(str(error).split())[:400] or type(error).__name__
        out_of_memory = isinstance(error, (MemoryError, torch.cuda.OutOfMemoryError)) or (
            "can't allocate memory" in said
        )
        if out_of_memory:
            return {"outcome": "skipped", "error_message": f"out of memory: {said}"}
        if isinstance(error, Mismatch):
            return {"outcome": "failed", "error_message": said}
        return {"outcome": "failed", "error_message": f"{type(error).__name__}: {said}"}


def _flushed() -> bool:
    """Whether every thread takes denormal numbers as zero."""
    denormal = torch.full((1 << 20,), 1e-39)
    return not bool((denormal * 0.5).any())


def main() -> int:
    """Serves standard input and output until the former ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program that asks
    # Whatever else prints, prints to standard error.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        requests: Requests = Rows()
        serve(requests, sys.stdin, answers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
