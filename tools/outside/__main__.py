# SPDX-License-Identifier: Apache-2.0
"""Runs test suites of others and writes docs/evidence/outside.md; ./test --only=outside starts it.

    python -m tools.outside BENCH [--only=SUITE,...]

With --only the page is printed and not written. Exit codes: 0 all well, 1 something is different or
a fault.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from crossover_bench.peers.pytorch.networks import network_of
from crossover_bench.place import ROOT
from crossover_bench.run import environment
from tools.outside import benchmark_tools, intervals, onnx_nodes, page, torch_modules, updates
from tools.outside.kernels import Kernels
from tools.outside.results import Suite

_PAGE = ROOT / "docs" / "evidence" / "outside.md"
_WORKER = "crossover_bench.peers.pytorch"


def _tell(what: str) -> None:
    """One line, which the next overwrites."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{what}", end="", file=sys.stderr, flush=True)


def _of_networks(bench: Path) -> dict[str, Callable[[], Sequence[Suite]]]:
    peer = environment.as_peer(Path(sys.executable), _WORKER, "--mode=eager")

    def by_kernels(suite_of: Callable[..., tuple[Suite, dict[str, dict[str, object]]]]) -> Suite:
        suite, networks = suite_of(_tell)
        trained = [
            case
            for case, described in networks.items()
            if any(True for _ in network_of(described).parameters())
        ]
        _tell(f"{suite.name}: {len(networks)} networks by bench")
        with tempfile.TemporaryDirectory() as folder:
            return Kernels(bench, peer, Path(folder)).verified(suite, networks, trained)

    return {
        "onnx": lambda: [by_kernels(onnx_nodes.suite)],
        "torch": lambda: [by_kernels(torch_modules.suite)],
        "updates": updates.suites,
        "tools": lambda: [*benchmark_tools.suites()],
        "intervals": lambda: [*intervals.suites()],
    }


def _measured(bench: Path) -> str:
    def told(*words: str | Path) -> str:
        done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True)
        return done.stdout.strip()

    machine = json.loads(told(bench, "--machine"))["id"]
    head, built = told("git", "rev-parse", "--short", "HEAD"), told(bench, "--commit")
    by = "" if built.startswith(head) else f", with bench of {built},"
    return f"Run at commit {head}{by} on `{machine}`, by the CPU's kernels alone."


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.outside", allow_abbrev=False)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    asked = parser.parse_args()
    bench = asked.bench.resolve()
    tried = _of_networks(bench)
    if unknown := set(asked.only) - set(tried):
        parser.error(f"there is no suite {min(unknown)!r}; choose from {', '.join(tried)}")
    suites = [suite for name in asked.only or tried for suite in tried[name]()]
    _tell("")
    if lacking := intervals.lacking():
        print(lacking)
    text = page.text_of(suites, _measured(bench))
    if asked.only:
        print(text)
    else:
        _PAGE.write_text(text, encoding="utf-8")
    for suite in suites:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in suite.counts.items())
        print(f"{suite.name} {suite.version}: {counts}")
    return int(any(suite.of("different", "fault") for suite in suites))


if __name__ == "__main__":
    sys.exit(main())
