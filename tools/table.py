# SPDX-License-Identifier: Apache-2.0
"""Result files as a short table: the best CPU row next to the best GPU row of the same name.

It reads them by itself, and no more of them than it shows, because the GPU sweep runs where the
packages that plots/ needs are missing, and shows files that no one has validated yet.
"""

from pathlib import Path
from statistics import median

from tools.console import stored

_LINES = 34
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}

# Seconds by device, for what both devices' names have in common.
Times = dict[str, dict[str, float]]


def times(path: Path) -> Times:
    """Median of each row; of several rows of a device (threads, execution) the fastest."""
    samples: dict[str, list[float]] = {}
    for entry in stored(path).get("benchmarks", []):
        if entry.get("run_type") == "iteration":
            seconds = entry["real_time"] * _SECONDS[entry.get("time_unit", "ns")]
            samples.setdefault(entry["name"], []).append(seconds)
    best: Times = {}
    for name, values in samples.items():
        common, _, rest = name.partition("/device:")
        device = rest.partition("/")[0] or "-"
        row = best.setdefault(common, {})
        row[device] = min(row.get(device, float("inf")), median(values))
    return best


def _human(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    unit, size = next(((u, s) for u, s in _SECONDS.items() if seconds >= s), ("ns", 1e-9))
    return f"{seconds / size:.3g} {unit}"


def table(path: Path | None) -> list[str]:
    """A few lines of each family, evenly, its first and last row included; where rows are left out,
    how many."""
    families: dict[str, list[tuple[str, dict[str, float]]]] = {}
    for name, devices in (times(path) if path else {}).items():
        families.setdefault(name.partition("/")[0], []).append((name, devices))
    shown: list[str] = []
    for family, rows in families.items():
        count = min(len(rows), max(1, _LINES // len(families) - 1))
        step = (len(rows) - 1) / max(1, count - 1)
        left_out = len(rows) - count
        more = f" ({left_out} of {len(rows)} rows left out)" if left_out else ""
        shown.append(f"{family + more:<58}{'CPU':>11}{'GPU':>11}{'CPU/GPU':>9}")
        for name, devices in (rows[round(index * step)] for index in range(count)):
            cpu = devices.get("cpu")
            gpu = min((s for device, s in devices.items() if device != "cpu"), default=None)
            ratio = f"{cpu / gpu:.2f}" if cpu and gpu else "-"
            title = name if len(name) <= 57 else name[:54] + "..."
            shown.append(f"{title:<58}{_human(cpu):>11}{_human(gpu):>11}{ratio:>9}")
    return shown or ["no results"]
