# SPDX-License-Identifier: Apache-2.0
"""Why rows take the time they take: where it goes, what bounds it, what would change the answer.

docs/method/bounds.md, "Why", defines each figure. Everything comes from one file;
plots/tables/why.py and plots/charts/why.py show it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from plots.analysis.crossover import Comparison, Crossover, Curve, find_crossover
from plots.axes import Axis, Items
from plots.network import epoch_rows
from plots.rows import File, Row
from plots.series import series_key
from plots.units import significant

# What the counters seconds_* of a row are called, in the order of a step.
PARTS: dict[str, str] = {
    "launch": "launch",
    "copy_to_device": "copy to GPU",
    "copy_from_device": "copy from GPU",
    "product": "products",
    "elementwise": "elementwise",
    "loss": "loss",
    "update": "update",
    "synchronization": "wait",
}
UNATTRIBUTED = "unattributed"


@dataclass(frozen=True, slots=True)
class Split:
    """Where an epoch of `row` goes: part → seconds, only the parts that were profiled.

    Each repetition has a profile of its own moment, so medians are taken part by part, and
    `unattributed` is the median of what the repetitions had beyond their own profiles; negative
    where the profiled epochs were slower than the timed ones. `total` is the sum of all of them,
    which is near the row's median and the whole that shares are of.
    """

    row: Row
    parts: dict[str, float]

    @property
    def unattributed(self) -> float:
        """Seconds of an epoch that no part explains."""
        stated = self.row.counters.get("seconds_unattributed")
        return self.row.median - sum(self.parts.values()) if stated is None else stated

    @property
    def total(self) -> float:
        """Seconds of all parts and of what is unattributed."""
        return sum(self.parts.values()) + self.unattributed


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What becomes of the crossover if one thing changes.

    `change` reads "with the data resident", `held` names what stays as it is. `measured` is False
    where the file lacks the other side and the profile stands in for it.
    """

    change: str
    held: str
    measure: str
    before: Crossover
    after: Crossover
    measured: bool

    @property
    def sentence(self) -> str:
        """The change in words and numbers."""
        text = f"{self.change} {_moved(self.before, self.after, self.measure)}"
        if not self.measured:
            text += ", by the profile: the file has no such rows"
        return f"{text} ({self.held})" if self.held else text


@dataclass(frozen=True, slots=True)
class Repayment:
    """After how many epochs the GPU's start-up is repaid.

    `epochs` is the smallest number after which `gpu`, its first call included, has taken less time
    than `cpu`, which has the shortest median epoch of the CPU's rows; None: never.
    """

    cpu: Row
    gpu: Row
    epochs: int | None


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
    """The split of each of `rows` that was profiled."""
    found = []
    for row in rows:
        parts = {
            part: row.counters[f"seconds_{part}"]
            for part in PARTS
            if f"seconds_{part}" in row.counters
        }
        if parts:
            found.append(Split(row, parts))
    return found


def threads(rows: Iterable[Row]) -> list[Threads]:
    """What more threads bring, for each network that was measured on several thread counts."""
    networks: dict[tuple[Items, Items], dict[int, Row]] = {}
    for row in rows:
        if row.configuration["device"] == "cpu":
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
        if row.configuration["device"] == "cpu":
            key = _network(row)
            if key not in best or row.median < best[key].median:
                best[key] = row
    return [
        Repayment(best[_network(row)], row, _epochs(best[_network(row)], row))
        for row in rows
        if row.configuration["device"] != "cpu" and _network(row) in best
    ]


def _network(row: Row) -> Items:
    return row.axes.what(row.configuration)


def _epochs(cpu: Row, gpu: Row) -> int | None:
    """Smallest n with gpu_first + (n - 1) gpu_epoch < cpu_first + (n - 1) cpu_epoch."""
    # Exact: in floating point the quotient may fall on the wrong side of a whole number.
    first = [Fraction(row.counters["first_call_seconds"]) for row in (cpu, gpu)]
    saved = Fraction(cpu.median) - Fraction(gpu.median)
    debt = first[1] - first[0]
    if debt < 0:
        return 1
    return math.floor(debt / saved) + 2 if saved > 0 else None


