# SPDX-License-Identifier: Apache-2.0
"""How far off predictions are for what was left out of their fit, as the documents say it.

python -m crossover_bench.tests.test_prediction_docs             write their tables again
python -m crossover_bench.tests.test_prediction_docs published.md    those of this page alone
python -m crossover_bench.tests.test_prediction_docs FILE ...    print what published times alone
                                            would have predicted of the GPU's rows of these files
"""

import math
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import beta

from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.analysis import (
    Wanted,
    predict_draws,
    predict_times,
    step_draws,
)
from crossover_bench.answers.predict.answer import ends, groups_of
from crossover_bench.answers.predict.data import KERNELS, PRODUCTS, Observation, observations
from crossover_bench.answers.predict.fit import (
    SO_FAR,
    Fit,
    errors_of,
    fit,
    is_network,
    left_out,
    parameters_of,
    shares_card_or_network,
)
from crossover_bench.answers.predict.host import LOOPS_PATH, is_small
from crossover_bench.answers.predict.links import load_scaling, loss_of, modelled
from crossover_bench.answers.predict.model import CEILINGS, PARAMETERS
from crossover_bench.answers.predict.simulate import Times, slower
from crossover_bench.answers.predict.simulate import ends as ends_of
from crossover_bench.answers.predict.ways import PYTORCH, Way, several
from crossover_bench.counts.cards import load_cards, load_others, overheads
from crossover_bench.counts.cost import Operation, Product
from crossover_bench.counts.costs import find_cost
from crossover_bench.curves.crossover import comparisons
from crossover_bench.curves.headline import foremost
from crossover_bench.files import loading
from crossover_bench.files.axes import OWN
from crossover_bench.files.families import TRAINING, steps_of
from crossover_bench.show.tables.formats import as_markdown
from crossover_bench.show.tables.table import Cell, Column, Table
from crossover_bench.words import units
from tools.sources import tracked_results

ROOT = Path(__file__).parents[3]
DOCS, RESULTS = ROOT / "docs", ROOT / "results"
FILE = RESULTS / "amd-epyc-25-17-2c" / "2026-11-23-bfe530f.json"
OF_H200 = RESULTS / "intel-xeon-6-207-16c" / "2026-11-27-7050029.json"
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

# What others published of ladders that are trained here, too (docs/published.md): microseconds a
# sample of microgpt-W on a core and on the GPU of one chip, in batches; and from how many
# parameters of disc a laptop's GPU won.
MICROGPT_BATCH, MICROGPT_CARD = 16, "apple-m5-10"
MICROGPT = {
    "microgpt-16": (3.0, 72.0),
    "microgpt-32": (11.4, 72.0),
    "microgpt-64": (36.8, 72.0),
    "microgpt-128": (119.0, 197.0),
    "microgpt-256": (443.0, 204.0),
    "microgpt-512": (2335.0, 423.0),
}
DISC_WINS, DISC_CARD = 703_142, "gtx-1650"  # a laptop's card of 2019

# f32 products by PyTorch on cards of other makers, which are in no fit: the size, 0 for the best of
# OF_OWNERS, and FLOP/s of each machine (docs/evidence/prediction_pytorch.md has the sources).
OF_OWNERS = (1024, 2048, 4096, 8192, 10240)
OTHERS = {
    "rx-7900-xtx": (0, (24.78e12, 26.84e12, 25.67e12, 23.28e12)),
    "rx-7700-xt": (0, (8.90e12,)),
    "apple-m3-max-40": (0, (11.50e12,)),
    "apple-m4-10": (0, (2.98e12, 2.88e12)),
    "apple-m4-max-40": (0, (13.78e12,)),
    "apple-m5-10": (2048, (3.61e12,)),
}

# What is left out of a fit with a time: those of which it holds.
LEFT = {
    "the card": lambda step, other: other.card == step.card,
    "the network": lambda step, other: other.network == step.network and is_network(step),
    "both the card and the network": shares_card_or_network,
}
TABLE = re.compile(r"(<!-- ([a-z ]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGES = (
    *("evidence/prediction.md", "evidence/prediction_pytorch.md", "evidence/ranks.md"),
    "published.md",
)


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


