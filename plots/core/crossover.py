# SPDX-License-Identifier: Apache-2.0
"""From which size on the GPU wins, and how sure that is.

docs/method/crossover.md defines every word used here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from plots import units
from plots.core import statistics
from plots.core.curves import BEST, FAMILIES, Curve, Pairing, pairings
from plots.core.replicates import Estimate, estimate, fewest_samples
from plots.file.rows import File

__all__ = [
    "BEST",
    "Comparison",
    "Crossover",
    "Curve",
    "comparisons",
    "find_crossover",
    "intervals_overlap",
]

Kind = Literal["always", "never", "once", "several", "ambiguous"]


class _Wording(NamedTuple):
    """What an answer in words calls the sizes and the two sides, all sizes, and those that are
    undecided; and how many digits sizes have."""

    measure: str
    cpu: str = "CPU"
    gpu: str = "GPU"
    sizes: str = "size measured"
    undecided: str = "equal within noise"
    digits: int = 3


_CPU, _GPU = 0, 1  # names the random numbers of each side
_CPU_WINS, _GPU_WINS = -1, 1


@dataclass(frozen=True, slots=True)
class Crossover:
    """The answer for one pair of curves.

    `size` is the smallest size from which the GPU wins at all larger measured sizes, interpolated
    on logarithmic axes; None where there is none, or where `kind` is "ambiguous". [`low`, `high`]
    is its 95 % interval, also where `kind` is "ambiguous". `high` is None where it reaches beyond
    the largest size or that size is undecided, `low` where it reaches below the smallest or no size
    is the CPU's, and both for the kinds without an interval and with fewer than 3 repetitions
    (`words` says so then). `crossings` are all sizes where the faster device changes, in
    order. "several" is every sequence of winners that is sure and is none of the others: also a
    GPU that wins at small sizes only. `words` is the answer as people read it: "from 703,000
    parameters (500,000 to 900,000)", "GPU at every size measured, 22 to 11,201,190 parameters".
    """

    kind: Kind
    size: float | None
    low: float | None
    high: float | None
    crossings: tuple[float, ...]
    words: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """One pair of curves over the sizes that both have, and its crossover.

    `common` is what both have in common: family, batch, precision and whatever else the family
    has. Its precision is "tf32 (CPU: f32)" where no CPU curve has the GPU's. `measure` names the
    sizes: "parameters", "batch", "size" (of a square product), "width".
    """

    common: dict[str, str]
    measure: str
    cpu: Curve
    gpu: Curve
    crossover: Crossover

    @property
    def sizes(self) -> np.ndarray:
        """The sizes that both curves have: those that the answer is about."""
        return np.intersect1d(self.cpu.sizes, self.gpu.sizes)

    @property
    def ladder(self) -> np.ndarray:
        """The `sizes` without those between two sizes of a family: what all ways are measured on,
        where some have more."""
        return np.setdiff1d(self.sizes, list(self.cpu.between | self.gpu.between))


def intervals_overlap(one: Crossover, other: Crossover) -> bool:
    """Whether the intervals do; an end that is not known reaches as far as can be."""

    def ends(crossover: Crossover) -> tuple[float, float]:
        low, high = crossover.low, crossover.high
        return 0.0 if low is None else low, math.inf if high is None else high

    (low, high), (other_low, other_high) = ends(one), ends(other)
    return low <= other_high and other_low <= high


def find_crossover(
    cpu: Curve,
    gpu: Curve,
    measure: str = "parameters",
    sides: tuple[str, str] = ("CPU", "GPU"),
    equal_within: float = 0.0,
) -> Crossover:
    """Compares two curves at the sizes that both have; the same input gives the same answer.

    `sides` is what the words call them. A size whose times may differ by less than the share
    `equal_within` has no winner. Raises ValueError where no size is common.
    """
    undecided = f"equal within {100 * equal_within:.0f} %" if equal_within else "equal within noise"
    wording = _Wording(measure, *sides, undecided=undecided)
    times = estimate(cpu, _CPU), estimate(gpu, _GPU)
    return _find(cpu, gpu, wording, *times, equal_within=equal_within)


def comparisons(file: File) -> list[Comparison]:
    """Every CPU curve of `file` (each thread count, and the best of all) against every GPU curve
    that computes the same, in the order of the file. Curves need two sizes in common."""
    found = []
    estimates: dict[Curve, Estimate] = {}  # each curve is in many comparisons
    for pairing in pairings(file, FAMILIES):
        gpu = pairing.gpu
        estimates[gpu] = estimate(gpu, _GPU)
        for cpu in pairing.sides:
            if len(np.intersect1d(cpu.sizes, gpu.sizes)) < 2:
                continue
            if cpu not in estimates:
                estimates[cpu] = estimate(cpu, _CPU)
            wording = _Wording(pairing.measure)
            crossover = _find(cpu, gpu, wording, estimates[cpu], estimates[gpu])
            found.append(Comparison(pairing.common, pairing.measure, cpu, gpu, crossover))
    return found


def banded_crossover(pairing: Pairing) -> Crossover:
    """The crossover of the CPU with a GPU whose times are known to lie in a band: its samples are
    low, point and high at each size.

    The earliest crossover is that with all low ends, the latest that with all high ends, each with
    the CPU's own noise. A winner is decided where both ends agree.
    """
    cpu, gpu = pairing.best, pairing.gpu
    sizes, own, other = np.intersect1d(cpu.sizes, gpu.sizes, return_indices=True)
    times = estimate(cpu, _CPU)
    low, middle, high = np.log(np.array(gpu.samples)[other]).T
    replicates = [times.replicates[:, own] - end for end in (low, high)]
    fewest = fewest_samples(cpu, own)
    medians = times.logs[own] - middle
    wording = _Wording(pairing.measure, sizes="size", undecided="undecided", digits=2)
    return _answer(sizes, medians, replicates, wording, fewest=fewest)


def _find(
    cpu: Curve,
    gpu: Curve,
    wording: _Wording,
    cpu_times: Estimate,
    gpu_times: Estimate,
    *,
    equal_within: float = 0.0,
) -> Crossover:
    sizes, cpu_places, gpu_places = np.intersect1d(cpu.sizes, gpu.sizes, return_indices=True)
    if not len(sizes):
        raise ValueError("the curves have no size in common")
    # Logarithm of the speedup CPU time / GPU time: the GPU wins where it is positive.
    medians = cpu_times.logs[cpu_places] - gpu_times.logs[gpu_places]
    replicates = cpu_times.replicates[:, cpu_places] - gpu_times.replicates[:, gpu_places]
    fewest = min(fewest_samples(cpu, cpu_places), fewest_samples(gpu, gpu_places))
    return _answer(sizes, medians, [replicates], wording, fewest=fewest, equal_within=equal_within)


def _answer(
    sizes: np.ndarray,
    medians: np.ndarray,
    replicates: Sequence[np.ndarray],
    wording: _Wording,
    *,
    fewest: int,
    equal_within: float = 0.0,
) -> Crossover:
    """`replicates`: of what is known, or of each end of a band, the earliest first."""
    logs = np.log(sizes)
    of_ends = np.array([_winners(end, math.log1p(equal_within)) for end in replicates])
    winners = np.where(np.all(of_ends == of_ends[0], axis=0), of_ends[0], 0)
    kind = _kind(winners)
    crosses = kind in ("once", "several")
    answer = Crossover(
        kind=kind,
        size=_start(medians, logs) if crosses and winners[-1] == _GPU_WINS else None,
        low=None,
        high=None,
        crossings=_crossings(medians, logs, winners) if crosses else (),
        words="",
    )
    if fewest < statistics.FEWEST_SAMPLES:
        medians_say = _words(answer, sizes, wording, winners)
        words = f"ambiguous: fewer than {statistics.FEWEST_SAMPLES} repetitions; {medians_say}"
        return Crossover("ambiguous", None, None, None, (), words)
    if answer.size or kind == "ambiguous":
        low, _ = statistics.interval(_log_starts(replicates[0], logs))
        _, high = statistics.interval(_log_starts(replicates[-1], logs))
        # At many undecided sizes the GPU loses somewhere by noise alone, in nearly all replicates.
        low_known = _CPU_WINS in winners and low > -np.inf
        high_known = winners[-1] == _GPU_WINS and high < np.inf
        answer = replace(
            answer,
            low=float(min(np.exp(low), answer.size or sizes[-1])) if low_known else None,
            high=float(max(np.exp(high), answer.size or sizes[0])) if high_known else None,
        )
    return replace(answer, words=_words(answer, sizes, wording, winners))


def _winners(replicates: np.ndarray, margin: float) -> np.ndarray:
    """The side that is faster by more than `margin` at each size: undecided where too few
    replicates agree on it.

    Bonferroni's correction keeps the chance that any of equal sizes is decided at 5 %.
    """

    def share(ahead: np.ndarray) -> np.ndarray:
        return np.mean(ahead > margin, axis=0) + np.mean(ahead == margin, axis=0) / 2

    inside = 1 - (1 - statistics.CONFIDENCE) / 2 / replicates.shape[1]
    wins = [share(replicates) >= inside, share(-replicates) >= inside]
    return np.select(wins, [_GPU_WINS, _CPU_WINS], 0)


def _kind(winners: np.ndarray) -> Kind:
    decided = winners[winners != 0]
    changes = np.count_nonzero(np.diff(decided))
    if np.all(winners == _GPU_WINS):
        return "always"
    if winners[-1] == _CPU_WINS and changes == 0:
        return "never"
    if winners[-1] == 0 or changes == 0:
        return "ambiguous"
    return "once" if changes == 1 and winners[-1] == _GPU_WINS else "several"


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
    decided = np.flatnonzero(winners)
    found = []
    for left, right in pairwise(decided):
        if winners[left] != winners[right]:
            part = slice(left, right + 1)
            found.append(_start(medians[part] * winners[right], logs[part]))
    if winners[-1] == _GPU_WINS:
        found[-1] = _start(medians, logs)
    return tuple(found)


def _words(answer: Crossover, sizes: np.ndarray, wording: _Wording, winners: np.ndarray) -> str:
    measure, cpu, gpu = wording.measure, wording.cpu, wording.gpu
    if answer.kind == "always":
        return f"{gpu} at every {wording.sizes}, {size_range(sizes, measure)}"
    if answer.kind == "never":
        everywhere = np.all(winners == _CPU_WINS)
        claim = f"{cpu} at every {wording.sizes}" if everywhere else f"{gpu} at no {wording.sizes}"
        return f"{claim}, {size_range(sizes, measure)}"
    if answer.kind == "once" and answer.size:
        return f"from {_amount(answer.size, wording)}{_interval_words(answer, wording)}"
    if answer.kind == "several":
        return _several_words(answer, wording, winners)
    equal = np.count_nonzero(winners == 0)
    either = f"{wording.undecided} at {equal} of {len(sizes)} sizes"
    if answer.low:
        earliest = _amount(answer.low, wording)
        largest = _exactly(sizes[-1], measure)
        either = f"{gpu} from {earliest} at the earliest, or at no size up to {largest}"
    elif answer.high:
        latest = _amount(answer.high, wording)
        either = f"{gpu} at every {wording.sizes}, or from {latest} at the latest"
    return f"ambiguous: {either}"


def size_range(sizes: np.ndarray, measure: str) -> str:
    """The smallest and the largest of `sizes`: "22 to 806 parameters", "width 16 to 64"."""
    text = f"{units.count(sizes[0])} to {units.count(sizes[-1])}"
    return f"{text} parameters" if measure == "parameters" else f"{measure} {text}"


def _several_words(answer: Crossover, wording: _Wording, winners: np.ndarray) -> str:
    """Where the GPU wins: "GPU only up to 22,500 parameters", "GPU up to 90 and from 703,000 …"."""
    measure = wording.measure
    before, after = ("", " parameters") if measure == "parameters" else (f"{measure} ", "")
    ends = [before + units.significant(crossing, wording.digits) for crossing in answer.crossings]
    first = winners[np.flatnonzero(winners)[0]]
    spans = []
    if first == _GPU_WINS:
        spans.append(f"up to {ends.pop(0)}")
    while len(ends) > 1:
        spans.append(f"from {ends.pop(0)} to {ends.pop(0)}")
    only = "" if ends else "only "
    spans += [f"from {end}" for end in ends]
    return f"{wording.gpu} {only}{' and '.join(spans)}{after}{_interval_words(answer, wording)}"


def _interval_words(answer: Crossover, wording: _Wording) -> str:
    if answer.low is None or answer.high is None:
        return ""
    low, high = (units.significant(end, wording.digits) for end in (answer.low, answer.high))
    return f" ({low} to {high})"


def _amount(size: float, wording: _Wording) -> str:
    return _sized(units.significant(size, wording.digits), wording.measure)


def _exactly(size: float, measure: str) -> str:
    return _sized(units.count(size), measure)


def _sized(number: str, measure: str) -> str:
    return f"{number} parameters" if measure == "parameters" else f"{measure} {number}"
