# SPDX-License-Identifier: Apache-2.0
"""Why rows take the time they take: where it goes, what threads bring, when a start-up is repaid.

docs/method/why.md defines each figure. Everything comes from one file;
plots/features/why/table.py and plots/features/why/chart.py show it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from plots.core.network import epoch_rows, step_rows
from plots.core.work import work
from plots.file.axes import Items
from plots.file.rows import File, Row

# What the counters seconds_* of a row are called, in the order of a step.
PARTS: dict[str, str] = {
    "launch": "launch",
    "copy_to_device": "copy to GPU",
    "copy_from_device": "copy from GPU",
    "product": "products",
    "convolution": "convolution",
    "normalization": "normalization",
    "pooling": "pooling",
    "elementwise": "elementwise",
    "reorder": "reorders",
    "loss": "loss",
    "update": "update",
    "synchronization": "wait",
    "communication": "sums over ranks",
}
UNATTRIBUTED = "unattributed"
# Parts that sum up to more than this times the median are of another, slower moment.
MOST_OF_MEDIAN = 1.1


@dataclass(frozen=True, slots=True)
class Split:
    """Where an iteration of `row` goes, an epoch or a training step: part → seconds, only the parts
    that were profiled.

    A part is the median over the profiles of the repetitions. `unattributed` is what they do not
    sum up to of the median; negative if the profiled iterations were slower than the timed.
    """

    row: Row
    parts: dict[str, float]

    @property
    def unattributed(self) -> float:
        """Seconds that no part explains."""
        return self.total - sum(self.parts.values())

    @property
    def total(self) -> float:
        """Seconds of the median: all parts and what is unattributed, the whole of shares."""
        return self.row.median


@dataclass(frozen=True, slots=True)
class Repayment:
    """After how many iterations, epochs or training steps, the GPU's start-up is repaid.

    `iterations` is the smallest number after which `gpu`, its first call included, has taken less
    time than `cpu`, which has the shortest median of the CPU's rows; None: never.
    """

    cpu: Row
    gpu: Row
    iterations: int | None


@dataclass(frozen=True, slots=True)
class Threads:
    """What more threads bring to one network: `rows` by their number, which increases."""

    rows: dict[int, Row]

    @property
    def speed_ups(self) -> dict[int, float]:
        """Time on the fewest threads over the time, medians; 1 for the fewest."""
        base = next(iter(self.rows.values())).median
        return {threads: base / row.median for threads, row in self.rows.items()}

    @property
    def unsure(self) -> frozenset[int]:
        """The thread counts whose samples overlap with those of the fewest."""
        base = next(iter(self.rows.values()))
        others = list(self.rows.items())[1:]
        return frozenset(
            threads
            for threads, row in others
            if row.minimum <= base.maximum and base.minimum <= row.maximum
        )


def splits(rows: Iterable[Row]) -> list[Split]:
    """The split of each of `rows` that was profiled while it was about as fast as it was timed."""
    found = []
    for row in rows:
        parts = {
            part: row.counters[f"seconds_{part}"]
            for part in PARTS
            if f"seconds_{part}" in row.counters
        }
        if parts and sum(parts.values()) <= MOST_OF_MEDIAN * row.median:
            found.append(Split(row, parts))
    return found


def is_profiled(row: Row) -> bool:
    return any(f"seconds_{part}" in row.counters for part in PARTS)


def threads(rows: Iterable[Row]) -> list[Threads]:
    """What more threads bring, for each network that was measured on several thread counts."""
    networks: dict[tuple[Items, Items], dict[int, Row]] = {}
    for row in rows:
        if row.device == "cpu":
            rest = row.axes.how(row.configuration, ("cpu_threads",))
            network = networks.setdefault((row.axes.what(row.configuration), rest), {})
            network[int(row.counters["cpu_threads"])] = row
    return [
        Threads(dict(sorted(by_count.items())))
        for by_count in networks.values()
        if len(by_count) > 1
    ]


def repayments(rows: Sequence[Row]) -> list[Repayment]:
    """For each GPU row that a CPU row of the same network stands beside."""
    best: dict[Items, Row] = {}
    for row in rows:
        if row.device == "cpu":
            key = _network(row)
            if key not in best or row.median < best[key].median:
                best[key] = row
    return [
        Repayment(best[_network(row)], row, _iterations(best[_network(row)], row))
        for row in rows
        if row.device != "cpu" and _network(row) in best
    ]


def _network(row: Row) -> Items:
    return (*row.axes.what(row.configuration), *work(row))


def _iterations(cpu: Row, gpu: Row) -> int | None:
    """Smallest n with gpu_first + (n - 1) gpu_median < cpu_first + (n - 1) cpu_median."""
    # Exact: in floating point the quotient may fall on the wrong side of a whole number.
    first = [Fraction(row.counters["first_call_seconds"]) for row in (cpu, gpu)]
    saved = Fraction(cpu.median) - Fraction(gpu.median)
    debt = first[1] - first[0]
    if debt < 0:
        return 1
    return math.floor(debt / saved) + 2 if saved > 0 else None


def missing_gpu(file: File) -> str:
    """What a GPU would add to a file without one, as a sentence; empty where it has GPU rows."""
    rows = [*epoch_rows(file), *step_rows(file)]
    if any(row.device != "cpu" for row in rows):
        return ""
    reason = file.machine.gpu_reason or "no GPU row has a result"
    return (
        f"There is no GPU row here: {reason}. A file with both sides would add the time of "
        "launches, copies and waits, the crossover, what resident data, CUDA graphs or more CPU "
        "threads do to it, and the number of epochs or steps that repay the GPU's start-up."
    )
