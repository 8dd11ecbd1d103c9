# SPDX-License-Identifier: Apache-2.0
"""Where a run's results go: results/tries/<machine>/<date>-<commit>.json, never over an earlier
one; and from there to results/<machine>/, once it is a complete default or full sweep."""

import datetime
import itertools
import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path

from crossover_bench.files.shortcomings import shortcomings
from crossover_bench.run.console import HOME, Failure, friendly, stored

RESULTS = HOME / "results"
PARTIAL = ".partial"
# How a network is trained, as bench and `plots advise` say it.
_TOLD = ("--batch=", "--rows=", "--optimizer=", "--precision=", "--accumulate=")


def _ask(bench: Path, flag: str) -> str:
    answer = subprocess.run([bench, flag], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        reason = answer.stderr.strip() or f"exit code {answer.returncode}"
        raise Failure(f"{friendly(bench)} {flag}: {reason}")
    return answer.stdout


def machine_of(bench: Path) -> str:
    """The machine's identity as the executable tells it, which also stands in the file."""
    return str(json.loads(_ask(bench, "--machine"))["id"])


def has_gpu(bench: Path) -> bool:
    """Whether bench measures a GPU of this machine; False where that is unknown."""
    with suppress(Failure, OSError, ValueError, KeyError, TypeError):
        return json.loads(_ask(bench, "--machine"))["gpu"] is not None
    return False


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


def _places(out: Path) -> tuple[Path, Path]:
    """Where bench puts rows for the file `out`: while an older one of that name must not be lost,
    beside it."""
    return out.with_name(out.name + PARTIAL), out


def place(out: Path, goes_on: bool) -> Path:
    """Which of these it will be for a run that begins now, or `goes_on` with the rows of an earlier
    one."""
    partial, whole = _places(out)
    if goes_on:
        return partial if partial.is_file() else whole
    return partial if whole.is_file() and whole.stat().st_size > 0 else whole


def _state(path: Path) -> tuple[int, ...]:
    """Of a file: what each writing of it changes, whatever a clock says. Empty: there is none."""
    with suppress(OSError):
        of_file = path.stat()
        return of_file.st_ino, of_file.st_size, of_file.st_mtime_ns, of_file.st_ctime_ns
    return ()


def states(out: Path) -> dict[Path, tuple[int, ...]]:
    """What is there for the file `out` now, for written()."""
    return {path: _state(path) for path in _places(out)}


def written(out: Path, before: dict[Path, tuple[int, ...]]) -> Path | None:
    """Where bench has put rows for `out` since states() told what was there `before`. None where it
    wrote nothing."""
    for path in _places(out):
        if (now := _state(path)) and now != before.get(path, ()):
            return path
    return None


def finished_rows(path: Path) -> int:
    """How many rows a result file holds, measured or not; 0 where there is no file."""
    return len(stored(path).get("rows", []))


def by_widths(path: Path) -> list[tuple[str, list[str]]]:
    """The networks that --mlp named in a run without a GPU, and how they were trained, in words for
    `plots advise`: too few for a curve from which a GPU is predicted."""
    try:
        document = stored(path)
        crossover = document["context"]["crossover"]
        words = [str(word) for word in crossover["configuration"]["command"]]
        models = [str(row["configuration"].get("model")) for row in document["rows"]]
        has_gpu = crossover["machine"]["gpu"] is not None
    except (KeyError, TypeError, AttributeError):
        return []
    if has_gpu or not any(word.startswith("--mlp=") for word in words):
        return []
    told = [word for word in words if word.startswith(_TOLD) and "," not in word]
    return [(name, told) for name in dict.fromkeys(models) if name.startswith("mlp-")]


def remove_if_empty(path: Path) -> None:
    """Leave neither a new file without rows behind, nor a folder without files."""
    if path.exists() and finished_rows(path) == 0:
        path.unlink()
    with suppress(OSError):  # it fails where there are files, as it should
        path.parent.rmdir()
