# SPDX-License-Identifier: Apache-2.0
"""Whether rows do the same work, and how much of it: only then can their times be compared."""

from plots.file.axes import Items
from plots.file.rows import Row

WORK = ("rows", "steps", "optimizer", "workload")  # the keys of work()
_COUNTED = ("params", "batch", "rows", "steps")


def difference(one: Row, other: Row) -> str:
    """In what two rows of one network do other work: "not the same work: rows 1,000 and 500";
    empty where nothing says that they do.

    The fingerprint decides where both rows have one; else what is counted, and the optimizer.
    """
    fingerprints = bool(one.workload and other.workload)
    if fingerprints and one.workload == other.workload:
        return ""
    found = [
        f"{key} {one.counters[key]:,.0f} and {other.counters[key]:,.0f}"
        for key in _COUNTED
        if key in one.counters and one.counters[key] != other.counters.get(key, one.counters[key])
    ]
    if one.optimizer and other.optimizer and one.optimizer != other.optimizer:
        found.append(f"optimizer {one.optimizer} and {other.optimizer}")
    if found:
        return f"not the same work: {', '.join(found)}"
    return "trains differently" if fingerprints else ""


def work(row: Row) -> Items:
    """What difference() looks at beside the network, for groups of the rows of one file."""
    # A training step may leave out what it has one of.
    rows, steps = (f"{row.counters.get(key, 1.0):.0f}" for key in ("rows", "steps"))
    return tuple(zip(WORK, (rows, steps, row.optimizer, row.workload or ""), strict=True))


def per_iteration(row: Row) -> float:
    """How much one iteration of `row` does, in what a machine with more memory or cores, or another
    commit, may do more of in one iteration; the names of rows fix all else.

    That is operations; of probes, whose arrays grow with the caches, bytes or floating-point
    operations; of an epoch or a training step 1.
    """
    if row.family == "Peak":
        return row.counters.get("bytes", row.counters.get("flops", row.count))
    return row.count
