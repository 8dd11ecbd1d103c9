# SPDX-License-Identifier: Apache-2.0
"""From which size several cards that were not measured would train faster than one.

docs/method/several.md says how. As with one card, nothing predicted is ever written
into a result file.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from crossover_bench.answers.predict.analysis import (
    NOT_MEASURED,
    Wanted,
    cost_for,
    each_once,
    measured_rows,
    predict_draws,
)
from crossover_bench.answers.predict.data import is_plain
from crossover_bench.answers.predict.fit import Fit
from crossover_bench.answers.predict.links import Link, loss, waits
from crossover_bench.answers.predict.simulate import Times, ends, slower
from crossover_bench.counts.cards import Card
from crossover_bench.curves.crossover import Crossover, Question, drawn_crossover
from crossover_bench.curves.crossover_words import doubt, faster
from crossover_bench.files.families import EPOCH, steps_of
from crossover_bench.files.rows import File, Row
from crossover_bench.study.machines import short_gpu
from crossover_bench.words.text import printable

_BATCHES = tuple(2.0**power for power in range(4, 17))  # tried for the first that pays
_LONGEST = 60
_ONE_BATCH = "only networks whose rows do an update for each batch are predicted"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to predict: `ranks` of `card` over `link`, which share a batch (strong scaling) or have
    one each (weak)."""

    card: Card
    link: Link
    ranks: tuple[int, ...]
    scaling: Literal["strong", "weak"] = "strong"

    def batch(self, whole: float, ranks: int) -> float:
        """Rows of the largest share of a batch."""
        return float(-(-int(whole) // ranks)) if self.scaling == "strong" else whole

    @property
    def name(self) -> str:
        """Of the card and the link: "H100 SXM5 80 GB over NVLink", and how they scale if weakly."""
        each = ", a batch for each card" if self.scaling == "weak" else ""
        return f"{short_gpu(self.card.name).partition(',')[0]} over {self.link.name}{each}"


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """One network on `ranks` cards beside one card: seconds of an iteration on one card `alone` and
    on `many`; the share of `many` that is `exposed` communication, in the median; and draws of the
    `gain`: how many times as fast as many rows are trained."""

    row: Row
    ranks: int
    alone: Times
    many: Times
    exposed: float
    gain: np.ndarray

    @property
    def speed_up(self) -> Times:
        """The gain's median and band."""
        return ends(self.gain)

    @property
    def efficiency(self) -> float:
        """Speed-up for each card, in the median."""
        return self.speed_up.seconds / self.ranks


@dataclass(frozen=True, slots=True)
class Paying:
    """From which size on `ranks` cards win, of `networks` in batches of `batch`; or, where `batch`
    is empty, from which batch on, of one network."""

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


def prospect(file: File, fit: Fit, wanted: Wanted, plan: Plan) -> Prospect:
    """What `plan` would bring on the networks that the CPU of `file` trained, in each batch,
    whatever they were measured on."""
    networks: list[Together] = []
    problems: dict[str, dict[str, None]] = {}
    # Of ladders by their parameters: how many cards, what the networks are called, and the batch.
    curves: dict[tuple[int, str, str], list[tuple[float, Together]]] = {}
    on = partial(together, file=file, fit=fit, wanted=wanted, plan=plan)
    for row in each_once(measured_rows(file, wanted)):
        for ranks in plan.ranks:
            network = on(row, row.counters["batch"], ranks)
            if isinstance(network, str):
                problems.setdefault(network, {})[row.model] = None
                continue
            networks.append(network)
            if row.family == EPOCH and row.ladder:
                curve = curves.setdefault((ranks, row.ladder.networks, row.batch), [])
                curve.append((row.counters["params"], network))
    if curves:  # and of the largest network of the first ladder by the batch
        largest = max(next(iter(curves.values())), key=lambda point: point[0])[1].row
        for ranks in plan.ranks:
            tried = ((batch, on(largest, batch, ranks)) for batch in _BATCHES)
            known = [(batch, network) for batch, network in tried if isinstance(network, Together)]
            curves[ranks, largest.model, ""] = known
    paying = tuple(_paying(*key, curve) for key, curve in curves.items() if len(curve) > 1)
    names = {reason: tuple(models) for reason, models in problems.items()}
    return Prospect(plan, tuple(networks), paying, names)


def _paying(
    ranks: int, networks: str, batch: str, curve: Sequence[tuple[float, Together]]
) -> Paying:
    measure = "parameters" if batch else "batch"
    question = Question(measure, ("1 card", f"{ranks} cards"), is_band=True)
    ordered = sorted(curve, key=lambda point: point[0])
    sizes = np.array([size for size, _ in ordered])
    draws = np.array([np.log(network.gain) for _, network in ordered])
    return Paying(ranks, networks, batch, drawn_crossover(sizes, draws.T, question))


def together(
    row: Row, batch: float, ranks: int, *, file: File, fit: Fit, wanted: Wanted, plan: Plan
) -> Together | str:
    """The network of `row` in batches of `batch`, each on the card's fastest way; or why that is
    not known, a phrase."""
    if batch < ranks:
        return f"a batch of {batch:,.0f} has no row for each of {ranks} cards"
    if not is_plain(row):
        return _ONE_BATCH
    steps = max(1.0, steps_of(row) * row.counters["batch"] / batch)
    both = []
    for rows in (batch, plan.batch(batch, ranks)):
        cost = cost_for(file, row, rows, wanted.precision, "its cost in smaller batches")
        if isinstance(cost, str):
            return cost
        ways = [predict_draws(fit, cost, plan.card, way, steps) for way in wanted.ways]
        known = [draws for draws in ways if not isinstance(draws, str)]
        if not known:
            return str(ways[0])
        both.append(min(known, key=lambda draws: float(np.median(draws))))
    alone, share = both
    exposed = steps * waits(plan.link, ranks, row.counters["params"], share / steps)
    many = (share + exposed) * slower(loss())
    rows_more = float(ranks) if plan.scaling == "weak" else 1.0
    gain = rows_more * alone / many
    return Together(row, ranks, ends(alone), ends(many), ends(exposed / many).seconds, gain)


def plan_sentences(prospect: Prospect) -> Iterator[str]:
    """From which size the cards win, a sentence for each number of them: "H100 SXM5 80 GB over
    NVLink: at batch 100, 2 cards train disc networks faster than 1 card from 4,700,000 parameters
    (1,200,000 to 9,000,000); predicted, not measured."."""
    for paying in prospect.paying:
        crossover, networks = paying.crossover, printable(paying.networks, _LONGEST)
        claim = faster(crossover, networks)
        if crossover.kind == "ambiguous":
            both = " and ".join(crossover.question.sides)
            claim = f"no sure winner of {both} on {networks}: {doubt(crossover)}"
        batch = f"at batch {paying.batch}, " if paying.batch else ""
        yield f"{prospect.plan.name}: {batch}{claim}; {NOT_MEASURED}."
