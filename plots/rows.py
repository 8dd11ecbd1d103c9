# SPDX-License-Identifier: Apache-2.0
"""Loads result files and refuses those that are not what results/README.md defines.

This is the only module that knows the names of the JSON fields: the others see `File` and `Row`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

# jsonschema says the same but needs 25 times as long: 150 s for 200 files of 500 samples.
import fastjsonschema
import numpy as np

from plots.parallel import Map, in_process
from plots.text import printable

SCHEMA_VERSION = 1
SCHEMA_PATH = Path(__file__).with_name("schema.json")
REFERENCE_FOLDER = "reference"  # published figures beside the results: not result files

_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_NOT_COUNTERS = frozenset(
    {
        "family_index",
        "per_family_instance_index",
        "repetitions",
        "repetition_index",
        "threads",
        "iterations",
        "real_time",
        "cpu_time",
    }
)
# `seconds_per_epoch` and `real_time` are one measurement written twice; digits may be cut.
_SAME_TIME = 1e-3
_LARGEST = 1e40  # of any number
_SHORTEST = 1e-15  # seconds of an iteration; light goes 0.3 µm
_OPERATIONS = frozenset({"Gemm", "Layer"})  # whose iterations repeat one operation


class BadFileError(Exception):
    """A file that cannot be used; the message is one sentence that names file, place, remedy."""


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processor; `governor` is None where the system has none."""

    model: str
    sockets: int
    cores: int
    threads: int
    numa_nodes: int
    governor: str | None
    simd: str


@dataclass(frozen=True, slots=True)
class Machine:
    """Where a file was measured; `gpu` is None without a usable GPU, `gpu_reason` says why."""

    id: str
    cpu: Cpu
    memory_bytes: int
    gpu: str | None
    gpu_reason: str
    os: str
    kernel: str


@dataclass(frozen=True, slots=True)
class Software:
    """What was measured; `commit` is empty outside a git checkout."""

    commit: str
    dirty: bool
    compiler: str
    flags: str
    build_type: str
    libraries: dict[str, str]


@dataclass(frozen=True, slots=True)
class Run:
    """How the measurement was started; `data` is empty and `flush_to_zero` None where unknown."""

    command: tuple[str, ...]
    sweep: str
    repetitions: int
    min_time_seconds: float
    environment: dict[str, str]
    data: str
    flush_to_zero: bool | None


@dataclass(frozen=True, slots=True)
class Verification:
    """What was compared: of an epoch, `steps` of its `steps_of` steps; of the results of one
    operation, `entries` of their `entries_of`. The updates of `undetermined_updates` of the steps
    hang on rounding, and were not compared."""

    reference: str
    tolerance: float
    relative_error: float
    steps: int | None = None
    steps_of: int | None = None
    undetermined_updates: int | None = None
    entries: int | None = None
    entries_of: int | None = None


