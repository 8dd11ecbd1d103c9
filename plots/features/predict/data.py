# SPDX-License-Identifier: Apache-2.0
"""What predictions are fitted to: published times of networks that we have, and measured rows.

plots/reference/README.md has the columns of what others published.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from plots.core.cards import Card, load_cards
from plots.core.cost import Cost, Operation, Product
from plots.core.costs import find_cost
from plots.core.network import NetworkKey, best, networks, on_device
from plots.core.reference import REFERENCE, lines_of
from plots.features.predict.model import CEILINGS, Demand, ceiling, demand, our_demand
from plots.features.predict.ways import AUTO, EXECUTIONS, PLACEMENTS, Way
from plots.features.shi.analysis import PRECISION, load_shi
from plots.file.families import TRAINING, steps_of
from plots.file.rows import File, Row

RATES_PATH = REFERENCE / "training_rates.csv"
# What single ones are called beside networks: one, as they are all alike.
PRODUCTS, KERNELS = "products", "kernels"
_ENTRY_BYTES = 4
_LARGE, _LARGE_BYTES = 8192, float(2**30)  # of a kernel whose share of a rate was published


# The K80 of that table is left out: nobody wrote down the clock that it ran at, between 562 and 875
# MHz, and of all cards it is the only one of an architecture that no software starts on any more.
# Its LSTM is left out, too. CNTK trained it on the desktop's four cores in 90 ms: 986 GFLOP/s of
# our count, where these have 243 (4 cores × 16 operations × 3.8 GHz), so it computes fewer
# operations. The other frameworks start one for each part of a gate, which nobody counted.
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
    found = [*_published(cards), *_single(cards)]
    return [*found, *(one for file in files for one in measured(file, cards))]


def card_of(file: File, cards: dict[str, Card]) -> Card | None:
    """The card that `file` was measured on: that of its name, or else the only one whose name has
    the same words, in that order, and more; None where none of `cards` has. Drivers say "NVIDIA
    H100 80GB HBM3" of an H100 SXM5 80 GB, and "Orin" of every Jetson Orin."""
    words = _words(file.machine.gpu or "")
    found = [card for card in cards.values() if words and _holds(_words(card.name), words)]
    exact = [card for card in found if _without_size(_words(card.name)) == _without_size(words)]
    return (exact or found)[0] if len(exact or found) == 1 else None


def _words(name: str) -> list[str]:
    """Without the maker's, and without what stands behind a comma or in brackets."""
    plain = re.sub(r"[,(].*", "", name).lower().replace("-", " ")
    words = re.sub(r"(\d)gb\b", r"\1 gb", plain).split()
    return [word for word in words if word not in _NO_PART_OF_NAMES]


def _without_size(words: list[str]) -> str:
    """Without the size of its memory, which drivers of desktop cards do not tell."""
    return re.sub(r" \d+ gb$", "", " ".join(words))


