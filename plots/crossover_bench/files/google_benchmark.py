# SPDX-License-Identifier: Apache-2.0
"""Reads files of other programs' benchmarks: what Google Benchmark 1.5 to 1.9 writes, as JSON or as
CSV, and nvbench's JSON. Each benchmark becomes a timing, with its name as the program has it.

A time is `real_time`, which is the one that a program measured by itself where it did so; the
processor's time is none of a GPU's. Aggregates stand in where a file has nothing else.
"""

import csv
import io
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal

import numpy as np

from crossover_bench.files.entries import UNIT_SECONDS
from crossover_bench.files.loading import find_files
from crossover_bench.files.reading import parsed, text_of
from crossover_bench.files.refusal import FaultError, element_words, shown
from crossover_bench.words.text import printable, whole

_REMEDY = "give what Google Benchmark writes with --benchmark_out, or nvbench with --json"
_HEADER = "name,iterations,real_time,cpu_time,time_unit"
_FITS = ("BigO", "RMS")  # of a complexity, no times
_MIDDLES = ("median", "mean")
_AGGREGATES = ("mean", "median", "stddev", "cv")
_THREADS = re.compile(r"/threads:(\d{1,6})(?:/|$)")
_RELEASE = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.\d{1,4})?(-\d+-g)?")  # as git describes it
_UNDIVIDED = (1, 9)  # from this release on a time of several threads is not divided by them
_MOST_MADE = 50  # repetitions that stand for aggregates
_LEAST, _MOST = 1e-15, 1e9  # seconds: beyond these no clock has measured anything
_OWN = re.compile(r'"crossover":\s*\{')  # what only this project's files have
_NVBENCH: dict[Literal["cpu", "gpu"], str] = {
    "gpu": "nv/cold",
    "cpu": "nv/cpu_only",
}  # what begins the tags of a device's times


@dataclass(frozen=True, slots=True)
class Two:
    """What crossover_bench.two() says of its rows: the problem's name, what its size is called, the
    device of all its sides where that is one, and of each beginning of rows' names which side they
    are of, and in whose place: that of the first ("cpu") or of the others."""

    name: str
    measure: str
    both: Literal["cpu", "gpu"] | None
    sides: Mapping[str, tuple[str, Literal["cpu", "gpu"]]]
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Source:
    """The file of timings; `facts` say of its machine and program what the file does, in words.
    `divides` says whether its library has divided times of several threads by their number; None
    where the file does not tell. `two` is there where crossover_bench.two() has saved it."""

    path: Path
    executable: str = ""
    device_name: str = ""  # of its GPU
    facts: Mapping[str, str] = field(default_factory=dict)
    divides: bool | None = None
    two: Two | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """One benchmark: `seconds` of an iteration, one for each repetition. `failure` says why there
    are none. Where it `is_made`, the file has only aggregates, and `seconds` are numbers with their
    median and deviation. `threads` ran copies of it at once, and `seconds` are theirs divided by
    their number, as far as the source tells how. `device` is known of nvbench alone. Of each
    repetition of crossover_bench.two() `processes` has the number of its process, `copies` the
    seconds of both copies."""

    name: str
    source: Source
    seconds: tuple[float, ...]
    failure: str = ""
    is_made: bool = False
    threads: int = 1
    device: Literal["cpu", "gpu"] | None = None
    processes: tuple[int, ...] = ()
    copies: tuple[float, ...] = ()


def timings_of(path: Path, text: str) -> list[Timing]:
    """The benchmarks that `text` holds, that of the file `path`; raises FaultError."""
    if text.lstrip()[:1] in ("{", "["):
        return of_document(path, parsed(text, _REMEDY))
    return [*_timings(Source(path), _rows_of_csv(text))]


def is_other(document: object) -> bool:
    """Whether `document` is a file of another program's benchmarks."""
    if not isinstance(document, dict) or not isinstance(document.get("benchmarks"), list):
        return False
    context = document.get("context")
    return not (isinstance(context, dict) and "crossover" in context)