@dataclass(frozen=True, slots=True)
class Bound:
    """What a row can't be faster than, by the ceilings of its file.

    `name` is compute, memory, copy or launch; `seconds` are of one iteration; `percent` is
    what they are of the measured time, the median over the repetitions. Where ceilings are
    missing, only `reason` is set.
    """

    name: str | None
    seconds: float | None
    percent: float | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a row has no result; `outcome` is "failed" or "skipped"."""

    outcome: str
    message: str


@dataclass(frozen=True, slots=True)
class Row:
    """One configuration with all its repetitions.

    `index` is the place of its first repetition in the file, counted from 0. `samples` are
    seconds per iteration, one for each repetition; a failed row may have none. `counters` hold
    the median over the repetitions, in the unit their names give.
    """

    name: str
    index: int
    configuration: dict[str, str]
    samples: np.ndarray
    counters: dict[str, float]
    quality: tuple[str, ...]
    verification: Verification | None
    bound: Bound | None
    failure: Failure | None

    @property
    def family(self) -> str:
        """What kind of row this is, such as Epoch; it decides which counters there are."""
        return self.configuration["family"]

    @property
    def median(self) -> float:
        """Median of the samples in seconds."""
        return float(np.median(self.samples))

    @property
    def minimum(self) -> float:
        """Smallest sample in seconds."""
        return float(self.samples.min())

    @property
    def maximum(self) -> float:
        """Largest sample in seconds."""
        return float(self.samples.max())


@dataclass(frozen=True, slots=True)
class File:
    """One valid result file; `complete` is False where the run was interrupted."""

    path: Path
    date: datetime
    complete: bool
    machine: Machine
    software: Software
    run: Run
    rows: tuple[Row, ...]


def find_files(paths: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """The result files that `paths` name, and one sentence for each path without any.

    A folder stands for every *.json below it, except in folders named "reference" and hidden
    ones. A file named twice comes once.
    """
    found: dict[Path, Path] = {}
    problems = []
    for path in paths:
        if path.is_dir():
            files = sorted(file for file in path.rglob("*.json") if _is_result(path, file))
            if not files:
                problems.append(
                    f"{printable(str(path))}: no result file (*.json) in this folder; "
                    "run ./run to measure, or name another folder"
                )
        else:
            files = [path]
        for file in files:
            found.setdefault(file.resolve(), file)
    return list(found.values()), problems


def load_files(paths: Iterable[Path], apply: Map = in_process) -> tuple[list[File], list[str]]:
    """Every valid file that `paths` name, and one sentence for each that is not.

    `apply` loads them, perhaps several at once.
    """
    candidates, problems = find_files(paths)
    loaded = apply(_file_or_fault, candidates)
    problems += [fault for fault in loaded if isinstance(fault, str)]
    return [file for file in loaded if isinstance(file, File)], problems


def _file_or_fault(path: Path) -> File | str:
    try:
        return load_file(path)
    except BadFileError as error:
        return str(error)


def load_file(path: Path) -> File:
    """Reads and checks one result file; raises BadFileError with the first fault found."""
    document = _parse(path)
    _check_format(path, document)
    _check_finite(path, document, [])
    _check_schema(path, document)
    context = document["context"]
    crossover = context["crossover"]
    return File(
        path=path,
        date=_date(path, context["date"]),
        complete=crossover["complete"],
        machine=_machine(crossover["machine"]),
        software=_software(crossover["software"]),
        run=_run(crossover["configuration"]),
        rows=_rows(path, document["benchmarks"]),
    )


def _is_result(folder: Path, file: Path) -> bool:
    below = [folder.name, *file.relative_to(folder).parts[:-1]]
    hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return REFERENCE_FOLDER not in below and not hidden and not file.is_dir()


def _bad(path: Path, place: str, fault: str) -> BadFileError:
    return BadFileError(": ".join(part for part in (printable(str(path)), place, fault) if part))


def _entry(index: int, name: object) -> str:
    shown = f' ("{printable(name)}")' if isinstance(name, str) else ""
    return f"row benchmarks[{index}]{shown}"


class _RepeatedKeyError(ValueError):
    pass


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # A counter named like a field of Google Benchmark's would silently replace it.
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        key = next(key for key in keys if keys.count(key) > 1)
        name = result.get("name")
        row = f' of row "{printable(name)}"' if isinstance(name, str) else ""
        raise _RepeatedKeyError(f'field "{printable(key)}"{row} occurs twice in one object')
    return result


def _parse(path: Path) -> Any:
    try:
        if path.exists() and not path.is_file():
            raise _bad(path, "", "is not a regular file; name a result file or a folder")
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise _bad(path, "", "no such file; check the path") from None
    except UnicodeDecodeError:
        raise _bad(path, "", "is not UTF-8 text; give a file written by bench") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise _bad(path, "", f"cannot be read ({reason}); check path and permissions") from None
    if not text.strip():
        raise _bad(path, "", "the file is empty; delete it, or measure again")
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string"):
            raise _bad(
                path,
                f"line {error.lineno}",
                "the JSON ends too early, so the file was cut off; copy it again from its "
                "source, or measure again",
            ) from None
        raise _bad(
            path,
            f"line {error.lineno}, column {error.colno}",
            f"is not JSON ({error.msg}); give a file written by bench",
        ) from None
    except _RepeatedKeyError as error:
        raise _bad(path, "", f"{error}; rename one of them and measure again") from None
    except RecursionError:
        raise _bad(path, "", "is nested too deeply; give a file written by bench") from None
    except ValueError:  # Python refuses integers of more than 4300 digits
        raise _bad(path, "", "holds a number that is too large; measure again") from None


def _check_format(path: Path, document: Any) -> None:
    if (
        not isinstance(document, dict)
        or not isinstance(document.get("context"), dict)
        or not isinstance(document.get("benchmarks"), list)
    ):
        raise _bad(
            path,
            "",
            'is not in Google Benchmark\'s format ("context" and "benchmarks"); '
            "give a file written by bench",
        )
    crossover = document["context"].get("crossover")
    if not isinstance(crossover, dict):
        raise _bad(
            path,
            'field "context.crossover"',
            "is missing, so another Google Benchmark program wrote this file; "
            "give a file written by bench",
        )
    version = crossover.get("schema_version")
    if version != SCHEMA_VERSION or isinstance(version, bool):
        raise _bad(
            path,
            'field "context.crossover.schema_version"',
            f"is {_shown(version)} but this program reads {SCHEMA_VERSION}; read the file with the "
            "Crossover version that wrote it, or measure again",
        )


def _check_finite(path: Path, value: Any, place: list[str | int]) -> None:
    """Python's JSON reader accepts NaN, Infinity and 1e999; the charts and compare.py do not."""
    kind = type(value)
    if kind is dict or kind is list:
        for key, item in value.items() if kind is dict else enumerate(value):
            item_kind = type(item)
            if item_kind is float or item_kind is int:
                # An int has no upper bound in Python; quotients and squares must fit a double.
                if not -_LARGEST < item < _LARGEST:
                    name = value.get("name") if kind is dict else None
                    raise _bad(
                        path,
                        _place([*place, key], name),
                        f"is {_shown(item)} but must be a finite number below {_LARGEST:g}; "
                        "measure the row again",
                    )
            elif item_kind is dict or item_kind is list:
                _check_finite(path, item, [*place, key])


