# SPDX-License-Identifier: Apache-2.0
"""How far off predictions are for what was left out of their fit, as the documents say it.

python -m plots.tests.test_prediction_docs             write their tables again
python -m plots.tests.test_prediction_docs FILE ...    print what published times alone would have
                                                       predicted of the GPU's rows of these files
"""

import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

from plots import units
from plots.core.cards import load_cards, overheads
from plots.core.costs import find_cost
from plots.core.tables.formats import as_markdown
from plots.core.tables.table import Cell, Column, Table
from plots.features.predict.analysis import Wanted, outlooks, predict_times
from plots.features.predict.answer import ends, verdicts
from plots.features.predict.data import KERNELS, PRODUCTS, Observation, observations
from plots.features.predict.fit import (
    Fit,
    errors_of,
    fit,
    is_network,
    left_out,
    parameters_of,
    shares_card_or_network,
)
from plots.features.predict.model import CEILINGS, PARAMETERS
from plots.features.predict.ranks import Scaling, load_scaling, loss_of, modelled
from plots.features.predict.simulate import Error, Errors, Times, slower
from plots.features.predict.simulate import ends as ends_of
from plots.features.predict.ways import PYTORCH, Way, several
from plots.file import loading

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FILE = ROOT / "results" / "amd-epyc-25-17-2c" / "2026-11-23-bfe530f.json"
CARDS = (
    *("t4", "rtx-2080-ti", "gtx-1650", "rtx-3060", "rtx-3060-laptop", "rtx-3090", "a10", "a100"),
    *("rtx-4050-laptop", "rtx-4060", "rtx-4060-laptop", "rtx-4090", "l4", "l40s", "h100", "h200"),
    *("rtx-5060", "rtx-5090", "b200", "jetson-orin-nano", "jetson-agx-orin"),
)
WAYS = (Way("graph", "resident"), Way("eager", "resident", PYTORCH))
# The GPU's side of published comparisons with a CPU (docs/published.md), which are in no fit: name,
# network, batch, card, and seconds of a step in f32.
POINTS = (
    ("mxnet-mlp", "mlp-784-128-64-10", 100, "gtx-980", 100 / 103_000),
    ("pytorch-fnn", "mlp-1000-512-10", 128, "rtx-3060-laptop", 15.9429 / 6_400),
    ("resnet-50-gtx-1080", "resnet-50", 16, "gtx-1080", 0.14982),
    ("resnet-50-k80", "resnet-50", 16, "k80", 0.39881),
)
# What is left out of a fit with a time: those of which it holds.
LEFT = {
    "the card": lambda one, other: other.card == one.card,
    "the network": lambda one, other: other.network == one.network and is_network(one),
    "both the card and the network": shares_card_or_network,
}
TABLE = re.compile(
    r"(<!-- (parameters|left out|errors|cards|networks|floors|points|widths|scaling) -->\n).*?"
    r"(<!-- end -->)",
    re.DOTALL,
)
PAGES = ("method.md", "evidence/prediction.md", "evidence/ranks.md")


@cache
def fitted() -> Fit:
    return fit(observations())


