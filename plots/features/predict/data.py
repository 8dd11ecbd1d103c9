# SPDX-License-Identifier: Apache-2.0
"""What predictions are fitted to: published times of networks that we have, and measured rows.

plots/reference/README.md has the columns of what others published.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

import numpy as np

from plots.core.cards import Card, load_cards
from plots.core.cost import Cost, Operation, Product
from plots.core.costs import find_cost
from plots.core.network import NetworkKey, best, networks, on_device
from plots.core.reference import REFERENCE, lines_of
from plots.features.predict.model import CEILINGS, Demand, ceiling, demand
from plots.features.predict.ways import (
    AUTO,
    EXECUTIONS,
    PLACEMENTS,
    Band,
    Way,
    launch,
    launches,
    overhead,
)
from plots.features.shi.analysis import PRECISION, load_shi
from plots.file.families import TRAINING, steps_of
from plots.file.rows import File, Row

RATES_PATH = REFERENCE / "training_rates.csv"
# What single ones are called beside networks: one, as they are all alike.
PRODUCTS, KERNELS = "products", "kernels"
_ENTRY_BYTES = 4
_LARGE, _LARGE_BYTES = 8192, float(2**30)


@dataclass(frozen=True, slots=True)
class TrainingRate:
    """Samples that one `card` trains in a second. `differs` says how the network is not the one of
    that name here, empty where it is."""

    network: str
    differs: str
    batch: int
    card: str
    card_name: str
    precision: str
    framework: str
    year: int
    samples_per_second: float
    what: Literal["step", "forward-backward"]
    data: Literal["synthetic", "images", "unstated"]
    source_url: str

    @property
    def seconds_per_batch(self) -> float:
        """Seconds of one mini-batch."""
        return self.batch / self.samples_per_second


@dataclass(frozen=True, slots=True)
class ProductTime:
    """`seconds` of a product m × k by k × n on one `card`."""

    card: str
    m: int
    n: int
    k: int
    precision: str
    seconds: float
    year: int
    source_url: str

    @property
    def operation(self) -> Operation:
        """Of a step that is this product alone, started by nothing that takes time."""
        entries = self.m * self.k + self.k * self.n + self.m * self.n
        product = Product(self.m, self.n, self.k)
        flops = 2.0 * self.m * self.n * self.k
        return Operation("product", flops, float(_ENTRY_BYTES * entries), 0.0, (product,))


@dataclass(frozen=True, slots=True)
class KernelShare:
    """The `share` of a data sheet's rate that large kernels of one kind reach on one `card`:
    products of its arithmetic, all others of its memory bandwidth."""

    card: str
    kernel: str
    precision: str
    share: float
    source_url: str

    @property
    def work(self) -> float:
        """Operations or bytes of `operation`."""
        return 2.0 * _LARGE**3 if self.kernel == "product" else _LARGE_BYTES

    @property
    def operation(self) -> Operation:
        """Of a step that is one such kernel, so large that its launch is nothing."""
        if self.kernel == "product":
            products = (Product(_LARGE, _LARGE, _LARGE),)
            return Operation(self.kernel, self.work, 0.0, 0.0, products)
        return Operation(self.kernel, 0.0, self.work, 0.0, ())


_Line = TypeVar("_Line", TrainingRate, ProductTime, KernelShare)


def _read(path: Path, kind: type[_Line]) -> list[_Line]:
    """Every line of `path` as one of this `kind`, whose fields are columns; raises OSError where
    the file cannot be read."""
    numbers: dict[Any, Any] = {int: int, float: float}
    types = {name: numbers.get(each, str) for name, each in get_type_hints(kind).items()}
    return [kind(**{name: of(line[name]) for name, of in types.items()}) for line in lines_of(path)]


def load_training_rates() -> list[TrainingRate]:
    """Every rate; raises as _read()."""
    return _read(RATES_PATH, TrainingRate)


def load_products() -> list[ProductTime]:
    """Every product; raises as _read()."""
    return _read(REFERENCE / "products.csv", ProductTime)


def load_kernels() -> list[KernelShare]:
    """Every kind of kernel on every card; raises as _read()."""
    return _read(REFERENCE / "kernels.csv", KernelShare)


# ---- what is fitted to


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
    """The card that `file` was measured on; None where none of `cards` has its name."""
    return _named(file.machine.gpu or "", cards)


def _named(name: str, cards: dict[str, Card]) -> Card | None:
    """The card that is called `name`, or else the only one whose name has the same words, in that
    order, and more: drivers say "NVIDIA H100 80GB HBM3" of an H100 SXM5 80 GB, and "Orin" of every
    Jetson Orin."""
    words = _words(name)
    found = [card for card in cards.values() if words and _holds(_words(card.name), words)]
    exact = [card for card in found if _without_size(_words(card.name)) == _without_size(words)]
    return (exact or found)[0] if len(exact or found) == 1 else None


def _words(name: str) -> list[str]:
    """Without the maker's, and without what stands behind a comma or in brackets."""
    plain = re.sub(r"[,(].*", "", name).lower().replace("-", " ")
    words = re.sub(r"(\d)gb\b", r"\1 gb", plain).split()
    return [word for word in words if word not in _NO_PART_OF_NAMES]