def counterfactuals(file: File, compared: Sequence[Comparison]) -> list[Counterfactual]:
    """What changes the crossovers `compared`, which are those of `file` (comparisons()).

    First what the file has measured on both sides: a step up the ladder of an axis (products, data,
    execution, precision), CPU threads; then, where it lacks the other side, what the profile says
    of copies and launches.
    """
    epochs = [pair for pair in compared if pair.common.get("family") == "Epoch"]
    best = [pair for pair in epochs if pair.cpu.configuration.get("cpu_threads") == "best"]
    pairs = best or epochs
    found = [item for axis in _ladders(pairs) for item in _climb(pairs, axis)]
    found += _more_threads(epochs)
    return found + _by_profile(file, pairs)


def _ladders(pairs: Iterable[Comparison]) -> list[Axis]:
    """The axes that one climbs for speed, from the device outwards."""
    axes = next((pair.gpu.axes for pair in pairs), ())
    return [axis for axis in axes if len(axis.steps) > 1][::-1]


def _value(pair: Comparison, axis: Axis) -> str | None:
    """What the GPU of `pair` has."""
    return pair.gpu.axes.value(pair.gpu.configuration, axis.key)


def _climb(pairs: Sequence[Comparison], axis: Axis) -> list[Counterfactual]:
    """Each pair against the one on the lowest rung of `axis` that is like it in all else."""
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for pair in pairs:
        if _value(pair, axis) in axis.steps:
            groups.setdefault(_all_but(pair, axis.key), []).append(pair)
    found = []
    for group in groups.values():
        group.sort(key=lambda pair: axis.steps.index(_value(pair, axis)))
        low, *others = group
        for pair in others:
            found.append(
                Counterfactual(
                    change=axis.change(_value(pair, axis)),
                    held=_held(low, {axis.key}),
                    measure=low.measure,
                    before=low.crossover,
                    after=pair.crossover,
                    measured=True,
                )
            )
    return found


def _all_but(pair: Comparison, key: str) -> tuple[object, ...]:
    common = {name: value for name, value in pair.common.items() if name != key}
    gpu = {name: value for name, value in pair.gpu.configuration.items() if name != key}
    cpu = {name: value for name, value in pair.cpu.configuration.items() if name != key}
    return tuple(tuple(sorted(part.items())) for part in (common, gpu, cpu))


def _held(pair: Comparison, changed: set[str]) -> str:
    """ "batch 100, eager, pinned": what both sides of a change have in common."""
    axes, own = pair.gpu.axes, pair.gpu.configuration
    parts = axes.words(pair.common, roles=["what"], without={"family", *changed})
    parts += axes.words(own, roles=["how", "alike"], without={"device", *changed})
    return ", ".join(parts)


def _rung(pair: Comparison) -> tuple[int, ...]:
    """How far up the ladders the GPU of `pair` is."""
    return tuple(
        axis.steps.index(value) if (value := _value(pair, axis)) in axis.steps else len(axis.steps)
        for axis in _ladders([pair])
    )


def _more_threads(pairs: Sequence[Comparison]) -> list[Counterfactual]:
    """All threads against the fewest, for the GPU's plainest and its fastest way to compute."""
    groups: dict[tuple[Items, Items], list[Comparison]] = {}
    for pair in pairs:
        if pair.cpu.configuration.get("cpu_threads", "").isdecimal():
            rest = pair.cpu.axes.how(pair.cpu.configuration, ("cpu_threads",))
            groups.setdefault((tuple(sorted(pair.common.items())), rest), []).append(pair)
    found = []
    for group in groups.values():
        plainest, fastest = min(group, key=_rung).gpu, max(group, key=_rung).gpu
        ways = [plainest.configuration, fastest.configuration]
        for way in ways[: 1 if ways[0] == ways[1] else 2]:
            same = sorted(
                (pair for pair in group if pair.gpu.configuration == way),
                key=lambda pair: int(pair.cpu.configuration["cpu_threads"]),
            )
            if len(same) > 1:
                found.append(_threads_changed(same[0], same[-1]))
    return found