def table(
    title: str, columns: str, lines: Iterable[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """In Markdown; `columns` are separated by bars, those of numbers have a colon behind."""
    heads = [(head.strip(" :"), head.strip().endswith(":")) for head in columns.split("|")]
    return as_markdown(
        Table(
            title,
            tuple(Column(name, name, numeric=numeric) for name, numeric in heads),
            tuple(tuple(Cell(text) for text in line) for line in lines),
            tuple(notes),
        )
    )


def factor(log: float) -> str:
    return f"{math.exp(log):.2f}"


def yes(inside: bool) -> str:
    return "yes" if inside else "no"


def seconds(*values: float) -> list[str]:
    return [units.seconds(value, 2) for value in values]


def covered(inside: int, count: int, share: str = "") -> str:
    """How many cards, and what that says of a band that is meant to hold 90 %: the lower end of
    Clopper and Pearson's interval, a quantile of the beta distribution."""
    least = beta.ppf(0.05, inside, count - inside + 1) if inside else 0.0
    return (
        f"{inside} of {count} cards{share} lie in the band that the others give, so it covers at "
        f"least {100 * least:.0f} % (95 % sure)"
    )


def half(errors: Errors, one: Observation, share: np.ndarray) -> float:
    return errors.half_width(*share.tolist(), whole=float(is_network(one)))


def without() -> str:
    found = fitted().observations
    lines = []
    for said, shares in LEFT.items():
        off = np.abs(left_out(found, shares))
        worst = found[int(off.argmax())]
        far = factor(float(np.median(off))), factor(float(off.max()))
        lines.append((said, str(len(off)), *far, f"{worst.network} on {worst.card}"))
    networks, cards = ({getattr(one, name) for one in found} for name in ("network", "card"))
    return table(
        "Predictions of what was not in the fit",
        "left out of the fit | times: | off by a factor of median: | off by a factor of worst: | "
        "the worst",
        lines,
        [
            f"Fitted to {len(found)} published times of {len(networks)} networks on {len(cards)} "
            "cards."
        ],
    )


def networks() -> str:
    """Of each network the errors of all its times, with it and the card left out."""
    found: dict[str, list[float]] = {}
    for one, residual in zip(fitted().observations, fitted().residuals, strict=True):
        found.setdefault(one.network, []).append(float(residual))
    return table(
        "Networks, each predicted without it and without the card",
        "network | times: | predicted over observed fastest: | predicted over observed slowest: | "
        "off by at most:",
        (
            (name, str(len(own)), *map(factor, (min(own), max(own), max(map(abs, own)))))
            for name, own in sorted(found.items(), key=lambda item: max(map(abs, item[1])))
        ),
    )


def cards() -> str:
    """Of each card and precision the errors of all its times, with it and the network left out, and
    whether they lie in the band that the other cards give."""
    residuals = fitted().residuals.tolist()
    found = list(zip(fitted().observations, residuals, fitted().shares, strict=True))
    without = {
        card: errors_of(*zip(*(each for each in found if each[0].card != card), strict=True))
        for card in dict.fromkeys(one.card for one, *_ in found)
    }
    lines, notes = [], []
    single = (f"{kind} in {precision}" for kind in (PRODUCTS, KERNELS) for precision in CEILINGS)
    for sort in (*CEILINGS, *single):
        alike = [each for each in found if sort_of(each[0]) == sort]
        kept = times = 0
        names = list(dict.fromkeys(one.card for one, *_ in alike))
        for card in names:
            own = [
                (off, half(without[card], one, share))
                for one, off, share in alike
                if one.card == card
            ]
            inside = sum(abs(off) <= width for off, width in own)
            kept += inside == len(own)
            times += inside
            offs, widths = zip(*own, strict=True)
            far = map(factor, (min(offs), max(offs), max(widths)))
            lines.append((sort, card, str(len(own)), *far, f"{inside} of {len(own)}"))
        if alike:
            halves = [half(fitted().errors, one, share) for one, _, share in alike]
            mean = float(np.mean([off for _, off, _ in alike]))
            notes.append(
                f"{sort}: {times} of {len(alike)} times; "
                f"{covered(kept, len(names), ' with all their times')}. The band of a card more is "
                f"a factor of {factor(min(halves))} to {factor(max(halves))}; predicted over "
                f"observed is {factor(mean)} in the geometric mean."
            )
    return table(
        "Cards, each predicted without it and without the network",
        "of | card | times: | predicted over observed fastest: | predicted over observed slowest: "
        "| band of the others: | times in it:",
        lines,
        notes,
    )


def sort_of(one: Observation) -> str:
    return one.precision if is_network(one) else f"{one.network} in {one.precision}"


def errors() -> str:
    """What varies of a card's work, independently of each other."""
    own = fitted().errors
    named = (
        ("all that a network computes", own.whole),
        ("arithmetic", own.arithmetic),
        ("traffic of memory", own.memory),
    )
    return table(
        "Errors of a network or card more, each drawn by itself",
        "of | spread: | 90 % within: | networks or cards:",
        ((name, factor(one.spread), factor(one.half_width), str(one.cards)) for name, one in named),
    )


def floors() -> str:
    """What each source says of small products, beside what the others foretell."""
    sources = overheads("product_inner")
    lines = []
    for one in sources:
        inner = several([other for other in sources if other is not one])
        width = math.exp(Error(inner.spread, inner.count).half_width)
        low, high = inner.middle / width, inner.middle * width
        told = seconds(one.low_seconds, inner.middle, low, high)
        lines.append((one.note.split(":")[0], *told, yes(low <= one.low_seconds <= high)))
    kept = sum(line[-1] == "yes" for line in lines)
    return table(
        "Small products on cards, each predicted from the others",
        "card | an entry of the inner dimension measured: | by the others predicted: | "
        "by the others from: | by the others to: | in the band",
        lines,
        [f"{covered(kept, len(lines))}."],
    )


def parameters() -> str:
    """What the parameters were expected to be, and what the fit found."""
    lines = []
    for one, value in zip(PARAMETERS, fitted().parameters.tolist(), strict=True):
        numbers = (one.expected - one.spread, one.expected, one.expected + one.spread, value)
        plain = [number if one.is_exponent else math.exp(number) for number in numbers]
        shown = units.seconds if one.name == "operation" else units.significant
        texts = [shown(number, 2) for number in plain]
        if abs(value - one.expected) < 1e-3:  # hardly anything that was observed depends on it
            texts[-1] = "–"
        lines.append((one.name, *texts, one.meaning))
    return table(
        "Parameters of the prediction",
        "parameter | expected from: | expected value: | expected to: | fitted: | meaning",
        lines,
    )


def points() -> str:
    """The published comparisons of a CPU with a known card, as the eager loop of a framework,
    predicted without their network and card."""
    lines = []
    for label, network, batch, card, took in POINTS:
        cost = find_cost(network, batch)
        others = [
            one for one in fitted().observations if one.network != network and one.card != card
        ]
        without = replace(fitted(), parameters=parameters_of(others))
        way = Way("eager", "resident", PYTORCH)
        times = predict_times(without, cost, load_cards()[card], way, 1.0)
        told = seconds(times.seconds, times.low, times.high)
        inside = yes(times.low <= took <= times.high)
        lines.append((label, network, str(batch), card, units.seconds(took), *told, inside))
    inside = sum(line[-1] == "yes" for line in lines)
    return table(
        "Published comparisons of a CPU with a GPU, predicted",
        "experiment | network | batch: | card | published step: | predicted step: "
        "| predicted from: | predicted to: | in the band",
        lines,
        [f"{inside} of {len(lines)} lie in the band."],
    )


def scaling() -> str:
    """How many times as fast as one GPU each published training was on several, beside what is
    predicted where all of its network and all of its machine are left out of the loss."""
    found = load_scaling()
    gpus = sorted({count for one in found for count in one.several})
    lines, off = [], {}
    kept = 0
    for one in found:
        error = loss_of(
            other
            for other in found
            if other.network != one.network and other.machine != one.machine
        )
        times = {count: gains(one, count, error) for count in one.several}
        told = {count: one.rates[count] / one.rates[1] for count in times}
        inside = sum(times[count].low <= told[count] <= times[count].high for count in times)
        kept += inside
        logs = [math.log(times[count].seconds / told[count]) for count in times]
        off.setdefault(one.summed_by, []).extend(logs)
        both = [
            units.significant(value)
            for count in gpus
            for value in (told[count], times[count].seconds)
        ]
        named = (one.network, units.count(one.batch), one.card, one.summed_by, one.link)
        lines.append((*named, *both, f"{inside} of {len(times)}"))

    def far(logs: Iterable[float]) -> str:
        factors = np.exp(np.abs(list(logs)))
        return f"{np.median(factors):.2f} (median) and {factors.max():.2f} (worst)"

    every = [log for own in off.values() for log in own]
    return table(
        "Published trainings on several GPUs: times as fast as one",
        "network | batch: | card | summed by | over | "
        + " | ".join(f"{count} GPUs published: | {count} GPUs predicted:" for count in gpus)
        + " | in the band:",
        lines,
        [
            f"{kept} of {len(every)} lie in the band. Predicted speedups are off by a factor of "
            f"{far(every)}; those of NCCL, which alone sums as the model does, of "
            f"{far(off['NCCL'])}.",
            "Batch: on each GPU. Times on one GPU are as published.",
        ],
    )


def gains(one: Scaling, gpus: int, error: Error) -> Times:
    """How many times as fast so many GPUs train as one."""
    return ends_of(gpus * one.seconds(1) / (modelled(one, gpus) * slower(error)))


@cache
def crossovers(way: Way) -> dict[str, tuple[float, float, float]]:
    """The earliest, likeliest and latest crossover of each card of CARDS with the CPU of FILE."""
    file, own = loading.load_file(FILE), fit(observations())
    wanted = tuple(load_cards()[name] for name in CARDS)
    found = {}
    for verdict in verdicts(outlooks(file, own, Wanted(wanted, (way,), batch="100"))):
        assert verdict.comparison and verdict.comparison.crossover.size
        low, high = ends(verdict.comparison.crossover)
        found[verdict.card.id] = (low, verdict.comparison.crossover.size, high)
    return found


def widths() -> str:
    """How wide the bands of the crossover are."""
    lines = []
    for card in crossovers(WAYS[0]):
        texts = [card]
        for way in WAYS:
            low, size, high = crossovers(way)[card]
            texts += [units.significant(each, 2) for each in (size, low, high, high / low)]
        lines.append(texts)
    heads = ("wins from", "earliest", "latest", "latest over earliest")
    return table(
        f"Crossovers with the CPU of {FILE.parent.name}, 100 rows a batch, data on the GPU",
        "card | "
        + " | ".join(
            f"{group} {head}:"
            for group in ("this program, graph", "PyTorch, eager")
            for head in heads
        ),
        lines,
    )


def before(paths: Sequence[str]) -> str:
    """What published times alone would have predicted of the GPU's rows of these files."""
    lines = []
    for one in observations(loading.load_files(list(map(Path, paths)))[0]):
        if one.kind == "measured":
            cost = find_cost(one.network, one.batch, one.precision)
            times = predict_times(fitted(), cost, load_cards()[one.card], one.way, one.steps)
            low, middle, high = (
                each / one.steps for each in (times.low, times.seconds, times.high)
            )
            named = (one.network, units.count(one.batch), one.precision, one.card)
            told = (units.seconds(one.seconds), *seconds(middle, low, high))
            lines.append((*named, *told, yes(low <= one.seconds <= high), one.label))
    inside = sum(line[-2] == "yes" for line in lines)
    return table(
        "Predicted before, measured now: training steps",
        "network | batch: | precision | card | measured now: | predicted before: "
        "| predicted from: | predicted to: | in the band | where",
        lines,
        [f"{inside} of {len(lines)} lie in the band that published times alone have given."],
    )


TABLES = {
    "parameters": parameters,
    "left out": without,
    "errors": errors,
    "cards": cards,
    "networks": networks,
    "floors": floors,
    "widths": widths,
    "points": points,
    "scaling": scaling,
}


def test_the_bands_of_the_crossover_are_narrow():
    """A factor of five from end to end on each of CARDS, but where a board shares its
    memory and has few multiprocessors."""
    for card, (low, size, high) in crossovers(WAYS[0]).items():
        assert low < size < high
        assert high / low < (8 if card == "jetson-orin-nano" else 5), card


def written(text: str) -> str:
    """`text` with its tables as they should be."""
    return TABLE.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", text)


def names(text: str) -> Iterator[str]:
    return (found[2] for found in TABLE.finditer(text))


@pytest.mark.parametrize("page", PAGES)
def test_the_documents_have_the_tables_of_the_check(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    assert text == written(text), "python -m plots.tests.test_prediction_docs"


def test_every_table_is_in_a_document():
    found = {name for page in PAGES for name in names((DOCS / page).read_text(encoding="utf-8"))}
    assert found == set(TABLES)


if __name__ == "__main__":
    if sys.argv[1:]:
        print(before(sys.argv[1:]))
    for page in () if sys.argv[1:] else PAGES:
        path = DOCS / page
        path.write_text(written(path.read_text(encoding="utf-8")), encoding="utf-8")
