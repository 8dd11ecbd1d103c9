# SPDX-License-Identifier: Apache-2.0
"""Two commands as a peer of bench: each has a size and a number of steps; each run is a process.

    python peers/command.py PLAN

`./run two` starts it. PLAN is a Plan as JSON, percent-encoded: one word for any shell. The commands
come in as a peer so that turns, passes, pairs, refinement, --resume and the file are bench's own,
the same for commands as for networks; here is only what a repetition of a command is.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from peers.protocol import Answer, Configuration, alive, serve
from plots import __version__

SIDES = ("first", "second")
_PAUSE_SECONDS = 0.5
_LONGEST = 200  # characters of a quoted line


class CommandFailed(Exception):  # noqa: N818 - a sentence for the user
    """Why a command gave no time."""


@dataclass(frozen=True)
class Plan:
    """What is asked: commands with {n} and {steps}, sizes, few and many steps, the seconds that a
    run may take, and the command that compares outputs, empty where none does."""

    first: str
    second: str
    sizes: tuple[int, ...]
    steps: tuple[int, int]
    limit: float
    equal: str = ""

    @staticmethod
    def of(word: str) -> Plan:
        told = json.loads(unquote(word))
        few, many = told.pop("steps")
        return Plan(**{**told, "sizes": tuple(told["sizes"]), "steps": (few, many)})

    @property
    def word(self) -> str:
        return quote(json.dumps(asdict(self)), safe="")

    def command(self, side: str, size: str, steps: str) -> str:
        return str(getattr(self, side)).replace("{n}", size).replace("{steps}", steps)


Run = Callable[[str, float, Path], tuple[float, float]]


class Commands:
    """The rows of both commands. `run` returns the seconds of a run by the wall clock and of its
    processors; its output goes into a file."""

    def __init__(self, plan: Plan, run: Run) -> None:
        self._plan = plan
        self._run = run
        self._prepared: dict[str, str] = {}
        self._outputs: dict[tuple[str, str, str], Path] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="crossover-two-")

    def describe(self) -> Answer:
        rows = [row for size in self._plan.sizes for row in self._rows(str(size))]
        told = {"program": "command", "libraries": {}, "version": __version__, "rows": rows}
        return told | asdict(self._plan)

    def rows(self, configuration: Configuration, **_: Any) -> Answer:
        """Those of a size; they do no work of bench's rows."""
        is_command = configuration["family"] == "Command"
        return {"rows": self._rows(configuration["size"]) if is_command else []}

    def _rows(self, size: str) -> list[dict[str, Any]]:
        of_size = {"family": "Command", "size": size}
        return [
            {"configuration": {**of_size, "program": side, "step_count": str(steps)}}
            for side in SIDES
            for steps in self._plan.steps
        ]

    def prepare(
        self,
        row: str,
        configuration: Configuration,
        counted: dict[str, Any] | None = None,
        iterations: int = 0,
    ) -> Answer:
        """Runs a command once before its first repetition: files and compiled code are in their
        caches then, and its output is compared."""
        del counted
        side, size, steps = (configuration[key] for key in ("program", "size", "step_count"))
        self._prepared[row] = self._plan.command(side, size, steps)
        if iterations:
            return {"facts": {}, "once": {}}
        try:
            seconds = self._first_run(side, size, steps)
            if self._plan.equal and side == SIDES[1]:
                self._compare(size, steps)
        except CommandFailed as failed:
            return {"outcome": "failed", "error_message": str(failed)}
        return {"facts": {}, "once": {"first_call_seconds": seconds}}

    def repeat(self, row: str, min_time_seconds: float, after_another: bool) -> Answer:
        """One run in a new process, however short."""
        del min_time_seconds, after_another
        try:
            wall, processor = self._run(self._prepared[row], self._plan.limit, Path(os.devnull))
        except CommandFailed as failed:
            return {"outcome": "failed", "error_message": str(failed)}
        times = {"real_time": wall * 1e3, "cpu_time": processor * 1e3}
        return {"times": {**times, "time_unit": "ms", "iterations": 1}}

    def release(self, row: str) -> Answer:
        self._prepared.pop(row, None)
        return {}

    def _first_run(self, side: str, size: str, steps: str) -> float:
        output = Path(os.devnull)
        if self._plan.equal:
            output = Path(self._folder.name, f"{side}-{size}-{steps}")
        command = self._plan.command(side, size, steps)
        seconds, _ = self._run(command, self._plan.limit, output)
        self._outputs[side, size, steps] = output
        return seconds

    def _compare(self, size: str, steps: str) -> None:
        first, second = ((side, size, steps) for side in SIDES)
        if first not in self._outputs:
            self._first_run(*first)
        files = [self._outputs.pop(key) for key in (first, second)]
        try:
            self._run(
                f"{self._plan.equal} {files[0]} {files[1]}", self._plan.limit, Path(os.devnull)
            )
        except CommandFailed as failed:
            where = f"at n = {size} and {steps} steps"
            raise CommandFailed(f"the outputs of both differ {where}: {failed}") from None
        finally:
            for file in files:
                file.unlink(missing_ok=True)