def factors(*logs: float) -> list[str]:
    return [f"{math.exp(log):.2f}" for log in logs]


def beside(times: Times, took: float, steps: float = 1.0) -> list[str]:
    """A time, what was predicted, its band, and whether that holds the time."""
    band = [each / steps for each in (times.seconds, times.low, times.high)]
    inside = "yes" if band[1] <= took <= band[2] else "no"
    return [units.seconds(took), *(units.seconds(each, 2) for each in band), inside]


def covered(inside: int, count: int, share: str = "") -> str:
    """How many cards, and what that says of a band that is meant to hold 90 %: the lower end of
    Clopper and Pearson's interval, a quantile of the beta distribution."""
    least = beta.ppf(0.05, inside, count - inside + 1) if inside else 0.0
    return (
        f"{inside} of {count} cards{share} lie in the band that the others give, so it covers at "
        f"least {100 * least:.0f} % (95 % sure)"
    )


def without() -> str:
    steps = fitted().observations
    lines = []
    for what, shares in LEFT.items():
        off = np.abs(left_out(steps, shares))
        worst = steps[int(off.argmax())]
        far = factors(float(np.median(off)), float(off.max()))
        lines.append((what, str(len(off)), *far, f"{worst.network} on {worst.card}"))
    networks, cards = ({getattr(step, name) for step in steps} for name in ("network", "card"))
    return table(
        "Predictions of what was not in the fit",
        "left out of the fit | times: | off by a factor of median: | off by a factor of worst: | "
        "the worst",
        lines,
        [
            f"Fitted to {len(steps)} published times of {len(networks)} networks on {len(cards)} "
            "cards."
        ],
    )


def classes() -> str:
    """Of each class of networks and precision the errors where it and the card were left out."""
    groups: dict[tuple[str, str], list[tuple[str, float, bool]]] = defaultdict(list)
    for step, off, share in zip(*fitted_steps(), strict=True):
        kind = step.network if not is_network(step) else _class(step)
        half = fitted().errors.half_width(*share, float(is_network(step)), step.precision)
        groups[kind, step.precision].append((step.network, off, abs(off) <= half))
    lines = []
    for (kind, precision), steps in sorted(groups.items()):
        names, offs, inside = zip(*steps, strict=True)
        of = str(len(set(names))) if kind not in (PRODUCTS, KERNELS) else "–"
        far = factors(float(np.mean(offs)), float(np.median(np.abs(offs))), max(map(abs, offs)))
        lines.append((kind, precision, of, str(len(steps)), *far, f"{sum(inside)} of {len(steps)}"))
    return table(
        "Published times, each predicted by a fit without its network and its card",
        "class | precision | networks: | times: | predicted over observed mean: | "
        "off by a factor of median: | off by a factor of worst: | times in the band:",
        lines,
        [
            "No step of a recurrent network, a transformer or a recommender is among them, and "
            "none in bf16."
        ],
    )


def fitted_steps() -> tuple[Sequence[Observation], list[float], np.ndarray]:
    """The observations of the fit, their residuals, and the shares of their times."""
    return fitted().observations, fitted().residuals.tolist(), fitted().shares


def _class(step: Observation) -> str:
    cost = find_cost(step.network, step.batch, step.precision)
    kinds = {operation.kind for operation in cost.operations}
    return "convolutional" if "convolution" in kinds else "fully connected"


def networks() -> str:
    """Of each network the errors of all its times, with it and the card left out."""
    residuals: dict[str, list[float]] = defaultdict(list)
    for step, residual in zip(fitted().observations, fitted().residuals, strict=True):
        residuals[step.network].append(float(residual))
    offs = {name: (min(logs), max(logs), max(map(abs, logs))) for name, logs in residuals.items()}
    return table(
        "Networks, each predicted without it and without the card",
        "network | times: | predicted over observed fastest: | predicted over observed slowest: | "
        "off by at most:",
        (
            (name, str(len(residuals[name])), *factors(*offs[name]))
            for name in sorted(offs, key=lambda name: offs[name][2])
        ),
    )


