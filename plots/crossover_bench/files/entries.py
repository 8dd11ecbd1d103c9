# SPDX-License-Identifier: Apache-2.0
"""Joins a file's `rows` and their repetitions in `benchmarks`, and refuses what does not fit."""

from collections.abc import Iterator
from dataclasses import fields as fields_of
from math import floor
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from crossover_bench.files.axes import Axes
from crossover_bench.files.families import FAMILIES, OF_NETWORKS, TRAINING, derived
from crossover_bench.files.ladders import Ladder
from crossover_bench.files.refusal import FaultError, element_words, row_words, shown
from crossover_bench.files.rows import (
    STOLEN,
    Bound,
    Failure,
    Instances,
    MinimumWork,
    Row,
    Verification,
)
from crossover_bench.words.text import printable, whole

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}  # Google Benchmark's time_unit
_NOT_COUNTERS = frozenset({"repetitions", "instance", "iterations", "real_time", "cpu_time"})
# `seconds_per_epoch`, say, and `real_time` are one measurement written twice; digits may be cut.
_SAME_TIME = 1e-3
_SHORTEST = 1e-15  # seconds of an iteration; light goes 0.3 µm
_LONGEST = 1e9  # 30 years; quotients of rates stay numbers
_MEASURED_ONCE = dict.fromkeys(OF_NETWORKS, ("iterations", "first_call_seconds"))  # at least
_DIGITS = 15  # of a count, such as of bytes: a double holds it
# The share of a repetition's time for which others may have had its processors, as bench has it
# (bench/rows/row.cpp), which measures such rows again if it can.
_TOLERATED_WAIT = 0.05
# Of times that cast doubt on themselves; as bench has them, too.
_FEWEST_TIMES = 5  # of fewer nobody can tell
_FAR_APART = 0.25  # of the fastest

Entry = dict[str, Any]
Kind = TypeVar("Kind", bound="DataclassInstance")


def rows_of(document: dict[str, Any], axes: Axes, ladders: tuple[Ladder, ...]) -> tuple[Row, ...]:
    """The rows of the file, in its order; raises FaultError."""
    of_file = {"axes": axes, "ladders": ladders}
    processors = document["context"]["crossover"]["machine"]["cpu"]["threads"]
    repetitions: dict[str, list[Entry]] = {}
    for index, fields in enumerate(document["rows"]):
        name = fields["name"]
        if name in repetitions:
            raise FaultError(
                element_words("rows", index, name),
                'field "name" is that of another row as well; delete one of the two',
            )
        repetitions[name] = []
    for index, entry in enumerate(document["benchmarks"]):
        entries = repetitions.get(entry["name"])
        if entries is None:
            raise FaultError(
                element_words("benchmarks", index, entry["name"]),
                'field "name" is that of none of the "rows"; delete the entry, or measure again',
            )
        entries.append(entry)
    rows = []
    for index, fields in enumerate(document["rows"]):
        try:
            entries = repetitions[fields["name"]]
            rows.append(_row(index, fields, entries, processors, of_file))
        except FaultError as fault:
            raise FaultError(row_words(fields["name"]), str(fault)) from None
    return tuple(rows)


def filled(kind: type[Kind], fields: Entry) -> Kind:
    """An instance of the dataclass `kind`, with what `fields` has of it."""
    names = (field.name for field in fields_of(kind))
    return kind(**{name: fields[name] for name in names if name in fields})


def _numbers(fields: Entry) -> dict[str, float]:
    """The counters among `fields`: every number that is not one of the format's own."""
    return {
        key: float(value)
        for key, value in fields.items()
        if type(value) in (int, float) and key not in _NOT_COUNTERS
    }


def _row(
    index: int, fields: Entry, entries: list[Entry], processors: int, of_file: dict[str, Any]
) -> Row:
    name, configuration = fields["name"], fields["configuration"]
    _check(fields, of_file["axes"])
    failure = None
    if "outcome" in fields:
        failure = Failure(
            fields["outcome"], fields["error_message"], **fields.get("not_verified", {})
        )
    elif len(entries) != fields["repetitions"]:
        raise FaultError(
            f'field "repetitions" is {fields["repetitions"]} but the file has {len(entries)} of '
            "them; measure the row again"
        )
    samples = [entry["real_time"] * UNIT_SECONDS[entry["time_unit"]] for entry in entries]
    counters, measured = ({}, {}) if failure else _counters(fields, entries, samples)
    checked, bound, least = map(fields.get, ("verification", "bound", "minimum_work"))
    disturbed = _disturbed(fields, entries, processors)
    instances = tuple(entry.get("instance", 0) for entry in entries)
    warnings = list(fields.get("warnings", ()))
    if failure is None:
        warnings += _doubts(samples, _of_all(entries, "cpu_steal"))
    if is_disturbed := 2 * disturbed > len(entries):
        warnings.append(
            f"other programs used the processors in {disturbed} of {len(entries)} repetitions"
        )
    return Row(
        name=name,
        index=index,
        configuration=configuration,
        samples=np.array(samples),
        counters=counters,
        measured=measured,
        warnings=tuple(dict.fromkeys(warnings)),
        is_disturbed=is_disturbed,
        as_is=fields.get("as_is", ""),
        cost=fields.get("cost"),
        verification=checked and filled(Verification, checked),
        bound=bound and filled(Bound, {**dict.fromkeys(("name", "seconds", "percent")), **bound}),
        failure=failure,
        workload=fields.get("workload"),
        optimizer=fields.get("label", "") if configuration["family"] in TRAINING else "",
        minimum_work=None if least is None else filled(MinimumWork, least),
        chosen=fields.get("chosen"),
        convolutions=fields.get("convolutions", {}),
        instances=Instances(instances if len(set(instances)) > 1 else ()),
        **of_file,
    )


