# SPDX-License-Identifier: Apache-2.0
"""Takes the entries of a file's `benchmarks` together to rows, and refuses what is not one row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from plots.axes import Axes
from plots.refusal import bad, entry_words, shown
from plots.rows import Bound, Failure, MinimumWork, Row, Verification
from plots.text import printable

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
_SHORTEST = 1e-15  # seconds of an iteration; light goes 0.3 µm
_LEAST = tuple(MinimumWork.__dataclass_fields__)
_OPERATIONS = frozenset({"Gemm", "Layer"})  # whose iterations repeat one operation


def rows_of(path: Path, entries: list[dict[str, Any]], axes: Axes) -> tuple[Row, ...]:
    """The rows of the file `path`, in the order of their first entries; raises BadFileError."""
    repetitions: dict[str, dict[int | None, int]] = {}  # name → repetition → place in the file
    aggregated: dict[str, int] = {}
    for index, entry in enumerate(entries):
        if entry["run_type"] == "aggregate":
            aggregated.setdefault(entry["run_name"], index)
            continue
        name, repetition = entry["name"], entry.get("repetition_index")
        earlier = repetitions.setdefault(name, {}).setdefault(repetition, index)
        if earlier != index:
            raise bad(
                path,
                entry_words(index, name),
                f'field "repetition_index" repeats that of benchmarks[{earlier}], which has the '
                "same name; delete one of the two rows",
            )
    for name, index in aggregated.items():
        if name not in repetitions:
            raise bad(
                path,
                entry_words(index, name),
                "has aggregates but no repetitions; measure again without "
                "--benchmark_report_aggregates_only",
            )
    return tuple(
        _row(path, [(index, entries[index]) for index in sorted(places.values())], axes)
        for places in repetitions.values()
    )


def _row(path: Path, repetitions: list[tuple[int, dict[str, Any]]], axes: Axes) -> Row:
    first_index, first = repetitions[0]
    configuration = first["configuration"]
    name = first["name"]
    _check_name(path, first_index, name, configuration)
    _check_axes(path, first_index, name, configuration, axes)
    failure = None
    samples = []
    for index, entry in repetitions:
        if entry["configuration"] != configuration:
            raise bad(
                path,
                entry_words(index, name),
                f'field "configuration" differs from that of benchmarks[{first_index}], which '
                "has the same name; measure again with bench",
            )
        if entry.get("error_occurred"):
            failure = failure or Failure(entry["outcome"], entry["error_message"])
        else:
            _check_sample(path, index, entry)
            samples.append(entry)
    if failure is None and len(samples) != first["repetitions"]:
        raise bad(
            path,
            entry_words(first_index, name),
            f'field "repetitions" is {first["repetitions"]} but the file has {len(samples)} of '
            "them; measure the row again",
        )
    checked = samples[0].get("verification") if samples else None
    least = samples[0].get("minimum_work") if samples else None
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
        workload=first.get("workload"),
        optimizer=first.get("label", "") if configuration["family"] == "Epoch" else "",
        minimum_work=least and MinimumWork(**{field: least[field] for field in _LEAST}),
        axes=axes,
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
        raise bad(
            path,
            entry_words(index, name),
            f'field "configuration.family" is {shown(family)}, which the name does not begin '
            "with; measure again with bench",
        )
    for key, value in configuration.items():
        if key != "family" and f"/{key}:{value}/" not in f"{name}/":
            raise bad(
                path,
                entry_words(index, name),
                f'field "configuration.{printable(key, 40)}" is {shown(value)}, which the name '
                "does not say; measure again with bench",
            )


def _check_axes(
    path: Path, index: int, name: str, configuration: dict[str, str], axes: Axes
) -> None:
    for key in configuration:
        if key not in axes:
            raise bad(
                path,
                entry_words(index, name),
                f'field "configuration.{printable(key, 40)}" is an axis that neither this program '
                'nor the file\'s "context.crossover.axes" knows; read the file with the Crossover '
                "version that wrote it",
            )


def _check_sample(path: Path, index: int, entry: dict[str, Any]) -> None:
    """What a JSON Schema cannot say, because it relates two fields."""
    checked = entry.get("verification")
    if checked and checked["relative_error"] > checked["tolerance"]:
        raise bad(
            path,
            entry_words(index, entry["name"]),
            f'field "verification.relative_error" is {checked["relative_error"]:g}, above the '
            f"tolerance {checked['tolerance']:g}, so the row computes something else and must be "
            "an error; correct the backend and measure again",
        )
    timed = entry["real_time"] * _SECONDS[entry["time_unit"]]
    if timed < _SHORTEST:
        raise bad(
            path,
            entry_words(index, entry["name"]),
            f'field "real_time" is {timed:g} s but no iteration is shorter than {_SHORTEST:g} s; '
            "measure the row again",
        )
    times = (("seconds_per_epoch", 1, "epoch"),)
    if entry["configuration"]["family"] in _OPERATIONS:
        times = (("seconds", entry["count"], "operation"),)
    for field, count, what in times:
        stated = entry.get(field)
        if stated is not None and abs(stated * count - timed) > _SAME_TIME * timed:
            raise bad(
                path,
                entry_words(index, entry["name"]),
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