@cache
def _validate() -> Any:
    schema = json.loads(SCHEMA_PATH.read_text(encoding="utf-8"))
    return fastjsonschema.compile(schema, use_default=False)


def _check_schema(path: Path, document: Any) -> None:
    try:
        _validate()(document)
    except fastjsonschema.JsonSchemaValueException as error:
        place: list[str | int] = list(error.path[1:])
        if len(place) > 1 and place[0] == "benchmarks":
            place[1] = int(place[1])
            entry = document["benchmarks"][place[1]]
            name = entry.get("name") if isinstance(entry, dict) else None
        else:
            name = None
        if error.rule == "required":
            missing = next(key for key in error.rule_definition if key not in error.value)
            place.append(missing)
            fault = "is missing"
        else:
            fault = f"is {_shown(error.value)} but {_rule(error.rule, error.rule_definition)}"
        raise _bad(
            path, _place(place, name), f"{fault}; correct it, or measure again with bench"
        ) from None


def _place(place: list[str | int], name: object) -> str:
    """Row and field in words: `row benchmarks[3] ("Epoch/…"): field "real_time"`."""
    row = ""
    if len(place) > 1 and place[0] == "benchmarks":
        row = _entry(int(place[1]), name)
        place = place[2:]
    field = ".".join(printable(str(part), 60) for part in place)
    return ": ".join(part for part in (row, f'field "{field}"' if field else "") if part)


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, str):
        return f'the text "{printable(value, 40)}"'
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "infinite"
    return printable(str(value), 40)