def _without_size(words: list[str]) -> list[str]:
    """Without the size of its memory, which drivers of desktop cards do not tell."""
    return re.sub(r" \d+ gb$", "", " ".join(words)).split()


def _holds(words: list[str], wanted: list[str]) -> bool:
    rest = iter(words)
    return all(word in rest for word in wanted)


def fastest_rates() -> list[TrainingRate]:
    """Of each network, precision and card the rate with the most samples per second, of whole steps
    of a network that is ours: the fastest framework, and the batch that suits it."""
    found: dict[tuple[str, str, str], TrainingRate] = {}
    for rate in load_training_rates():
        key = (rate.network, rate.precision, rate.card)
        slower = key in found and rate.samples_per_second <= found[key].samples_per_second
        if rate.what == "step" and not rate.differs and not slower:
            found[key] = rate
    return list(found.values())


def _times() -> Iterator[tuple[Key, float, str, str]]:
    """Published times of steps of networks: of what, in seconds, the framework, and who says so."""
    for figure in load_shi():
        card = SHI_CARDS.get(figure.device)
        if figure.seconds is not None and card and figure.network.lower() not in _NOT_OURS:
            key = (figure.network.lower(), float(figure.batch), PRECISION, card)
            yield key, figure.seconds, figure.framework, "Shi et al. 2016"
    for rate in fastest_rates():
        key = (rate.network, float(rate.batch), rate.precision, rate.card)
        yield key, rate.seconds_per_batch, rate.framework, f"{rate.year}, {rate.source_url}"


def _single(cards: dict[str, Card]) -> Iterator[Observation]:
    """Those of single products and kernels."""

    def observation(
        network: str, batch: float, one: ProductTime | KernelShare, seconds: float, label: str
    ) -> Observation:
        cost = Cost(network, one.precision, 1, 0.0, batch, {}, (one.operation,))
        asked = demand(cost, cards[one.card])
        assert isinstance(asked, Demand), asked
        key = (network, batch, one.precision, one.card)
        return Observation(*key, seconds, asked, "published", f"{label}{one.source_url}")

    for time in load_products():
        label = f"{time.m} × {time.n} × {time.k}: {time.year}, "
        yield observation(PRODUCTS, float(time.m), time, time.seconds, label)
    for one in load_kernels():
        is_product = one.kernel == "product"
        figure = CEILINGS[one.precision] if is_product else "memory_bytes_per_second"
        rate = cards[one.card].figures[figure].value
        network = PRODUCTS if is_product else KERNELS
        yield observation(network, 1.0, one, one.work / rate / one.share, f"{one.kernel}: ")


def _published(cards: dict[str, Card]) -> list[Observation]:
    """Of each network and card the fastest framework's time: ours calls the same libraries, with
    less around them.

    A framework that was faster than a card's ceiling allows computed a network otherwise (by FFT or
    Winograd's products in large tiles, which ours does not use), so its times of that network are
    left out.
    """
    counted = []
    for key, seconds, framework, source in _times():
        network, batch, precision, name = key
        cost, card = find_cost(network, batch, precision), cards.get(name)
        if cost and precision != PRECISION and "NCHW" in framework:
            cost = transposed(cost)
        if cost is None or card is None:
            continue
        asked = demand(cost, card)
        if isinstance(asked, Demand):
            label = f"{source}, {framework}"
            one = Observation(*key, seconds, asked, "published", label)
            counted.append((framework, one, _least(cost, card)))
    other = {(one.network, framework) for framework, one, least in counted if one.seconds < least}
    fastest: dict[Key, Observation] = {}
    for framework, one, _ in counted:
        key = (one.network, one.batch, one.precision, one.card)
        is_slower = key in fastest and fastest[key].seconds <= one.seconds
        if (one.network, framework) not in other and not is_slower:
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


def our_demand(
    cost: Cost, card: Card, way: Way, steps: float
) -> tuple[Demand, tuple[Band, ...]] | str:
    """What a step of ours asks, of an iteration of so many, where each launch takes at least what
    starting it takes; and the overhead() of such an iteration."""
    asked, beside = demand(cost, card, launches(cost, way)), overhead(cost, card, way, steps)
    if isinstance(asked, str) or isinstance(beside, str):
        return asked if isinstance(asked, str) else str(beside)
    floor = np.maximum(asked.floor, launch(way).middle) if launch(way).high else asked.floor
    return replace(asked, floor=floor, host=sum(one.middle for one in beside) / steps), beside


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
