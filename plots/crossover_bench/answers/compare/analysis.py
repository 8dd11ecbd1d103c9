# SPDX-License-Identifier: Apache-2.0
"""Compares two files row by row; docs/method/comparing.md defines the verdicts."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from scipy import special, stats

from crossover_bench.curves import statistics
from crossover_bench.curves.comparability import remarks
from crossover_bench.curves.network import difference, per_iteration
from crossover_bench.files.axes import Items
from crossover_bench.files.builds import path_of_build
from crossover_bench.files.families import TRAINING
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import MOST_DISTURBED, File, Instances, PairedSize, Row
from crossover_bench.files.samples import FEW

Outcome = Literal["slower", "faster", "open"]
Verdict = Literal["better", "worse", "same", "ambiguous", "disturbed"]

MINIMUM_EFFECT = 0.03
SIGNIFICANCE = 0.05  # share of false ones among the rows that are called faster or slower
FEWEST_REPETITIONS = statistics.FEWEST_SAMPLES
_EXACT = 1e-12  # of a logarithm: what rounding may leave of equal times
_FEWEST_ROWS = 10  # whose ratios show how far runs are apart
# Rows differ in how far their instances are apart (docs/method/intervals.md, "Instances"), so one
# figure for all has tails like Student's t of few degrees of freedom.
_POOLED_FREEDOM = 4.0


@dataclass(frozen=True, slots=True)
class Effect:
    """What lies between two runs of a row of a family on a device, where rows have few instances:
    `deviation` is the standard deviation of the logarithm of the ratio. `rows` counts those whose
    ratios show it. It is 0 where each row's instances show it; `deviation` is then the largest."""

    family: str
    device: str
    deviation: float
    rows: int


@dataclass(frozen=True, slots=True)
class Pair:
    """One row in both files.

    `samples` are the seconds of the other file for as much work as the baseline's iteration does,
    or its values of another quantity, and `ratio` is their median over the baseline's; [`low`,
    `high`] is its 95 % interval, None with a single repetition. `between` is what lies between the
    two runs (Effect), 0 where both rows have instances enough. `p` is that of a difference beyond
    the minimum effect (beyond()), corrected for the number of rows.
    """

    baseline: Row
    other: Row
    samples: np.ndarray
    between: float
    ratio: float
    low: float | None
    high: float | None
    p: float = 1.0
    verdict: Verdict = "ambiguous"

    @property
    def value(self) -> float:
        """Median of the other file's samples."""
        return float(np.median(self.samples))

    @property
    def repetitions(self) -> int:
        """Of the file that has fewer."""
        return min(len(self.baseline.samples), len(self.samples))

    @property
    def is_disturbed(self) -> bool:
        """Whether other programs used the processors in most repetitions of either row."""
        return self.baseline.is_disturbed or self.other.is_disturbed


@dataclass(frozen=True, slots=True)
class InTurn:
    """A network that both builds trained in turn, each pair with instances of its own. `pair` has
    its times. `outcome` is what the build of the file surely is beside the other one."""

    size: PairedSize
    pair: Pair
    outcome: Outcome


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

    `minimum_effect` is a fraction, `effects` are what lies between runs. `remarks` are what one
    should know with the ratios. `in_turn` are the networks that bench --refine=program measured in
    pairs of the other file's build and the baseline's, the largest first. A pair decides by which
    of its two times is shorter (docs/method/runs.md), so that what differs from row to row or from
    run to run need not be known, and small differences are found.
    """

    baseline: File
    other: File
    minimum_effect: float
    pairs: tuple[Pair, ...]
    unmatched: tuple[Unmatched, ...]
    effects: tuple[Effect, ...]
    remarks: tuple[str, ...]
    in_turn: tuple[InTurn, ...]

    @property
    def misnamed(self) -> int:
        """How many rows have the name of a row of the other file, but not its work."""
        return sum(unmatched.misnamed for unmatched in self.unmatched)

    def count(self, verdict: Verdict) -> int:
        """How many rows have this verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs)

    @property
    def cannot_tell(self) -> str:
        """Why the comparison says little, a sentence; empty where it does not."""
        disturbed = self.count("disturbed")
        if disturbed <= MOST_DISTURBED * len(self.pairs):
            return ""
        return (
            f"This comparison cannot tell: other programs used the processors during {disturbed} "
            f"of {len(self.pairs)} rows; measure both again on an idle machine."
        )

    @property
    def quantity(self) -> Quantity:
        """What is compared."""
        return next((pair.baseline.quantity for pair in self.pairs), TIME)

    def word(self, verdict: Verdict) -> str:
        """A verdict on the other file as people read it: "faster"."""
        return {"better": self.quantity.better, "worse": self.quantity.worse}.get(verdict, verdict)

    def worse_than(self, fraction: float, families: Collection[str] = TRAINING) -> list[Pair]:
        """The rows of `families` shown to be worse than in the baseline, such as slower, by more
        than `fraction` and the least that counts; and the networks that are so in_turn.

        Where no row does, one is named in at most 5 % of the comparisons, however many rows there
        are.
        """
        of_families = [pair for pair in self.pairs if pair.baseline.family in families]
        least = self.quantity.least
        worse = [
            pair
            for pair in _judged(of_families, fraction)
            if pair.verdict == "worse" and abs(pair.value - pair.baseline.median) >= least
        ]
        told = {pair.baseline.name for pair in worse}
        slower = (network.pair for network in self.in_turn if network.outcome == "slower")
        more = [pair for pair in slower if pair.ratio > 1 + fraction]
        return worse + [pair for pair in more if pair.baseline.name not in told]


