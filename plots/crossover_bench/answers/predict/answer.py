# SPDX-License-Identifier: Apache-2.0
"""What is predicted of cards, in sentences, each of which says that it was not measured;
of many files at once by one fit to all of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from crossover_bench.answers.predict.analysis import (
    DEFAULT_CARDS,
    NOT_MEASURED,
    Outlook,
    Wanted,
    outlooks,
)
from crossover_bench.answers.predict.data import card_of, observations
from crossover_bench.answers.predict.fit import Fit, fit
from crossover_bench.answers.predict.pytorch import pytorch_outlooks
from crossover_bench.answers.predict.ways import AUTO, PYTORCH, PYTORCH_WAY
from crossover_bench.counts.cards import Card, load_cards
from crossover_bench.curves.crossover import Comparison, Crossover, SpeedUp
from crossover_bench.curves.crossover_words import claim
from crossover_bench.curves.headline import own_batch, unusual, way
from crossover_bench.files.families import FORWARD, MINIBATCH
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import File
from crossover_bench.parallel import Map, in_process
from crossover_bench.study.machines import short_gpu
from crossover_bench.words import units
from crossover_bench.words.text import listed


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a card would do: `outlooks` has each way; `chosen` is that of the headline, with its
    `comparison`; both None where the file has no curve of epochs. `auto` is the same comparison
    where one kernel may train the whole epoch, which no card does that drives a display; None where
    that was not asked for, or is the headline itself."""

    card: Card
    outlooks: tuple[Outlook, ...]
    chosen: Outlook | None
    comparison: Comparison | None
    auto: Comparison | None = None


def verdicts(outlooks: Iterable[Outlook]) -> list[Verdict]:
    """What each card would do, in the order in which they first come.

    The headline is at the batch of a measured one, with the data on the GPU where that is among the
    ways, and in the way that wins earliest at the latest; `auto` only where there is no other. Of
    forward passes it is in the smallest batch, which comes from the host: whoever asks waits for
    it.
    """
    cards: dict[str, list[Outlook]] = {}
    for outlook in outlooks:
        cards.setdefault(outlook.card.id, []).append(outlook)
    return [_verdict(ways) for ways in cards.values()]


def _verdict(outlooks: Sequence[Outlook]) -> Verdict:
    pairs = [
        (outlook, comparison)
        for outlook in outlooks
        for comparison in outlook.crossovers
        if comparison.family != MINIBATCH
    ]
    of_passes = [comparison.batch for _, comparison in pairs if comparison.family == FORWARD]
    batch = min(of_passes, key=int) if of_passes else own_batch([pair[1] for pair in pairs])
    at_batch = [pair for pair in pairs if pair[1].batch == batch]
    chosen, comparison = min(at_batch, key=_lateness, default=(None, None))
    automatic = [pair for pair in at_batch if pair[0].way.execution == AUTO]
    _, auto = min(automatic, key=_lateness, default=(None, None))
    if auto is comparison:
        auto = None
    return Verdict(outlooks[0].card, tuple(outlooks), chosen, comparison, auto)


def _lateness(pair: tuple[Outlook, Comparison]) -> tuple[bool, bool, float, float, float, float]:
    outlook, comparison = pair
    low, high = ends(comparison.crossover)
    seconds = sum(float(samples[1]) for samples in comparison.gpu.samples)
    is_there = (outlook.way.data == "resident") != (comparison.family == FORWARD)
    is_auto = outlook.way.execution == AUTO
    return is_auto, not is_there, high, comparison.crossover.size or 0.0, low, seconds


def if_one_kernel(verdict: Verdict) -> str:
    """Between which sizes the crossover lies where one kernel may train the whole epoch, a clause:
    "500 to 10,000 if one kernel keeps the card"; empty where that changes nothing."""
    if verdict.auto is None or verdict.comparison is None:
        return ""
    low, high = ends(verdict.auto.crossover)
    if (low, high) == ends(verdict.comparison.crossover):
        return ""
    known = " to ".join(units.size(end, 2) for end in (low, high) if 0 < end < math.inf)
    from_where = {
        (True, True): "at no size" if low else "at every size" if not high else "",
        (True, False): f"at most {known}",
        (False, True): f"at least {known}",
        (False, False): known,
    }[low in (0, math.inf), high in (0, math.inf)]
    return f"{from_where} if one kernel keeps the card" if from_where else ""


