# SPDX-License-Identifier: Apache-2.0
"""From which size on the GPU wins, how sure that is, what following it costs, and by how much.

docs/method/crossover.md defines every word used here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np

from crossover_bench.curves import statistics
from crossover_bench.curves.curves import NETWORKS, SCALES, Alike, Curve, Pairing, pairings
from crossover_bench.curves.statistics import estimate, fewest_samples, log_medians
from crossover_bench.files.families import Scale
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File, median_of

Kind = Literal["always", "never", "once", "several", "ambiguous"]
Winner = Literal["cpu", "gpu"]


_CPU, _GPU = 0, 1  # names the random numbers of each side
CPU_WINS, GPU_WINS = -1, 1
_WINNERS: dict[int, Winner | None] = {CPU_WINS: "cpu", GPU_WINS: "gpu", 0: None}
# Where a network is too small for several threads or processes, both sides do the same work, and a
# sweep, which measures one after the other, sees only how the machine drifts.
EQUAL_WITHIN = 0.03
# The chances that equal sizes are decided: from each end of the sizes, and between. They add up to
# 5 %.
_LEVEL_OF_AN_END, _LEVEL_BETWEEN = 0.02, 0.01


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of two curves: `measure` names the sizes, `sides` the two in the places of CPU
    and GPU. Times are equal if they differ by less than the share `equal_within`, and at the sizes
    where both run the `same` program. Where `is_band`, the GPU was not measured, and its times lie
    in a band. `quantity` is what is compared."""

    measure: str = "parameters"
    sides: tuple[str, str] = ("CPU", "GPU")
    equal_within: float = 0.0
    is_band: bool = False
    same: tuple[float, ...] = ()
    quantity: Quantity = TIME


@dataclass(frozen=True, slots=True)
class Crossover:
    """The answer for one pair of curves, as data: curves/crossover_words.py words it.

    `size` is the smallest size from which the GPU wins at all larger measured sizes, interpolated
    on logarithmic axes; None where there is none, or where `kind` is "ambiguous". [`low`, `high`]
    is its 95 % interval, also where `kind` is "ambiguous". `high` is None where the interval
    reaches beyond the largest size or that size is undecided; `low` is None where it reaches below
    the smallest size or the CPU wins none; both are None for kinds without an interval and with
    fewer than 5 repetitions. `crossings` are all sizes where the faster device changes, in order.
    "several" is every other sequence of winners that is sure: also a GPU that wins at small sizes
    only. `sizes` are those that both curves have, without those with fewer than 5 repetitions where
    others have more (`left_out` counts them). `winners` has CPU_WINS, GPU_WINS or 0 (undecided) for
    each. With fewer than 5 repetitions `medians` is the answer of the medians alone.
    """

    kind: Kind
    size: float | None
    low: float | None
    high: float | None
    crossings: tuple[float, ...]
    question: Question = Question()
    sizes: tuple[float, ...] = ()
    winners: tuple[int, ...] = ()
    left_out: int = 0
    medians: Crossover | None = None

    @property
    def gpu_wins(self) -> tuple[float, ...]:
        """The sizes at which the GPU wins for sure."""
        sides = () if self.medians else self.winners
        return tuple(
            size for size, side in zip(self.sizes, sides, strict=False) if side == GPU_WINS
        )


@dataclass(frozen=True, slots=True)
class Comparison(Alike):
    """One pair of curves over the sizes that both have, and its crossover: of a CPU and a GPU, or
    in their places of fewer and more threads, of one process and several ranks.

    The precision of `common` is "tf32 (CPU: f32)" where no CPU curve has the GPU's. `measure` names
    the sizes: "parameters", "batch", "copies", "size" (of a square product), "width".
    """

    measure: str
    cpu: Curve
    gpu: Curve
    crossover: Crossover

    @property
    def sizes(self) -> np.ndarray:
        """The sizes that both curves have: those that the answer is about."""
        return np.intersect1d(self.cpu.sizes, self.gpu.sizes)

    @property
    def sides(self) -> tuple[str, str]:
        """What both are called: "CPU" and "GPU", "1 thread" and "2 threads"."""
        return self.crossover.question.sides

    @property
    def device(self) -> str:
        """Where the second side computes."""
        return self.gpu.configuration["device"]

    @property
    def ladder(self) -> np.ndarray:
        """The `sizes` that all ways are measured on, not those between two of a ladder."""
        return np.setdiff1d(self.sizes, list(self.cpu.between | self.gpu.between))