def cards() -> str:
    """Of each card and precision the errors of all its times, with it and the network left out, and
    whether they lie in the band that the other cards give."""
    steps = list(zip(*fitted_steps(), strict=True))
    without = {
        card: errors_of(*zip(*(each for each in steps if each[0].card != card), strict=True))
        for card in dict.fromkeys(step.card for step, *_ in steps)
    }
    sorts: dict[str, dict[str, list[tuple[float, float, float]]]] = {}
    for step, off, share in steps:
        sort = step.precision if is_network(step) else f"{step.network} in {step.precision}"
        shares = (*share.tolist(), float(is_network(step)))
        known = (without[step.card], fitted().errors)
        halves = (errors.half_width(*shares, step.precision) for errors in known)
        sorts.setdefault(sort, {}).setdefault(step.card, []).append((off, *halves))
    lines, notes = [], []
    single = (f"{kind} in {precision}" for kind in (PRODUCTS, KERNELS) for precision in CEILINGS)
    for sort in (sort for sort in (*CEILINGS, *single) if sort in sorts):
        kept = times = 0
        for card, residuals in sorts[sort].items():
            inside = sum(abs(off) <= width for off, width, _ in residuals)
            kept += inside == len(residuals)
            times += inside
            offs, widths, _ = zip(*residuals, strict=True)
            far = factors(min(offs), max(offs), max(widths))
            lines.append((sort, card, str(len(residuals)), *far, f"{inside} of {len(residuals)}"))
        every = [each for residuals in sorts[sort].values() for each in residuals]
        offs, _, halves = zip(*every, strict=True)
        least, most, mean = factors(min(halves), max(halves), float(np.mean(offs)))
        notes.append(
            f"{sort}: {times} of {len(every)} times; "
            f"{covered(kept, len(sorts[sort]), ' with all their times')}. The band of a card more "
            f"is a factor of {least} to {most}; predicted over observed is {mean} in the geometric "
            "mean."
        )
    return table(
        "Cards, each predicted without it and without the network",
        "of | card | times: | predicted over observed fastest: | predicted over observed slowest: "
        "| band of the others: | times in it:",
        lines,
        notes,
    )


def errors() -> str:
    """What varies of a card's work, independently of each other."""
    estimates = fitted().errors
    named = [
        ("all that a network computes, in f32", estimates.whole, estimates.whole.count),
        ("arithmetic", estimates.arithmetic, estimates.arithmetic.count),
        ("traffic of memory", estimates.memory, estimates.memory.count),
    ]
    for name, each in estimates.precision.items():
        named.append((f"all of it in {name}, beside that", each, each.count - 1))
    return table(
        "Errors of a network or card more, each drawn by itself",
        "of | spread: | 90 % within: | networks or cards:",
        ((name, *factors(each.spread, each.half_width), str(count)) for name, each, count in named),
    )


def floors() -> str:
    """What each source says of small products, beside what the others foretell."""
    sources = overheads("product_inner")
    lines = []
    for source in sources:
        inner = several([other for other in sources if other is not source])
        width = math.exp(inner.half_width)
        times = Times(inner.middle / width, inner.middle, inner.middle * width)
        took = [units.seconds(source.low_seconds, 2), *beside(times, source.low_seconds)[1:]]
        lines.append((source.note.split(":")[0], *took))
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
    for parameter, value in zip(PARAMETERS, fitted().parameters.tolist(), strict=True):
        expected, spread = parameter.expected, parameter.spread
        numbers = (expected - spread, expected, expected + spread, value)
        plain = [number if parameter.is_exponent else math.exp(number) for number in numbers]
        shown = units.seconds if parameter.name == "operation" else units.significant
        texts = [shown(number, 2) for number in plain]
        if abs(value - expected) < 1e-3:  # hardly anything that was observed depends on it
            texts[-1] = "–"
        lines.append((parameter.name, *texts, parameter.meaning))
    return table(
        "Parameters of the prediction",
        "parameter | expected from: | expected value: | expected to: | fitted: | meaning",
        lines,
    )