def sentences(told: Iterable[Verdict], lead: str = "") -> list[str]:
    """From which size each card would win; of a file without a curve, in which of its networks it
    would surely be faster. `lead` says with whose programs; cards of which the same is said share
    a sentence."""
    alike: dict[str, list[str]] = {}
    for verdict in told:
        alike.setdefault(_claim(verdict), []).append(short_gpu(verdict.card.name))
    return [
        f"{lead}{listed(cards)}: {claimed}; {NOT_MEASURED}." for claimed, cards in alike.items()
    ]


def _claim(verdict: Verdict) -> str:
    compared = verdict.comparison
    if compared is None:
        return _of_networks([network for _, network in fastest_ways(verdict.outlooks)])
    chosen = verdict.chosen
    beside = f"against {chosen.cpu}" if chosen and chosen.way.loop == PYTORCH else ""
    passes = "a forward pass" if compared.family == FORWARD else ""
    batch = f"batch {compared.batch or '?'}"
    training = ", ".join(filter(None, [passes, way(compared), batch, unusual(compared), beside]))
    wins = claim(compared.crossover, f"would {compared.gpu.quantity.win}")
    kept = if_one_kernel(verdict)
    return f"{wins} ({training}){kept and f'; {kept}'}"


def _of_networks(networks: Sequence[SpeedUp]) -> str:
    """Of networks, or of the batch sizes of one: "2 of 3 networks would train 2.1 to 30 times as
    fast"."""
    sure = [network for network in networks if network.winner == "gpu"]
    first, quantity, count = networks[0], networks[0].gpu.quantity, len(networks)
    is_one = len({network.model for network in networks}) == 1
    things = f"batch sizes of {first.model}" if is_one else "networks"
    which = f"{len(sure) or 'none'} of {count} {things}" if count > 1 else first.model
    if not sure:
        surely = "surely" if count > 1 else "not surely"
        at = " at forward passes" if first.family == FORWARD else ""
        return f"{which} would {surely} be {quantity.better}{at}"
    does = "compute a forward pass" if first.family == FORWARD else "train"
    if quantity is TIME:
        return f"{which} would {does} {_ratios(sure)} times as fast"
    return f"{which} would {does} {quantity.how} ({quantity.quotient()}: {_ratios(sure)})"


def _ratios(networks: Iterable[SpeedUp]) -> str:
    """From the least to the largest end of their bands; empty where none has one."""
    ends = [end for network in networks for end in (network.low, network.high) if end]
    texts = [units.significant(end, 2) for end in (min(ends), max(ends))] if ends else []
    return " to ".join(texts)


def fastest_ways(outlooks: Sequence[Outlook]) -> list[tuple[Outlook, SpeedUp]]:
    """The fastest way of each network, as predicted, in the order of the networks; of forward
    passes, the fastest of those whose batch comes from the host."""
    fastest: dict[tuple[tuple[str, str], ...], tuple[Outlook, SpeedUp]] = {}

    def rank(outlook: Outlook, network: SpeedUp) -> tuple[bool, float]:
        return network.family != FORWARD or outlook.way.data != "resident", network.ratio

    for outlook in outlooks:
        for network in outlook.networks:
            key = tuple(network.common.items())
            if key not in fastest or rank(outlook, network) > rank(*fastest[key]):
                fastest[key] = (outlook, network)
    return list(fastest.values())


def shown_ways(verdict: Verdict) -> list[tuple[Outlook, SpeedUp]]:
    """Each network in the way of the headline, or in the fastest where that does not have it."""
    chosen = verdict.chosen
    pairs = [(chosen, network) for network in chosen.networks] if chosen else []
    has = [network.common for _, network in pairs]
    return pairs + [pair for pair in fastest_ways(verdict.outlooks) if pair[1].common not in has]


def ends(crossover: Crossover) -> tuple[float, float]:
    """Between which sizes the crossover lies; 0 and infinity where it may be beyond all."""
    if crossover.kind == "always":
        return 0.0, 0.0
    if crossover.kind == "never":
        return math.inf, math.inf
    low, high = crossover.low, crossover.high
    return 0.0 if low is None else low, math.inf if high is None else high


# ---- what is predicted for a file, and for many at once: one fit to all, and the default cards


