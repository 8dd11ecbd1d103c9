# SPDX-License-Identifier: Apache-2.0
"""Puts the rows of a file in groups that differ in nothing but the network: what a line shows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from plots.rows import Row
from plots.text import printable, whole

SeriesKey = tuple[tuple[str, str], ...]

_DEVICES = {"cpu": "CPU", "cuda": "GPU"}
_NETWORK = ("family", "model", "batch")  # what a row computes, as against how and where
_LABEL_ORDER = ("precision", "execution", "data", "cpu_threads")


def series_key(row: Row) -> SeriesKey:
    """How and where `row` computes: its configuration without family, model and batch size."""
    return tuple(
        sorted((key, value) for key, value in row.configuration.items() if key not in _NETWORK)
    )


def series_labels(rows: Iterable[Row]) -> dict[SeriesKey, str]:
    """A label for each series among `rows`, CPU first, by thread count: "CPU, 2 threads".

    What all series of a device have in common is left out: the precision, and on the CPU the
    execution.
    """
    keys = sorted({series_key(row) for row in rows}, key=_order)
    labels = {key: _label(dict(key), [dict(other) for other in keys]) for key in keys}
    # Two keys could look alike once shortened; then all of the configuration is shown.
    texts = list(labels.values())
    return {key: text if texts.count(text) == 1 else _spelled(key) for key, text in labels.items()}


def without_slower_executions(rows: Sequence[Row]) -> list[Row]:
    """`rows` but for the series that differ from a faster one in nothing but the execution.

    Faster is the one with the smaller geometric mean of the medians over the networks of both.
    """
    groups: dict[SeriesKey, dict[SeriesKey, dict[SeriesKey, float]]] = {}
    for row in rows:
        key = series_key(row)
        rest = tuple(pair for pair in key if pair[0] != "execution")
        network = tuple(pair for pair in row.configuration.items() if pair[0] in _NETWORK)
        groups.setdefault(rest, {}).setdefault(key, {})[network] = math.log(row.median)
    kept = set()
    for members in groups.values():
        common = set.intersection(*(set(times) for times in members.values()))
        kept.add(min(members, key=lambda key: (sum(members[key][one] for one in common), key)))
    return [row for row in rows if series_key(row) in kept]


def device_label(row: Row) -> str:
    """Where and how `row` computes, but for its precision: "GPU, graph, pinned"."""
    configuration = {name: value for name, value in series_key(row) if name != "precision"}
    return _label(configuration, [configuration])


def device_name(row: Row) -> str:
    """The device alone: "CPU, 2 threads", "GPU"."""
    fields = row.configuration
    own = {name: fields[name] for name in ("device", "cpu_threads") if name in fields}
    return _label(own, [own])


def _order(key: SeriesKey) -> tuple[bool, str, int, SeriesKey]:
    configuration = dict(key)
    device = configuration.get("device", "")
    threads = configuration.get("cpu_threads", "")
    return device != "cpu", device, _number(threads), key


def _rank(key: str) -> int:
    return _LABEL_ORDER.index(key) if key in _LABEL_ORDER else len(_LABEL_ORDER)


def _number(text: str) -> int:
    return whole(text) or 0


def _spelled(key: SeriesKey) -> str:
    return printable(", ".join(f"{name} {value}" for name, value in key), 400)


def _label(configuration: dict[str, str], others: Sequence[dict[str, str]]) -> str:
    device = configuration.get("device", "")
    same_device = [other for other in others if other.get("device") == device]
    parts = [_DEVICES.get(device, device)]
    for key, value in sorted(configuration.items(), key=lambda item: (_rank(item[0]), item)):
        if key == "cpu_threads":
            parts.append(f"{value} thread" if value == "1" else f"{value} threads")
        elif key == "precision":
            if any(other.get(key) != value for other in others):
                parts.append(value)
        elif key == "execution":
            if device != "cpu" or any(other.get(key) != value for other in same_device):
                parts.append(value)
        elif key == "data":
            parts.append(value)
        elif key != "device":
            parts.append(f"{key} {value}")
    return printable(", ".join(part for part in parts if part), 60)
