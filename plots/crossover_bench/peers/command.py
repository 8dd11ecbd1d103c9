# SPDX-License-Identifier: Apache-2.0
"""Two commands as a peer of bench: each has a size and a number of steps; each run is a process.

    python peers/command.py PLAN

`./run two` starts it. PLAN is a Plan as JSON, percent-encoded: one word for any shell. The commands
come in as a peer so that turns, passes, pairs, refinement, --resume and the file are bench's own,
the same for commands as for networks; here is only what a repetition of a command is.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shlex
import shutil
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
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from crossover_bench import __version__
from crossover_bench.peers.protocol import Answer, Configuration, alive, serve

SIDES = ("first", "second")
_PAUSE_SECONDS = 0.5
_LONGEST = 200  # characters of a quoted line
_LEFT = (
    "it left processes that went on when it had ended, such as one behind a &; they were stopped, "
    "and their work is not in the time"
)


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


class Ran(NamedTuple):
    """The seconds of a run by the wall clock and of its processors, and whether it left processes
    that went on."""

    wall: float
    processor: float
    left: bool = False


Run = Callable[[str, float, Path], Ran]


class Commands:
    """The rows of both commands. `run` runs one, with its output into a file; outputs that are to
    be compared lie in `folder`."""

    def __init__(self, plan: Plan, run: Run, folder: Path) -> None:
        self._plan = plan
        self._run = run
        self._folder = folder
        self._prepared: dict[str, str] = {}
        self._outputs: dict[tuple[str, str, str], Path] = {}

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
            ran = self._run(self._prepared[row], self._plan.limit, Path(os.devnull))
        except CommandFailed as failed:
            return {"outcome": "failed", "error_message": str(failed)}
        times = {"real_time": ran.wall * 1e3, "cpu_time": ran.processor * 1e3}
        answer: Answer = {"times": {**times, "time_unit": "ms", "iterations": 1}}
        return answer | ({"doubts": [_LEFT]} if ran.left else {})

    def release(self, row: str) -> Answer:
        self._prepared.pop(row, None)
        return {}

    def _first_run(self, side: str, size: str, steps: str) -> float:
        output = Path(os.devnull)
        if self._plan.equal:
            output = self._folder / f"{side}-{size}-{steps}"
        ran = self._run(self._plan.command(side, size, steps), self._plan.limit, output)
        self._outputs[side, size, steps] = output
        return ran.wall

    def _compare(self, size: str, steps: str) -> None:
        first, second = ((side, size, steps) for side in SIDES)
        if first not in self._outputs:
            self._first_run(*first)
        files = [self._outputs.pop(key) for key in (first, second)]
        try:
            named = shlex.join(map(str, files))
            self._run(f"{self._plan.equal} {named}", self._plan.limit, Path(os.devnull))
        except CommandFailed as failed:
            where = f"at n = {size} and {steps} steps"
            raise CommandFailed(f"the outputs of both differ {where}: {failed}") from None
        finally:
            for file in files:
                file.unlink(missing_ok=True)


def new_process(folder: Path) -> Run:
    """Runs commands by the shell, each in its own session, from a process that outlives this one:
    no command runs on, in whatever session, when bench is stopped, and `folder` goes."""
    command = [sys.executable, __file__, _KEEP, str(folder)]
    keeper = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert keeper.stdin is not None and keeper.stdout is not None
    requests, answers = keeper.stdin, keeper.stdout

    def run(command: str, limit: float, output: Path) -> Ran:
        with suppress(BrokenPipeError):
            print(json.dumps([command, limit, str(output)]), file=requests, flush=True)
        while not select.select([answers], [], [], _PAUSE_SECONDS)[0]:
            alive("running it")
        told = json.loads(answers.readline() or _GONE)
        if reason := told.get("reason"):
            raise CommandFailed(f"{_short(command)} {reason}")
        return Ran(**told)

    return run


# ---- the process that starts the commands, and gets what they leave behind

_KEEP = "--keep"
_GONE = '{"reason": "was not run: the process that starts the commands has ended"}'
_PR_SET_CHILD_SUBREAPER = 36  # <sys/prctl.h>
_GRACE_SECONDS = 0.1  # for what ends by itself after its parent, such as Python's trackers
_MOST_SECONDS = 5.0  # to end what is left


def _keep(folder: str) -> None:
    """Runs what is asked for on standard input, until that ends."""
    with suppress(AttributeError):  # a system without it
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    for line in sys.stdin:
        try:
            told = _told(*json.loads(line))
        except OSError as error:
            told = {"reason": f"could not be started: {error.strerror}"}
        with suppress(BrokenPipeError):
            print(json.dumps(told), flush=True)
    shutil.rmtree(folder, ignore_errors=True)


def _told(command: str, limit: float, output: str) -> Answer:
    """What came of a run: a Ran as JSON, or the `reason` why it has no time."""
    late = threading.Event()
    ended, end = os.pipe()
    with tempfile.TemporaryFile() as errors, open(output, "wb") as out:
        start = time.perf_counter()
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=errors,
            start_new_session=True,
        )

        def watch() -> None:
            # Nothing is asked during a run: what can be read of standard input is its end.
            heard, _, _ = select.select([ended, 0], [], [], limit)
            if ended not in heard:
                if not heard:
                    late.set()
                _kill(process.pid)

        watcher = threading.Thread(target=watch)
        watcher.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        os.close(end)
        watcher.join()
        os.close(ended)
        left = _end_children()
        code = process.returncode = os.waitstatus_to_exitcode(status)
        if late.is_set():
            remedy = "give fewer steps, a smaller n, or a longer --limit"
            return {"reason": f"did not end within {limit:g} s; {remedy}"}
        if code != 0:
            how = f"exit code {code}" if code > 0 else f"a signal ({signal.strsignal(-code)})"
            last = _last_line(errors)
            return {"reason": f"ended with {how}{last and f': {last}'}"}
    return Ran(wall, usage.ru_utime + usage.ru_stime, left)._asdict()


def _kill(group: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _end_children() -> bool:
    """Ends all processes that a command left behind: those whose parents are gone are ours. Whether
    one was still there after a while. What belongs to another user stays."""
    begin = time.monotonic()
    left = False
    while (waited := time.monotonic() - begin) < _MOST_SECONDS:
        try:
            if os.waitpid(-1, os.WNOHANG)[0]:
                continue
        except ChildProcessError:  # there is none
            break
        if waited >= _GRACE_SECONDS:
            left = True
            for child in _children():
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(child, signal.SIGKILL)
        time.sleep(1e-3)
    return left


def _children() -> list[int]:
    pids = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, ValueError):
            behind_name = path.read_text("utf-8", "replace").rpartition(")")[2]
            if int(behind_name.split()[1]) == os.getpid():
                pids.append(int(path.parent.name))
    return pids


def _short(command: str) -> str:
    return f"'{command}'" if len(command) <= _LONGEST else f"'{command[:_LONGEST]}…'"


def _last_line(errors: Any) -> str:
    """The last line that is not empty, shortened."""
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - 4096))
    lines = errors.read().decode("utf-8", "replace").splitlines()
    texts = (" ".join(line.split())[:_LONGEST] for line in reversed(lines))
    return next(filter(None, texts), "")


if __name__ == "__main__":
    if sys.argv[1] == _KEEP:
        _keep(sys.argv[2])
    else:
        _folder = Path(tempfile.mkdtemp(prefix="crossover-two-"))
        serve(Commands(Plan.of(sys.argv[1]), new_process(_folder), _folder))
