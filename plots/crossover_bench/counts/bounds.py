# SPDX-License-Identifier: Apache-2.0
"""What a row can't be faster than: what it takes at least, at the ceilings of its file.

docs/method/bounds.md says what is counted and which rows of the family Peak are ceilings.
"""

from collections.abc import Iterable
from typing import Literal

from crossover_bench.files.rows import Bound, File, MinimumWork, Row
from crossover_bench.words.text import whole

Resource = Literal[
    "flops", "memory_bytes", "bytes_to_device", "bytes_from_device", "launches", "graph_nodes"
]

_NO_CEILING = "no ceiling for it was measured in this file (family Peak)"
# By quantity and direction of a probe: what it counts of which resource, and how many times.
_PROBES: dict[tuple[str, str], tuple[str, Resource, int]] = {
    ("fma", ""): ("flops", "flops", 1),
    ("matrix", ""): ("flops", "flops", 1),
    ("triad", ""): ("bytes", "memory_bytes", 1),
    # The C library's copy writes past the caches, and so reaches more than a plain loop; each byte
    # is read and written.
    ("copy", "h2h"): ("bytes", "memory_bytes", 2),
    ("copy", "h2d"): ("bytes", "bytes_to_device", 1),
    ("copy", "d2h"): ("bytes", "bytes_from_device", 1),
    ("launches", ""): ("count", "launches", 1),
    ("graph-node", ""): ("count", "graph_nodes", 1),
}
_Key = tuple[Resource, str, str, str]  # with device, precision and threads


class Ceilings:
    """The highest rate of each resource on each device, per second: of its probes, and of any other
    row that did its least work at a higher rate. More threads reach what fewer do."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._per_second: dict[_Key, float] = {}
        measured = [row for row in rows if row.failure is None]
        for row in measured:
            configuration = row.configuration
            what = (configuration.get("quantity", ""), configuration.get("direction", ""))
            if row.family == "Peak" and what in _PROBES:
                counter, resource, times = _PROBES[what]
                amount = times * row.counters[counter]
                self.raise_to(amount / row.minimum, resource, configuration)
        probed = set(self._per_second)
        for row in measured:
            for resource, (_, amount) in _parts(row.minimum_work or MinimumWork()).items():
                if _key(resource, row.configuration) in probed:
                    self.raise_to(amount / row.minimum, resource, row.configuration)

    def raise_to(
        self, per_second: float, resource: Resource, configuration: dict[str, str]
    ) -> None:
        """Keeps the highest rate for the device and threads of `configuration`, and of flops for
        its precision."""
        key = _key(resource, configuration)
        self._per_second[key] = max(per_second, self._per_second.get(key, 0.0))

    def find(self, resource: Resource, configuration: dict[str, str]) -> float | None:
        """The ceiling of a row of that `configuration`, per second."""
        key = _key(resource, configuration)
        if key not in self._per_second:
            return None
        *what, threads = key
        return max(
            per_second
            for (*other, fewer), per_second in self._per_second.items()
            if other == what and (whole(fewer) or 0) <= (whole(threads) or 0)
        )

    def bound(self, work: MinimumWork, configuration: dict[str, str]) -> tuple[str, float] | None:
        """The part of `work` that takes longest at its ceiling: name and seconds. None where there
        is no ceiling for the arithmetic or for the memory traffic."""
        times = dict.fromkeys(("compute", "memory", "copy", "launch"), 0.0)
        for resource, (part, amount) in _parts(work).items():
            if per_second := self.find(resource, configuration):
                times[part] += amount / per_second
            elif amount > 0 and part in ("compute", "memory"):
                return None
        name = max(times, key=lambda part: times[part])
        return (name, times[name]) if times[name] > 0 else None


def _parts(work: MinimumWork) -> dict[Resource, tuple[str, float]]:
    """Of each resource the part of the time that it takes, and the amount."""
    return {
        "flops": ("compute", work.flops),
        "memory_bytes": ("memory", work.memory_bytes),
        "bytes_to_device": ("copy", work.bytes_to_device),
        "bytes_from_device": ("copy", work.bytes_from_device),
        "graph_nodes" if work.graph else "launches": ("launch", work.launches),
    }


def bounds(file: File) -> dict[int, Bound]:
    """Row.index → bound, of each row of `file` that has one. Rows of older files, which do not say
    what they take at least, keep the bound of the file."""
    ceilings = Ceilings(file.rows)
    by_index = {}
    for row in file.rows:
        if row.minimum_work is None or row.failure is not None:
            if row.bound is not None:
                by_index[row.index] = row.bound
            continue
        bound = ceilings.bound(row.minimum_work, row.configuration)
        if bound is None:
            by_index[row.index] = Bound(None, None, None, _NO_CEILING)
        else:
            name, seconds = bound
            by_index[row.index] = Bound(name, seconds, 100 * seconds / row.median)
    return by_index


def _key(resource: Resource, configuration: dict[str, str]) -> _Key:
    """Rows without a precision, such as copies, compute in f32; those of a GPU have no threads."""
    precision = configuration.get("precision", "f32") if resource == "flops" else ""
    device, threads = (configuration.get(key, "") for key in ("device", "cpu_threads"))
    return resource, device, precision, threads