def points() -> str:
    """The published comparisons of a CPU with a known card, as the eager loop of a framework,
    predicted without their network and card."""
    lines, steps = [], fitted().observations
    for label, network, batch, card, took in POINTS:
        cost = find_cost(network, batch)
        kept = [step for step in steps if network != step.network and card != step.card]
        without = replace(fitted(), parameters=parameters_of(kept))
        times = predict_times(without, cost, load_cards()[card], WAYS[1], 1.0)
        lines.append((label, network, str(batch), card, *beside(times, took)))
    inside = sum(line[-1] == "yes" for line in lines)
    return table(
        "Published comparisons of a CPU with a GPU, predicted",
        "experiment | network | batch: | card | published step: | predicted step: "
        "| predicted from: | predicted to: | in the band",
        lines,
        [f"{inside} of {len(lines)} lie in the band."],
    )


def wins() -> str:
    """From how many parameters the GPU wins on ladders that others published, and here."""
    measured = foremost(comparisons(loading.load_file(OF_H200)))
    assert measured is not None
    size, *band = crossovers(WAYS[1])[DISC_CARD]
    here, there = measured.crossover, load_cards()[DISC_CARD].name
    names = [*MICROGPT]
    faster = next(at for at, name in enumerate(names) if MICROGPT[name][0] > MICROGPT[name][1])
    below, above = (find_cost(name, MICROGPT_BATCH).params for name in names[faster - 1 :][:2])
    rows = [
        ("disc", "Penny Xu, PyTorch", "a laptop", DISC_WINS, None, None),
        ("disc", "measured here, bench", f"{OF_H200.parent.name}, H200", here.size, *ends(here)),
        ("disc", "predicted, PyTorch", f"{FILE.parent.name}, {there}", size, *band),
        ("microgpt", "Entrpi, a C file and MLX", "Apple M5", None, below, above),
    ]
    lines = [
        (*row[:3], *("–" if size is None else units.significant(size, 2) for size in row[3:]))
        for row in rows
    ]
    return table(
        "From how many parameters a GPU wins",
        "ladder | whose | CPU and GPU | the GPU wins from: | from: | to:",
        lines,
        ["Batch 100 of disc, 16 of microgpt. No source gives an interval."],
    )


def microgpt() -> str:
    """The published ladder of microgpt, and what is predicted of its GPU."""
    lines, way, kept = [], WAYS[1], 0
    for name, (cpu, gpu) in MICROGPT.items():
        cost = find_cost(name, MICROGPT_BATCH)
        times = predict_times(fitted(), cost, load_others()[MICROGPT_CARD], way, 1.0)
        assert isinstance(times, Times), times
        told = beside(times, gpu * 1e-6, MICROGPT_BATCH)
        kept += told[-1] == "yes"
        of_sample = [units.seconds(each * 1e-6, 3) for each in (cpu, gpu)]
        lines.append((name, *of_sample, units.significant(cpu / gpu, 2), *told[1:]))
    return table(
        "microgpt: time of a sample",
        "network | CPU published: | GPU published: | speedup: | GPU predicted: | predicted from: "
        "| predicted to: | in the band",
        lines,
        [f"{kept} of {len(lines)} lie in the band."],
    )


def scaling() -> str:
    """How many times as fast as one GPU each published training was on several, beside what is
    predicted where all of its network and all of its machine are left out of the loss."""
    trainings = load_scaling()
    lines, off = [], defaultdict(list)
    kept = 0
    for training in trainings:
        error = loss_of(
            other
            for other in trainings
            if other.network != training.network and other.machine != training.machine
        )
        told, inside = list[str](), 0
        for gpus in training.several:
            rate = training.rates[gpus] / training.rates[1]
            times = ends_of(gpus * training.seconds(1) / (modelled(training, gpus) * slower(error)))
            inside += times.low <= rate <= times.high
            off[training.summed_by].append(abs(math.log(times.seconds / rate)))
            told += [units.significant(rate), units.significant(times.seconds)]
        kept += inside
        named = (training.network, units.count(training.batch), training.card)
        over = (training.summed_by, training.link)
        lines.append((*named, *over, *told, f"{inside} of {len(training.several)}"))

    def far(logs: Sequence[float]) -> str:
        median, worst = factors(float(np.median(logs)), max(logs))
        return f"{median} (median) and {worst} (worst)"

    every = [log for times in off.values() for log in times]
    gpus = (f"{count} GPUs published: | {count} GPUs predicted:" for count in trainings[0].several)
    return table(
        "Published trainings on several GPUs: times as fast as one",
        f"network | batch: | card | summed by | over | {' | '.join(gpus)} | in the band:",
        lines,
        [
            f"{kept} of {len(every)} lie in the band. Predicted speedups are off by a factor of "
            f"{far(every)}; those of NCCL, which alone sums as the model does, of "
            f"{far(off['NCCL'])}.",
            "Batch: on each GPU. Times on one GPU are as published.",
        ],
    )


