# SPDX-License-Identifier: Apache-2.0
"""From which size several cards that were not measured would train faster than one: how long sums
over them take, by what others published of the link between them or by a file's own sums, and how
much slower training on several GPUs was than that says.

docs/method/ranks_predicted.md says how. As with one card, nothing predicted is ever written
into a result file.
"""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

import numpy as np

from plots.core.all_reduce import BACKWARD, FLOAT_BYTES, exposed, fit_alpha_beta, moved, steps
from plots.core.cards import Card, load_cards, load_links
from plots.core.cost import Cost, CostError
from plots.core.crossover import Crossover, Question, drawn_crossover
from plots.core.crossover_words import doubt, faster
from plots.core.machines import short_gpu
from plots.core.reference import REFERENCE, lines_of
from plots.features.predict.analysis import (
    NOT_MEASURED,
    Wanted,
    cost_for,
    measured_rows,
    predict_draws,
)
from plots.features.predict.data import card_of, is_plain
from plots.features.predict.fit import Fit
from plots.features.predict.simulate import Error, Times, ends, slower, unlike, within
from plots.features.predict.ways import Band, published
from plots.file.axes import Items
from plots.file.families import EPOCH, steps_of
from plots.file.rows import File, Row
from plots.text import printable

# What --link= may name.
LINKS = {
    "nvlink": "NVLink",
    "pcie3": "PCI Express 3",
    "pcie4": "PCI Express 4",
    "pcie5": "PCI Express 5",
    "ethernet-25g": "Ethernet of 25 Gbit/s",
}
_NEWEST_PCIE = 5
_LANES = 16  # that the rates of PCI Express are of


@dataclass(frozen=True, slots=True)
class Link:
    """A sum takes `base` and, for each message of the ring, `step` seconds, and the bytes that are
    moved at a `bandwidth` in bytes per second. As fitted to measured sums, all of that is off by
    `error`."""

    name: str
    base: Band
    step: Band
    bandwidth: Band
    error: Error | None = None

    def seconds(self, ranks: int, size: float) -> np.ndarray:
        """Draws of a sum of `size` bytes over so many cards."""
        latency = within(self.base, "latency") + within(self.step, "latency") * steps(ranks)
        found = latency + size * moved(ranks) / within(self.bandwidth, "bandwidth")
        return found * unlike(self.error, "sums") if self.error else found


def link_of(card: Card, asked: str = "", file: File | None = None) -> Link:
    """The link between several of `card`: the one `asked` for, else that of the sums that `file`
    measured on such cards, else the fastest that the card has. Raises CostError."""
    if not asked and file and (own := _measured(file, card)):
        return own
    links = [one for one in load_links() if one.compute_capability in ("", card.compute_capability)]
    has_nvlink = any(one.id == "nvlink" and one.compute_capability for one in links)
    generation = card.figure("link_generation")
    fastest = f"pcie{min(int(generation), _NEWEST_PCIE)}" if generation else ""
    name = asked or ("nvlink" if has_nvlink else fastest)
    if not name:
        raise CostError(f"{card.id}: its link is not known; give --link={'|'.join(LINKS)}")
    if name not in LINKS:
        raise CostError(f"--link={printable(name, 40)}: is none of {', '.join(LINKS)}")
    if name == "nvlink" and not has_nvlink:
        others = ", ".join(other for other in LINKS if other != name)
        raise CostError(f"--link=nvlink: no source gives {card.id} one; give one of {others}")
    found = [one for one in links if one.id == name]
    is_pcie = name.startswith("pcie")
    share = min(1.0, (card.figure("link_lanes") or _LANES) / _LANES) if is_pcie else 1.0
    low = share * min(one.low_bytes_per_second for one in found)
    high = share * max(one.high_bytes_per_second for one in found)
    step = published(f"step_{re.sub('[^a-z].*', '', name)}")
    return Link(LINKS[name], published("all_reduce"), step, Band(low, high))


def _measured(file: File, card: Card) -> Link | None:
    """As fitted to the file's own sums over GPUs, where it has three or more on that card."""
    if card_of(file, load_cards()) != card:
        return None
    return fitted_link(
        [
            (row.ranks, float(row.configuration["bytes"]), row.median)
            for row in file.rows
            if row.family == "Collective" and row.device != "cpu" and row.failure is None
        ]
    )


