# SPDX-License-Identifier: Apache-2.0
"""Loads result files and refuses those that are not what results/README.md defines."""

import json
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

# jsonschema says the same but needs 25 times as long: 150 s for 200 files of 500 samples.
import fastjsonschema

from crossover_bench.files.axes import BUILT_IN, OWN
from crossover_bench.files.builds import is_build
from crossover_bench.files.entries import filled, rows_of
from crossover_bench.files.families import COMMAND, FUNCTION
from crossover_bench.files.ladders import declared
from crossover_bench.files.reading import OF_BENCH, parsed, text_of
from crossover_bench.files.refusal import (
    BadFileError,
    FaultError,
    element_words,
    located,
    rule_words,
    shown,
)
from crossover_bench.files.rows import (
    PARTS,
    Cpu,
    File,
    Machine,
    PairedInterval,
    PairedSize,
    Refinement,
    Row,
    Run,
    Software,
)
from crossover_bench.files.samples import with_spreads
from crossover_bench.parallel import Map, in_process
from crossover_bench.place import RUN
from crossover_bench.words.text import printable

SCHEMA_VERSION = 2
SCHEMA_PATH = Path(__file__).with_name("schema.json")
_EARLIER_VERSIONS = Path(__file__).parents[1] / "reference" / "code_versions.json"

_LARGEST = 1e40  # of any number
_SMALLEST = 1e-60  # but 0: what is divided by it stays a number; below what f32 has
_DEEPEST = 64  # lists and objects within each other; bench --resume takes 32
_TOO_DEEP = f"is nested too deeply; {OF_BENCH}"