def in_pytorch(file: File, fit: Fit, wanted: Wanted) -> list[Verdict]:
    """What each card, but one that the file measured so, does in PyTorch's loop, against that on
    the CPU of `file`: as measured there or else predicted, which `chosen.cpu` says; no card where
    nothing is predicted. A `comparison` is None where `file` has no curve of epochs."""
    made = pytorch_outlooks(file, fit, wanted)
    return verdicts(outlook for outlook in made if outlook.networks)


def groups_of(file: File, fit: Fit, wanted: Wanted) -> tuple[list[list[Verdict]], list[str]]:
    """The verdicts on `file` of training, then of forward passes, of cards for which anything is
    predicted; and why there are no more, a phrase for each reason with its cards and networks."""
    groups, reasons = [], dict[tuple[str, tuple[str, ...]], dict[str, None]]()
    has_passes = any(row.family == FORWARD for row in file.rows)
    for asked in (wanted, wanted.of_passes) if has_passes else (wanted,):
        ways = [*outlooks(file, fit, asked), *pytorch_outlooks(file, fit, asked)]
        for outlook in ways:
            for problem in outlook.problems.items():
                reasons.setdefault(problem, {})[outlook.card.id] = None
        predicted = {outlook.card.id for outlook in ways if outlook.networks}
        groups.append(verdicts(outlook for outlook in ways if outlook.card.id in predicted))
    return [group for group in groups if group], [
        f"no prediction on {', '.join(cards)} of {', '.join(networks)}: {reason}"
        for (reason, networks), cards in reasons.items()
    ]


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """The model of all files that were read; of each file by its path its own model, which is the
    same whatever stands beside it, and what that says: its groups_of()."""

    fit: Fit
    groups: dict[Path, list[list[Verdict]]] = field(default_factory=dict)
    fits: dict[Path, Fit] = field(default_factory=dict)
    pytorch: dict[Path, list[Verdict]] = field(default_factory=dict)

    def of(self, file: File) -> list[Verdict]:
        """The verdicts that answer for `file`: of training, or where it has none of forward passes;
        none where nothing is predicted."""
        return next(iter(self.groups.get(file.path, ())), [])

    def pytorch_of(self, file: File) -> list[Verdict]:
        """The same of training in PyTorch's loop, on both sides."""
        return self.pytorch.get(file.path, [])

    def alone(self, file: File) -> "Predictions":
        """What is said where `file` alone is read."""
        return replace(self, fit=self.fits[file.path])


def predictions(
    files: Sequence[File], older: Sequence[File] = (), apply: Map = in_process
) -> Predictions:
    """What the default cards would do on the machine of each of `files`. A file's fit has the GPU's
    rows of that file, and `fit` those of all, of `older` ones as well. Raises OSError where
    reference figures cannot be read."""
    known: dict[tuple[Path, ...], Fit] = {}

    def fit_to(of: Iterable[File]) -> Fit:
        """A file without a GPU adds nothing to the fit, which takes seconds."""
        measured = [file for file in of if file.machine.gpu]
        paths = tuple(file.path for file in measured)
        if paths not in known:
            known[paths] = fit(observations(measured))
        return known[paths]

    fits, fitted, cards = [fit_to([file]) for file in files], fit_to([*files, *older]), load_cards()
    wanted = Wanted(tuple(cards[name] for name in DEFAULT_CARDS))
    answers = [*apply(partial(_groups_alone, wanted=wanted), zip(files, fits, strict=True))]
    paths = [file.path for file in files]
    groups = {path: group for path, (group, _) in zip(paths, answers, strict=True)}
    pytorch = {path: theirs for path, (_, theirs) in zip(paths, answers, strict=True)}
    return Predictions(fitted, groups, dict(zip(paths, fits, strict=True)), pytorch)


def _groups_alone(
    pair: tuple[File, Fit], wanted: Wanted
) -> tuple[list[list[Verdict]], list[Verdict]]:
    """With our programs, and in PyTorch's loop: there on the file's own card, too."""
    file, fitted = pair
    here = card_of(file, load_cards())
    cards = (*wanted.cards, *([here] if here and here not in wanted.cards else []))
    theirs = Wanted(cards, (PYTORCH_WAY,))
    return groups_of(file, fitted, wanted)[0], in_pytorch(file, fitted, theirs)
