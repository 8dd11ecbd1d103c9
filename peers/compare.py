# SPDX-License-Identifier: Apache-2.0
"""`python -m peers.compare`: bench and PyTorch in turn, repetition by repetition, into one file.

What ./run --with-peers runs. docs/method/peers.md says how it measures.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType

from peers.arguments import ROOT, add_wanted, refuse, wanted
from peers.counts import Counts
from peers.document import PeerRow, check_against, median_seconds, merged, write
from peers.processes import Processes
from peers.protocol import PeerEnded
from peers.turns import Turns
from plots import units
from plots.cli import main as plots

PYTHON = ROOT / ".venv-peers" / "bin" / "python"


class Comparison:
    """A run: bench writes its rows to a file of its own, beside the one that has both."""

    def __init__(self, out: Path, turns: Turns, described: dict[str, object]) -> None:
        self.turns = turns
        self._described = described
        self._out = out
        # An older file of that name is replaced when all is done, as bench does.
        self._current = out.with_name(out.name + ".partial") if out.exists() else out
        self.own = out.with_name(f".{out.name}.bench.json")
        for left in (self.own, self.own.with_name(self.own.name + ".partial")):
            left.unlink(missing_ok=True)
        self.failed = 0

    def finish_row(self, ours: str) -> None:
        """The row of bench's is in its file: checks its followers, and writes all rows."""
        document = self._read()
        facts = next((row for row in document["rows"] if row["name"] == ours), None)
        for row in self.turns.finish(ours):
            if facts is not None:
                check_against(row, facts)
            self.failed += row.outcome == "failed"
            print(_line(row, median_seconds(document, ours)), flush=True)
        self.write(complete=False)

    def write(self, complete: bool) -> None:
        """All rows that are finished."""
        document = self._read()
        names = {row["name"] for row in document["rows"]}
        theirs = [row for row in self.turns.rows if row.lead in names]
        write(self._current, merged(document, theirs, self._described, complete))

    def close(self, complete: bool) -> Path:
        """The file that has the rows."""
        if self.own.exists():
            self.write(complete)
            self.own.unlink()
        if complete and self._current != self._out and self._current.exists():
            os.replace(self._current, self._out)
            self._current = self._out
        return self._current

    def is_complete(self) -> bool:
        return bool(self._read()["context"]["crossover"]["complete"])

    def _read(self) -> dict[str, object]:
        document: dict[str, object] = json.loads(self.own.read_text("utf-8"))
        return document


def _line(row: PeerRow, ours: float | None) -> str:
    if row.outcome:
        return f"  {row.name}  {row.outcome}: {row.error_message}"
    seconds = sorted(row.seconds)
    middle = seconds[len(seconds) // 2]
    text = f"  {row.name}  {units.seconds(middle)}"
    text += f"  ({units.seconds_range(seconds[0], seconds[-1])})"
    if ours:
        text += f"  {units.significant(middle / ours)} times bench's"
    return text


def drive(bench: Path, arguments: Sequence[str], comparison: Comparison) -> int:
    """Runs bench to its end with a turn after each of its repetitions; its exit code."""
    to_us, from_bench = os.pipe()
    to_bench, from_us = os.pipe()
    command = [str(bench), *arguments, f"--out={comparison.own}"]
    command.append(f"--take-turns={to_bench},{from_bench}")
    process = subprocess.Popen(command, pass_fds=(to_bench, from_bench))
    os.close(to_bench)
    os.close(from_bench)

    def hand_on(signum: int, _frame: FrameType | None) -> None:
        process.send_signal(signum)

    # Ctrl-C goes to everything on the terminal, bench too, which ends; others may come to us alone.
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None),
        signal.SIGTERM: signal.signal(signal.SIGTERM, hand_on),
        signal.SIGHUP: signal.signal(signal.SIGHUP, hand_on),
    }
    try:
        with os.fdopen(to_us, encoding="utf-8") as lines, os.fdopen(from_us, "w") as answers:
            for line in lines:
                told = json.loads(line)
                if "repeated" in told:
                    comparison.turns.take(told["repeated"], told["min_time_seconds"])
                else:
                    comparison.finish_row(told["finished"])
                with suppress(BrokenPipeError):  # bench was ended meanwhile
                    answers.write("\n")
                    answers.flush()
        code = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        for signum, handler in before.items():
            signal.signal(signum, handler)
    return code if code >= 0 else 128 - code


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m peers.compare",
        description="Measures rows of bench and the same work in PyTorch in turn, repetition by "
        "repetition, and writes both into one result file. Further arguments are bench's.",
        allow_abbrev=False,
    )
    parser.add_argument("--out", type=Path, required=True, help="write the rows to this file")
    parser.add_argument(
        "--python",
        type=Path,
        default=PYTHON,
        help="an interpreter that has torch (default: that of .venv-peers)",
    )
    add_wanted(parser)
    options, passed = parser.parse_known_args(arguments)
    refuse(parser, passed)
    asked = wanted(parser, options)
    processes = Processes([str(options.python), "-m", "peers.pytorch.worker"])
    try:
        described = processes.describe()
    except (OSError, PeerEnded) as error:
        parser.error(f"PyTorch does not run with {options.python}: {error}")
    try:
        counts = Counts(options.bench, passed)
        turns = Turns(asked, counts, processes.of, described["gpu"] is not None)
        comparison = Comparison(options.out, turns, described)
        code = drive(options.bench, passed, comparison)
        if not comparison.own.exists():  # wrong usage: bench has said what
            return code
        path = comparison.close(comparison.is_complete())
    finally:
        processes.close()
    print(f"\nours and PyTorch's rows: {path}", flush=True)
    plots(["peers", str(path)])
    return code or (1 if comparison.failed else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