@cache
def crossovers(way: Way) -> dict[str, tuple[float, float, float]]:
    """The likeliest, earliest and latest crossover of each card of CARDS with the CPU of FILE."""
    wanted = Wanted(tuple(load_cards()[name] for name in CARDS), (way,), batch="100")
    sizes = {}
    for verdict in groups_of(loading.load_file(FILE), fitted(), wanted)[0][0]:
        assert verdict.comparison and verdict.comparison.crossover.size
        crossover = verdict.comparison.crossover
        sizes[verdict.card.id] = (crossover.size, *ends(crossover))
    return sizes


def widths() -> str:
    """How wide the bands of the crossover are."""
    lines = []
    for card in crossovers(WAYS[0]):
        texts = [card]
        for size, low, high in (crossovers(way)[card] for way in WAYS):
            texts += [units.significant(each, 2) for each in (size, low, high, high / low)]
        lines.append(texts)
    columns = (
        f"{group} {head}:"
        for group in ("this program, graph", "PyTorch on both sides")
        for head in ("wins from", "earliest", "latest", "latest over earliest")
    )
    return table(
        f"Crossovers with the CPU of {FILE.parent.name}, 100 rows a batch, data on the GPU",
        f"card | {' | '.join(columns)}",
        lines,
    )


@cache
def pytorch_on_cpus() -> tuple[tuple[host.Loop, Times], ...]:
    """The loops that were measured on a CPU, each by a fit without its machine and its network, in
    the band of one without its machine."""
    every = host.load_loops()
    known = {
        machine: host.fitted_to([loop for loop in every if loop.machine != machine])
        for machine in {loop.machine for loop in every if loop.seconds and loop.device == "cpu"}
    }
    made = []
    for loop, seconds in host.left_out(every):
        alone = known[loop.machine]
        call = host.call_of(host.of_machine(loop.machine, every), alone.host, alone.loops)
        draws = alone.cpu_draws(loop.cost, loop.ours, call)
        made.append((loop, ends_of(draws * seconds / float(np.median(draws)))))
    return tuple(made)


def on_cpus() -> str:
    """PyTorch's steps on one thread of each machine, predicted without it."""
    lines, notes = [], []
    for loop, times in pytorch_on_cpus():
        if loop.threads == 1:
            shown = beside(times, loop.seconds)
            lines.append((loop.machine, loop.network, units.count(loop.batch), *shown))
    for machine in dict.fromkeys(loop.machine for loop, _ in pytorch_on_cpus()):
        its = [(loop, times) for loop, times in pytorch_on_cpus() if loop.machine == machine]
        logs = [math.log(times.seconds / loop.seconds) for loop, times in its]
        inside = sum(times.low <= loop.seconds <= times.high for loop, times in its)
        far = factors(math.sqrt(float(np.mean(np.square(logs)))), max(map(abs, logs)))
        notes.append(
            f"{machine}, on one and two threads: off by a factor of {far[0]} (root mean square), "
            f"{far[1]} at most; {inside} of {len(its)} steps lie in the band."
        )
    return table(
        "Steps of PyTorch on a CPU, each predicted without its machine and its network",
        "machine | network | batch: | measured: | predicted: | predicted from: | predicted to: | "
        "in the band",
        lines,
        notes,
    )