def _holds(words: list[str], wanted: list[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in wanted)


def fastest_rates() -> list[dict[str, str]]:
    """Of each network, precision and card the line of RATES_PATH with the most samples per second,
    of whole steps of a network that is ours: the fastest framework, and the batch that suits it."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for line in lines_of(RATES_PATH):
        key = (line["network"], line["precision"], line["card"])
        slower = key in found and _rate(line) <= _rate(found[key])
        if line["what"] == "step" and not line["differs"] and not slower:
            found[key] = line
    return list(found.values())


def _rate(line: dict[str, str]) -> float:
    return float(line["samples_per_second"])


def _times() -> Iterator[tuple[Key, float, str, str]]:
    """Published times of steps of networks: of what, in seconds, the framework, and who says so."""
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
    """Those of steps of one product or kernel, which nothing that takes time starts."""
    for line, one, seconds, label in (*_products(), *_kernels(cards)):
        precision, card = line["precision"], line["card"]
        asked = demand((one,), precision, cards[card])
        assert isinstance(asked, Demand), asked
        network = PRODUCTS if one.kind == "product" else KERNELS
        key = (network, float(line.get("m", 1)), precision, card)
        yield Observation(*key, seconds, asked, "published", f"{label}{line['source_url']}")


def _products() -> Iterator[_Single]:
    for line in lines_of(REFERENCE / "products.csv"):
        m, n, k = (int(line[key]) for key in "mnk")
        entries = m * k + k * n + m * n
        moved = float(_ENTRY_BYTES * entries)
        one = Operation("product", 2.0 * m * n * k, moved, 0.0, (Product(m, n, k),))
        yield line, one, float(line["seconds"]), f"{m} × {n} × {k}: {line['year']}, "


def _kernels(cards: dict[str, Card]) -> Iterator[_Single]:
    """Each so large that its launch is nothing."""
    for line in lines_of(REFERENCE / "kernels.csv"):
        kind, figure, work = line["kernel"], "memory_bytes_per_second", _LARGE_BYTES
        one = Operation(kind, 0.0, work, 0.0, ())
        if kind == "product":
            figure, work = CEILINGS[line["precision"]], 2.0 * _LARGE**3
            one = Operation(kind, work, 0.0, 0.0, (Product(_LARGE, _LARGE, _LARGE),))
        seconds = work / cards[line["card"]].figures[figure] / float(line["share"])
        yield line, one, seconds, f"{kind}: "


def _published(cards: dict[str, Card]) -> list[Observation]:
    """Of each network and card the fastest framework's time: ours calls the same libraries, with
    less around them.

    A framework that was faster than a card's ceiling allows computed a network otherwise (by FFT or
    Winograd's products in large tiles, which ours does not use), so its times of that network are
    left out.
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
            one = Observation(*key, seconds, asked, "published", f"{source}, {framework}")
            counted.append((framework, one))
            if seconds < _least(cost, card):
                otherwise.add((network, framework))
    fastest: dict[Key, Observation] = {}
    for framework, one in counted:
        key = (one.network, one.batch, one.precision, one.card)
        is_slower = key in fastest and fastest[key].seconds <= one.seconds
        if (one.network, framework) not in otherwise and not is_slower:
            fastest[key] = one
    return list(fastest.values())


def transposed(cost: Cost) -> Cost:
    """`cost` where images lie channel by channel: matrix units take them pixel by pixel, so that a
    library reads and writes once more what each convolution reads and writes."""
    changed = (
        replace(one, bytes=3 * one.bytes) if one.kind == "convolution" else one
        for one in cost.operations
    )
    return replace(cost, operations=tuple(changed))


def _least(cost: Cost, card: Card) -> float:
    """The seconds that the products of a step take at the ceiling of `card`."""
    flops = sum(
        2.0 * one.m * one.n * one.k * one.count * each.count
        for each in cost.operations
        for one in each.products
    )
    return flops / (ceiling(card, cost.precision) or float("inf"))


def measured(file: File, cards: dict[str, Card]) -> list[Observation]:
    """The steps of the networks that a GPU of `cards` trained in `file`: of each network, precision
    and way the fastest row, an epoch's time divided by its steps."""
    card = card_of(file, cards)
    if card is None:
        return []
    rows = [row for row in file.rows if row.family in TRAINING and row.failure is None]
    ways: dict[tuple[NetworkKey, Way], list[Row]] = {}
    for network, alike in networks(on_device(rows, "cuda")).items():
        for row in alike:
            how = (row.axes.value(row.configuration, key) for key in ("execution", "data"))
            ways.setdefault((network, Way(*map(str, how))), []).append(row)
    found = (_observation(best(own), way, card, file) for (_, way), own in ways.items())
    return [one for one in found if one]


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
    found = our_demand(cost, card, way, steps)
    if isinstance(found, str):
        return None
    key = (model, cost.batch, precision, card.id)
    label = f"{file.machine.id}, {file.date.date().isoformat()}: {way.execution}, {way.data}"
    return Observation(*key, row.median / steps, found[0], "measured", label, way, steps)