def of_document(path: Path, document: Any) -> list[Timing]:
    """timings_of() JSON."""
    if not is_other(document):
        raise FaultError(f'has no list "benchmarks"; {_REMEDY}')
    entries = document["benchmarks"]
    for index, entry in enumerate(entries):
        name = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            place = element_words("benchmarks", index, None)
            raise FaultError(place, f'has no text "name"; {_REMEDY}')
    if any(isinstance(entry.get("states"), list) for entry in entries):
        return [*_of_nvbench(path, document)]
    context = document.get("context")
    return [*_timings(_source(path, context if isinstance(context, dict) else {}), entries)]


def _source(path: Path, context: Mapping[str, Any]) -> Source:
    keys = ("date", "host_name", "executable", "num_cpus", "mhz_per_cpu", "library_version")
    facts = {key: _text(context[key]) for key in keys if key in context}
    gpu = next((context[key] for key in _GPU_KEYS if isinstance(context.get(key), str)), "")
    return Source(path, facts.get("executable", ""), gpu, facts, _divides(context), _two(context))


def _two(context: Mapping[str, Any]) -> Two | None:
    told = context.get("two")
    if not isinstance(told, dict) or told.get("both") not in (None, "cpu", "gpu"):
        return None
    sides, remarks = told.get("sides"), told.get("remarks")
    if not isinstance(sides, dict) or not isinstance(remarks, list):
        return None
    known = {
        stem: (printable(side[0], 80), side[1])
        for stem, side in sides.items()
        if isinstance(side, list) and len(side) == 2 and side[1] in ("cpu", "gpu")
        if isinstance(side[0], str)
    }
    if {device for _, device in known.values()} != {"cpu", "gpu"}:
        return None
    name, measure = (printable(_text(told.get(key)), 80) for key in ("name", "measure"))
    words = tuple(printable(_text(of), 400) for of in remarks)
    return Two(name, measure, told.get("both"), known, words)


def _divides(context: Mapping[str, Any]) -> bool | None:
    """Source.divides. Releases say which they are from 1.8.4 on; between two it may be either."""
    if "library_version" not in context:
        return True if "library_build_type" in context else None
    release = _RELEASE.match(_text(context["library_version"]))
    if release is None or release[1] == release[2] == "0":  # built without git
        return None
    if (int(release[1]), int(release[2])) >= _UNDIVIDED:
        return False
    return None if release[3] else True


_GPU_KEYS = ("gpu", "gpu_name", "device", "device_name")  # of a context that a program adds to


def _text(value: object) -> str:
    return value if isinstance(value, str) else printable(str(value), 60)


# ---- Google Benchmark


@dataclass
class _Benchmark:
    """What the rows of one benchmark say."""

    threads: int
    seconds: list[float] = field(default_factory=list)
    processes: list[int] = field(default_factory=list)
    copies: list[float] = field(default_factory=list)
    failure: str = ""
    aggregates: dict[str, float] = field(default_factory=dict)
    repetitions: int = 0


def _timings(source: Source, rows: Sequence[Mapping[str, Any]]) -> Iterator[Timing]:
    benchmarks: dict[str, _Benchmark] = {}
    names = {row["name"] for row in rows}
    for row in rows:
        name, aggregate = _kind(row, names)
        if aggregate in _FITS:
            continue
        of = benchmarks.setdefault(name, _Benchmark(_threads(name, row)))
        seconds, fault = _seconds_of(row)
        if not aggregate:
            of.failure = of.failure or fault
            if seconds:
                of.seconds.append(seconds)
                of.processes.append(int(_least_of(row, "process")))
                copies = (_least_of(row, f"{key}_seconds") for key in ("brought", "fetched"))
                of.copies.append(sum(copies))
        elif aggregate in _AGGREGATES and not _is_share(row, aggregate):
            value = _number(row.get("real_time")) * _scale(row)
            if seconds or (aggregate == "stddev" and value == 0):
                of.aggregates[aggregate] = value
                of.repetitions = _repetitions(row)
    for name, of in benchmarks.items():
        is_made = not of.seconds and bool(of.aggregates)
        times = _made(of.aggregates, of.repetitions) if is_made else of.seconds
        if is_made and not times:
            continue
        pieces = of.threads if source.divides is False and of.threads > 1 else 1
        each = tuple(time / pieces for time in times)
        failure = "" if each else of.failure or "no time"
        of_two = (tuple(of.processes), tuple(of.copies)) if source.two and not is_made else ()
        yield Timing(name, source, each, failure, is_made, of.threads, None, *of_two)