def intervals_overlap(first: Crossover, second: Crossover) -> bool:
    """Whether the intervals overlap; an end that is not known reaches as far as can be."""

    def ends(crossover: Crossover) -> tuple[float, float]:
        low, high = crossover.low, crossover.high
        return 0.0 if low is None else low, math.inf if high is None else high

    (low, high), (other_low, other_high) = ends(first), ends(second)
    return low <= other_high and other_low <= high


def find_crossover(
    cpu: Curve,
    gpu: Curve,
    measure: str = "parameters",
    sides: tuple[str, str] = ("CPU", "GPU"),
    equal_within: float = 0.0,
    *,
    same: tuple[float, ...] = (),
) -> Crossover:
    """Compares two curves at the sizes that both have; the same input gives the same answer.

    `sides` names them. A size whose times may differ by less than the share `equal_within` has no
    winner, nor has one of those at which both run the `same` program. Raises ValueError where no
    size is common.
    """
    sizes, cpu_places, gpu_places = np.intersect1d(cpu.sizes, gpu.sizes, return_indices=True)
    if not len(sizes):
        raise ValueError("the curves have no size in common")
    cpu_times, gpu_times = estimate(cpu, _CPU), estimate(gpu, _GPU)
    # Logarithm of the speedup, CPU time / GPU time: the GPU wins where it is positive.
    medians = cpu_times.logs[cpu_places] - gpu_times.logs[gpu_places]
    replicates = cpu_times.replicates[:, cpu_places] - gpu_times.replicates[:, gpu_places]
    again = cpu_times.again[:, cpu_places] - gpu_times.again[:, gpu_places]
    places = zip(cpu_places, gpu_places, strict=True)
    counts = np.array([min(fewest_samples(cpu, a), fewest_samples(gpu, b)) for a, b in places])
    question = Question(measure, sides, equal_within, same=same, quantity=cpu.quantity)
    return _answer(sizes, medians, [replicates], question, counts, again=[again])


def by_medians(
    cpu: Curve,
    gpu: Curve,
    measure: str = "parameters",
    sides: tuple[str, str] = ("CPU", "GPU"),
) -> Crossover:
    """What the medians alone say at the sizes that both have, whatever noise there is."""
    sizes, *places = np.intersect1d(cpu.sizes, gpu.sizes, return_indices=True)
    medians = log_medians(cpu)[places[0]] - log_medians(gpu)[places[1]]
    winners, logs = np.sign(medians).astype(int), np.log(sizes)
    kind = _kind(winners)
    crosses = kind in ("once", "several")
    return Crossover(
        kind=kind,
        size=_start(medians, logs) if crosses and winners[-1] == GPU_WINS else None,
        low=None,
        high=None,
        crossings=_crossings(medians, logs, winners) if crosses else (),
        question=Question(measure, sides, quantity=cpu.quantity),
        sizes=tuple(sizes.tolist()),
        winners=tuple(winners.tolist()),
    )


def comparisons(file: File, scales: Mapping[str, Scale] = SCALES) -> list[Comparison]:
    """Every CPU curve of `file` (each thread count, and the best of all) against every GPU curve
    that computes the same, in the order of the file, of the families in `scales`. Curves need two
    sizes in common."""
    return [
        Comparison(
            *(pairing.common, pairing.measure, cpu, pairing.gpu),
            find_crossover(cpu, pairing.gpu, pairing.measure),
        )
        for pairing in pairings(file, scales)
        for cpu in pairing.sides
        if cpu.meets(pairing.gpu)
    ]


