# SPDX-License-Identifier: Apache-2.0
"""bench and PyTorch in turn, repetition by repetition, into one file: `./run --with-peers`.

Also `python -m peers.compare`. docs/method/peers.md says how it measures.
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
from statistics import median
from types import FrameType

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:  # started by its path, from any folder
    sys.path[0] = str(ROOT)

from peers.arguments import (  # noqa: E402
    add_wanted,
    peer_words,
    refuse,
    require_rest,
    wanted,
)
from peers.counts import Counts  # noqa: E402
from peers.document import (  # noqa: E402
    Document,
    Framework,
    PeerRow,
    check_against,
    median_seconds,
    merged,
    separated,
    write,
)
from peers.processes import Processes  # noqa: E402
from peers.protocol import PeerEnded  # noqa: E402
from peers.turns import Turns  # noqa: E402
from plots import units  # noqa: E402
from plots.cli import main as plots  # noqa: E402

PYTHON = ROOT / ".venv-peers" / "bin" / "python"
RESUME = "--resume"


class Comparison:
    """The two files of a run: bench writes its rows to one of its own, beside that with both."""

    def __init__(self, out: Path) -> None:
        self._out = out
        partial = out.with_name(out.name + ".partial")
        # An older file of that name is replaced when all is done, as bench does.
        self.current = partial if out.exists() else out
        self.own = out.with_name(f".{out.name}.bench.json")
        for left in (self.own, self.own.with_name(self.own.name + ".partial")):
            left.unlink(missing_ok=True)

    def earlier(self, version: str) -> list[PeerRow]:
        """The peer's rows of the run to go on with; bench's are put where bench finds them.
        ValueError where there is no such run."""
        unfinished = self.current if self.current.exists() else self._out
        try:
            document = json.loads(unfinished.read_text("utf-8"))
            known = document["context"]["crossover"]["peers"]["pytorch"]["version"]
            is_complete = document["context"]["crossover"]["complete"]
        except (OSError, ValueError, KeyError, TypeError):
            raise ValueError(f"{unfinished} has no rows of a run with PyTorch") from None
        if is_complete:
            raise ValueError(f"{unfinished} has all its rows; there is nothing to go on with")
        if known != version:
            raise ValueError(f"{unfinished} was measured with PyTorch {known}; this is {version}")
        self.current = unfinished
        ours, theirs = separated(document)
        write(self.own, ours)
        return theirs

    def rows(self) -> Document:
        """bench's document as it is now."""
        document: Document = json.loads(self.own.read_text("utf-8"))
        return document

    def write(self, theirs: Sequence[PeerRow], framework: Framework, complete: bool) -> None:
        """All rows that are finished."""
        document = self.rows()
        names = {row["name"] for row in document["rows"]}
        finished = [row for row in theirs if row.finished and row.lead in names]
        write(self.current, merged(document, finished, framework, complete))

    def close(self, complete: bool) -> Path:
        """The file that has the rows."""
        self.own.unlink(missing_ok=True)
        if complete and self.current != self._out:
            os.replace(self.current, self._out)
            self.current = self._out
        return self.current


def finish_row(ours: str, turns: Turns, files: Comparison, framework: Framework) -> None:
    """The row of bench's is in its file: checks its followers, and writes all rows."""
    document = files.rows()
    facts = next((row for row in document["rows"] if row["name"] == ours), None)
    for row in turns.finish(ours):
        if facts is not None:
            check_against(row, facts)
        print(said(row, median_seconds(document, ours)), flush=True)
    files.write(turns.rows, framework, complete=False)


def said(row: PeerRow, ours: float | None) -> str:
    """A line on a finished row; `ours` are bench's seconds."""
    if row.outcome:
        return f"  {row.name}  {row.outcome}: {row.error_message}"
    middle = median(row.seconds)
    text = f"  {row.name}  {units.seconds(middle)}"
    text += f"  ({units.seconds_range(min(row.seconds), max(row.seconds))})"
    return f"{text}  {units.significant(middle / ours)} times ours" if ours else text


def drive(command: Sequence[str], turns: Turns, files: Comparison, framework: Framework) -> int:
    """Runs bench to its end with a turn after each of its repetitions; its exit code."""
    to_us, from_bench = os.pipe()
    to_bench, from_us = os.pipe()
    process = subprocess.Popen(
        [*command, f"--out={files.own}", f"--take-turns={to_bench},{from_bench}"],
        pass_fds=(to_bench, from_bench),
    )
    os.close(to_bench)
    os.close(from_bench)

    def hand_on(signum: int, _frame: FrameType | None) -> None:
        process.send_signal(signum)

    # Ctrl-C goes to everything on the terminal, bench too, which ends; others may come to us alone.
    before = {signal.SIGINT: signal.signal(signal.SIGINT, lambda *_: None)}
    for signum in (signal.SIGTERM, signal.SIGHUP):
        before[signum] = signal.signal(signum, hand_on)
    try:
        with os.fdopen(to_us, encoding="utf-8") as lines, os.fdopen(from_us, "wb", 0) as answers:
            for line in lines:
                told = json.loads(line)
                if "repeated" in told:
                    turns.take(told["repeated"], told["min_time_seconds"])
                else:
                    finish_row(told["finished"], turns, files, framework)
                with suppress(BrokenPipeError):  # bench was ended meanwhile
                    answers.write(b"\n")
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
    require_rest(parser, os.environ)
    asked = wanted(parser, options)
    processes = Processes([str(options.python), "-m", "peers.pytorch.worker"])
    try:
        described = processes.describe()
    except (OSError, PeerEnded) as error:
        parser.error(f"PyTorch does not run with {options.python}: {error}")
    framework = Framework(described, peer_words(arguments))
    try:
        files = Comparison(options.out)
        try:
            earlier = files.earlier(described["version"]) if RESUME in passed else []
        except ValueError as error:
            parser.error(f"{RESUME}: {error}")
        counts = Counts(options.bench, passed)
        turns = Turns(asked, counts, processes.of, described["gpu"] is not None, earlier)
        code = drive([str(options.bench), *passed], turns, files, framework)
        if not files.own.exists():  # wrong usage: bench has said what
            return code
        complete = bool(files.rows()["context"]["crossover"]["complete"])
        files.write(turns.rows, framework, complete)
        path = files.close(complete)
    finally:
        processes.close()
    if any(row.finished for row in turns.rows):
        print(flush=True)
        plots(["peers", str(path)])
    failed = any(row.outcome == "failed" for row in turns.rows)
    return code or (1 if failed else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
