# SPDX-License-Identifier: Apache-2.0
"""Rows that train by what they compute, as against how and where (plots/core/series.py)."""

from collections.abc import Sequence

from plots.core.work import WORK, work
from plots.file.axes import BUILT_IN, Axes, Items
from plots.file.families import EPOCH, MINIBATCH
from plots.file.rows import File, Row

NetworkKey = Items

# The sweep's networks that nobody trains (src/models/dense.cpp): predictions are fitted to them.
ODD = frozenset(
    f"mlp-{widths}"
    for widths in (
        *("10-4096-10", "2400-4-150", "400-2"),
        *("44-54", "3-300-7", "60-5-18-13-30"),
    )
)


def epoch_rows(file: File) -> list[Row]:
    """The Epoch rows of `file` that have a result, by size of the network."""
    return training_rows(file, EPOCH)


def step_rows(file: File) -> list[Row]:
    """The Minibatch rows of `file` that have a result, by size of the network."""
    return training_rows(file, MINIBATCH)


def training_rows(file: File, family: str) -> list[Row]:
    """The rows of a `family` of OF_NETWORKS that have a result, by size of the network."""
    rows = [row for row in file.rows if row.family == family and row.failure is None]
    return sorted(rows, key=lambda row: (row.counters["params"], row.counters["batch"], row.index))


def familiar(rows: Sequence[Row]) -> list[Row]:
    """Those of `rows` whose network people train, or all where there is no such network."""
    return [row for row in rows if row.model not in ODD] or list(rows)


def on_device(rows: Sequence[Row], device: str) -> list[Row]:
    """Those of `rows` that were computed on `device`: cpu or cuda."""
    return [row for row in rows if row.device == device]


def best(rows: Sequence[Row]) -> Row:
    """The row with the smallest median; `rows` has one at least."""
    return min(rows, key=lambda row: row.median)


def networks(rows: Sequence[Row]) -> dict[NetworkKey, list[Row]]:
    """`rows` by what they compute, how much of it, and in which precision: those that share it may
    be compared. The smallest network comes first."""
    groups: dict[NetworkKey, list[Row]] = {}

    def size(row: Row) -> tuple[float, str, float]:
        return row.counters["params"], row.model, row.counters["batch"]

    for row in sorted(rows, key=size):
        key = (*row.axes.what(row.configuration), ("precision", row.precision), *work(row))
        groups.setdefault(key, []).append(row)
    return groups


def network_label(key: NetworkKey, keys: Sequence[NetworkKey], axes: Axes = BUILT_IN) -> str:
    """The model, and beside it whatever but the batch size is not the same in all `keys`, and how
    its work differs from that of the same network."""
    configuration = dict(key)
    others = [dict(other) for other in keys]
    same = {name for name, value in key if all(other.get(name) == value for other in others)}
    varying = axes.words(configuration, without={"model", "batch", *same})
    twins = [
        other
        for other in others
        if all(other.get(name) == value for name, value in key if name not in WORK)
    ]
    varying += [
        f"{name} {configuration[name] or 'unknown'}"
        for name in WORK
        if any(other[name] != configuration[name] for other in twins)
    ]
    return ", ".join([configuration["model"], *varying])
