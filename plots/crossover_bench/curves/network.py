# SPDX-License-Identifier: Apache-2.0
"""Rows by what they compute, as against how and where (curves/series.py); and whether two do
the same work, and how much: only then can their times be compared."""

from collections.abc import Sequence

from crossover_bench.files.axes import BUILT_IN, Axes, Items
from crossover_bench.files.families import EPOCH, MINIBATCH
from crossover_bench.files.rows import File, Row

NetworkKey = Items

WORK = ("rows", "steps", "optimizer", "workload")  # the keys of work()
_COUNTED = ("params", "batch", "rows", "steps")

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
    """The row with the best median, the smallest of times; `rows` has one at least."""
    return min(rows, key=lambda row: row.quantity.cost(row.median))


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


def difference(row: Row, other: Row) -> str:
    """How the work of two rows of one network differs: "not the same work: rows 1,000 and 500";
    empty where nothing says that it does.

    The fingerprint decides where both rows have one and compute in one precision, as the casts of
    half precision are in it; else what is counted, and the optimizer.
    """
    fingerprints = bool(row.workload and other.workload) and row.precision == other.precision
    if fingerprints and row.workload == other.workload:
        return ""
    differences = [
        f"{key} {row.counters[key]:,.0f} and {other.counters[key]:,.0f}"
        for key in _COUNTED
        if key in row.counters and row.counters[key] != other.counters.get(key, row.counters[key])
    ]
    if row.optimizer and other.optimizer and row.optimizer != other.optimizer:
        differences.append(f"optimizer {row.optimizer} and {other.optimizer}")
    if differences:
        return f"not the same work: {', '.join(differences)}"
    return "trains differently" if fingerprints else ""


def work(row: Row) -> Items:
    """What difference() looks at beside the network, for groups of the rows of one file."""
    # A training step may leave out what it has one of.
    rows, steps = (f"{row.counters.get(key, 1.0):.0f}" for key in ("rows", "steps"))
    return tuple(zip(WORK, (rows, steps, row.optimizer, row.workload or ""), strict=True))


def per_iteration(row: Row) -> float:
    """How much one iteration of `row` does of what rows of one name may do more of on a machine
    with more memory or cores, or at another commit: operations; in probes, whose arrays grow with
    the caches, bytes or floating-point operations; 1 for an epoch or a training step."""
    if row.family == "Peak":
        return row.counters.get("bytes", row.counters.get("flops", row.count))
    return row.count
