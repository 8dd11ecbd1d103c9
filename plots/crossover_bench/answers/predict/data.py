# SPDX-License-Identifier: Apache-2.0
"""What predictions are fitted to: published times of networks that we have, and measured rows.

reference/README.md has the columns of what others published.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from crossover_bench.answers.predict.model import CEILINGS, Demand, ceiling, demand, our_demand
from crossover_bench.answers.predict.ways import AUTO, EXECUTIONS, PLACEMENTS, Way
from crossover_bench.answers.shi.analysis import PRECISION, load_shi
from crossover_bench.counts.cards import Card, load_cards
from crossover_bench.counts.cost import Cost, Operation, Product
from crossover_bench.counts.costs import find_cost
from crossover_bench.counts.reference import REFERENCE, lines_of
from crossover_bench.curves.network import NetworkKey, best, networks, on_device
from crossover_bench.files.families import TRAINING, steps_of
from crossover_bench.files.rows import File, Row

RATES_PATH = REFERENCE / "training_rates.csv"
# What stands for the network where a product or a kernel was timed alone.
PRODUCTS, KERNELS = "products", "kernels"
_ENTRY_BYTES = 4
# The edge of a product, and the bytes of another kernel, whose share of a rate was published.
_LARGE, _LARGE_BYTES = 8192, float(2**30)


# The K80 of Shi et al. is left out: nobody wrote down its clock, which is between 562 and 875 MHz,
# and it is the only card of an architecture that no software starts on any more. Their LSTM is left
# out, too. CNTK trained it on the desktop's four cores in 90 ms: 986 GFLOP/s of our count, where
# these have 243 (4 cores × 16 operations × 3.8 GHz), so it computes fewer operations. The other
# frameworks start an operation for each part of a gate, and nobody counted these.
_NOT_OURS = {"lstm"}
SHI_CARDS = {"g980": "gtx-980", "g1080": "gtx-1080"}

_NO_PART_OF_NAMES = {"nvidia", "geforce", "tesla", "gpu", "hbm3", "hbm3e"}

Key = tuple[str, float, str, str]  # network, batch, precision, card


@dataclass(frozen=True, slots=True)
class Observation:
    """The seconds of a training step of one network on one card, and what it asks of the card.

    `label` says where it is from, for people. A measured one has the `way` of its row, and how many
    `steps` an iteration of that has.
    """

    network: str
    batch: float
    precision: str
    card: str
    seconds: float
    demand: Demand
    kind: Literal["published", "measured"]
    label: str
    way: Way | None = None
    steps: float = 1.0


def observations(files: Sequence[File] = ()) -> list[Observation]:
    """All there are: published ones, and the GPU's rows of `files`."""
    cards = load_cards()
    steps = (step for file in files for step in measured(file, cards))
    return [*_published(cards), *_single(cards), *steps]


def card_of(file: File, cards: dict[str, Card]) -> Card | None:
    """The card that `file` was measured on: the one of its name, or else the only one whose name
    has the same words in that order, and more; None where no card or several have. Drivers say
    "NVIDIA H100 80GB HBM3" of an H100 SXM5 80 GB, and "Orin" of every Jetson Orin."""
    words = _words(file.machine.gpu or "")
    holding = [card for card in cards.values() if words and _holds(_words(card.name), words)]
    exact = [card for card in holding if _without_size(_words(card.name)) == _without_size(words)]
    matches = exact or holding
    return matches[0] if len(matches) == 1 else None


def _words(name: str) -> list[str]:
    """Its words without the maker's, and without what stands behind a comma or in brackets."""
    plain = re.sub(r"[,(].*", "", name).lower().replace("-", " ")
    words = re.sub(r"(\d)gb\b", r"\1 gb", plain).split()
    return [word for word in words if word not in _NO_PART_OF_NAMES]


def _without_size(words: list[str]) -> str:
    """The name without the size of the memory, which drivers of desktop cards do not tell."""
    return re.sub(r" \d+ gb$", "", " ".join(words))