def compare(baseline: File, other: File, minimum_effect: float = MINIMUM_EFFECT) -> Comparison:
    """Compares the rows of `other` with those of the same name in `baseline`, in its order.

    A row of the CPU that each file has in one execution alone is compared although the executions
    differ: eager in an old file with auto in a new one, say.
    """
    theirs = {row.name: row for row in other.rows}
    ours, alike = _one_execution(baseline), _one_execution(other)
    executions = {row.name: alike[key].name for key, row in ours.items() if key in alike}
    matched: list[tuple[Row, Row]] = []
    unmatched = []
    for row in baseline.rows:
        match = theirs.pop(executions.get(row.name, row.name), None)
        obstacle = _obstacle(row, match)
        if match is None or obstacle:
            unmatched.append(obstacle or Unmatched(row, "only in the baseline"))
        else:
            matched.append((row, match))
    alone = "only in the other file"
    unmatched += (
        Unmatched(row, f"{alone}, {_failure(row)}" if row.failure else alone)
        for row in theirs.values()
    )
    effects = _effects(matched, baseline, other)
    pairs = _judged([_measured(*rows, effects) for rows in matched], minimum_effect)
    return Comparison(
        baseline,
        other,
        minimum_effect,
        pairs,
        tuple(unmatched),
        tuple(effects.values()),
        (*remarks(baseline, other), *_across(pairs)),
        tuple(
            sorted(_in_turn(baseline, other, pairs), key=lambda network: -network.size.parameters)
        ),
    )


def _one_execution(file: File) -> dict[Items, Row]:
    """The rows of the CPU that train, by all but their execution; those that have only one."""
    groups: dict[Items, list[Row]] = {}
    for row in file.rows:
        if row.family in TRAINING and row.device == "cpu":
            key = tuple(sorted((k, v) for k, v in row.configuration.items() if k != "execution"))
            groups.setdefault(key, []).append(row)
    return {key: rows[0] for key, rows in groups.items() if len(rows) == 1}


def _across(pairs: Sequence[Pair]) -> list[str]:
    """Which rows were compared across executions, in a sentence."""
    changes = Counter(
        (pair.baseline.execution, pair.other.execution)
        for pair in pairs
        if pair.baseline.name != pair.other.name
    )
    return [
        f"{count} rows of the CPU are {first} in the baseline and {second} in the other file."
        for (first, second), count in changes.items()
    ]


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
    other_work = difference(row, match)
    return Unmatched(row, other_work, misnamed=True) if other_work else None


def _values(row: Row, match: Row) -> np.ndarray:
    """The samples of `match` for the work of an iteration of `row`; counters are not of one."""
    if row.quantity.counter:
        return match.samples
    return match.samples * (per_iteration(row) / per_iteration(match))


def _has_few(row: Row) -> bool:
    return len(set(row.instances.of)) < FEW


def _effects(
    matched: Sequence[tuple[Row, Row]], baseline: File, other: File
) -> dict[tuple[str, str], Effect]:
    """Family and device → what lies between the two runs, of rows with few instances.

    What the files' rows show of instances gives it. Where they do not, the ratios of enough rows
    do: how far they scatter about their median, beyond what lies within runs.
    """
    groups: dict[tuple[str, str], list[tuple[Row, Row]]] = {}
    for row, match in matched:
        if _has_few(row) or _has_few(match):
            groups.setdefault((row.family, row.device), []).append((row, match))
    effects = {}
    for key, rows in groups.items():
        sides = [file.spreads[key] for file in (baseline, other) if key in file.spreads]
        if len(rows) >= _FEWEST_ROWS and not all(spread.programs for spread in sides):
            effects[key] = Effect(*key, _scatter(rows), len(rows))
        else:
            effects[key] = Effect(*key, max(_of_instances(*pair) for pair in rows), 0)
    return effects


def _of_instances(row: Row, match: Row) -> float:
    """What lies between the runs of both, by what lies between instances."""
    variances = [
        each.instances.spread**2 / max(1, len(set(each.instances.of)))
        for each in (row, match)
        if _has_few(each)
    ]
    return sum(variances) ** 0.5


