# SPDX-License-Identifier: Apache-2.0
"""Where a run's results go: results/<machine>/<date>-<commit>.json, never over an earlier one."""

import datetime
import json
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tools.console import ROOT, Failure, friendly, stored

RESULTS = ROOT / "results"
_CLOCK_SECONDS = 2.0


def _ask(bench: Path, flag: str) -> str:
    answer = subprocess.run([bench, flag], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        said = answer.stderr.strip() or f"exit code {answer.returncode}"
        raise Failure(f"{friendly(bench)} {flag}: {said}")
    return answer.stdout


def machine_of(bench: Path) -> str:
    """The machine's identity as the executable tells it, which also stands in the file."""
    return str(json.loads(_ask(bench, "--machine"))["id"])


def has_new_gpu(bench: Path, out: Path) -> bool:
    """Whether there is a GPU of which no complete result lies beside `out`; no where unknown."""
    try:
        gpu = json.loads(_ask(bench, "--machine"))["gpu"]
        complete = [_gpu_of(path) for path in out.parent.glob("*.json")]
        return gpu is not None and gpu["name"] not in complete
    except (Failure, ValueError, KeyError, TypeError):
        return False


def _gpu_of(path: Path) -> str | None:
    """The GPU's name in a complete result file."""
    with suppress(KeyError, TypeError):
        crossover = stored(path)["context"]["crossover"]
        if crossover["complete"] is True:
            return crossover["machine"]["gpu"]["name"]
    return None


def commit_of(bench: Path) -> str:
    return _ask(bench, "--commit").strip()


def new_file(machine: str, commit: str, today: datetime.date, results: Path = RESULTS) -> Path:
    """The first free name for a run of today's."""
    stem = f"{today.isoformat()}-{commit}"
    path = results / machine / f"{stem}.json"
    number = 1
    while path.exists():
        number += 1
        path = results / machine / f"{stem}-{number}.json"
    return path


@dataclass(frozen=True)
class Unfinished:
    """A run that ended before its last row."""

    out: Path  # the file it is for; its rows may be beside that in a .partial
    rows: int
    flags: tuple[str, ...]  # bench's, but for where the rows go and how long it may take


_OF_ONE_RUN = ("--out=", "--benchmark_out=", "--budget=", "--resume")
_PARTIAL = ".partial"


def unfinished(machine: str, commit: str, results: Path = RESULTS) -> list[Unfinished]:
    """Those of this machine and commit, the latest first."""
    with suppress(OSError):
        files = [
            (path.stat().st_mtime, path)
            for pattern in ("*.json", f"*.json{_PARTIAL}")
            for path in (results / machine).glob(pattern)
        ]
        return list(filter(None, (_unfinished(path, commit) for _, path in sorted(files)[::-1])))
    return []


def _unfinished(path: Path, commit: str) -> Unfinished | None:
    try:
        document = stored(path)
        crossover = document["context"]["crossover"]
        software = crossover["software"]
        known, dirty = software["commit"][:7], software["dirty"]
        own = known + ("-dirty" if dirty else "") if known else "unknown"
        if crossover["complete"] is not False or own != commit:
            return None
        words = [str(word) for word in crossover["configuration"]["command"][1:]]
        return Unfinished(
            out=path.with_name(path.name.removesuffix(_PARTIAL)),
            rows=len(document["rows"]),
            flags=tuple(word for word in words if not word.startswith(_OF_ONE_RUN)),
        )
    except (KeyError, TypeError):
        return None


def make_folder(folder: Path) -> None:
    """Make sure that results can be written, before an hour is spent on measuring them."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise Failure(
            f"cannot write results to {friendly(folder)}: {error.strerror}; "
            "name a file elsewhere with --out=FILE",
            code=2,
        ) from None


def written_since(asked: Path, started: float) -> Path | None:
    """Where bench put this run's rows: in the file asked for or, while an older one of that name
    must not be lost, beside it. None where it wrote nothing."""
    for path in (asked.with_name(asked.name + ".partial"), asked):
        with suppress(OSError):
            # File systems may count time more coarsely than our clock.
            if path.stat().st_mtime >= started - _CLOCK_SECONDS:
                return path
    return None


def finished_rows(path: Path) -> int:
    """How many rows a result file holds, measured or not; 0 where there is no file."""
    return len(stored(path).get("rows", []))


def remove_if_empty(path: Path) -> None:
    """Leave neither a new file without rows behind, nor a folder without files."""
    if path.exists() and finished_rows(path) == 0:
        path.unlink()
    with suppress(OSError):  # it fails where there are files, as it should
        path.parent.rmdir()