@cache
def pytorch_on_gpus() -> tuple[tuple[host.Loop, Times], ...]:
    """The loops that were measured on a GPU, where none of a GPU is in the fit."""
    every, cards = host.load_loops(), {"intel-xeon-6-207-16c": load_cards()["h200"]}
    alone = host.fitted_to([loop for loop in every if loop.device == "cpu"])
    made = []
    for loop in (loop for loop in every if loop.device == "cuda"):
        call = host.call_of(host.of_machine(loop.machine, every), alone.host, alone.loops)
        starts = alone.gpu_call_draws(call)
        card = cards[loop.machine]
        draws = predict_draws(fitted(), loop.cost, card, WAYS[1], 1.0, call=starts)
        made.append((loop, ends_of(draws)))
    return tuple(made)


def on_gpus() -> str:
    """PyTorch's steps on each GPU, predicted without any."""
    lines = [
        (loop.machine, loop.network, units.count(loop.batch), *beside(times, loop.seconds))
        for loop, times in pytorch_on_gpus()
    ]
    inside = sum(line[-1] == "yes" for line in lines)
    return table(
        "Eager steps of PyTorch on an H200, predicted by published operations and this CPU's",
        "machine | network | batch: | measured: | predicted: | predicted from: | predicted to: | "
        "in the band",
        lines,
        [f"{inside} of {len(lines)} lie in the band."],
    )


@cache
def products_on_others() -> dict[str, Times]:
    """FLOP/s of each of OTHERS: its middle, and its band from the lowest to the highest."""
    made = {}
    for name, (size, _) in OTHERS.items():
        rates = []
        for n in [size] if size else OF_OWNERS:
            product = Operation("product", 2.0 * n**3, 12.0 * n**2, 1.0, (Product(n, n, n, 1),))
            draws = step_draws(fitted(), (product,), "f32", load_others()[name], count=1.0)
            assert not isinstance(draws, str)
            rates.append(ends_of(2.0 * n**3 / draws))
        made[name] = max(rates, key=lambda rate: rate.seconds)
    return made


def on_others() -> str:
    """What was predicted and published of products on cards of other makers."""
    lines = []
    for name, rate in products_on_others().items():
        published = OTHERS[name][1]
        rates = (*published, rate.seconds, rate.low, rate.high)
        shown = [units.rate(each, "FLOP/s") for each in rates]
        factors_off = ", ".join(f"{rate.seconds / each:.2f}" for each in published)
        text = (load_others()[name].name, ", ".join(shown[:-3]), *shown[-3:], factors_off)
        lines.append(text)
    return table(
        "f32 products by PyTorch on cards of other makers",
        "card | published | predicted: | predicted from: | predicted to: | predicted / published",
        lines,
    )


def test_published_products_of_other_makers_lie_well_in_the_band():
    for name, rate in products_on_others().items():
        assert rate.high / rate.low > 8  # nobody published a step
        for each in OTHERS[name][1]:
            assert 1 / 1.6 < rate.seconds / each < 1.6 and rate.low < each < rate.high, name


def loops() -> str:
    """What LOOPS_PATH should hold: of each machine whose files have eager rows of PyTorch in f32
    the fastest step of each network, and of ours on as many threads; ours alone of small networks
    on one thread. Of a GPU a step counts where a CUDA graph of it takes less than half."""
    theirs, ours, graphs = (dict[tuple[str, ...], float]() for _ in range(3))
    for path in tracked_results():  # what else lies there is its user's
        file = loading.load_file(path)
        for row in (*file.rows, *file.peers):
            how = row.configuration
            cost = find_cost(row.model, row.counters.get("batch", 0.0))
            is_plain = row.family in TRAINING and not row.failure and row.copies == row.ranks == 1
            if not cost or not is_plain or row.precision != "f32" or row.as_is:
                continue
            kind = {
                ("pytorch", "eager"): theirs if how.get("compiler", "none") == "none" else None,
                ("pytorch", "graph"): graphs,
            }.get((row.program, row.execution), ours if row.program == OWN else None)
            if kind is None or (kind is ours and row.device != "cpu"):
                continue
            named = (file.machine.id, row.model, row.batch, row.device, str(row.threads or ""))
            kind[named] = min(kind.get(named, math.inf), row.median / steps_of(row))
    machines = {machine for machine, *_ in theirs}
    small = {
        named
        for named in ours
        if named[0] in machines
        and named[-1] == "1"
        and is_small(find_cost(named[1], float(named[2])))
    }
    bound = {named for named in graphs if 2 * graphs[named] > theirs.get(named, math.inf)}
    lines = ["machine,network,batch,device,threads,seconds,ours"]
    for named in sorted((theirs.keys() | small) - bound):
        times = (f"{kind[named]:.4g}" if named in kind else "" for kind in (theirs, ours))
        lines.append(",".join([*named, *times]))
    return "\n".join(lines) + "\n"


