# SPDX-License-Identifier: Apache-2.0
"""Compares two files row by row; docs/method/comparing.md defines the verdicts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import stats

from plots.analysis.comparability import remarks
from plots.rows import File, Row

Verdict = Literal["faster", "slower", "same", "ambiguous"]

MINIMUM_EFFECT = 0.03
SIGNIFICANCE = 0.05  # share of false ones among the rows that are called faster or slower
CONFIDENCE = 0.95
FEWEST_REPETITIONS = 5  # with fewer the interval covers less than it says
_RESAMPLES = 1999
_SEED = 7_249  # the same files always give the same intervals

# What has to agree for two rows of one name to be the same work.
_WORK = ("params", "batch", "rows", "steps")


@dataclass(frozen=True, slots=True)
class Pair:
    """One row in both files.

    `seconds` is the median time of the other file for as much work as the baseline's iteration
    does, and `ratio` that over the baseline's median; [`low`, `high`] is its 95 % interval, None
    with a single repetition. `p` is that of the Mann-Whitney test, corrected for the number of
    rows.
    """

    baseline: Row
    other: Row
    seconds: float
    ratio: float
    low: float | None
    high: float | None
    p: float
    verdict: Verdict

    @property
    def repetitions(self) -> int:
        """Of the file that has fewer."""
        return min(len(self.baseline.samples), len(self.other.samples))


@dataclass(frozen=True, slots=True)
class Unmatched:
    """A row that could not be compared; `lost` where only the other file failed to measure it,
    `misnamed` where the other file's row of that name trains differently."""

    row: Row
    reason: str
    lost: bool = False
    misnamed: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """What comparing two files gives: every row of either is in `pairs` or in `unmatched`.

    `minimum_effect` is a fraction. `remarks` are what one should know with the ratios.
    """

    baseline: File
    other: File
    minimum_effect: float
    pairs: tuple[Pair, ...]
    unmatched: tuple[Unmatched, ...]
    remarks: tuple[str, ...]

    @property
    def misnamed(self) -> int:
        """How many rows have the name of a row of the other file, but not its work."""
        return sum(unmatched.misnamed for unmatched in self.unmatched)

    def count(self, verdict: Verdict) -> int:
        """How many rows have this verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs)

    def slower_than(self, fraction: float) -> list[Pair]:
        """The rows called slower whose time is more than `fraction` above the baseline's."""
        return [
            pair for pair in self.pairs if pair.verdict == "slower" and pair.ratio > 1 + fraction
        ]


def compare(baseline: File, other: File, minimum_effect: float = MINIMUM_EFFECT) -> Comparison:
    """Compares the rows of `other` with those of the same name in `baseline`, in its order."""
    theirs = {row.name: row for row in other.rows}
    pairs, unmatched = [], []
    for row in baseline.rows:
        match = theirs.pop(row.name, None)
        obstacle = _obstacle(row, match)
        if match is None or obstacle:
            unmatched.append(obstacle or Unmatched(row, "only in the baseline"))
        else:
            pairs.append(_measured(row, match))
    unmatched += (Unmatched(row, _alone(row)) for row in theirs.values())
    return Comparison(
        baseline,
        other,
        minimum_effect,
        _judged(pairs, minimum_effect),
        tuple(unmatched),
        tuple(remarks(baseline, other)),
    )


def _alone(row: Row) -> str:
    return f"only in the other file{', ' + _failure(row) if row.failure else ''}"


def _failure(row: Row) -> str:
    return f"{row.failure.outcome}: {row.failure.message}" if row.failure else ""


def _obstacle(row: Row, match: Row | None) -> Unmatched | None:
    """Why `row` and `match` can't be compared; None where they can."""
    if match is None:
        return Unmatched(row, f"only in the baseline, {_failure(row)}") if row.failure else None
    if row.failure and match.failure:
        same = _failure(row) == _failure(match)
        where = _failure(row) if same else f"{_failure(row)}; other file: {_failure(match)}"
        return Unmatched(row, f"in both files {where}")
    if row.failure:
        return Unmatched(row, f"baseline {_failure(row)}")
    if match.failure:
        return Unmatched(row, f"other file {_failure(match)}", match.failure.outcome == "failed")
    if row.workload and match.workload and row.workload != match.workload:
        return Unmatched(row, "trains differently", misnamed=True)
    different = [
        f"{key} {row.counters[key]:,.0f} and {match.counters[key]:,.0f}"
        for key in _WORK
        if key in row.counters and row.counters[key] != match.counters.get(key, row.counters[key])
    ]
    return Unmatched(row, f"not the same work: {', '.join(different)}") if different else None


def _work(row: Row) -> float:
    """How much one iteration of `row` does, in what a machine with more memory or cores, or another
    commit, may do more of in one iteration; the names of rows fix all else."""
    counters = row.counters
    count = counters.get("count", 1.0)
    if row.family == "Peak":
        return counters.get("bytes", counters.get("flops", count))
    return count


def _measured(row: Row, match: Row) -> Pair:
    """The pair without a verdict, its `p` not corrected yet."""
    seconds = match.samples * (_work(row) / _work(match))
    low = high = None
    if min(len(row.samples), len(seconds)) > 1:
        interval = stats.bootstrap(
            (seconds, row.samples),
            _ratio_of_medians,
            n_resamples=_RESAMPLES,
            confidence_level=CONFIDENCE,
            method="percentile",
            rng=np.random.default_rng(_SEED),
        ).confidence_interval
        low, high = float(interval.low), float(interval.high)
    return Pair(
        baseline=row,
        other=match,
        seconds=float(np.median(seconds)),
        ratio=float(_ratio_of_medians(seconds, row.samples)),
        low=low,
        high=high,
        p=float(stats.mannwhitneyu(row.samples, seconds).pvalue),
        verdict="ambiguous",
    )


def _ratio_of_medians(theirs: np.ndarray, ours: np.ndarray, axis: int = -1) -> np.ndarray:
    return np.median(theirs, axis=axis) / np.median(ours, axis=axis)


def _judged(pairs: list[Pair], minimum_effect: float) -> tuple[Pair, ...]:
    if not pairs:
        return ()
    corrected = stats.false_discovery_control([pair.p for pair in pairs], method="bh")
    with_p = [replace(pair, p=float(p)) for pair, p in zip(pairs, corrected, strict=True)]
    return tuple(replace(pair, verdict=_verdict(pair, minimum_effect)) for pair in with_p)


def _verdict(pair: Pair, minimum_effect: float) -> Verdict:
    limit = 1 + minimum_effect
    if pair.low is None or pair.high is None or pair.repetitions < FEWEST_REPETITIONS:
        return "ambiguous"
    if 1 / limit <= pair.low and pair.high <= limit:
        return "same"
    if pair.p < SIGNIFICANCE:
        if pair.ratio > limit and pair.low > 1:
            return "slower"
        if pair.ratio < 1 / limit and pair.high < 1:
            return "faster"
    return "ambiguous"