def _kind(row: Mapping[str, Any], names: set[str]) -> tuple[str, str]:
    """The benchmark's name, and which aggregate the row is; empty for a repetition."""
    name: str = row["name"]
    kind = row.get("run_type")
    if kind == "iteration":
        return name, ""
    if kind == "aggregate":
        aggregate = _text(row.get("aggregate_name", "?"))
        run = row.get("run_name")
        return (run if isinstance(run, str) else name.removesuffix(f"_{aggregate}")), aggregate
    # CSV and old files tell by the name alone; a benchmark may be called so as well.
    stem, _, last = name.rpartition("_")
    if last in _FITS and whole(str(row.get("iterations"))) is None:
        return stem, last
    is_aggregate = last in _AGGREGATES and {f"{stem}_mean", f"{stem}_median"} <= names
    return (stem, last) if is_aggregate else (name, "")


def _threads(name: str, row: Mapping[str, Any]) -> int:
    stated = row.get("threads")
    if isinstance(stated, int) and not isinstance(stated, bool):
        return stated
    match = _THREADS.search(name)
    return int(match[1]) if match else 1


def _seconds_of(row: Mapping[str, Any]) -> tuple[float | None, str]:
    """A row's time; None, and why, where it has none."""
    for flag, message in (("error_occurred", "error_message"), ("skipped", "skip_message")):
        if row.get(flag) is True:
            return None, _text(row.get(message) or "failed")
    time, unit = row.get("real_time"), row.get("time_unit", "ns")
    if math.isnan(_scale(row)):
        return None, f"its unit of time is {shown(unit)}"
    seconds = _number(time) * _scale(row)
    if not _LEAST < seconds < _MOST:
        return None, f"its time is {shown(time)} {unit}"
    return seconds, ""


def _scale(row: Mapping[str, Any]) -> float:
    """How many seconds the row's unit of time is; NaN where nobody knows it."""
    unit = row.get("time_unit", "ns")
    return UNIT_SECONDS.get(unit, math.nan) if isinstance(unit, str) else math.nan