def fitted_link(sums: Sequence[tuple[int, float, float]]) -> Link | None:
    """That of measured sums, each with its ranks, bytes and seconds; None with fewer than three."""
    if len(sums) < 3:
        return None
    found = fit_alpha_beta(*np.array(sums, dtype=float).T)
    step, rate = (Band(each, each) for each in (found.step, found.bandwidth))
    return Link("measured sums", Band(0.0, 0.0), step, rate, Error(found.spread, found.count))


def waits(link: Link, ranks: int, size: float, seconds: np.ndarray) -> np.ndarray:
    """Draws of the time that a step of so many `seconds` waits for its sums of `size` bytes: none
    to all of the backward pass hides them."""
    hidden = BACKWARD * seconds * within(Band(0.0, 1.0), "overlap")
    return exposed(partial(link.seconds, ranks), size, hidden)


# ---- what several GPUs lose beside the sums


@dataclass(frozen=True, slots=True)
class Scaling:
    """A network trained on a machine in batches of `batch` on each GPU, as published;
    plots/reference/README.md has the columns. `rates` are samples per second, by GPUs."""

    network: str
    params: int
    batch: int
    card: str
    machine: str
    link: str
    summed_by: str
    rates: dict[int, float]

    def seconds(self, gpus: int) -> float:
        """Of a step on so many GPUs, each of which has a batch of its own."""
        return gpus * self.batch / self.rates[gpus]

    @property
    def several(self) -> list[int]:
        """Each number of GPUs from two on."""
        return [gpus for gpus in self.rates if gpus > 1]


def load_scaling() -> list[Scaling]:
    """Every published training; raises OSError where the file cannot be read."""
    found: dict[tuple[str, ...], Scaling] = {}
    for line in lines_of(REFERENCE / "scaling.csv"):
        gpus, rate = int(line.pop("gpus")), float(line.pop("samples_per_second"))
        fields: dict[str, Any] = line | {key: int(line[key]) for key in ("params", "batch")}
        one = found.setdefault(tuple(line.values()), Scaling(**fields, rates={}))
        one.rates[gpus] = rate
    return list(found.values())


def modelled(one: Scaling, gpus: int) -> np.ndarray:
    """Draws of the seconds of a step on so many GPUs, from those on one."""
    alone = np.array(one.seconds(1))
    link = link_of(load_cards()[one.card], one.link)
    return alone + waits(link, gpus, FLOAT_BYTES * one.params, alone)


def lost(one: Scaling, gpus: int) -> float:
    """The logarithm of the published time over the middle of what is modelled."""
    return math.log(one.seconds(gpus) / float(np.median(modelled(one, gpus))))


def loss_of(found: Iterable[Scaling]) -> Error:
    """What several cards lose beside the sums, as these did: each network on each machine counts
    once."""
    squares: dict[tuple[str, str], list[float]] = {}
    for one in found:
        own = squares.setdefault((one.network, one.machine), [])
        own += [lost(one, gpus) ** 2 for gpus in one.several]
    means = [float(np.mean(own)) for own in squares.values()]
    return Error(math.sqrt(float(np.mean(means))), len(means))


@cache
def loss() -> Error:
    """As all that were published did."""
    return loss_of(load_scaling())


# ---- several cards beside one


Scales = Literal["strong", "weak"]
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


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """One network on `ranks` cards beside one: seconds of an iteration on `one` and on `many`, the
    share of `many` that is `exposed` communication, and draws of the `gain`, how many times as fast
    as many rows are trained."""

    row: Row
    ranks: int
    one: Times
    many: Times
    exposed: Times
    gain: np.ndarray

    @property
    def speed_up(self) -> Times:
        """The gain's median and band."""
        return ends(self.gain)

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


