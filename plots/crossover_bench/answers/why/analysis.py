# SPDX-License-Identifier: Apache-2.0
"""Why rows take the time they take: where it goes, what threads bring, when a start-up is repaid;
and what would change the crossover: data on the GPU, CUDA graphs, more CPU threads.

docs/method/bounds.md defines each figure. Everything comes from one file;
answers/why/section.py shows it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from crossover_bench.curves.crossover import (
    Comparison,
    Crossover,
    find_crossover,
    intervals_overlap,
)
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.curves import SCALES, Curve
from crossover_bench.curves.headline import own_batch, unusual
from crossover_bench.curves.network import best, familiar, networks, on_device, training_rows, work
from crossover_bench.curves.series import series_key
from crossover_bench.files.axes import BUILT_IN, Axis, Items
from crossover_bench.files.families import EPOCH, MINIBATCH
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import File, Row
from crossover_bench.study.study import Study, once
from crossover_bench.words import units

# What the counters seconds_* of a row are called, in the order of a step; `kernel` is that of
# products where one kernel does everything.
PARTS: dict[str, str] = {
    "launch": "launch",
    "copy_to_device": "copy to GPU",
    "copy_from_device": "copy from GPU",
    "kernel": "one kernel",
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
_PLAIN = BUILT_IN["precision"].plainest
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


def splits(rows: Iterable[Row]) -> list[Split]:
    """The split of each of `rows` that was profiled while it was about as fast as it was timed."""
    profiled = []
    for row in rows:
        profile = {part: row.counters.get(f"seconds_{part}") for part in PARTS}
        parts = {part: seconds for part, seconds in profile.items() if seconds is not None}
        if row.is_one_kernel and "product" in parts:
            parts["kernel"] = parts.pop("product")
        if parts and sum(parts.values()) <= MOST_OF_MEDIAN * row.median:
            profiled.append(Split(row, parts))
    return profiled


def threads(rows: Iterable[Row]) -> list[dict[int, Row]]:
    """The rows of each network that was measured on several thread counts, by thread count, the
    fewest first."""
    networks: dict[tuple[Items, Items], dict[int, Row]] = {}
    for row in rows:
        if row.device == "cpu":
            rest = row.axes.how(row.configuration, ("cpu_threads",))
            network = networks.setdefault((row.axes.what(row.configuration), rest), {})
            network[int(row.counters["cpu_threads"])] = row
    return [dict(sorted(counts.items())) for counts in networks.values() if len(counts) > 1]


def repayments(rows: Sequence[Row]) -> list[Repayment]:
    """For each GPU row that a CPU row of the same network stands beside."""
    best: dict[Items, Row] = {}
    for row in (row for row in rows if row.device == "cpu"):
        key = _network(row)
        if key not in best or row.median < best[key].median:
            best[key] = row
    of_gpus = (row for row in rows if row.device != "cpu" and _network(row) in best)
    return [_repayment(best[_network(row)], row) for row in of_gpus]


def _network(row: Row) -> Items:
    return (*row.axes.what(row.configuration), *work(row))


def _repayment(cpu: Row, gpu: Row) -> Repayment:
    """The smallest n with gpu_first + (n - 1) gpu_median < cpu_first + (n - 1) cpu_median."""
    # Exact: in floating point the quotient may fall on the wrong side of a whole number.
    first = [Fraction(row.counters["first_call_seconds"]) for row in (cpu, gpu)]
    saved = Fraction(cpu.median) - Fraction(gpu.median)
    debt = first[1] - first[0]
    if debt < 0:
        return Repayment(cpu, gpu, 1)
    return Repayment(cpu, gpu, math.floor(debt / saved) + 2 if saved > 0 else None)


# ---- what would change the crossover


@dataclass(frozen=True, slots=True)
class Counterfactual:
    """What becomes of the crossover of `pair` if one thing changes: it is `after`.

    `kind` is the axis that changes; `change` reads "with the data resident instead of pageable",
    and `held` names what stays as it is. `measured` is False where the file lacks the other side
    and the profile stands in for it.
    """

    kind: str
    change: str
    held: str
    pair: Comparison
    after: Crossover
    measured: bool = True

    @property
    def before(self) -> Crossover:
        """The crossover as it is."""
        return self.pair.crossover

    @property
    def is_sure(self) -> bool:
        """Whether the crossover moves by more than its uncertainty."""
        if self.before.size is None or self.after.size is None:
            kinds = {self.before.kind, self.after.kind}
            return len(kinds) == 2 and "ambiguous" not in kinds
        return not intervals_overlap(self.before, self.after)

    @property
    def effect(self) -> float:
        """By which factor the crossover moves, as a logarithm without sign; what lies beyond the
        measured sizes counts as their ends."""
        ends = {"always": self.pair.sizes[0], "never": self.pair.sizes[-1]}
        before, after = (each.size or ends.get(each.kind) for each in (self.before, self.after))
        return abs(math.log(after / before)) if before and after else 0.0

    @property
    def sentence(self) -> str:
        """The change in words and numbers."""
        text = f"{self.change}, {self._moved()}"
        if not self.measured:
            text += ", by the profile: the file has no such rows"
        return f"{text} ({self.held})" if self.held else text

    def _moved(self) -> str:
        before, after = self.before, self.after
        if before.size is None or after.size is None:
            old, new = crossover_words(before), crossover_words(after)
            if old == new:
                return f"the answer stays the same: {new}"
            return f"the answer is \u201c{new}\u201d instead of \u201c{old}\u201d"
        old, new = units.size(before.size), units.size(after.size)
        measure = self.pair.measure
        prefix, suffix = ("", " parameters") if measure == "parameters" else (f"{measure} ", "")
        if old == new:
            return f"the crossover stays at {prefix}{new}{suffix}"
        if not self.is_sure:
            both = f"{prefix}{new}{suffix}, {old} without"
            return f"the crossover stays within its uncertainty: {both}"
        verb = "falls" if after.size < before.size else "rises"
        return f"the crossover {verb} from {prefix}{old} to {new}{suffix}"


@once
def counterfactuals(study: Study, family: str = EPOCH) -> list[Counterfactual]:
    """What changes the crossovers of `family`, one of TRAINING: a step up the ladder of an axis
    (products, data, execution, precision); CPU threads; and, where the file lacks the other side,
    copies and launches by the profile.

    Changes that matter most stand first: the sure one with the largest effect of each kind, then
    all others. Both are in order of effect; plain training at the headline's batch comes before any
    other.
    """
    of_family = study.of_family(family)
    best = [pair for pair in of_family if pair.cpu.configuration.get("cpu_threads") == "best"]
    pairs = best or of_family
    changes = [change for axis in _ladders(pairs) for change in _climb(pairs, axis)]
    changes += _more_threads(of_family)
    if all(pair.gpu.quantity is TIME for pair in pairs):
        changes += _by_profile(study.file, pairs, family)
    batch = own_batch(study.comparisons)

    def rank(change: Counterfactual) -> tuple[bool, bool, bool, float]:
        is_other = change.pair.batch != batch
        return bool(unusual(change.pair)), is_other, not change.is_sure, -change.effect

    changes.sort(key=rank)
    first: dict[str, Counterfactual] = {}
    for change in changes:
        if change.is_sure:
            first.setdefault(change.kind, change)
    leading = list(first.values())
    return leading + [change for change in changes if not any(change is each for each in leading)]


def _ladders(pairs: Iterable[Comparison]) -> list[Axis]:
    """The axes that one climbs for speed, from the device outwards."""
    axes = next((pair.gpu.axes for pair in pairs), ())
    return [axis for axis in axes if len(axis.steps) > 1][::-1]


def _value(pair: Comparison, axis: Axis) -> str:
    """What the GPU of `pair` has; empty where its rows do not say."""
    return pair.gpu.axes.value(pair.gpu.configuration, axis.key) or ""


def _climb(pairs: Sequence[Comparison], axis: Axis) -> list[Counterfactual]:
    """Each pair against the one on the lowest rung of `axis` that is like it in all else."""
    groups: dict[tuple[object, ...], list[Comparison]] = {}
    for pair in pairs:
        if _value(pair, axis) in axis.steps:
            sides = (pair.common, pair.gpu.configuration, pair.cpu.configuration)
            rest = (sorted(side.items() - {(axis.key, side.get(axis.key))}) for side in sides)
            groups.setdefault(tuple(map(tuple, rest)), []).append(pair)
    changes = []
    for group in groups.values():
        low, *others = sorted(group, key=lambda pair: axis.steps.index(_value(pair, axis)))
        held, instead = _held(low, {axis.key}), f"instead of {axis.word(_value(low, axis))}"
        for pair in others:
            change = f"{axis.change(_value(pair, axis))} {instead}"
            changes.append(Counterfactual(axis.key, change, held, low, pair.crossover))
    return changes


def _held(pair: Comparison, changed: set[str]) -> str:
    """ "batch 100, eager, pinned": what both sides of a change have in common."""
    axes, gpu = pair.gpu.axes, pair.gpu.configuration
    parts = axes.words(pair.common, roles=["what"], without={"family", *changed})
    parts += axes.words(gpu, roles=["how", "alike"], without={"device", *changed})
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
    changes = []
    for group in groups.values():
        plainest, fastest = min(group, key=_rung).gpu, max(group, key=_rung).gpu
        ways = [plainest.configuration, fastest.configuration]
        for way in ways[: 1 if ways[0] == ways[1] else 2]:
            same = sorted(
                (pair for pair in group if pair.gpu.configuration == way),
                key=lambda pair: int(pair.cpu.configuration["cpu_threads"]),
            )
            if len(same) > 1:
                first, last = same[0], same[-1]
                few, many = (pair.cpu.configuration["cpu_threads"] for pair in (first, last))
                change = f"with {many} CPU threads instead of {few}"
                held = _held(first, set())
                changes.append(Counterfactual("cpu_threads", change, held, first, last.crossover))
    return changes


def _by_profile(file: File, pairs: Sequence[Comparison], family: str) -> list[Counterfactual]:
    """Copies and launches that cost nothing, where no row shows the crossover without them."""
    configurations = [pair.gpu.configuration for pair in pairs]
    asked = (
        ("data", "resident", ("copy_to_device",), "without copies to the GPU"),
        ("execution", "graph", ("launch",), "without the time of launches"),
    )
    profiled = splits(training_rows(file, family))
    changes = []
    for key, wanted, parts, change in asked:
        if any(configuration.get(key) == wanted for configuration in configurations):
            continue
        for pair in pairs:
            curve = _without(profiled, pair, parts)
            if curve is not None:
                after, held = find_crossover(pair.cpu, curve, pair.measure), _held(pair, set())
                changes.append(Counterfactual(key, change, held, pair, after, measured=False))
    return changes


def _without(profiled: Sequence[Split], pair: Comparison, parts: Sequence[str]) -> Curve | None:
    """The GPU's curve less `parts` of each row's profile; None where there is nothing to take."""
    family = SCALES[pair.family]
    seconds: dict[float, float] = {}
    for split in profiled:
        row, size = split.row, family.size(split.row)
        what = row.axes.what(row.configuration, family.replaces)
        same = all(pair.common.get(key) == value for key, value in what)
        if size and same and dict(series_key(row)) == pair.gpu.configuration:
            spared = sum(split.parts.get(part, 0.0) for part in parts)
            seconds[size] = min(spared, 0.999 * row.minimum)
    taken = [seconds.get(float(size), 0.0) for size in pair.gpu.sizes]
    if not any(taken):
        return None
    samples = tuple(
        np.asarray(times) - less for times, less in zip(pair.gpu.samples, taken, strict=True)
    )
    return replace(pair.gpu, samples=samples)


def foremost_rows(study: Study, family: str) -> list[Row]:
    """The rows of `family` in f32, without networks that nobody trains and sizes between those of a
    ladder. Epochs on a ladder are at the headline's batch, training steps in the largest batch of
    their network."""
    rows = familiar(training_rows(study.file, family))
    rows = [row for row in rows if not row.is_between] or rows
    rows = [row for row in rows if row.precision == _PLAIN] or rows
    if family == MINIBATCH:
        largest: dict[str, float] = {}
        for row in rows:
            largest[row.model] = max(row.counters["batch"], largest.get(row.model, 0.0))
        return [row for row in rows if row.counters["batch"] == largest[row.model]]
    batch = own_batch(study.comparisons)
    at_batch = [row for row in rows if not row.ladder or row.batch == (batch or row.ladder.batch)]
    return at_batch if any(row.ladder for row in at_batch) else rows


def fastest(rows: Sequence[Row]) -> list[Row]:
    """Of each network the fastest row of each device, the CPU's first."""
    return [
        best(on_device(members, device))
        for members in networks(rows).values()
        for device in sorted({row.device for row in members})
    ]