def _holds(words: list[str], wanted: list[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in wanted)


def fastest_rates() -> list[dict[str, str]]:
    """For each network, precision and card the line of RATES_PATH with the most samples per second,
    of whole steps of a network that is ours: the fastest framework, and the batch that suits it."""
    fastest: dict[tuple[str, str, str], dict[str, str]] = {}
    for line in lines_of(RATES_PATH):
        key = (line["network"], line["precision"], line["card"])
        slower = key in fastest and _rate(line) <= _rate(fastest[key])
        if line["what"] == "step" and not line["differs"] and not slower:
            fastest[key] = line
    return list(fastest.values())


def _rate(line: dict[str, str]) -> float:
    return float(line["samples_per_second"])


def _times() -> Iterator[tuple[Key, float, str, str]]:
    """Published times of steps of networks: the key, seconds, the framework, and the source."""
    for figure in load_shi():
        card = SHI_CARDS.get(figure.device)
        if figure.seconds is not None and card and figure.network.lower() not in _NOT_OURS:
            key = (figure.network.lower(), float(figure.batch), PRECISION, card)
            yield key, figure.seconds, figure.framework, "Shi et al. 2016"
    for line in fastest_rates():
        batch = float(line["batch"])
        key = (line["network"], batch, line["precision"], line["card"])
        yield key, batch / _rate(line), line["framework"], f"{line['year']}, {line['source_url']}"


_Single = tuple[dict[str, str], Operation, float, str]  # line, what it timed, seconds, label


def _single(cards: dict[str, Card]) -> Iterator[Observation]:
    """Steps of one product or kernel, with nothing beside it that takes time."""
    for line, operation, seconds, label in (*_products(), *_kernels(cards)):
        precision, card = line["precision"], line["card"]
        asked = demand((operation,), precision, cards[card])
        assert isinstance(asked, Demand), asked
        network = PRODUCTS if operation.kind == "product" else KERNELS
        key = (network, float(line.get("m", 1)), precision, card)
        yield Observation(*key, seconds, asked, "published", f"{label}{line['source_url']}")


def _products() -> Iterator[_Single]:
    for line in lines_of(REFERENCE / "products.csv"):
        m, n, k = (int(line[key]) for key in "mnk")
        moved = float(_ENTRY_BYTES * (m * k + k * n + m * n))
        operation = Operation("product", 2.0 * m * n * k, moved, 0.0, (Product(m, n, k),))
        yield line, operation, float(line["seconds"]), f"{m} × {n} × {k}: {line['year']}, "


def _kernels(cards: dict[str, Card]) -> Iterator[_Single]:
    """Kernels that are so large that their launch is nothing."""
    for line in lines_of(REFERENCE / "kernels.csv"):
        kind, figure, work = line["kernel"], "memory_bytes_per_second", _LARGE_BYTES
        operation = Operation(kind, 0.0, work, 0.0, ())
        if kind == "product":
            figure, work = CEILINGS[line["precision"]], 2.0 * _LARGE**3
            operation = Operation(kind, work, 0.0, 0.0, (Product(_LARGE, _LARGE, _LARGE),))
        seconds = work / cards[line["card"]].figures[figure] / float(line["share"])
        yield line, operation, seconds, f"{kind}: "


def _published(cards: dict[str, Card]) -> list[Observation]:
    """The fastest framework's time of each network on each card: our program calls the same
    libraries, with less around them.

    A framework that was faster than a card's ceiling allows computed a network otherwise (by FFT,
    or by Winograd's products in large tiles; ours uses neither). Its times of that network are left
    out.
    """
    counted, otherwise = list[tuple[str, Observation]](), set[tuple[str, str]]()
    for key, seconds, framework, source in _times():
        network, batch, precision, name = key
        cost, card = find_cost(network, batch, precision), cards.get(name)
        if cost and precision != PRECISION and "NCHW" in framework:
            cost = transposed(cost)
        if cost is None or card is None:
            continue
        asked = demand(cost.operations, precision, card)
        if isinstance(asked, Demand):
            step = Observation(*key, seconds, asked, "published", f"{source}, {framework}")
            counted.append((framework, step))
            if seconds < _least(cost, card):
                otherwise.add((network, framework))
    fastest: dict[Key, Observation] = {}
    for framework, step in counted:
        key = (step.network, step.batch, step.precision, step.card)
        is_slower = key in fastest and fastest[key].seconds <= step.seconds
        if (step.network, framework) not in otherwise and not is_slower:
            fastest[key] = step
    return list(fastest.values())


def transposed(cost: Cost) -> Cost:
    """`cost` where images lie channel by channel. Matrix units take them pixel by pixel, so that a
    library reads and writes once more what each convolution reads and writes."""
    changed = (
        replace(each, bytes=3 * each.bytes) if each.kind == "convolution" else each
        for each in cost.operations
    )
    return replace(cost, operations=tuple(changed))


def _least(cost: Cost, card: Card) -> float:
    """The seconds that the products of a step take at the ceiling of `card`."""
    flops = sum(
        2.0 * product.m * product.n * product.k * product.count * operation.count
        for operation in cost.operations
        for product in operation.products
    )
    return flops / (ceiling(card, cost.precision) or float("inf"))


def measured(file: File, cards: dict[str, Card]) -> list[Observation]:
    """The steps of the networks that a GPU of `cards` trained in `file`: the fastest row of each
    network, precision and way. Of an epoch the time is divided by its steps."""
    card = card_of(file, cards)
    if card is None:
        return []
    rows = [row for row in file.rows if row.family in TRAINING and row.failure is None]
    ways: dict[tuple[NetworkKey, Way], list[Row]] = {}
    for network, alike in networks(on_device(rows, "cuda")).items():
        for row in alike:
            how = (row.axes.value(row.configuration, key) for key in ("execution", "data"))
            ways.setdefault((network, Way(*map(str, how))), []).append(row)
    steps = (_observation(best(alike), way, card, file) for (_, way), alike in ways.items())
    return [step for step in steps if step]


def is_plain(row: Row) -> bool:
    """Whether it trains as predictions assume: one wait an epoch, an update each batch."""
    return all(
        row.axes.value(row.configuration, key) == row.axes[key].plainest
        for key in ("loss", "accumulate")
        if key in row.axes and key in row.configuration
    )


def _observation(row: Row, way: Way, card: Card, file: File) -> Observation | None:
    model, precision, steps = row.model, row.precision, steps_of(row)
    cost = find_cost(model, row.counters["batch"], precision)
    if not cost or cost.params != row.counters["params"] or not is_plain(row):
        return None
    if way.execution not in set(EXECUTIONS) - {AUTO} or way.data not in PLACEMENTS:
        return None
    needs = our_demand(cost, card, way, steps)
    if isinstance(needs, str):
        return None
    key = (model, cost.batch, precision, card.id)
    label = f"{file.machine.id}, {file.date.date().isoformat()}: {way.execution}, {way.data}"
    return Observation(*key, row.median / steps, needs[0], "measured", label, way, steps)