def _threads(fields: Entry) -> int:
    """Those that have work, and wait where other programs run."""
    configuration = {**fields["configuration"], **fields.get("chosen", {})}
    computing = fields.get("threads_used") or whole(configuration.get("cpu_threads", ""))
    return max(1, int(computing or 1)) + (whole(configuration.get("loader", "")) or 0)


def _disturbed(fields: Entry, entries: list[Entry], processors: int) -> int:
    """In how many repetitions the row's threads waited, in the mean, for processors that other
    programs had, or that a hypervisor took, in the mean over all."""
    threads = _threads(fields)
    lost = zip(_of_all(entries, "cpu_wait"), _of_all(entries, "cpu_steal"), strict=True)
    return sum(wait / threads + steal / processors > _TOLERATED_WAIT for wait, steal in lost)


def _of_all(entries: list[Entry], counter: str) -> list[float]:
    """A share in each repetition, 0 where it was not counted."""
    shares = [entry.get(counter, 0.0) for entry in entries]
    if not any(counter in entry for entry in entries[1:]):
        shares = shares[:1] * len(entries)  # what is the same in all stands in the first
    return shares


def _doubts(samples: list[float], stolen: list[float]) -> Iterator[str]:
    """What times cast doubt on themselves by, in the words of bench (doubts_about_times() in
    bench/rows/row.cpp), which did not always say it."""
    if len(samples) >= _FEWEST_TIMES and (apart := max(samples) / min(samples) - 1) > _FAR_APART:
        share = floor(100 * apart + 0.5)
        yield f"its slowest repetition took {share} % longer than its fastest"
    if times := sum(share > STOLEN for share in stolen):
        most = floor(100 * max(stolen) + 0.5)
        yield (
            f"a hypervisor took up to {most} % of a processor in {times} of {len(stolen)} "
            "repetitions"
        )


def _counters(
    fields: Entry, entries: list[Entry], samples: list[float]
) -> tuple[dict[str, float], dict[str, np.ndarray]]:
    """Row.counters and Row.measured."""
    facts = _numbers(fields)
    family = fields["configuration"]["family"]
    by_repetition = [_numbers(entry) for entry in entries]
    stated = set().union(*by_repetition)
    if both := facts.keys() & stated:
        raise FaultError(
            f'field "{printable(min(both), 40)}" stands in the row and in a repetition of it; '
            "delete one of the two"
        )
    measured: dict[str, list[float]] = {}
    for number, (counters, seconds) in enumerate(zip(by_repetition, samples, strict=True), 1):
        _check_times(fields, number, {**facts, **counters}, seconds)
        # What was measured once stands in the first repetition.
        follows = derived(family, {**facts, **by_repetition[0], **counters}, seconds)
        for key in follows.keys() - stated - facts.keys():
            measured.setdefault(key, []).append(follows[key])
        for key, value in counters.items():
            measured.setdefault(key, []).append(value)
    for key in _MEASURED_ONCE.get(family, ()):
        if not any(key in entry for entry in entries):
            raise FaultError(
                f'field "{key}": is missing in its repetitions; correct it, or measure again '
                "with bench"
            )
    counters = {
        **facts,
        **{
            key: values[0] if all(value == values[0] for value in values) else median(values)
            for key, values in measured.items()
        },
    }
    return counters, {key: np.array(measured[key]) for key in stated}


def _check_times(fields: Entry, number: int, counters: dict[str, float], seconds: float) -> None:
    if not _SHORTEST <= seconds <= _LONGEST:
        end = f"shorter than {_SHORTEST:g}" if seconds < _SHORTEST else f"longer than {_LONGEST:g}"
        raise FaultError(
            f'field "real_time" of repetition {number} is {seconds:g} s but no iteration is '
            f"{end} s; measure the row again"
        )
    # Where a file states a time that also follows from others, both must agree.
    family = FAMILIES.get(fields["configuration"]["family"])
    if family is None:
        return
    field, what = (family.time, family.noun) if family.time else ("seconds", "operation")
    count = 1.0 if family.time else fields["count"]
    stated = counters.get(field)
    if stated is not None and abs(stated * count - seconds) > _SAME_TIME * seconds:
        raise FaultError(
            f'field "{field}" is {stated:g} but real_time of repetition {number} is '
            f"{seconds / count:g} s; both are the wall-clock time of one {what}: measure "
            "again with bench"
        )


def _check(fields: Entry, axes: Axes) -> None:
    """What a JSON Schema cannot say, because it relates two fields."""
    name, configuration = fields["name"], fields["configuration"]
    family, checked = configuration["family"], fields.get("verification")
    if not f"{name}/".startswith(f"{family}/"):
        raise FaultError(
            f'field "configuration.family" is {shown(family)}, which the name does not begin '
            "with; measure again with bench"
        )
    for key, value in configuration.items():
        field = f'field "configuration.{printable(key, 40)}" is'
        if key != "family" and f"/{key}:{value}/" not in f"{name}/":
            raise FaultError(
                f"{field} {shown(value)}, which the name does not say; measure again with bench"
            )
        if key not in axes:
            raise FaultError(
                f"{field} an axis that neither this program nor the file's "
                '"context.crossover.axes" knows; read the file with the Crossover version that '
                "wrote it"
            )
        if axes[key].counts and not whole(value, _DIGITS):
            raise FaultError(
                f"{field} {shown(value)} but must be a whole number from 1 on; measure again with "
                "bench"
            )
    if checked and checked["relative_error"] > checked["tolerance"]:
        raise FaultError(
            f'field "verification.relative_error" is {checked["relative_error"]:g}, above the '
            f"tolerance {checked['tolerance']:g}, so the row computes something else and must be "
            "an error; correct the backend and measure again"
        )