def prospect(file: File, fit: Fit, wanted: Wanted, plan: Plan) -> Prospect:
    """What `plan` would bring on the networks that the CPU of `file` trained, in each batch,
    whatever they were measured on."""
    once: dict[Items, Row] = {}
    for row in measured_rows(file, wanted):
        once.setdefault(row.axes.what(row.configuration), row)
    networks: list[Together] = []
    problems: dict[str, list[str]] = {}
    curves: dict[tuple[int, str, str], list[Together]] = {}
    for row in once.values():
        for ranks in plan.ranks:
            network = file.networks.get(row.model, "")
            own_batch = row.counters["batch"]
            found = together(row, own_batch, fit, wanted, plan, ranks=ranks, network=network)
            if isinstance(found, str):
                problems.setdefault(found, []).append(row.model)
                continue
            networks.append(found)
            if row.family == EPOCH and row.ladder:
                curves.setdefault((ranks, row.ladder.networks, row.batch), []).append(found)
    paying = []
    for (ranks, name, batch), own in curves.items():
        own.sort(key=lambda one: one.row.counters["params"])
        if len(own) > 1:
            gains = [(one.row.counters["params"], one.gain) for one in own]
            paying.append(Paying(ranks, name, batch, _crossover(gains, ranks, "parameters")))
    if curves:  # and from which batch on the largest network of the first ladder
        largest = max(next(iter(curves.values())), key=lambda one: one.row.counters["params"]).row
        paying += _of_batches(largest, fit, wanted, plan, file.networks.get(largest.model, ""))
    names = {reason: tuple(dict.fromkeys(own)) for reason, own in problems.items()}
    return Prospect(plan, tuple(networks), tuple(paying), names)


def _of_batches(row: Row, fit: Fit, wanted: Wanted, plan: Plan, network: str) -> Iterator[Paying]:
    """From which batch on each number of cards wins on the network of `row`."""
    for ranks in plan.ranks:
        found = []
        for batch in map(float, _BATCHES):
            own = together(row, batch, fit, wanted, plan, ranks=ranks, network=network)
            if isinstance(own, Together):
                found.append((batch, own.gain))
        if len(found) > 1:
            yield Paying(ranks, row.model, "", _crossover(found, ranks, "batch"))


def _crossover(gains: Sequence[tuple[float, np.ndarray]], ranks: int, measure: str) -> Crossover:
    question = Question(measure, ("1 card", f"{ranks} cards"), is_band=True)
    sizes, draws = zip(*gains, strict=True)
    return drawn_crossover(np.array(sizes), np.log(draws).T, question)


def together(
    row: Row, batch: float, fit: Fit, wanted: Wanted, plan: Plan, *, ranks: int, network: str = ""
) -> Together | str:
    """Of the network of `row` in batches of `batch`, or why that is not known, a phrase. `network`
    is as of cost_for()."""
    if batch < ranks:
        return f"a batch of {batch:,.0f} has no row for each of {ranks} cards"
    if not is_plain(row):
        return _ONE_BATCH
    costs = []
    for rows in (batch, plan.batch(batch, ranks)):
        what = "its cost in smaller batches"
        cost = cost_for(row, rows, wanted.precision, what, network)
        if isinstance(cost, str):
            return cost
        costs.append(cost)
    steps = max(1.0, steps_of(row) * row.counters["batch"] / batch)
    one, share = (_fastest(fit, cost, wanted, plan.card, steps) for cost in costs)
    if isinstance(one, str) or isinstance(share, str):
        return one if isinstance(one, str) else str(share)
    exposed = steps * waits(plan.link, ranks, FLOAT_BYTES * row.counters["params"], share / steps)
    many = (share + exposed) * slower(loss())
    rows_more = float(ranks) if plan.scaling == "weak" else 1.0
    gain = rows_more * one / many
    return Together(row, ranks, ends(one), ends(many), ends(exposed / many), gain)


def _fastest(fit: Fit, cost: Cost, wanted: Wanted, card: Card, steps: float) -> np.ndarray | str:
    """Draws of the way with the smallest median."""
    found = [predict_draws(fit, cost, card, way, steps) for way in wanted.ways]
    known = [one for one in found if not isinstance(one, str)]
    return min(known, key=lambda one: float(np.median(one))) if known else str(found[0])


def plan_sentences(one: Prospect) -> Iterator[str]:
    """From which size the cards win, a sentence for each number of them: "H100 SXM5 80 GB over
    NVLink: at batch 100, 2 cards train disc networks faster than 1 card from 4,700,000 parameters
    (1,200,000 to 9,000,000); predicted, not measured."."""
    for each in one.paying:
        networks, (first, second) = (
            printable(each.networks, _LONGEST),
            each.crossover.question.sides,
        )
        if each.crossover.kind == "ambiguous":
            claim = f"no sure winner of {first} and {second} on {networks}: {doubt(each.crossover)}"
        else:
            claim = faster(each.crossover, networks)
        batch = f"at batch {each.batch}, " if each.batch else ""
        yield f"{one.plan.name}: {batch}{claim}; {NOT_MEASURED}."