def guard() -> Callable[[int], None]:
    """Starts a process that outlives this one, and then ends the group of processes that it was
    told of last: no command runs on when bench is stopped. Returns the function that tells it."""
    heard, told = os.pipe()
    if os.fork() == 0:
        os.setsid()
        os.close(told)
        nothing = os.open(os.devnull, os.O_RDWR)
        for standard in range(3):
            os.dup2(nothing, standard)
        group = 0
        with os.fdopen(heard) as lines:
            for line in lines:
                group = int(line)
        if group:
            _kill(group)
        os._exit(0)
    os.close(heard)

    def tell(group: int) -> None:
        os.write(told, b"%d\n" % group)

    return tell


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def new_process(tell: Callable[[int], None] = lambda _: None) -> Run:
    """Runs commands by the shell, each in its own group; `tell` hears which group runs, and 0 when
    none does."""

    def run(command: str, limit: float, output: Path) -> tuple[float, float]:
        done, late = threading.Event(), threading.Event()
        with tempfile.TemporaryFile() as errors, output.open("wb") as out:
            start = time.perf_counter()
            process = subprocess.Popen(
                ["/bin/sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                start_new_session=True,
            )
            tell(process.pid)

            def watch() -> None:
                while not done.wait(min(_PAUSE_SECONDS, limit)):
                    alive("running it")
                    if time.perf_counter() - start >= limit:
                        late.set()
                        _kill(process.pid)

            watcher = threading.Thread(target=watch)
            watcher.start()
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - start
            done.set()
            watcher.join()
            _kill(process.pid)  # what it left behind
            tell(0)
            process.returncode = os.waitstatus_to_exitcode(status)
            last = _last_line(errors)
        if late.is_set():
            raise CommandFailed(
                f"{_short(command)} did not end within {limit:g} s; give fewer steps, a smaller n, "
                "or a longer --limit"
            )
        if process.returncode != 0:
            code = process.returncode
            how = f"exit code {code}" if code > 0 else f"a signal ({signal.strsignal(-code)})"
            raise CommandFailed(f"{_short(command)} ended with {how}{last and f': {last}'}")
        return wall, usage.ru_utime + usage.ru_stime

    return run


def _short(command: str) -> str:
    return f"'{command}'" if len(command) <= _LONGEST else f"'{command[:_LONGEST]}…'"


def _last_line(errors: Any) -> str:
    """The last line that is not empty, shortened."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
    lines = errors.read().decode("utf-8", "replace").splitlines()
    texts = (" ".join(line.split())[:_LONGEST] for line in reversed(lines))
    return next(filter(None, texts), "")


if __name__ == "__main__":
    serve(Commands(Plan.of(sys.argv[1]), new_process(guard())))