def banded_crossover(pairing: Pairing) -> Crossover:
    """The crossover of the CPU with a GPU whose times are known to lie in a band: its samples are
    low, point and high at each size.

    The earliest crossover is that with all low ends, the latest that with all high ends, each with
    the CPU's own noise in this run: the ends of both add up, which is more than another day needs.
    A winner is decided where both ends agree.
    """
    cpu, gpu = pairing.best, pairing.gpu
    sizes, cpu_places, gpu_places = np.intersect1d(cpu.sizes, gpu.sizes, return_indices=True)
    times = estimate(cpu, _CPU)
    low, middle, high = np.log(np.array(gpu.samples)[gpu_places]).T
    replicates = [times.replicates[:, cpu_places] - end for end in (low, high)]
    counts = np.array([fewest_samples(cpu, place) for place in cpu_places])
    medians = times.logs[cpu_places] - middle
    question = Question(pairing.measure, is_band=True)
    return _answer(sizes, medians, replicates, question, counts)


def drawn_crossover(sizes: np.ndarray, draws: np.ndarray, question: Question) -> Crossover:
    """The crossover where neither side was measured: a line of `draws` for each of what both may
    be, with the logarithm of the speedup at each of `sizes`."""
    counts = np.full(len(sizes), len(draws))
    return _answer(sizes, np.median(draws, axis=0), [draws], question, counts)


def _answer(
    sizes: np.ndarray,
    medians: np.ndarray,
    replicates: Sequence[np.ndarray],
    question: Question,
    counts: np.ndarray,
    *,
    again: Sequence[np.ndarray] = (),
) -> Crossover:
    """`replicates`: of what is known, or of each end of a band, the earliest first; `again` as
    these, of another day, where that differs. `counts` are repetitions of each size; where some
    sizes have too few, the others decide."""
    enough = counts >= statistics.FEWEST_SAMPLES
    again = again or replicates
    if np.count_nonzero(enough) > 1 and not enough.all():
        replicates, again = ([end[:, enough] for end in ends] for ends in (replicates, again))
        some = _answer(
            sizes[enough], medians[enough], replicates, question, counts[enough], again=again
        )
        return replace(some, left_out=int(np.count_nonzero(~enough)))
    logs = np.log(sizes)
    margin = np.full(len(sizes), math.log1p(question.equal_within))
    margin[np.isin(sizes, question.same)] = np.inf
    of_ends = np.array([_winners(end, margin, counts) for end in replicates])
    winners = np.where(np.all(of_ends == of_ends[0], axis=0), of_ends[0], 0)
    kind = _kind(winners)
    crosses = kind in ("once", "several")
    answer = Crossover(
        kind=kind,
        size=_start(medians, logs) if crosses and winners[-1] == GPU_WINS else None,
        low=None,
        high=None,
        crossings=_crossings(medians, logs, winners) if crosses else (),
        question=question,
        sizes=tuple(sizes.tolist()),
        winners=tuple(winners.tolist()),
    )
    if not enough.all():
        unsure = replace(answer, kind="ambiguous", size=None, crossings=())
        return replace(unsure, medians=answer)
    if not answer.size and kind != "ambiguous":
        return answer
    low, _ = statistics.interval(_log_starts(again[0], logs))
    _, high = statistics.interval(_log_starts(again[-1], logs))
    # At many undecided sizes the GPU loses somewhere by noise alone, in nearly all replicates.
    low_known = CPU_WINS in winners and low > -np.inf
    high_known = winners[-1] == GPU_WINS and high < np.inf
    return replace(
        answer,
        low=float(min(np.exp(low), answer.size or sizes[-1])) if low_known else None,
        high=float(max(np.exp(high), answer.size or sizes[0])) if high_known else None,
    )


