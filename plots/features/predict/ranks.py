# SPDX-License-Identifier: Apache-2.0
"""From which size several cards that were not measured would train faster than one.

docs/method/ranks.md, "Predicted", says how. As with one card, nothing predicted is ever written
into a result file.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plots.core.all_reduce import FLOAT_BYTES
from plots.core.cards import Card
from plots.core.cost import BENCH_PATH, Cost
from plots.core.costs import cost_of
from plots.core.crossover import Crossover, Question, drawn_crossover
from plots.core.crossover_words import doubt, faster
from plots.core.machines import short_gpu
from plots.features.predict.analysis import NOT_MEASURED, Wanted, measured_rows, predict_draws
from plots.features.predict.data import is_plain
from plots.features.predict.fit import Fit
from plots.features.predict.links import Link
from plots.features.predict.scaling import loss, waits
from plots.features.predict.simulate import Times, ends, slower
from plots.file.axes import Items
from plots.file.families import EPOCH, steps_of
from plots.file.rows import File, Row
from plots.text import printable

Scales = Literal["strong", "weak"]
SCALES: tuple[Scales, ...] = ("strong", "weak")
_BATCHES = tuple(2**power for power in range(4, 17))  # of which one is sought that pays
_LONGEST = 60
_ONE_BATCH = "only networks whose rows do an update for each batch are predicted"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to predict: `ranks` of `card` over `link`, which share a batch (strong scaling) or have
    one each (weak)."""

    card: Card
    link: Link
    ranks: tuple[int, ...]
    scaling: Scales = "strong"

    def batch(self, whole: float, ranks: int) -> float:
        """Rows of the largest share of a batch."""
        return float(-(-int(whole) // ranks)) if self.scaling == "strong" else whole

    @property
    def name(self) -> str:
        """Of the card and the link: "H100 SXM5 80 GB over NVLink", and how they scale if weakly."""
        each = ", a batch for each card" if self.scaling == "weak" else ""
        return f"{short_gpu(self.card.name).partition(',')[0]} over {self.link.name}{each}"


@dataclass(frozen=True, slots=True)
class Together:
    """One network on `ranks` cards beside one: seconds of an iteration on `one` and on `many`,
    the `speed_up` for as many rows, and the share of `many` that is `exposed` communication."""

    row: Row
    ranks: int
    one: Times
    many: Times
    speed_up: Times
    exposed: Times

    @property
    def efficiency(self) -> Times:
        """Speed-up for each card."""
        own = self.speed_up
        return Times(own.low / self.ranks, own.seconds / self.ranks, own.high / self.ranks)


@dataclass(frozen=True, slots=True)
class Paying:
    """From which size on `ranks` cards win, of `networks` in batches of `batch`; or, of one network
    alone, from which batch on, where `batch` is empty."""

    ranks: int
    networks: str
    batch: str
    crossover: Crossover


@dataclass(frozen=True, slots=True)
class Prospect:
    """What a plan would bring on the networks of a file; `problems` as of an Outlook."""

    plan: Plan
    networks: tuple[Together, ...]
    paying: tuple[Paying, ...]
    problems: dict[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class _Draws:
    """Seconds of an iteration on one card and on several, and those of it that are exposed."""

    one: np.ndarray
    many: np.ndarray
    exposed: np.ndarray
    gain: float  # rows of an iteration of many, over those of one

    @property
    def speed_up(self) -> np.ndarray:
        return self.gain * self.one / self.many


def prospect(file: File, fit: Fit, wanted: Wanted, plan: Plan) -> Prospect:
    """What `plan` would bring on the networks that the CPU of `file` trained."""
    networks: list[Together] = []
    problems: dict[str, list[str]] = {}
    curves: dict[tuple[int, Items], list[tuple[Row, np.ndarray]]] = {}
    for row in _once(measured_rows(file, wanted)):
        for ranks in plan.ranks:
            found = _draws(row, row.counters["batch"], fit, wanted, plan, ranks=ranks)
            if isinstance(found, str):
                problems.setdefault(found, []).append(row.model)
                continue
            networks.append(_together(row, found, ranks))
            if row.family == EPOCH and row.ladder:
                key = (ranks, (("networks", row.ladder.networks), ("batch", row.batch)))
                curves.setdefault(key, []).append((row, found.speed_up))
    paying = []
    for (ranks, common), own in curves.items():
        own.sort(key=lambda pair: pair[0].counters["params"])
        if len(own) > 1:
            sizes = [row.counters["params"] for row, _ in own]
            said = dict(common)
            crossover = _crossover(sizes, [draws for _, draws in own], ranks, "parameters")
            paying.append(Paying(ranks, said["networks"], said["batch"], crossover))
    paying += _of_batches(_largest(curves), fit, wanted, plan)
    names = {reason: tuple(dict.fromkeys(own)) for reason, own in problems.items()}
    return Prospect(plan, tuple(networks), tuple(paying), names)


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    """Each network in each batch, whatever it was measured on."""
    seen: set[Items] = set()
    for row in rows:
        key = row.axes.what(row.configuration)
        if key not in seen:
            seen.add(key)
            yield row


def _largest(curves: dict[tuple[int, Items], list[tuple[Row, np.ndarray]]]) -> Row | None:
    """The largest network of the first ladder."""
    own = next(iter(curves.values()), [])
    return max((row for row, _ in own), key=lambda row: row.counters["params"], default=None)


def _of_batches(row: Row | None, fit: Fit, wanted: Wanted, plan: Plan) -> Iterator[Paying]:
    """From which batch on each number of cards wins on the network of `row`."""
    if row is None:
        return
    for ranks in plan.ranks:
        found = {}
        for batch in _BATCHES:
            own = _draws(row, float(batch), fit, wanted, plan, ranks=ranks)
            if isinstance(own, _Draws):
                found[float(batch)] = own.speed_up
        if len(found) > 1:
            crossover = _crossover(list(found), list(found.values()), ranks, "batch")
            yield Paying(ranks, row.model, "", crossover)


def _crossover(
    sizes: Sequence[float], draws: Sequence[np.ndarray], ranks: int, measure: str
) -> Crossover:
    question = Question(measure, ("1 card", f"{ranks} cards"), is_band=True)
    return drawn_crossover(np.array(sizes), np.log(draws).T, question)


def _together(row: Row, draws: _Draws, ranks: int) -> Together:
    return Together(
        row,
        ranks,
        one=ends(draws.one),
        many=ends(draws.many),
        speed_up=ends(draws.speed_up),
        exposed=ends(draws.exposed / draws.many),
    )


def _draws(
    row: Row, batch: float, fit: Fit, wanted: Wanted, plan: Plan, *, ranks: int
) -> _Draws | str:
    """Of the network of `row` in batches of `batch`, or why they are not known, a phrase."""
    if batch < ranks:
        return f"a batch of {batch:,.0f} has no row for each of {ranks} cards"
    if not is_plain(row):
        return _ONE_BATCH
    params = row.counters["params"]
    costs = []
    for rows in (batch, plan.batch(batch, ranks)):
        cost = cost_of(row.model, rows, wanted.precision, BENCH_PATH)
        if cost is None:
            return "its cost in smaller batches is not kept, and bench is not built to count it"
        if cost.params != params:
            return "it is not the network of that name here"
        costs.append(cost)
    steps = max(1.0, steps_of(row) * row.counters["batch"] / batch)
    ways = [_fastest(fit, cost, wanted, plan.card, steps) for cost in costs]
    one, share = ways
    if isinstance(one, str) or isinstance(share, str):
        return one if isinstance(one, str) else str(share)
    exposed = steps * waits(plan.link, ranks, FLOAT_BYTES * params, share / steps)
    many = (share + exposed) * slower(loss())
    return _Draws(one, many, exposed, float(ranks) if plan.scaling == "weak" else 1.0)


def _fastest(fit: Fit, cost: Cost, wanted: Wanted, card: Card, steps: float) -> np.ndarray | str:
    """Draws of the way with the smallest median."""
    found = [predict_draws(fit, cost, card, way, steps) for way in wanted.ways]
    known = [one for one in found if not isinstance(one, str)]
    return min(known, key=lambda one: float(np.median(one))) if known else str(found[0])


def plan_sentences(one: Prospect) -> list[str]:
    """From which size the cards win, a sentence for each number of them: "H100 SXM5 80 GB over
    NVLink: at batch 100, 2 cards train disc networks faster than 1 card from 4,700,000 parameters
    (1,200,000 to 9,000,000); predicted, not measured."."""
    return [f"{one.plan.name}: {_pays(each)}; {NOT_MEASURED}." for each in one.paying]


def _pays(one: Paying) -> str:
    networks, (first, second) = printable(one.networks, _LONGEST), one.crossover.question.sides
    if one.crossover.kind == "ambiguous":
        claim = f"no sure winner of {first} and {second} on {networks}: {doubt(one.crossover)}"
    else:
        claim = faster(one.crossover, networks)
    return f"at batch {one.batch}, {claim}" if one.batch else claim
