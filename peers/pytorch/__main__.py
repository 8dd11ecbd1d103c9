# SPDX-License-Identifier: Apache-2.0
"""`python -m peers.pytorch`: PyTorch's rows alone, into a file of their own."""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peers.arguments import add_wanted, refuse, wanted
from peers.counts import BenchError, Counts, ask, planned
from peers.document import Framework, PeerRow, check_against, merged, write
from peers.names import Wanted, configuration_of, counterparts, name_of
from peers.pytorch.worker import Rows

_SIX = 6  # digits of a time on the terminal


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m peers.pytorch",
        description="Measures PyTorch on the work of bench's rows and writes a result file. "
        "Further arguments are bench's and say which rows those are: --threads, --precision, "
        "--family, --model, --mlp, --batch, --sweep. To compare, let both take turns: "
        "./run --with-peers.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, required=True, help="write the rows to this file")
    parser.add_argument("--filter", default="", help="only rows whose name has this expression")
    parser.add_argument("--repetitions", type=int, default=9, help="of each row (default: 9)")
    parser.add_argument(
        "--min-time", type=float, default=0.1, help="seconds of a repetition (default: 0.1)"
    )
    parser.add_argument(
        "--beside", type=Path, help="a result file of bench's whose first losses must agree"
    )
    add_wanted(parser)
    options, passed = parser.parse_known_args(arguments)
    refuse(parser, passed)
    if options.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    try:
        names = planned(options.bench, passed)
        context = json.loads(ask(options.bench, "--context", *passed))
    except BenchError as error:
        parser.error(str(error))
    asked = wanted(parser, options)
    peer = Rows()
    described = peer.describe()
    rows = _rows(names, asked, options.filter, described["gpu"] is not None)
    if not rows:
        parser.error("no row of PyTorch's does the work of these rows of bench's")
    run = context["crossover"]["configuration"]
    run["command"] = ["pytorch", *arguments]
    run |= {"repetitions": options.repetitions, "min_time_seconds": options.min_time}
    counts = Counts(options.bench, passed)
    beside = json.loads(options.beside.read_text("utf-8"))["rows"] if options.beside else []
    empty = {"context": context, "rows": [], "benchmarks": []}
    framework = Framework(described)
    failed, start = 0, time.monotonic()
    for done, row in enumerate(rows, 1):
        _measure(peer, row, counts, options.repetitions, options.min_time)
        _check(row, beside)
        failed += row.outcome == "failed"
        left = (time.monotonic() - start) / done * (len(rows) - done)
        print(f"[{done}/{len(rows)}] {_said(row)}  [{left:.0f} s left]", flush=True)
        write(options.out, merged(empty, rows[:done], framework, done == len(rows)))
    return 1 if failed else 0


def _rows(names: Sequence[str], asked: Wanted, pattern: str, has_gpu: bool) -> list[PeerRow]:
    """Once each, in the order of bench's; those of a GPU where PyTorch sees one."""
    found: dict[str, PeerRow] = {}
    for name in names:
        for configuration in counterparts(configuration_of(name), asked):
            own = name_of(configuration)
            is_there = has_gpu or configuration["device"] != "torch-cuda"
            if is_there and re.search(pattern, own):
                found.setdefault(own, PeerRow(configuration))
    return list(found.values())


def _measure(
    peer: Rows, row: PeerRow, counts: Counts, repetitions: int, min_time_seconds: float
) -> None:
    try:
        answer = peer.prepare(row.name, row.configuration, counts.of(row.configuration))
    except BenchError as error:
        answer = {"outcome": "failed", "error_message": str(error)}
    if row.end(answer):
        return
    row.facts, row.once = answer["facts"], answer["once"]
    for _ in range(repetitions):
        answer = peer.repeat(row.name, min_time_seconds)
        if row.end(answer):
            return
        row.times.append(answer["times"])
    peer.release(row.name)


def _check(row: PeerRow, beside: Sequence[dict[str, Any]]) -> None:
    """With the first row of bench's that does the same work."""
    for ours in beside:
        same = counterparts(ours["configuration"], Wanted())
        if row.configuration in same:
            check_against(row, ours)
            return


def _said(row: PeerRow) -> str:
    if row.outcome:
        return f"{row.name}  {row.outcome}: {row.error_message}"
    seconds = sorted(row.seconds)
    return f"{row.name}  {seconds[len(seconds) // 2]:.{_SIX}g} s"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