_KINDS = {
    "string": "text",
    "object": "an object",
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "null": "null",
}
_RULES = {
    "const": "must be {}",
    "minimum": "must be at least {}",
    "exclusiveMinimum": "must be greater than {}",
    "minLength": "must not be empty",
    "maxItems": "must have at most {} elements",
    "pattern": "must match {}",
}


def _rule(rule: str, definition: Any) -> str:
    """The rule of the schema that a value breaks, in words."""
    if rule == "type":
        kinds = definition if isinstance(definition, list) else [definition]
        return f"must be {' or '.join(_KINDS[kind] for kind in kinds)}"
    if rule == "enum":
        return f"must be one of {', '.join(map(str, definition))}"
    shown = definition if isinstance(definition, str) else json.dumps(definition)
    return _RULES.get(rule, f"breaks the rule {rule} of plots/schema.json").format(shown)


def _date(path: Path, text: str) -> datetime:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        raise _bad(
            path,
            'field "context.date"',
            f"is {_shown(text)} but must be a date such as 2026-11-21T01:02:03+00:00; "
            "correct it, or measure again with bench",
        ) from None
    # Files are put in order by date, and Python compares no dates with and without a zone.
    return date if date.tzinfo else date.replace(tzinfo=UTC)


def _machine(fields: dict[str, Any]) -> Machine:
    cpu = fields["cpu"]
    return Machine(
        id=fields["id"],
        cpu=Cpu(**{name: cpu[name] for name in Cpu.__dataclass_fields__}),
        memory_bytes=fields["memory_bytes"],
        gpu=fields["gpu"]["name"] if fields["gpu"] else None,
        gpu_reason=fields["gpu_reason"],
        os=fields["os"],
        kernel=fields["kernel"],
    )


def _software(fields: dict[str, Any]) -> Software:
    return Software(**{name: fields[name] for name in Software.__dataclass_fields__})


def _run(fields: dict[str, Any]) -> Run:
    return Run(
        command=tuple(fields["command"]),
        sweep=fields["sweep"],
        repetitions=fields["repetitions"],
        min_time_seconds=fields["min_time_seconds"],
        environment=fields["environment"],
        data=fields.get("data", ""),
        flush_to_zero=fields.get("flush_to_zero"),
    )


def _rows(path: Path, entries: list[dict[str, Any]]) -> tuple[Row, ...]:
    repetitions: dict[str, dict[int | None, int]] = {}  # name → repetition → place in the file
    aggregated: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry["run_type"] == "aggregate":
            aggregated.setdefault(entry["run_name"], index)
            continue
        name, repetition = entry["name"], entry.get("repetition_index")
        earlier = repetitions.setdefault(name, {}).setdefault(repetition, index)
        if earlier != index:
            raise _bad(
                path,
                _entry(index, name),
                f'field "repetition_index" repeats that of benchmarks[{earlier}], which has the '
                "same name; delete one of the two rows",
            )
    for name, index in aggregated.items():
        if name not in repetitions:
            raise _bad(
                path,
                _entry(index, name),
                "has aggregates but no repetitions; measure again without "
                "--benchmark_report_aggregates_only",
            )
    return tuple(
        _row(path, [(index, entries[index]) for index in sorted(places.values())])
        for places in repetitions.values()
    )


