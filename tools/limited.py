# SPDX-License-Identifier: Apache-2.0
"""Stages of minutes: each ends within its own limit and what is left, whatever it does."""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tools.console import ROOT

MINUTES = 9.0  # of one command, unless another limit is given
_GRACE_SECONDS = 8.0  # bench ends at once and keeps its finished rows
_MOST_LOGGED = 2**20  # of one stage: log and results must stay below 16 MiB


@dataclass(frozen=True)
class Stage:
    """Seconds at most, of MINUTES; and flags of bench that name rows."""

    name: str
    most: float
    rows: str = ""
    may_fail: bool = False


def run_limited(command: Sequence[str | Path], path: Path, seconds: float) -> tuple[str, str]:
    """Run a command; a verdict ("passed" or why not), and its output, which is in `path` meanwhile.

    At the limit it is asked to end, as by Ctrl-C, with everything it started, and then made to.
    """
    if seconds < 1:
        return "no time left", ""
    grace = min(_GRACE_SECONDS, seconds / 4)
    last = time.monotonic() + seconds - grace
    limit = ["timeout", "--signal=INT", f"--kill-after={grace}", f"{seconds - grace}"]
    with path.open("wb") as log:
        process = subprocess.Popen(
            [*limit, *map(str, command)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        process.wait()
    finally:
        process.send_signal(signal.SIGINT)
        code = process.wait()
        with suppress(ProcessLookupError):  # what it left running
            os.killpg(process.pid, signal.SIGKILL)
    verdict = f"failed (exit code {code})" if code else "passed"
    if code and time.monotonic() > last:
        verdict = f"out of time after {seconds:.0f} s"
    output = path.read_text(encoding="utf-8", errors="replace")
    path.unlink()
    if len(output) > _MOST_LOGGED:
        half = _MOST_LOGGED // 2
        left_out = f"\n[{len(output) - 2 * half} characters left out]\n"
        output = output[:half] + left_out + output[-half:]
    return verdict, output


def summary(output: str) -> str:
    """What the closing lines of CMake, GoogleTest and compute-sanitizer say; of several processes
    the sums."""
    told = []
    for word in ("PASSED", "FAILED", "SKIPPED"):
        count = sum(map(int, re.findall(rf"\[ +{word} +\] (\d+) tests?[.,]", output)))
        told += [f"{count} {word.lower()}"] if count else []
    told += re.findall(r"Skipped\n(.+)", output)[:1]
    told += re.findall(r"(?:-- (?=(?:No )?GPU b)|=+ (?=[A-Z]+ SUMMARY))(.*)", output)
    return "; ".join(map(str.strip, told))


class Limited:
    """The stages so far, and the time that is left."""

    def __init__(self, log: TextIO, minutes: float) -> None:
        self._log = log
        self._scale = minutes / MINUTES
        self._end = time.monotonic() + minutes * 60
        self.bad = False

    def say(self, text: str) -> None:
        print(text, flush=True)
        self._log.write(text + "\n")
        self._log.flush()

    def stage(
        self,
        stage: Stage,
        command: Sequence[str | Path],
        note: Callable[[str], str] = summary,
    ) -> bool:
        """Run it; whether it passed. `note` makes of its output what to say."""
        begin = time.monotonic()
        most = min(stage.most * self._scale, self._end - begin)
        path = Path(self._log.name).with_name(f"{stage.name.replace(' ', '_')}.log")
        verdict, output = run_limited(command, path, most)
        extra = note(output)
        self._log.write(f"\n$ {shlex.join(map(str, command))}\n{output}")
        self.say(
            f"{stage.name:<16}{time.monotonic() - begin:7.1f} s  {verdict}"
            + (f"; {extra}" if extra else "")
        )
        self.bad |= verdict != "passed" and not stage.may_fail
        return verdict == "passed"
