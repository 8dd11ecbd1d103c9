# SPDX-License-Identifier: Apache-2.0
"""Result files as a short table: the best CPU row next to the best GPU row of the same name.

It reads them by itself, and no more of them than it shows, because the GPU sweep runs where the
packages that plots/ needs are missing, and shows files that no one has validated yet.
"""

import json
from pathlib import Path
from statistics import median

_LINES = 34
_DEVICE = "/device:"
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}

# Seconds by device, for what both devices' names have in common.
Times = dict[str, dict[str, float]]


def times(path: Path) -> Times:
    """Median of each row; of several rows of a device (threads, execution) the fastest."""
    samples: dict[str, list[float]] = {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))["benchmarks"]
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    for entry in entries:
        if entry.get("run_type") == "iteration":
            seconds = entry["real_time"] * _SECONDS[entry.get("time_unit", "ns")]
            samples.setdefault(entry["name"], []).append(seconds)
    best: Times = {}
    for name, values in samples.items():
        common, _, rest = name.partition(_DEVICE)
        device = rest.partition("/")[0] or "-"
        row = best.setdefault(common, {})
        row[device] = min(row.get(device, float("inf")), median(values))
    return best


def _human(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def _spread(names: list[str], count: int) -> list[str]:
    """At most `count` of them, evenly, first and last included."""
    if len(names) <= count:
        return names
    step = (len(names) - 1) / max(1, count - 1)
    return [names[round(index * step)] for index in range(count)]


def table(path: Path | None, lines: int = _LINES) -> list[str]:
    """At most `lines` lines, a part of them for each family; where rows are left out, how many."""
    families: dict[str, Times] = {}
    for name, devices in (times(path) if path else {}).items():
        families.setdefault(name.partition("/")[0], {})[name] = devices
    if not families:
        return ["no results"]
    shown: list[str] = []
    share = max(1, lines // len(families) - 1)
    for family, rows in families.items():
        names = _spread(list(rows), share)
        left_out = len(rows) - len(names)
        more = f" ({left_out} of {len(rows)} rows left out)" if left_out else ""
        shown.append(f"{family + more:<58}{'CPU':>11}{'GPU':>11}{'CPU/GPU':>9}")
        for name in names:
            devices = rows[name]
            cpu = devices.get("cpu")
            others = [seconds for device, seconds in devices.items() if device != "cpu"]
            gpu = min(others) if others else None
            ratio = f"{cpu / gpu:.2f}" if cpu and gpu else "-"
            title = name if len(name) <= 57 else name[:54] + "..."
            shown.append(f"{title:<58}{_human(cpu):>11}{_human(gpu):>11}{ratio:>9}")
    return shown