def _row(path: Path, repetitions: list[tuple[int, dict[str, Any]]]) -> Row:
    first_index, first = repetitions[0]
    configuration = first["configuration"]
    name = first["name"]
    _check_name(path, first_index, name, configuration)
    failure = None
    samples = []
    for index, entry in repetitions:
        if entry["configuration"] != configuration:
            raise _bad(
                path,
                _entry(index, name),
                f'field "configuration" differs from that of benchmarks[{first_index}], which '
                "has the same name; measure again with bench",
            )
        if entry.get("error_occurred"):
            failure = failure or Failure(entry["outcome"], entry["error_message"])
        else:
            _check_sample(path, index, entry)
            samples.append(entry)
    if failure is None and len(samples) != first["repetitions"]:
        raise _bad(
            path,
            _entry(first_index, name),
            f'field "repetitions" is {first["repetitions"]} but the file has {len(samples)} of '
            "them; measure the row again",
        )
    checked = samples[0].get("verification") if samples else None
    return Row(
        name=name,
        index=first_index,
        configuration=configuration,
        samples=np.array([entry["real_time"] * _SECONDS[entry["time_unit"]] for entry in samples]),
        counters=_counters(samples),
        quality=tuple(dict.fromkeys(flag for entry in samples for flag in entry["quality"])),
        verification=checked
        and Verification(
            **{field: checked.get(field) for field in Verification.__dataclass_fields__}
        ),
        bound=_bound(samples),
        failure=failure,
    )


def _bound(samples: list[dict[str, Any]]) -> Bound | None:
    """What the repetitions say; a reason where any of them has only that."""
    bounds = [entry["bound"] for entry in samples if "bound" in entry]
    for bound in bounds:
        if "reason" in bound:
            return Bound(None, None, None, bound["reason"])
    if not bounds:
        return None
    percent = float(np.median([bound["percent"] for bound in bounds]))
    return Bound(bounds[0]["name"], bounds[0]["seconds"], percent)


def _check_name(path: Path, index: int, name: str, configuration: dict[str, str]) -> None:
    family = configuration["family"]
    if not f"{name}/".startswith(f"{family}/"):
        raise _bad(
            path,
            _entry(index, name),
            f'field "configuration.family" is {_shown(family)}, which the name does not begin '
            "with; measure again with bench",
        )
    for key, value in configuration.items():
        if key != "family" and f"/{key}:{value}/" not in f"{name}/":
            raise _bad(
                path,
                _entry(index, name),
                f'field "configuration.{printable(key, 40)}" is {_shown(value)}, which the name '
                "does not say; measure again with bench",
            )


def _check_sample(path: Path, index: int, entry: dict[str, Any]) -> None:
    """What a JSON Schema cannot say, because it relates two fields."""
    checked = entry.get("verification")
    if checked and checked["relative_error"] > checked["tolerance"]:
        raise _bad(
            path,
            _entry(index, entry["name"]),
            f'field "verification.relative_error" is {checked["relative_error"]:g}, above the '
            f"tolerance {checked['tolerance']:g}, so the row computes something else and must be "
            "an error; correct the backend and measure again",
        )
    timed = entry["real_time"] * _SECONDS[entry["time_unit"]]
    if timed < _SHORTEST:
        raise _bad(
            path,
            _entry(index, entry["name"]),
            f'field "real_time" is {timed:g} s but no iteration is shorter than {_SHORTEST:g} s; '
            "measure the row again",
        )
    times = (("seconds_per_epoch", 1, "epoch"),)
    if entry["configuration"]["family"] in _OPERATIONS:
        times = (("seconds", entry["count"], "operation"),)
    for field, count, what in times:
        stated = entry.get(field)
        if stated is not None and abs(stated * count - timed) > _SAME_TIME * timed:
            raise _bad(
                path,
                _entry(index, entry["name"]),
                f'field "{field}" is {stated:g} but real_time is {timed / count:g} s; '
                f"both are the wall-clock time of one {what}: measure again with bench",
            )


def _counters(samples: list[dict[str, Any]]) -> dict[str, float]:
    """Every number that is not one of Google Benchmark's own fields: median over `samples`."""
    counters = {}
    for key, first in samples[0].items() if samples else ():
        kind = type(first)
        if (kind is float or kind is int) and key not in _NOT_COUNTERS:
            values = [entry[key] for entry in samples if type(entry.get(key)) in (int, float)]
            same = all(value == first for value in values)
            counters[key] = float(first) if same else float(np.median(values))
    return counters
