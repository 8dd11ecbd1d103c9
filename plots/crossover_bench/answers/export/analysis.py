# SPDX-License-Identifier: Apache-2.0
"""A result file as Google Benchmark itself would write it, with one entry for each row.

Its name ends in "/real_time", by which Conbench takes the wall clock's time. All times are in
nanoseconds: compare.py prints no digit behind the point, and pairs no rows whose units differ.
"""

from collections import Counter
from statistics import median
from typing import Any

from crossover_bench.files.entries import UNIT_SECONDS

_NANOSECONDS = 1e9  # of a second
_OWN = "crossover"  # of the context, which marks the project's own files
_DIGITS = 6


def exported(document: dict[str, Any]) -> dict[str, Any]:
    """The content of a valid result file; rows without a result are left out."""
    repetitions: dict[str, list[dict[str, Any]]] = {}
    for entry in document["benchmarks"]:
        repetitions.setdefault(entry["name"], []).append(entry)
    families: dict[str, int] = {}
    instances: Counter[str] = Counter()
    entries = []
    for row in document["rows"]:
        of_row = repetitions.get(row["name"], [])
        if "outcome" in row or not of_row:
            continue
        family = row["configuration"]["family"]
        name = f"{row['name']}/real_time"
        entries.append(
            {
                "name": name,
                "family_index": families.setdefault(family, len(families)),
                "per_family_instance_index": instances[family],
                "run_name": name,
                "run_type": "iteration",
                "repetitions": 1,
                "repetition_index": 0,
                "threads": 1,  # which run the row; those of a row's own work are in its name
                "iterations": of_row[0].get("iterations", 1),  # the same of all stands there
                "real_time": _median(of_row, "real_time"),
                "cpu_time": _median(of_row, "cpu_time"),
                "time_unit": "ns",
            }
        )
        instances[family] += 1
    context = {key: value for key, value in document["context"].items() if key != _OWN}
    return {"context": context, "benchmarks": entries}


def _median(entries: list[dict[str, Any]], key: str) -> float:
    """In nanoseconds."""
    middle = median(entry[key] * UNIT_SECONDS[entry["time_unit"]] for entry in entries)
    return float(f"{middle * _NANOSECONDS:.{_DIGITS}g}")
