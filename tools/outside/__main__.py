# SPDX-License-Identifier: Apache-2.0
"""Runs test suites of others and writes docs/evidence/outside.md; ./test --only=outside starts it.

    python -m tools.outside BENCH [--only=PART,...]

Finished suites are in the page at once, and in build/outside, from which the next run at the same
commit takes them: one that was stopped goes on. With --only the page is printed and not written,
and nothing is taken. Exit codes: 0 all well, 1 something is different or a fault, 130 stopped by
Ctrl-C.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from crossover_bench.peers.pytorch.networks import network_of
from crossover_bench.place import ROOT
from crossover_bench.run import environment
from tools.outside import (
    benchmark_tools,
    intervals,
    light_graphs,
    onnx_nodes,
    page,
    timm_models,
    torch_modules,
    updates,
)
from tools.outside.kernels import Kernels
from tools.outside.results import Kept, Suite, whole

_PAGE = ROOT / "docs" / "evidence" / "outside.md"
_KEPT = ROOT / "build" / "outside"
_STOPPED = 130
_WORKER = "crossover_bench.peers.pytorch"
_BATCH = 8
_BATCH_OF_IMAGES = 2  # of 224 by 224 pixels


def _tell(what: str) -> None:
    """One line, which the next overwrites."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _parts(bench: Path) -> dict[str, Callable[[], Iterable[Suite]]]:
    """The shortest first."""
    peer = environment.as_peer(Path(sys.executable), _WORKER, "--mode=eager")

    def by_kernels(
        suite_of: Callable[..., tuple[Suite, dict[str, dict[str, object]]]], batch: int
    ) -> Iterator[Suite]:
        suite, networks = suite_of(_tell)
        trained = [
            case
            for case, described in networks.items()
            if any(True for _ in network_of(described).parameters())
        ]
        _tell(f"{suite.name}: {len(networks)} networks by bench")
        with tempfile.TemporaryDirectory() as folder:
            yield Kernels(bench, peer, Path(folder), batch).verified(suite, networks, trained)

    return {
        "updates": updates.suites,
        "tools": benchmark_tools.suites,
        "intervals": intervals.suites,
        "torch": lambda: by_kernels(torch_modules.suite, _BATCH),
        "onnx": lambda: by_kernels(onnx_nodes.suite, _BATCH),
        "timm": lambda: by_kernels(timm_models.suite, _BATCH),
        "light": lambda: by_kernels(light_graphs.suite, _BATCH_OF_IMAGES),
    }


def _timed(name: str, part: Callable[[], Iterable[Suite]]) -> Iterator[Suite]:
    """The suites of a part with what each took, told as soon as it is there. A part that breaks is
    a fault, and the others go on."""
    start = time.monotonic()
    for suite in whole(name, part):
        seconds = time.monotonic() - start
        counts = ", ".join(f"{count} {outcome}" for outcome, count in suite.counts.items())
        _tell("")
        print(f"{suite.name} {suite.version}: {counts} ({seconds:.0f} s)", flush=True)
        yield replace(suite, seconds=seconds)
        start = time.monotonic()


def _told(*words: str | Path) -> str:
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True)
    return done.stdout.strip()


def _measured(bench: Path) -> str:
    machine = json.loads(_told(bench, "--machine"))["id"]
    head, built = _told("git", "rev-parse", "--short", "HEAD"), _told(bench, "--commit")
    by = "" if built.startswith(head) else f", with bench of {built},"
    return f"Run at commit {head}{by} on `{machine}`, by the CPU's kernels alone."


def _is_commit() -> bool:
    """Whether what runs is that of the commit; no part reads a page."""
    return not _told("git", "status", "--porcelain", "--untracked-files=no", ".", ":!docs")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.outside", allow_abbrev=False)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    asked = parser.parse_args()
    bench = asked.bench.resolve()
    parts = _parts(bench)
    if unknown := set(asked.only) - set(parts):
        parser.error(f"there is no part {min(unknown)!r}; choose from {', '.join(parts)}")
    timed: dict[str, Callable[[], Iterable[Suite]]] = {
        name: partial(_timed, name, parts[name]) for name in asked.only or parts
    }
    measured = _measured(bench)
    try:
        if asked.only:
            suites = [suite for part in timed.values() for suite in part()]
            print(page.text_of(suites, measured))
        else:
            suites = page.written(_PAGE, measured, timed, Kept(_KEPT, measured, _is_commit()))
    except KeyboardInterrupt:
        print("stopped by Ctrl-C; what has finished is kept", file=sys.stderr)
        return _STOPPED
    if lacking := intervals.lacking():
        print(lacking)
    return int(any(suite.of("different", "fault") for suite in suites))


if __name__ == "__main__":
    sys.exit(main())