def _scatter(rows: Sequence[tuple[Row, Row]]) -> float:
    """The standard deviation of the logarithms of the ratios of `rows` beyond that within runs, so
    that a few rows which did change do not count."""
    logs = [np.log(row.samples) for row, _ in rows], [np.log(_values(*pair)) for pair in rows]
    ratios = np.array([np.median(b) - np.median(a) for a, b in zip(*logs, strict=True)])
    within = [
        sum(float(side.var(ddof=1)) / len(side) for side in sides if len(side) > 1)
        for sides in zip(*logs, strict=True)
    ]
    scatter = stats.median_abs_deviation(ratios, scale="normal")
    return max(0.0, float(scatter**2 - np.median(within))) ** 0.5


def _measured(row: Row, match: Row, effects: dict[tuple[str, str], Effect]) -> Pair:
    """The pair without a verdict, its `p` not corrected yet."""
    values = _values(row, match)
    between = 0.0
    if _has_few(row) or _has_few(match):
        effect = effects[row.family, row.device]
        between = effect.deviation if effect.rows else _of_instances(row, match)
    low = high = None
    if min(len(row.samples), len(values)) > 1:
        # The baseline's replicates carry what lies between the runs.
        medians = [
            statistics.resampled_medians(
                statistics.units(each, side.instances), place, instances=Instances((), spread)
            )
            for place, (each, side, spread) in enumerate(
                ((row.samples, row, between), (values, match, 0.0))
            )
        ]
        low, high = statistics.interval(medians[1] / medians[0])
    return Pair(
        baseline=row,
        other=match,
        samples=values,
        between=between,
        ratio=float(np.median(values) / row.median),
        low=low,
        high=high,
    )


def beyond(pair: Pair, effect: float) -> float:
    """Two-sided p of Welch's t test that times differ by more than a factor of 1 + `effect`.

    It compares the means of logarithms (B. L. Welch, Biometrika 34, 1947): of instances, or where
    they are few of repetitions, with what lies between runs added. Unlike p of a rank test, which
    for 5 against 5 is 0.008 at least, it has no floor that a correction for many rows could lift
    above 0.05.
    """
    ours, theirs = (
        np.log(statistics.units(samples, row.instances))
        for samples, row in (
            (pair.baseline.samples, pair.baseline),
            (pair.samples, pair.other),
        )
    )
    if min(len(ours), len(theirs)) < 2:
        return 1.0
    distance = abs(theirs.mean() - ours.mean()) - np.log1p(effect)
    parts = [
        *((float(each.var(ddof=1)) / len(each), len(each) - 1) for each in (ours, theirs)),
        (pair.between**2, _POOLED_FREEDOM),
    ]
    variance = sum(part for part, _ in parts)
    if variance < _EXACT**2:  # each file has one and the same time
        return float(distance <= _EXACT)
    freedom = variance**2 / sum(part**2 / degrees for part, degrees in parts)
    return min(1.0, 2 * float(special.stdtr(freedom, -distance / variance**0.5)))


def _judged(pairs: Sequence[Pair], effect: float) -> tuple[Pair, ...]:
    """`pairs` with what a minimum effect of `effect` makes of them; those that other programs
    disturbed say nothing."""
    judged = [pair for pair in pairs if not pair.is_disturbed]
    chances = [beyond(pair, effect) for pair in judged]
    corrected = iter(stats.false_discovery_control(chances, method="bh") if chances else ())
    return tuple(
        replace(pair, verdict="disturbed")
        if pair.is_disturbed
        else replace(pair, p=(p := float(next(corrected))), verdict=_verdict(pair, p, effect))
        for pair in pairs
    )


def _verdict(pair: Pair, p: float, effect: float) -> Verdict:
    limit = 1 + effect
    if pair.low is None or pair.high is None or pair.repetitions < FEWEST_REPETITIONS:
        return "ambiguous"
    if 1 / limit <= pair.low and pair.high <= limit:
        return "same"
    is_higher, is_lower = pair.low > limit, pair.high < 1 / limit
    if p < SIGNIFICANCE and (is_higher or is_lower):
        return "worse" if is_higher != pair.baseline.quantity.is_more_better else "better"
    return "ambiguous"


def _in_turn(baseline: File, other: File, pairs: Sequence[Pair]) -> Iterator[InTurn]:
    """Those of `pairs` that `other` measured in turn with the build that `baseline` is of."""
    outcomes: dict[str | None, Outcome] = {"first": "faster", "second": "slower", None: "open"}
    for refinement in other.refinements:
        if baseline.path == path_of_build(other, refinement.second.get("program", "")):
            way = {**refinement.common, **refinement.first}.items()
            same = [pair for pair in pairs if way <= pair.baseline.configuration.items()]
            by_model = {pair.baseline.model: pair for pair in same}
            for size in refinement.sizes:
                if pair := by_model.get(size.model):
                    yield InTurn(size, pair, outcomes[size.winner])
