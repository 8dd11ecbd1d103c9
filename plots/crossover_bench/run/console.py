# SPDX-License-Identifier: Apache-2.0
"""Talking to the user: sentences instead of tracebacks, stages with times, commands with logs."""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from crossover_bench.place import IS_CHECKOUT, ROOT

_DATA = Path(os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share"))
# What is written: in the checkout; by an installed copy, which may not be writable, in a folder of
# the user's, the same one wherever it is started, so that --resume finds what there is.
HOME = ROOT if IS_CHECKOUT else _DATA / "crossover"
LOGS = HOME / "build" / "logs"

_HEARTBEAT_SECONDS = 15.0
_COLUMNS = 90
_LINES_AFTER_FAILURE = 40
_ERROR = re.compile(r"\berror: |^CMake Error\b")
_RECENT = 2**20  # bytes of a log, which a fuzzer fills for hours
_SECONDS_TO_STOP = 10.0


class Failure(Exception):  # noqa: N818 - the word for what the user sees
    """A sentence for the user, with the exit code that goes with it."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


class CommandFailed(Failure):
    """A logged command that did not succeed; `lines` are all it printed."""

    def __init__(self, what: str, returncode: int, lines: list[str], log: Path) -> None:
        ending = f"signal {-returncode}" if returncode < 0 else f"exit code {returncode}"
        last = lines[-_LINES_AFTER_FAILURE:]
        first = next((place for place, line in enumerate(lines) if _ERROR.search(line)), len(lines))
        parts = {"its last lines": last}
        if first < len(lines) - len(last):  # a compiler goes on with notes for pages
            half = _LINES_AFTER_FAILURE // 2
            parts = {"its first error": lines[first : first + half], "its last lines": last[-half:]}
        told = "\n  ".join(
            "\n".join([f"{which}:", *(f"    {line}" for line in some)])
            for which, some in parts.items()
        )
        super().__init__(f"{what} failed ({ending}); {told}\n  whole log: {log}")
        self.lines = lines


class Missing(Failure):
    """Why a stage of ./test cannot run here, which is then skipped."""


class Parser(argparse.ArgumentParser):
    """Says in a sentence what is wrong with the command line."""

    def error(self, message: str) -> NoReturn:
        raise Failure(f"{message}; see {self.prog} --help", 2)


# That ask a program to end; Windows has no SIGHUP.
SIGNALS = (signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else []))


class Stopped(BaseException):
    """A signal asked us to stop. Not an Exception, so that nothing but `guarded` swallows it."""

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum


def say(text: str = "") -> None:
    """Everything about progress goes to stderr: stdout belongs to the results."""
    print(text, file=sys.stderr, flush=True)


def friendly(path: Path) -> str:
    """A path as the user would type it: relative where it lies below the current directory."""
    with suppress(ValueError, OSError):
        return str(path.relative_to(Path.cwd())) or "."
    return str(path)


def cores() -> int:
    """The cores we may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def output_of(*command: str | Path, given: str = "") -> str:
    """What a command prints, however it ends; nothing where it cannot run."""
    with suppress(OSError, subprocess.SubprocessError):
        return subprocess.run(
            command,
            input=given,
            timeout=60,
            check=False,
            text=True,
            errors="replace",
            capture_output=True,
        ).stdout
    return ""


def git(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """git in this checkout, or in a folder below; it fails in a copy without a .git."""
    # safe.directory: in containers the checkout often belongs to another user. Ceiling: a copy may
    # lie in somebody else's repository. Names of files are as os.fsdecode() has them.
    return subprocess.run(
        ["git", "-c", f"safe.directory={ROOT}", "-C", ROOT, *words],
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(ROOT.parent)},
        capture_output=True,
        text=True,
        errors="surrogateescape",
        check=False,
    )


def stored(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds; {} where there is none."""
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def seconds_of(flag: str, text: str) -> float:
    """The time in "90", "90s", "10m" or "1.5h", the value of a flag; Failure where it is none."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d+)?)([smh]?)", text)
    seconds = float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]] if match else 0
    if seconds == 0:
        raise Failure(f"{flag}={text}: a time is needed, such as 90s, 10m or 1h", 2)
    return seconds


@contextmanager
def stage(title: str) -> Iterator[None]:
    """Announce what begins, and say how long it took."""
    say(f"{title} ...")
    start = time.monotonic()
    yield
    say(f"  done in {time.monotonic() - start:.1f} s")


def _raise_stopped(signum: int, _frame: FrameType | None) -> None:
    raise Stopped(signum)


def _heed_signals() -> None:
    for signum in SIGNALS:
        # nohup and shells' background jobs ignore signals on purpose; leave those alone.
        if signal.getsignal(signum) != signal.SIG_IGN:
            signal.signal(signum, _raise_stopped)


def guarded(command: str, main: Callable[[list[str]], int]) -> int:
    """Run main; whatever goes wrong ends as one sentence and an exit code, never a traceback."""
    try:
        _heed_signals()
        return main(sys.argv[1:])
    except Failure as failure:
        say(f"{command}: {failure}")
        return failure.code
    except Stopped as stopped:
        say(f"\n{command}: stopped; start it again to go on from here")
        return 128 + stopped.signum
    except BrokenPipeError:
        # The reader of our stdout went away (`| head`); closing it again would only complain.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 128 + getattr(signal, "SIGPIPE", 13)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        say(f"{command}: {where}{error.strerror or error}")
        return 1


def stop(process: "subprocess.Popen[Any]", patience: float = _SECONDS_TO_STOP) -> None:
    """End a child. A terminal's Ctrl-C has reached it already; a plain `kill` of ours has not."""
    for ask in (None, process.terminate, process.kill):
        if ask is not None:
            with suppress(OSError):  # another user's, below sudo
                ask()
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
            return


def _latest(lines: Sequence[str], _seconds: float) -> str:
    return next((line for line in reversed(lines) if line.strip()), "no output yet")


def run_logged(
    what: str,
    command: Sequence[str | Path],
    log: Path,
    patience: float = _SECONDS_TO_STOP,
    words: Callable[[Sequence[str], float], str] = _latest,
) -> list[str]:
    """Run a command with its output in `log`, and show its latest line, or other `words` about its
    lines and the seconds since it began: in place on a terminal, now and then elsewhere. What it
    printed.

    patience: seconds that it gets to end by itself after Ctrl-C.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT
        )
    begin = told = time.monotonic()
    in_place = sys.stderr.isatty() and os.environ.get("TERM", "") not in ("", "dumb")
    try:
        while process.poll() is None:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.2)
            now = time.monotonic()
            if in_place:
                width = shutil.get_terminal_size().columns - 3
                shown = words(_lines(log, _RECENT), now - begin)[:width]
                print(f"\r\033[K  {shown}", end="", file=sys.stderr, flush=True)
            elif now - told >= _HEARTBEAT_SECONDS:
                told = now
                shown = words(_lines(log, _RECENT), now - begin)[:_COLUMNS]
                say(f"  {now - begin:.0f} s: {shown}")
    except Stopped:
        if patience > _SECONDS_TO_STOP:
            say(f"  stopping as soon as {what} has ended")
        raise
    finally:
        if in_place:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
        stop(process, patience)
    if process.returncode != 0:
        raise CommandFailed(what, process.returncode, _lines(log), log)
    return _lines(log)


def _lines(log: Path, last: int = 2**40) -> list[str]:
    """Those of its last bytes."""
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - last))
        return file.read().decode("utf-8", "replace").splitlines()
