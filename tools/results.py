# SPDX-License-Identifier: Apache-2.0
"""Where a run's results go: results/tries/<machine>/<date>-<commit>.json, never over an earlier
one; and from there to results/<machine>/, once it is a complete default or full sweep."""

import datetime
import itertools
import json
import os
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plots.file.shortcomings import shortcomings
from tools.console import HOME, Failure, friendly, stored

RESULTS = HOME / "results"
_CLOCK_SECONDS = 2.0


def _ask(bench: Path, flag: str) -> str:
    answer = subprocess.run([bench, flag], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = answer.stderr.strip() or f"exit code {answer.returncode}"
        raise Failure(f"{friendly(bench)} {flag}: {reason}")
    return answer.stdout


def machine_of(bench: Path) -> str:
    """The machine's identity as the executable tells it, which also stands in the file."""
    return str(json.loads(_ask(bench, "--machine"))["id"])


def has_new_gpu(bench: Path, out: Path) -> bool:
    """Whether this machine has a GPU without a complete result, also beside `out`; False where that
    is unknown."""
    try:
        machine = json.loads(_ask(bench, "--machine"))
        gpu, folders = machine["gpu"], {out.parent, *folders_of(machine["id"])}
        known = []
        for path in (path for folder in folders for path in folder.glob("*.json")):
            with suppress(KeyError, TypeError):
                crossover = stored(path)["context"]["crossover"]
                known += [crossover["machine"]["gpu"]["name"]] * (crossover["complete"] is True)
        return gpu is not None and gpu["name"] not in known
    except (Failure, ValueError, KeyError, TypeError):
        return False


def commit_of(bench: Path) -> str:
    return _ask(bench, "--commit").strip()


def folders_of(machine: str) -> tuple[Path, Path]:
    """Where runs of a machine begin and tries stay, and where what answers for it goes."""
    return RESULTS / "tries" / machine, RESULTS / machine


def new_file(commit: str, today: datetime.date, *folders: Path) -> Path:
    """In the first of the folders, a name for a run of today's that is free in all of them."""
    stem = f"{today.isoformat()}-{commit}"
    names = itertools.chain([f"{stem}.json"], (f"{stem}-{n}.json" for n in itertools.count(2)))
    free = (name for name in names if not any((folder / name).exists() for folder in folders))
    return folders[0] / next(free)


def why_try(path: Path) -> str:
    """Why a run is no complete default or full sweep, a phrase; empty where it is one."""
    try:
        crossover = stored(path)["context"]["crossover"]
        configuration = crossover["configuration"]
        faults = shortcomings(
            command=[str(word) for word in configuration["command"]],
            data=str(configuration.get("data", "")),
            ended="" if crossover["complete"] is True else "not finished",
            sweep=str(configuration["sweep"]),
            repetitions=int(configuration["repetitions"]),
        )
        return next((shortcoming.fault for shortcoming in faults), "")
    except (KeyError, TypeError, ValueError):
        return "its file can't be read"


def settle(path: Path) -> Path:
    """Move a run that answers for its machine out of the tries, with what lies beside it under the
    same name; say where it is then."""
    tries, answers = folders_of(path.parent.name)
    if path.parent != tries or why_try(path) or (answers / path.name).exists():
        return path
    make_folder(answers)
    for beside in [*path.parent.glob(f"{path.stem}.check"), path]:
        beside.rename(answers / beside.name)
    return answers / path.name


@dataclass(frozen=True)
class EarlierRun:
    """A run that ended, before its last row or with all."""

    out: Path  # the file it is for; its rows may be beside that in a .partial
    rows: int
    flags: tuple[str, ...]  # bench's, but for where the rows go and how long it may take


_OF_ONE_RUN = ("--out=", "--benchmark_out=", "--budget=", "--resume")
_PARTIAL = ".partial"


def earlier_runs(machine: str, commit: str, complete: bool) -> list[EarlierRun]:
    """Those of this machine and commit that have all rows (`complete`), or lack some; the latest
    first."""
    with suppress(OSError):
        files = [
            (path.stat().st_mtime, path)
            for pattern in ("*.json", f"*.json{_PARTIAL}")
            for folder in folders_of(machine)
            for path in folder.glob(pattern)
        ]
        runs = (_earlier_run(path, commit, complete) for _, path in sorted(files)[::-1])
        return list(filter(None, runs))
    return []


def _earlier_run(path: Path, commit: str, complete: bool) -> EarlierRun | None:
    try:
        document = stored(path)
        crossover = document["context"]["crossover"]
        software = crossover["software"]
        known, dirty = software["commit"][:7], software["dirty"]
        of_commit = known + ("-dirty" if dirty else "") if known else "unknown"
        if crossover["complete"] is not complete or of_commit != commit:
            return None
        words = [str(word) for word in crossover["configuration"]["command"][1:]]
        return EarlierRun(
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