def _number(value: object) -> float:
    """NaN for what is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan


def _least_of(row: Mapping[str, Any], key: str) -> float:
    """A number from 0 on; 0 for what is none."""
    value = _number(row.get(key))
    return value if 0 <= value < _MOST else 0.0


def _is_share(row: Mapping[str, Any], aggregate: str) -> bool:
    return aggregate == "cv" or row.get("aggregate_unit") == "percentage"


def _repetitions(row: Mapping[str, Any]) -> int:
    for key in ("repetitions", "iterations"):
        count = _number(row.get(key))
        if count >= 1:
            return int(min(count, 1e6))
    return 1


def _made(aggregates: Mapping[str, float], repetitions: int) -> tuple[float, ...]:
    """So many numbers with the median and the deviation of `aggregates`; a single one where there
    is no deviation; none without a time."""
    middle = next((aggregates[key] for key in _MIDDLES if key in aggregates), None)
    if middle is None:
        return ()
    count = min(repetitions, _MOST_MADE) if "stddev" in aggregates else 1
    if count < 2:
        return (middle,)
    places = [NormalDist().inv_cdf((place + 0.5) / count) for place in range(count)]
    share = aggregates["stddev"] / aggregates.get("mean", middle)
    scale = min(share, 1.0) / float(np.std(places, ddof=1))
    return tuple(middle * math.exp(scale * place) for place in places)


# ---- its CSV


def _rows_of_csv(text: str) -> list[dict[str, Any]]:
    """The rows under the header; before it a program may have printed what it likes."""
    lines = text.splitlines(keepends=True)
    start = next((at for at, line in enumerate(lines) if line.startswith(_HEADER)), None)
    if start is None:
        raise FaultError(f"is neither JSON nor CSV of Google Benchmark; {_REMEDY}")
    rows = []
    try:
        for row in csv.DictReader(io.StringIO("".join(lines[start:])), strict=True):
            is_cut = None in row.values() and not row.get("error_occurred")
            if not row["name"] or is_cut:  # a failed row has no counters
                raise FaultError(
                    f'row "{printable(row["name"] or "")}"',
                    "has fewer fields than the header, so the file was cut off; measure again",
                )
            rows.append(_of_csv(row))
    except csv.Error as error:
        raise FaultError(f"is not CSV ({error}); {_REMEDY}") from None
    return rows


def _of_csv(fields: Mapping[str, str]) -> dict[str, Any]:
    """A row as JSON has it; text that is no number stays text."""
    row: dict[str, Any] = dict(fields)
    if fields.get("error_occurred") or fields.get("error_message"):
        row["error_occurred"] = True
    row["time_unit"] = fields.get("time_unit") or "ns"
    row.pop("threads", None)  # a counter of that name, if anything
    return row


# ---- nvbench


def _of_nvbench(path: Path, document: Mapping[str, Any]) -> Iterator[Timing]:
    devices = document.get("devices")
    devices = devices if isinstance(devices, list) else []
    known = [of.get("name") for of in devices if isinstance(of, dict)]
    gpu = next((name for name in known if isinstance(name, str)), "")
    source = Source(path, "", gpu, {"device": gpu} if gpu else {})
    for benchmark in document["benchmarks"]:
        for state in benchmark.get("states") or ():
            if isinstance(state, dict):
                yield _of_state(source, benchmark["name"], state)


def _of_state(source: Source, benchmark: str, state: Mapping[str, Any]) -> Timing:
    axes = _named_values(state.get("axis_values"))
    name = "/".join([benchmark, *(f"{key}:{value}" for key, value in axes.items())])
    summaries = state.get("summaries")
    figures = {
        of["tag"]: _number(_named_values(of.get("data")).get("value"))
        for of in (summaries if isinstance(summaries, list) else ())
        if isinstance(of, dict) and isinstance(of.get("tag"), str)
    }
    device, tag = next(
        (pair for pair in _NVBENCH.items() if f"{pair[1]}/time/{pair[0]}/mean" in figures),
        ("gpu", _NVBENCH["gpu"]),
    )
    mean = figures.get(f"{tag}/time/{device}/mean", math.nan)
    if state.get("is_skipped") is True or not _LEAST < mean < _MOST:
        reason = _text(state.get("skip_reason") or "no time")
        return Timing(name, source, (), reason, device=device)
    count, share = (
        figures.get(f"{tag}/{key}", math.nan)
        for key in ("sample_size", f"time/{device}/stdev/relative")
    )
    aggregates = {"mean": mean}
    if 0 < share < math.inf:
        aggregates["stddev"] = mean * share
    made = _made(aggregates, int(min(count, _MOST_MADE)) if count >= 1 else 1)
    return Timing(name, source, made, is_made=True, device=device)


def _named_values(values: object) -> dict[str, str]:
    if not isinstance(values, list):
        return {}
    return {
        of["name"]: _text(of.get("value"))
        for of in values
        if isinstance(of, dict) and isinstance(of.get("name"), str)
    }


# ---- which files are such


def split(paths: Sequence[Path]) -> tuple[list[Path], list[Timing], list[str]]:
    """Of the files that `paths` name, those that other benchmarks did not write, the timings of the
    others, and a sentence for each of these that can't be used. A folder stands for its *.json."""
    rest, timings, faults = list[Path](), list[Timing](), list[str]()
    for path in paths:
        files = find_files([path])[0] if os.path.isdir(path) else [path]
        read = [_timings_or_fault(file) for file in files]
        if all(of is None for of in read):
            rest.append(path)
            continue
        for file, of in zip(files, read, strict=True):
            if of is None:
                rest.append(file)
            elif isinstance(of, str):
                faults.append(of)
            else:
                timings += of
    return rest, timings, faults


def _timings_or_fault(path: Path) -> list[Timing] | str | None:
    """None for a file that is none of other benchmarks, or that can't be read."""
    try:
        text = text_of(path)
        if text.lstrip()[:1] not in ("{", "["):
            is_csv = path.suffix == ".csv" or _HEADER in text
            return timings_of(path, text) if is_csv else None
        if _OWN.search(text):
            return None
        document = parsed(text)
    except FaultError as fault:
        return f"{printable(str(path))}: {fault}" if path.suffix == ".csv" else None
    try:
        return of_document(path, document) if is_other(document) else None
    except FaultError as fault:
        return f"{printable(str(path))}: {fault}"
