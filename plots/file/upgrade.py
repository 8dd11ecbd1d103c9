# SPDX-License-Identifier: Apache-2.0
"""Files of schema version 1 in the form of version 2.

In version 1 each repetition was an entry of `benchmarks` that repeated the facts of its row, and
Google Benchmark's aggregates stood beside them.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from plots.file.derived import derived
from plots.file.entries import SAME_TIME, SECONDS, Entry, numbers
from plots.file.refusal import bad, element_words

_RENAMED = {"seconds_unexplained": "seconds_unattributed"}
_OF_A_REPETITION = frozenset({"real_time", "cpu_time", "time_unit"})
_HANDLED = frozenset(  # below, or that say what the place in the file says as well
    {
        *("name", "run_name", "run_type", "repetitions", "repetition_index", "threads"),
        *("family_index", "per_family_instance_index", "configuration", "quality", "warnings"),
        *("verification", "bound", "error_occurred", "error_message", "outcome"),
    }
)


def upgraded(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """The valid `document` in the form of version 2; raises BadFileError."""
    context = document["context"]
    if context["crossover"]["schema_version"] != 1:
        return document
    rows, benchmarks = [], []
    for places in _grouped(path, document["benchmarks"]):
        row, entries = _row(path, places)
        rows.append(row)
        benchmarks += entries
    return {
        "context": {**context, "crossover": {**context["crossover"], "schema_version": 2}},
        "rows": rows,
        "benchmarks": benchmarks,
    }


def is_measured(counter: str) -> bool:
    """Whether it tells a time, a rate or a clock, which another run would measure differently."""
    return "second" in counter or "mhz" in counter or counter == "iterations"


def _grouped(path: Path, entries: list[Entry]) -> list[list[tuple[int, Entry]]]:
    """The repetitions of each row, with their places in the file."""
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
                element_words("benchmarks", index, name),
                f'field "repetition_index" repeats that of benchmarks[{earlier}], which has the '
                "same name; delete one of the two rows",
            )
    for name, index in aggregated.items():
        if name not in repetitions:
            raise bad(
                path,
                element_words("benchmarks", index, name),
                "has aggregates but no repetitions; measure again without "
                "--benchmark_report_aggregates_only",
            )
    return [
        [(index, entries[index]) for index in sorted(places.values())]
        for places in repetitions.values()
    ]


def _row(path: Path, places: list[tuple[int, Entry]]) -> tuple[Entry, list[Entry]]:
    """A row's facts, and its repetitions."""
    first_index, first = places[0]
    samples = []
    failed = None
    for index, entry in places:
        if entry["configuration"] != first["configuration"]:
            raise bad(
                path,
                element_words("benchmarks", index, entry["name"]),
                f'field "configuration" differs from that of benchmarks[{first_index}], which '
                "has the same name; measure again with bench",
            )
        if entry.get("error_occurred"):
            failed = failed or entry
        else:
            samples.append(entry)
    row: Entry = {"name": first["name"], "configuration": first["configuration"]}
    if failed:
        row |= {key: failed[key] for key in ("outcome", "error_message")}
    if not samples:
        return row, []
    row["repetitions"] = samples[0]["repetitions"]
    if warnings := list(dict.fromkeys(flag for entry in samples for flag in entry["quality"])):
        row["warnings"] = warnings
    checked = [entry["verification"] for entry in samples if "verification" in entry]
    if checked:
        row["verification"] = max(checked, key=_doubt)
    if bound := _bound(samples):
        row["bound"] = bound
    facts, counters = _told_apart(samples)
    row |= facts
    entries = [
        {
            "name": first["name"],
            "run_type": "iteration",
            **{key: entry[key] for key in ("real_time", "cpu_time", "time_unit")},
            **own,
        }
        for entry, own in zip(samples, counters, strict=True)
    ]
    return row, entries


def _doubt(checked: dict[str, Any]) -> tuple[bool, float]:
    """By which the verifications of a row's repetitions are put in order: the worst is kept."""
    error, tolerance = checked["relative_error"], checked["tolerance"]
    return error > tolerance, error / tolerance if tolerance else error


def _bound(samples: list[Entry]) -> dict[str, Any] | None:
    """What the repetitions say; a reason where any of them has only that."""
    bounds = [entry["bound"] for entry in samples if "bound" in entry]
    for bound in bounds:
        if "reason" in bound:
            return {"reason": bound["reason"]}
    if not bounds:
        return None
    percent = float(median(bound["percent"] for bound in bounds))
    return {"name": bounds[0]["name"], "seconds": bounds[0]["seconds"], "percent": percent}


def _told_apart(samples: list[Entry]) -> tuple[Entry, list[Entry]]:
    """What is one fact of all `samples`, and the counters that each of them has of its own.

    Left out is what follows from the others.
    """
    following = [_following(sample) for sample in samples]
    samples = [
        {_RENAMED.get(key, key): value for key, value in sample.items() if key not in _HANDLED}
        for sample in samples
    ]
    facts: Entry = {}
    entries: list[Entry] = [{} for _ in samples]
    for key in dict.fromkeys(key for sample in samples for key in sample):
        if key in _OF_A_REPETITION or all(key in names for names in following):
            continue
        values = [sample.get(key) for sample in samples]
        is_counter = all(type(value) in (int, float) for value in values if value is not None)
        if is_counter and any(value != values[0] for value in values):
            for entry, value in zip(entries, values, strict=True):
                if value is not None:
                    entry[key] = value
        elif is_counter and is_measured(key):
            entries[0][key] = values[0]
        else:
            facts[key] = values[0]
    if least := facts.get("minimum_work"):  # what is not there is none
        facts["minimum_work"] = {key: value for key, value in least.items() if value}
    return facts, entries


def _following(sample: Entry) -> set[str]:
    """The counters of `sample` that plots/file/derived.py tells as well."""
    seconds = sample["real_time"] * SECONDS[sample["time_unit"]]
    stated = {_RENAMED.get(key, key): value for key, value in numbers(sample).items()}
    if seconds == 0:  # too small to be divided by: the reader refuses it
        return set()
    found = derived(sample["configuration"]["family"], stated, seconds)
    return {
        key
        for key, value in found.items()
        if key in stated
        and abs(stated[key] - value)
        <= SAME_TIME * (seconds if key == "seconds_unattributed" else value)
    }