def _winners(replicates: np.ndarray, margin: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The side that is faster by more than `margin` at each size: undecided where too many
    replicates disagree.

    Sizes are tried from the largest down and from the smallest up, each until the first that is
    undecided, so that no correction for many sizes is needed; Holm's (Scandinavian Journal of
    Statistics 6, 1979) is for those in between. In at most 5 % of cases any of equal sizes is
    decided.
    """

    def against(ahead: np.ndarray) -> np.ndarray:
        return np.mean(ahead < margin, axis=0) + np.mean(ahead == margin, axis=0) / 2

    gpu, cpu = against(replicates), against(-replicates)
    leaders = np.where(gpu < cpu, GPU_WINS, CPU_WINS)
    # That all repetitions of one side are the shorter ones happens by chance, too.
    chance = [1 / math.comb(2 * count, count) for count in counts.tolist()]
    either = 2 * np.maximum(np.minimum(gpu, cpu), chance)
    decided = np.zeros(len(either), dtype=bool)
    decided[: _first_above(either, _LEVEL_OF_AN_END)] = True
    decided[len(either) - _first_above(either[::-1], _LEVEL_OF_AN_END) :] = True
    rest = np.flatnonzero(~decided)
    ordered = rest[np.argsort(either[rest])]
    holm = either[ordered] * np.arange(len(rest), 0, -1)
    decided[ordered[: _first_above(holm, _LEVEL_BETWEEN)]] = True
    return np.where(decided, leaders, 0)


def _first_above(values: np.ndarray, level: float) -> int:
    """The place of the first of `values` above `level`; their number where none is."""
    above = np.flatnonzero(values > level)
    return int(above[0]) if len(above) else len(values)


def _kind(winners: np.ndarray) -> Kind:
    decided = winners[winners != 0]
    changes = np.count_nonzero(np.diff(decided))
    if np.all(winners == GPU_WINS):
        return "always"
    if winners[-1] == CPU_WINS and changes == 0:
        return "never"
    if winners[-1] == 0 or changes == 0:
        return "ambiguous"
    return "once" if changes == 1 and winners[-1] == GPU_WINS else "several"


def _log_starts(differences: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """For each line of `differences` the logarithm of the size from which on the GPU wins.

    -inf where it wins at all sizes, inf where it does not win at the largest.
    """
    last = len(logs) - 1
    loses = differences <= 0
    lost = last - np.argmax(loses[:, ::-1], axis=1)  # the largest size at which the GPU loses
    left = np.minimum(lost, last - 1)
    lines = np.arange(len(differences))
    below, above = differences[lines, left], differences[lines, left + 1]
    crossed = (below <= 0) & (above > 0)
    share = np.where(crossed, -below, 0.0) / np.where(crossed, above - below, 1.0)
    inside = logs[left] + share * (logs[left + 1] - logs[left])
    return np.select([~loses.any(axis=1), lost == last], [-np.inf, np.inf], inside)


def _start(medians: np.ndarray, logs: np.ndarray) -> float:
    return float(np.exp(_log_starts(medians[None, :], logs)[0]))


def _crossings(medians: np.ndarray, logs: np.ndarray, winners: np.ndarray) -> tuple[float, ...]:
    """Where the faster device changes, between the sizes at which it is decided."""
    sizes = [
        _start(medians[left : right + 1] * winners[right], logs[left : right + 1])
        for left, right in pairwise(np.flatnonzero(winners))
        if winners[left] != winners[right]
    ]
    if winners[-1] == GPU_WINS:
        sizes[-1] = _start(medians, logs)
    return tuple(sizes)


@dataclass(frozen=True, slots=True)
class Regret:
    """What is lost, as shares (0 to 1) of the time that the rule takes: the mean over the sizes
    measured, and the largest, at the size `at`."""

    mean: float
    largest: float
    at: float


def regret(crossover: Crossover, below: Curve, above: Curve) -> Regret | None:
    """What is lost by taking `below` before the size of `crossover` and `above` from it on.

    None where the answer gives no rule: where it is ambiguous, or has no size from which on `above`
    wins although it wins somewhere.
    """
    start = {"always": 0.0, "never": math.inf}.get(crossover.kind, crossover.size)
    if start is None:
        return None
    sizes, *places = np.intersect1d(below.sizes, above.sizes, return_indices=True)
    sign = below.quantity.cost(1)
    costs = [
        np.exp(sign * log_medians(curve)[at])
        for curve, at in zip((below, above), places, strict=True)
    ]
    taken = np.where(sizes >= start, costs[1], costs[0])
    lost = 1.0 - np.minimum(*costs) / taken
    worst = int(np.argmax(lost))
    return Regret(float(np.mean(lost)), float(lost[worst]), float(sizes[worst]))


@dataclass(frozen=True, slots=True)
class SpeedUp(Alike):
    """One network on the best thread count of the CPU and on the GPU in one configuration: the
    speedup CPU time / GPU time, or by how many times the GPU is better, also off any curve.

    `cpu` and `gpu` are curves of one size. [`low`, `high`] is the 95 % interval of `ratio`, None
    where a row has too few repetitions. `verdict` is that of the crossover's winners for this size
    (CPU_WINS, GPU_WINS or 0), None for a network on no curve. The winner is behind in `against` of
    the `repetitions`, paired in their order.
    """

    parameters: float
    cpu: Curve
    gpu: Curve
    ratio: float
    low: float | None
    high: float | None
    verdict: int | None = None
    against: int = 0
    repetitions: int = 0

    @property
    def winner(self) -> Winner | None:
        """The faster device, where that is sure: on a curve as its crossover says, else where the
        interval excludes 1."""
        verdict = self.verdict
        if self.low is None or self.high is None:
            return None
        if verdict is None:
            verdict = GPU_WINS * (self.low > 1) + CPU_WINS * (self.high < 1)
        return _WINNERS[verdict]

    @property
    def factor(self) -> float:
        """By how many times the winner is better."""
        return 1 / self.ratio if self.winner == "cpu" else self.ratio


def speed_ups(file: File, compared: Sequence[Comparison]) -> list[SpeedUp]:
    """The speedup of every network of `file` on every GPU configuration, in the file's order: of
    the rows of each of OF_NETWORKS. `compared` are the file's comparisons().

    The CPU's curve is that of the thread count with the smallest median; the ratio is that of the
    best, which is a little slower where several are about equally fast (estimate()).
    """
    verdicts = _verdicts(compared)
    return [
        _speed_up(pairing, verdicts.get(pairing.gpu.rows[0]))
        for pairing in pairings(file, NETWORKS)
    ]


def _speed_up(pairing: Pairing, verdict: int | None) -> SpeedUp:
    return speed_up_of(pairing.common, pairing.cpus, pairing.best, pairing.gpu, verdict)


def speed_up_of(
    common: dict[str, str], cpus: Sequence[Curve], best: Curve, gpu: Curve, verdict: int | None
) -> SpeedUp:
    """The speedup of `gpu` over the `best` of `cpus`, curves of one size, with this `verdict`."""
    cost = gpu.quantity.cost
    chosen = min(cpus, key=lambda curve: cost(median_of(curve.samples[0])))
    cpu_times, gpu_times = estimate(best, _CPU), estimate(gpu, _GPU)
    low = high = None
    if min(fewest_samples(best), fewest_samples(gpu)) >= statistics.FEWEST_SAMPLES:
        replicates = np.exp(cpu_times.replicates - gpu_times.replicates)
        low, high = statistics.interval(replicates[:, 0])
    ratio, size = float(np.exp(cpu_times.logs - gpu_times.logs)[0]), float(gpu.sizes[0])
    result = SpeedUp(common, size, chosen, gpu, ratio, low, high, verdict)
    pairs = zip(chosen.samples[0], gpu.samples[0], strict=False)
    ahead = [cost(on_cpu) > cost(on_gpu) for on_cpu, on_gpu in pairs]
    against = ahead.count(result.winner == "cpu") if result.winner else 0
    return replace(result, against=against, repetitions=len(ahead))


def _verdicts(compared: Sequence[Comparison]) -> dict[int, int]:
    """Row.index of the GPU → who wins there against the best thread count, on the curves that it
    stands on."""
    verdicts: dict[int, int] = {}
    for comparison in compared:
        if comparison.cpu.candidates:
            rows = dict(zip(comparison.gpu.sizes.tolist(), comparison.gpu.rows, strict=True))
            crossover = comparison.crossover
            winners = zip(crossover.sizes, crossover.winners, strict=True)
            verdicts |= {rows[size]: winner for size, winner in winners}
    return verdicts
