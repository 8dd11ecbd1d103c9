# SPDX-License-Identifier: Apache-2.0
"""The newest committed file of each machine as `crossover export` prints it, read by Google
Benchmark's compare.py and by Conbench's adapter."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchadapt.adapters.gbench import GoogleBenchmarkAdapter

from crossover_bench.answers.export.analysis import exported
from crossover_bench.place import ROOT
from tools.outside.results import Suite, Verdict

_COMPARE = Path("/usr/share/benchmark/compare.py")  # of libbenchmark-tools
_SLOWER = 1.25
_DIGITS = 0.005  # three of them
_NANOSECONDS = 0.5  # compare.py's unit is whole ones


def suites() -> Iterator[Suite]:
    logging.getLogger("benchadapt").setLevel(logging.WARNING)
    documents = {
        path.relative_to(ROOT / "results").as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for path in (max(folder.glob("*.json")) for folder in _machines())
    }
    written = {name: exported(document) for name, document in documents.items()}
    conbench = [_of_conbench(name, written[name]) for name in written]
    yield Suite(
        "Conbench's adapter of Google Benchmark",
        version("benchadapt"),
        "each row of an exported file is one point, by the wall clock",
        conbench,
        "committed files",
    )
    if _COMPARE.exists():
        compared = [_of_compare(name, written[name]) for name in written]
        packaged = subprocess.run(
            ["dpkg-query", "-W", "-f=${Version}", "libbenchmark-tools"],
            capture_output=True,
            text=True,
            check=False,
        ).stdout
        yield Suite(
            "Google Benchmark's compare.py",
            packaged or "not known",
            f"an exported file beside one {_SLOWER - 1:.0%} slower: each row is paired and shown "
            "to three digits, or to the nanosecond",
            compared,
            "committed files",
        )


def _machines() -> list[Path]:
    return sorted(path for path in (ROOT / "results").iterdir() if [*path.glob("*.json")])


def _of_conbench(name: str, written: dict[str, Any]) -> Verdict:
    """By the part of the adapter that reads the format; the other asks for a server's settings."""
    _, groups = GoogleBenchmarkAdapter(["true"], Path())._parse_gbench_json(written)
    points = sorted(tuple(case.values) for group in groups.values() for case in group["cases"])
    expected = sorted((entry["real_time"],) for entry in written["benchmarks"])
    if points != expected:
        return Verdict(name, "different", f"{len(points)} points of {len(expected)} rows")
    return Verdict(name, "equal")


def _of_compare(name: str, written: dict[str, Any]) -> Verdict:
    slower = json.loads(json.dumps(written))
    for entry in slower["benchmarks"]:
        entry["real_time"] *= _SLOWER
    with tempfile.TemporaryDirectory() as folder:
        for file, content in (("old", written), ("new", slower)):
            Path(folder, file).write_text(json.dumps(content), encoding="utf-8")
        command = [sys.executable, "-B", str(_COMPARE), "--no-color", "benchmarks", "old", "new"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    if done.returncode:
        return Verdict(name, "fault", done.stderr.strip().splitlines()[-1])
    lines = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines() if "/" in line}
    for entry in written["benchmarks"]:
        change, _, old, *_ = lines.get(entry["name"], ("", "", "nan"))
        seen = abs(float(old) - entry["real_time"])
        is_seen = seen <= max(_NANOSECONDS, _DIGITS * entry["real_time"])
        if change != f"{_SLOWER - 1:+.4f}" or not is_seen:
            return Verdict(name, "different", f"{entry['name']} is {change or 'not paired'}, {old}")
    return Verdict(name, "equal")