def find_files(paths: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """The result files that `paths` name, and one sentence for each path that gives none.

    A folder stands for every *.json below it that is not hidden. A file named twice comes once.
    """
    by_identity: dict[str, Path] = {}
    problems: list[str] = []
    for path in paths:
        if os.path.isdir(path):  # Path.is_dir() raises where a name is too long
            files, unread = _files_below(path)
            problems += unread
            if not files and not unread:
                problems.append(
                    f"{printable(str(path))}: no result file (*.json) in this folder; "
                    f"run {RUN} to measure, or name another folder"
                )
        else:
            files = [path]
        for file in files:
            by_identity.setdefault(_identity(file), file)
    return list(by_identity.values()), problems


def load_files(paths: Iterable[Path], apply: Map = in_process) -> tuple[list[File], list[str]]:
    """Every valid file that `paths` name, and one sentence for each that is not.

    `apply` loads them, perhaps several at once.
    """
    candidates, problems = find_files(paths)
    loaded = apply(_file_or_fault, candidates)
    problems += [fault for fault in loaded if isinstance(fault, str)]
    return with_spreads([file for file in loaded if isinstance(file, File)]), problems


def _file_or_fault(path: Path) -> File | str:
    try:
        return _read(path)
    except BadFileError as error:
        return str(error)


def load_file(path: Path) -> File:
    """Reads and checks one result file; raises BadFileError with the first fault found."""
    return with_spreads([_read(path)])[0]


def _read(path: Path) -> File:
    try:
        return _file(path, _parse(path))
    except FaultError as fault:
        raise BadFileError(f"{printable(str(path))}: {fault}") from None


def _file(path: Path, document: Any) -> File:
    _check_format(document)
    _check_finite(document, [])
    _check_schema(document)
    context = document["context"]
    crossover = context["crossover"]
    _check_rows(document)
    axes = BUILT_IN.extended(crossover.get("axes", ()))
    ladders = declared(crossover)
    try:
        date = datetime.fromisoformat(context["date"])
    except ValueError:
        raise FaultError(
            'field "context.date"',
            f"is {shown(context['date'])} but must be a date such as 2026-11-21T01:02:03+00:00; "
            "correct it, or measure again with bench",
        ) from None
    rows = rows_of(document, axes, ladders)
    parts: dict[str, Any] = {
        part: tuple(row for row in rows if _part(row) == part) for part in PARTS
    }
    machine = crossover["machine"]
    return File(
        path=path,
        # Files are put in order by date, and Python compares no dates with and without a zone.
        date=date if date.tzinfo else date.replace(tzinfo=UTC),
        complete=crossover["complete"],
        machine=filled(
            Machine,
            {
                **machine,
                "cpu": filled(Cpu, machine["cpu"]),
                "gpu": _gpu(crossover, parts["peers"]),
            },
        ),
        software=filled(Software, crossover["software"]),
        run=_run(crossover),
        **parts,
        refinements=tuple(map(refinement_of, crossover.get("refinements", ()))),
        two=crossover.get("peers", {}).get("command", {}),
        ladders=ladders,
        networks={fields["name"]: json.dumps(fields) for fields in crossover.get("networks", ())},
        code_versions=_code_versions(crossover),
    )


def _gpu(crossover: dict[str, Any], peers: Sequence[Row]) -> str | None:
    """Its name: as bench tells it, or where bench has none, as the program that has rows on one."""
    if gpu := crossover["machine"]["gpu"]:
        return str(gpu["name"])
    programs = {row.program for row in peers if row.device != "cpu"}
    described = crossover.get("peers", {})
    names = (described.get(program, {}).get("gpu") for program in sorted(programs))
    return next((name for name in names if isinstance(name, str) and name), None)


@cache
def _earlier_versions() -> dict[str, dict[str, int]]:
    return json.loads(_EARLIER_VERSIONS.read_text(encoding="utf-8"))


def _code_versions(crossover: dict[str, Any]) -> dict[str, int]:
    """Those that the file says; of one from before it could, those of its commit."""
    software = crossover["software"]
    known = {} if software["dirty"] else _earlier_versions().get(software["commit"], {})
    return crossover.get("code_versions", known)


def _part(row: Row) -> str:
    """Which of PARTS holds `row`."""
    if row.family in (COMMAND, FUNCTION):
        return "commands" if row.family == COMMAND else "functions"
    if row.program == OWN:
        return "copies" if row.copies > 1 else "rows"
    return "builds" if is_build(row.program) else "peers"


def _check_rows(document: dict[str, Any]) -> None:
    """The parts of the run count all rows, and a row that names its network's fingerprint names
    that of the file."""
    crossover, rows = document["context"]["crossover"], document["rows"]
    parts = crossover.get("parts")
    if parts is not None and (counted := sum(part["rows"] for part in parts)) != len(rows):
        raise FaultError(
            'field "context.crossover.parts"',
            f"counts {counted:,} rows but the file has {len(rows):,}; measure again",
        )
    fingerprints = crossover.get("network_fingerprints", {})
    has_commands = "command" in crossover.get("peers", {})
    for index, row in enumerate(rows):
        if row["configuration"]["family"] == COMMAND and not has_commands:
            raise FaultError(
                element_words("rows", index, row["name"]),
                'is of a command, and the file lacks "context.crossover.peers.command"; measure '
                f"again with {RUN} two",
            )
        model = row["configuration"].get("model")
        fingerprint = fingerprints.get(model)
        if fingerprint is not None and row.get("network", fingerprint) != fingerprint:
            raise FaultError(
                element_words("rows", index, row["name"]),
                f'is of another network than the file\'s "{printable(model)}"; measure it again',
            )


def _files_below(folder: Path) -> tuple[list[Path], list[str]]:
    """Every *.json that is not hidden, in order, and a sentence for each folder not to be read."""
    files: list[Path] = []
    unread: list[str] = []

    def refuse(error: OSError) -> None:
        unread.append(
            f"{printable(str(error.filename))}: cannot be read ({error.strerror}); check path and "
            "permissions"
        )

    for place, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files += [
            Path(place, name)
            for name in names
            if name.endswith(".json") and not name.startswith(".")
        ]
    return sorted(files), unread


def _identity(file: Path) -> str:
    """The path that all names of one file share."""
    try:
        return os.path.realpath(file)
    except (OSError, ValueError):  # reading the file will say what is wrong with its name
        return str(file)


def _parse(path: Path) -> Any:
    text = text_of(path)
    # Files from before the axis `program` say it in the device: torch-cpu, torch-cuda.
    text = re.sub(r"/device:torch-(?=cpu|cuda)", "/program:pytorch/device:", text)
    text = re.sub(r'"device":\s*"torch-(?=cpu|cuda)', '"program":"pytorch","device":"', text)
    return parsed(text)


def _check_format(document: Any) -> None:
    if (
        not isinstance(document, dict)
        or not isinstance(document.get("context"), dict)
        or not isinstance(document.get("benchmarks"), list)
    ):
        raise FaultError(
            f'is not in Google Benchmark\'s format ("context" and "benchmarks"); {OF_BENCH}'
        )
    crossover = document["context"].get("crossover")
    if not isinstance(crossover, dict):
        raise FaultError(
            'field "context.crossover"',
            "is missing, so another Google Benchmark program wrote this file; "
            "give a file written by bench, or read this one with crossover two",
        )
    version = crossover.get("schema_version")
    if type(version) is not int or version != SCHEMA_VERSION:
        raise FaultError(
            'field "context.crossover.schema_version"',
            f"is {shown(version)} but this program reads {SCHEMA_VERSION}; "
            "read the file with the Crossover version that wrote it, or measure again",
        )


def _check_finite(value: Any, place: list[str | int]) -> None:
    """Python's JSON reader accepts NaN, Infinity and 1e999; the charts and compare.py do not."""
    kind = type(value)
    if len(place) > _DEEPEST:
        raise FaultError(_TOO_DEEP)
    if kind is dict or kind is list:
        for key, item in value.items() if kind is dict else enumerate(value):
            item_kind = type(item)
            if item_kind is float or item_kind is int:
                # An int has no upper bound in Python; quotients and squares must fit a double.
                if not -_LARGEST < item < _LARGEST or 0 < abs(item) < _SMALLEST:
                    name = value.get("name") if kind is dict else None
                    raise FaultError(
                        located([*place, key], name),
                        f"is {shown(item)} but must be 0 or a finite number from {_SMALLEST:g} to "
                        f"{_LARGEST:g}; measure the row again",
                    )
            elif item_kind is dict or item_kind is list:
                _check_finite(item, [*place, key])


@cache
def _validator() -> Any:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return fastjsonschema.compile(schema, use_default=False)


def _check_schema(document: Any) -> None:
    try:
        _validator()(document)
    except fastjsonschema.JsonSchemaValueException as error:
        place: list[str | int] = list(error.path[1:])
        if len(place) > 1 and place[0] in ("rows", "benchmarks"):
            place[1] = int(place[1])
            entry = document[place[0]][place[1]]
            name = entry.get("name") if isinstance(entry, dict) else None
        else:
            name = None
        if error.rule == "required":
            missing = next(key for key in error.rule_definition if key not in error.value)
            place.append(missing)
            fault = "is missing"
        else:
            rule = rule_words(str(error.rule), error.rule_definition)
            fault = f"is {shown(error.value)} but {rule}"
        raise FaultError(
            located(place, name), f"{fault}; correct it, or measure again with bench"
        ) from None


def refinement_of(fields: dict[str, Any]) -> Refinement:
    ladder = tuple((float(rung["params"]), rung["winner"]) for rung in fields["ladder"])
    sizes = tuple(
        filled(PairedSize, {**size, "parameters": float(size["params"])})
        for size in fields["sizes"]
    )
    intervals = tuple(
        PairedInterval(of["below"], *(of[end] and float(of[end]) for end in ("low", "high")))
        for of in fields["intervals"]
    )
    parts = {"ladder": ladder, "sizes": sizes, "intervals": intervals}
    return filled(Refinement, {**fields, **parts})


def _run(crossover: dict[str, Any]) -> Run:
    fields = {
        **{"data": "", "flush_to_zero": None, **crossover["configuration"]},
        "command": tuple(crossover["configuration"]["command"]),
        "budget_seconds": crossover.get("budget", {}).get("seconds"),
        "energy": crossover.get("energy", {}),
    }
    return filled(Run, fields)
