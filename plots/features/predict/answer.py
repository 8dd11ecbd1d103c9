# SPDX-License-Identifier: Apache-2.0
"""What is predicted of cards, in sentences, each of which says that it was not measured."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plots import units
from plots.core.cards import Card
from plots.core.crossover import Comparison, Crossover, SpeedUp
from plots.core.crossover_words import claim, size_range
from plots.core.headline import own_batch, unusual, way
from plots.core.machines import short_gpu
from plots.features.predict.analysis import NOT_MEASURED, Outlook
from plots.features.predict.ways import PYTORCH
from plots.file.families import FORWARD, MINIBATCH
from plots.file.quantities import TIME


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """What a card would do: `outlooks` has each way, `chosen` is that of the headline, chosen as
    among measured ones, with its comparison; both None where the file has no curve of epochs."""

    card: Card
    outlooks: tuple[Outlook, ...]
    chosen: Outlook | None
    comparison: Comparison | None


def verdicts(outlooks: Iterable[Outlook]) -> list[Verdict]:
    """What each card would do, in the order in which they first come.

    The headline is at the batch of a measured one, with the data on the GPU where that is among the
    ways, and in the way that wins earliest at the latest. Of forward passes it is in the smallest
    batch, which comes from the host: whoever asks waits for it.
    """
    cards: dict[str, list[Outlook]] = {}
    for one in outlooks:
        cards.setdefault(one.card.id, []).append(one)
    found = []
    for own in cards.values():
        compared = [each for one in own for each in one.crossovers if each.family != MINIBATCH]
        of_passes = [each.batch for each in compared if each.family == FORWARD]
        batch = min(of_passes, key=int) if of_passes else own_batch(compared)
        pairs = [
            (one, each)
            for one in own
            for each in one.crossovers
            if each.family != MINIBATCH and each.batch == batch
        ]
        chosen, comparison = min(pairs, key=_lateness, default=(None, None))
        found.append(Verdict(own[0].card, tuple(own), chosen, comparison))
    return found


def _lateness(pair: tuple[Outlook, Comparison]) -> tuple[bool, float, float, float, float]:
    outlook, comparison = pair
    low, high = ends(comparison.crossover)
    seconds = sum(float(samples[1]) for samples in comparison.gpu.samples)
    is_there = (outlook.way.data == "resident") != (comparison.family == FORWARD)
    return not is_there, high, comparison.crossover.size or 0.0, low, seconds


def sentence(verdict: Verdict) -> str:
    """From which size the card would win, or how much faster it would train what was measured."""
    one = verdict.comparison
    if one is None:
        return _of_networks(verdict)
    batch = one.batch or "?"
    loop = "PyTorch" if verdict.chosen and verdict.chosen.way.loop == PYTORCH else ""
    passes = "a forward pass" if one.family == FORWARD else ""
    training = ", ".join(filter(None, [passes, loop, way(one), f"batch {batch}", unusual(one)]))
    said = claim(one.crossover, f"would {one.gpu.quantity.win}")
    return f"{short_gpu(verdict.card.name)}: {said} ({training}); {NOT_MEASURED}."


def _of_networks(verdict: Verdict) -> str:
    """Of a file without a curve: in which of its networks the card would be faster for sure."""
    fastest = fastest_ways(verdict.outlooks)
    name = short_gpu(verdict.card.name)
    if not fastest:
        reasons = [reason for one in verdict.outlooks for reason in one.problems]
        return f"{name}: nothing is predicted ({'; '.join(dict.fromkeys(reasons))})."
    sure = [one for _, one in fastest if one.winner == "gpu"]
    only = fastest[0][1].common["model"] if len(fastest) == 1 else ""
    quantity = fastest[0][1].gpu.quantity
    if not sure:
        none = f"{only} would not" if only else f"none of {len(fastest)} networks would"
        passes = " at forward passes" if fastest[0][1].family == FORWARD else ""
        return f"{name}: {none} surely be {quantity.better}{passes}; {NOT_MEASURED}."
    ratios = [end for one in sure for end in (one.low, one.high) if end]
    least, most = units.significant(min(ratios), 2), units.significant(max(ratios), 2)
    share = "all" if len(sure) == len(fastest) else f"{len(sure)} of"
    networks = only or f"{share} {len(fastest)} networks measured"
    does = "compute a forward pass" if sure[0].family == FORWARD else "train"
    how = f"{least} to {most} times as fast"
    if quantity is not TIME:
        how = f"{quantity.how} ({quantity.quotient()}: {least} to {most})"
    return f"{name}: {networks} would {does} {how}; {NOT_MEASURED}."


def fastest_ways(outlooks: Sequence[Outlook]) -> list[tuple[Outlook, SpeedUp]]:
    """Of each network the way that is predicted to be the fastest, in the order of the networks."""
    found: dict[tuple[tuple[str, str], ...], tuple[Outlook, SpeedUp]] = {}
    for outlook in outlooks:
        for one in outlook.networks:
            key = tuple(one.common.items())
            if key not in found or one.ratio > found[key][1].ratio:
                found[key] = (outlook, one)
    return list(found.values())


def shown_ways(verdict: Verdict) -> list[tuple[Outlook, SpeedUp]]:
    """Each network in the way of the headline, or in the fastest where that does not have it."""
    own = [(verdict.chosen, one) for one in verdict.chosen.networks] if verdict.chosen else []
    has = [one.common for _, one in own]
    return own + [pair for pair in fastest_ways(verdict.outlooks) if pair[1].common not in has]


def clause(found: Sequence[Verdict]) -> str:
    """The range over all cards, for a headline; empty where there is nothing to say.

    "predicted, not measured: a GPU would win from somewhere between 44 and 36,000 parameters"
    """
    compared = [one for one in found if one.comparison]
    if not compared:
        return _clause_of_networks(found)
    names = ", ".join(short_gpu(one.card.name) for one in compared)
    first = compared[0].comparison
    assert first is not None
    crossovers = [one.comparison.crossover for one in compared if one.comparison]
    ways = " or ".join(sorted({way(one.comparison) for one in compared if one.comparison}))
    training = f"{ways}; batch {first.common['batch']}"
    return f"{NOT_MEASURED}: {_range(crossovers, first)} ({names}; {training})"


def _clause_of_networks(found: Sequence[Verdict]) -> str:
    ways = [one for verdict in found for _, one in fastest_ways(verdict.outlooks)]
    ratios = [ratio for one in ways for ratio in (one.low, one.high) if ratio]
    if not ratios:
        return ""
    least, most = units.significant(min(ratios), 2), units.significant(max(ratios), 2)
    names = ", ".join(short_gpu(one.card.name) for one in found)
    claim = f"a GPU would train these networks {least} to {most} times as fast"
    return f"{NOT_MEASURED}: {claim} ({names})"


def _range(crossovers: Sequence[Crossover], first: Comparison) -> str:
    if all(one.kind == "always" for one in crossovers):
        return f"a GPU would win at every size, {size_range(first.sizes, first.measure)}"
    if all(one.kind == "never" for one in crossovers):
        return f"a GPU would win at no size, {size_range(first.sizes, first.measure)}"
    reach = [ends(one) for one in crossovers]
    low, high = min(low for low, _ in reach), max(high for _, high in reach)
    if low and high < math.inf:
        between = f"{units.significant(low, 2)} and {units.significant(high, 2)} parameters"
        return f"a GPU would win from somewhere between {between}"
    if high < math.inf:
        return f"a GPU would win from {units.significant(high, 2)} parameters at the latest"
    if low:
        return f"a GPU would win from {units.significant(low, 2)} parameters at the earliest"
    return "no sure winner"


def ends(crossover: Crossover) -> tuple[float, float]:
    """Between which sizes the crossover lies; 0 and infinity where it may be beyond all."""
    if crossover.kind == "always":
        return 0.0, 0.0
    if crossover.kind == "never":
        return math.inf, math.inf
    low, high = crossover.low, crossover.high
    return 0.0 if low is None else low, math.inf if high is None else high