def _threads_changed(fewest: Comparison, most: Comparison) -> Counterfactual:
    first, last = (pair.cpu.configuration["cpu_threads"] for pair in (fewest, most))
    return Counterfactual(
        change=f"with {last} CPU threads instead of {first}",
        held=_held(fewest, set()),
        measure=fewest.measure,
        before=fewest.crossover,
        after=most.crossover,
        measured=True,
    )


def _by_profile(file: File, pairs: Sequence[Comparison]) -> list[Counterfactual]:
    """Copies and launches that cost nothing, where no row shows the crossover without them."""
    configurations = [pair.gpu.configuration for pair in pairs]
    asked = (
        ("data", "resident", ("copy_to_device",), "without copies to the GPU"),
        ("execution", "graph", ("launch",), "without the time of launches"),
    )
    profiled = splits(epoch_rows(file))
    found = []
    for key, best, parts, change in asked:
        if any(configuration.get(key) == best for configuration in configurations):
            continue
        for pair in pairs:
            curve = _without(profiled, pair, parts)
            if curve is not None:
                found.append(
                    Counterfactual(
                        change=change,
                        held=_held(pair, set()),
                        measure=pair.measure,
                        before=pair.crossover,
                        after=find_crossover(pair.cpu, curve, pair.measure),
                        measured=False,
                    )
                )
    return found


def _without(profiled: Sequence[Split], pair: Comparison, parts: Sequence[str]) -> Curve | None:
    """The GPU's curve less `parts` of each row's profile; None where there is nothing to take."""
    batch = pair.common.get("batch")
    seconds = {}
    for split in profiled:
        row = split.row
        same = dict(series_key(row)) == pair.gpu.configuration
        if same and batch in (None, row.configuration["batch"]):
            taken = sum(split.parts.get(part, 0.0) for part in parts)
            seconds[row.counters["params"]] = min(taken, 0.999 * row.minimum)
    taken = [seconds.get(float(size), 0.0) for size in pair.gpu.sizes]
    if not any(taken):
        return None
    samples = tuple(
        np.asarray(times) - less for times, less in zip(pair.gpu.samples, taken, strict=True)
    )
    return replace(pair.gpu, samples=samples)


def _moved(before: Crossover, after: Crossover, measure: str) -> str:
    if before.words == after.words:
        return f"the answer stays the same: {after.words}"
    if before.size is None or after.size is None:
        return (
            f"the GPU's answer is \u201c{after.words}\u201d instead of \u201c{before.words}\u201d"
        )
    if _overlap(before, after):
        return (
            f"the crossover moves from {significant(before.size)} to {significant(after.size)} "
            f"{measure}, which is within the uncertainty of both"
        )
    verb = "falls" if after.size < before.size else "rises"
    return (
        f"the crossover {verb} from {significant(before.size)} to {significant(after.size)} "
        f"{measure}"
    )


def _overlap(a: Crossover, b: Crossover) -> bool:
    """Whether the intervals do; an end that is not known reaches as far as can be."""

    def ends(crossover: Crossover) -> tuple[float, float]:
        low, high = crossover.low, crossover.high
        return 0.0 if low is None else low, math.inf if high is None else high

    (a_low, a_high), (b_low, b_high) = ends(a), ends(b)
    return a_low <= b_high and b_low <= a_high


def missing_gpu(file: File) -> str:
    """What a GPU would add to a file without one, as a sentence; empty where it has GPU rows."""
    rows = epoch_rows(file)
    if any(row.configuration["device"] != "cpu" for row in rows):
        return ""
    reason = file.machine.gpu_reason or "no GPU row has a result"
    return (
        f"There is no GPU row here: {reason}. A file with both sides would add the time of "
        "launches, copies and waits, the crossover, what resident data, CUDA graphs or more CPU "
        "threads do to it, and the number of epochs that repay the GPU's start-up."
    )