def before(paths: Sequence[str]) -> str:
    """What published times alone would have predicted of the GPU's rows of these files: without the
    factor of our launches, which an H200 taught."""
    lines, parameters = [], fitted().parameters.copy()
    parameters[[parameter.name for parameter in PARAMETERS].index("launch")] = 0.0
    published = replace(fitted(), parameters=parameters)
    for step in observations(loading.load_files(list(map(Path, paths)))[0]):
        if step.kind == "measured":
            cost = find_cost(step.network, step.batch, step.precision)
            times = predict_times(published, cost, load_cards()[step.card], step.way, step.steps)
            named = (step.network, units.count(step.batch), step.precision, step.card)
            lines.append((*named, *beside(times, step.seconds, step.steps), step.label))
    inside = sum(line[-2] == "yes" for line in lines)
    return table(
        "Predicted before, measured now: training steps",
        "network | batch: | precision | card | measured now: | predicted before: "
        "| predicted from: | predicted to: | in the band | where",
        lines,
        [f"{inside} of {len(lines)} lie in the band that published times alone have given."],
    )


TABLES = {
    "classes": classes,
    **{"parameters": parameters, "left out": without, "errors": errors, "cards": cards},
    **{"networks": networks, "floors": floors, "widths": widths, "points": points},
    **{"wins": wins, "microgpt": microgpt},
    **{"scaling": scaling, "processors": on_cpus, "gpus": on_gpus, "others": on_others},
}


def test_the_bands_of_the_crossover_are_narrow():
    """A factor of five from end to end on each of CARDS, but where a board shares its
    memory and has few multiprocessors."""
    for card, (size, low, high) in crossovers(WAYS[0]).items():
        assert low < size < high
        assert high / low < (8 if card == "jetson-orin-nano" else 5), card


def pages() -> Iterator[tuple[Path, str]]:
    for page in PAGES:
        yield DOCS / page, (DOCS / page).read_text(encoding="utf-8")


def written(text: str) -> str:
    """`text` with its tables as they should be."""
    return TABLE.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", text)


def test_what_a_prediction_says_of_bands_so_far_is_what_the_evidence_says():
    evidence = " ".join((DOCS / "evidence" / "prediction.md").read_text("utf-8").split())
    inside, rows = re.findall(r"(\d+) of (\d+) rows", SO_FAR)[0]
    assert f"Of {rows} rows of networks that train there, {inside} lay in the band" in evidence


@pytest.mark.slow
def test_the_loops_of_pytorch_are_those_of_the_results():
    assert LOOPS_PATH.read_text("utf-8") == loops(), (
        "python -m crossover_bench.tests.test_prediction_docs"
    )


@pytest.mark.slow
def test_every_table_is_in_a_document_as_the_check_writes_it():
    """Takes long, as each table has fits of its own."""
    assert {match[2] for _, text in pages() for match in TABLE.finditer(text)} == set(TABLES)
    for _, text in pages():
        assert text == written(text), "python -m crossover_bench.tests.test_prediction_docs"


if __name__ == "__main__":
    chosen = [word for word in sys.argv[1:] if word in PAGES]
    if chosen != sys.argv[1:]:
        print(before(sys.argv[1:]))
    else:
        if not chosen:
            LOOPS_PATH.write_text(loops(), encoding="utf-8")
        for path, text in pages():
            if not chosen or path.relative_to(DOCS).as_posix() in chosen:
                path.write_text(written(text), encoding="utf-8")
