# SPDX-License-Identifier: Apache-2.0
"""What is predicted of cards, in sentences, each of which says that it was not measured;
of many files at once by one fit to all of them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from plots import units
from plots.core.cards import Card, load_cards
from plots.core.crossover import Comparison, Crossover, SpeedUp
from plots.core.crossover_words import claim
from plots.core.headline import own_batch, unusual, way
from plots.core.machines import short_gpu
from plots.features.predict.analysis import DEFAULT_CARDS, NOT_MEASURED, Outlook, Wanted, outlooks
from plots.features.predict.data import observations
from plots.features.predict.fit import Fit, fit
from plots.features.predict.ways import PYTORCH
from plots.file.families import FORWARD, MINIBATCH
from plots.file.quantities import TIME
from plots.file.rows import File
from plots.parallel import Map, in_process


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
    """From which size the card would win, or of a file without a curve in which of its networks it
    would be faster for sure."""
    name, one = short_gpu(verdict.card.name), verdict.comparison
    if one is None:
        return f"{name}: {_of_networks(verdict)}"
    loop = "PyTorch" if verdict.chosen and verdict.chosen.way.loop == PYTORCH else ""
    passes = "a forward pass" if one.family == FORWARD else ""
    batch = f"batch {one.batch or '?'}"
    training = ", ".join(filter(None, [passes, loop, way(one), batch, unusual(one)]))
    said = claim(one.crossover, f"would {one.gpu.quantity.win}")
    return f"{name}: {said} ({training}); {NOT_MEASURED}."


def _of_networks(verdict: Verdict) -> str:
    found = [one for _, one in fastest_ways(verdict.outlooks)]
    if not found:
        reasons = [reason for one in verdict.outlooks for reason in one.problems]
        return f"nothing is predicted ({'; '.join(dict.fromkeys(reasons))})."
    sure = [one for one in found if one.winner == "gpu"]
    passes = found[0].family == FORWARD
    quantity = found[0].gpu.quantity
    if not sure:
        none = f"{found[0].model} would not" if len(found) == 1 else f"{_which(found, sure)} would"
        at = " at forward passes" if passes else ""
        return f"{none} surely be {quantity.better}{at}; {NOT_MEASURED}."
    does = "compute a forward pass" if passes else "train"
    how = f"{_ratios(sure)} times as fast"
    if quantity is not TIME:
        how = f"{quantity.how} ({quantity.quotient()}: {_ratios(sure)})"
    return f"{_which(found, sure)} would {does} {how}; {NOT_MEASURED}."


def _which(found: Sequence[SpeedUp], sure: Sequence[SpeedUp]) -> str:
    """Which of `found` are `sure`: networks, or batch sizes of one."""
    model, count = found[0].model, len(found)
    if count == 1:
        return model
    is_one = {one.model for one in found} == {model} and len({one.batch for one in found}) == count
    things = "batch sizes" if is_one else "networks measured" if sure else "networks"
    share = f"{len(sure) or 'none'} of {count}"
    if len(sure) == count:
        share = "both" if count == 2 else f"all {count}"
    return f"{model} in {share} {things}" if is_one else f"{share} {things}"


def _ratios(found: Iterable[SpeedUp]) -> str:
    """From the least to the largest end of their bands; empty where none has one."""
    ends = [end for one in found for end in (one.low, one.high) if end]
    texts = [units.significant(end, 2) for end in (min(ends), max(ends))] if ends else []
    return " to ".join(texts)


def fastest_ways(outlooks: Sequence[Outlook]) -> list[tuple[Outlook, SpeedUp]]:
    """Of each network the way that is predicted to be the fastest, in the order of the networks; of
    forward passes, of those whose batch comes from the host."""
    found: dict[tuple[tuple[str, str], ...], tuple[Outlook, SpeedUp]] = {}

    def rank(outlook: Outlook, one: SpeedUp) -> tuple[bool, float]:
        return one.family != FORWARD or outlook.way.data != "resident", one.ratio

    for outlook in outlooks:
        for one in outlook.networks:
            key = tuple(one.common.items())
            if key not in found or rank(outlook, one) > rank(*found[key]):
                found[key] = (outlook, one)
    return list(found.values())


def shown_ways(verdict: Verdict) -> list[tuple[Outlook, SpeedUp]]:
    """Each network in the way of the headline, or in the fastest where that does not have it."""
    own = [(verdict.chosen, one) for one in verdict.chosen.networks] if verdict.chosen else []
    has = [one.common for _, one in own]
    return own + [pair for pair in fastest_ways(verdict.outlooks) if pair[1].common not in has]


def ends(crossover: Crossover) -> tuple[float, float]:
    """Between which sizes the crossover lies; 0 and infinity where it may be beyond all."""
    if crossover.kind == "always":
        return 0.0, 0.0
    if crossover.kind == "never":
        return math.inf, math.inf
    low, high = crossover.low, crossover.high
    return 0.0 if low is None else low, math.inf if high is None else high


# ---- many files at once: one fit to all of them, and the default cards


@dataclass(frozen=True, slots=True, eq=False)
class Predictions:
    """The model, and what it says of each file by its path: a verdict for each card that predicts
    anything, of training and of forward passes."""

    fit: Fit
    verdicts: dict[Path, list[Verdict]] = field(default_factory=dict)
    passes: dict[Path, list[Verdict]] = field(default_factory=dict)

    def of(self, file: File) -> list[Verdict]:
        """The verdicts that answer for `file`: of training, or where it has none of forward passes;
        none where nothing is predicted."""
        return self.trained(file) or self.of_passes(file)

    def trained(self, file: File) -> list[Verdict]:
        """Those of training."""
        return self.verdicts.get(file.path, [])

    def of_passes(self, file: File) -> list[Verdict]:
        """Those of the networks of `file` in use."""
        return self.passes.get(file.path, [])


def predictions(
    files: Sequence[File], older: Sequence[File] = (), apply: Map = in_process
) -> Predictions:
    """What the default cards would do on the machine of each of `files`; the GPU's rows of these
    and of `older` files are in the fit. Raises OSError where reference figures cannot be read."""
    fitted = fit(observations([*files, *older]))
    found = [*apply(partial(_verdicts, fitted=fitted), files)]
    trained, used = ({file.path: own[of] for file, own in found if own[of]} for of in (0, 1))
    return Predictions(fitted, trained, used)


def _verdicts(file: File, fitted: Fit) -> tuple[File, tuple[list[Verdict], list[Verdict]]]:
    """Of training, and of forward passes."""
    cards = load_cards()
    wanted = Wanted(tuple(cards[name] for name in DEFAULT_CARDS))

    def told(asked: Wanted) -> list[Verdict]:
        found = verdicts(outlooks(file, fitted, asked))
        return [one for one in found if any(outlook.networks for outlook in one.outlooks)]

    return file, (told(wanted), told(wanted.of_passes))
