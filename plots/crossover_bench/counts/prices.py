# SPDX-License-Identifier: Apache-2.0
"""What an hour of each side costs, as the user says: nothing is shipped, because prices go stale.

docs/howto/money.md says what a price should hold.
"""

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from crossover_bench.files.families import FAMILIES
from crossover_bench.files.rows import File, Row
from crossover_bench.files.sides import SIDES, FigureError, number, side_of, with_counters
from crossover_bench.words import units
from crossover_bench.words.text import printable

COST = "cost"  # the counter that rows get: of one iteration
COST_OF_A_MILLION = "cost_per_million_samples"
_PRICE = re.compile(r"(cpu|gpu)=([0-9.eE+-]+)/(?:(h)|([0-9.eE+-]+)y)")
_TEXTS = ("provider", "instance", "date", "source")
_NUMBERS = ("per_hour", "purchase", "years", "hours_per_year")
_HOURS_PER_YEAR = 8766.0
_SECONDS_PER_HOUR = 3600
_HOW = (
    'say cpu=0.10/h, gpu=1.20/h, gpu=2000/3y (bought, for three years), or name a file: [{"for": '
)
_HOW += '"gpu", "per_hour": 1.2, "provider": "...", "date": "...", "source": "..."}]'


@dataclass(frozen=True, slots=True)
class Price:
    """The price of the machine that trains on `side`: `per_hour`, and in all where it is bought
    (`purchase`, 0 where it is rented). `source`: who asks it, and when."""

    side: str
    per_hour: float
    purchase: float = 0.0
    source: str = ""


def read_prices(text: str) -> list[Price]:
    """The prices in a text of --price, or in the file that it names; raises FigureError."""
    if match := _PRICE.fullmatch(text):
        side, amount, hourly, years = match.groups()
        price = {"per_hour": amount} if hourly else {"purchase": amount, "years": years}
        entries: object = [{"for": side, **price}]
    elif "=" in text:
        raise FigureError(f"{text} is no price; {_HOW}")
    else:
        entries = _read(Path(text))
    if not isinstance(entries, list) or not entries:
        raise FigureError(f"{text} holds no list of prices; {_HOW}")
    return [
        _price(entry, f"{text}, entry {place}" if len(entries) > 1 else text)
        for place, entry in enumerate(entries, start=1)
    ]


def _read(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FigureError(f"{path}: {error.strerror or error}; {_HOW}") from error
    except (ValueError, RecursionError) as error:
        raise FigureError(f"{path} is not JSON: {error}; {_HOW}") from error


def _price(entry: object, place: str) -> Price:
    if not isinstance(entry, dict) or entry.get("for") not in SIDES:
        raise FigureError(f'{place} has no "for": "cpu" or "gpu"; {_HOW}')
    if unknown := entry.keys() - {"for", *_TEXTS, *_NUMBERS}:
        raise FigureError(
            f"{place} has a key that is not known, {min(map(str, unknown))}; the keys are for, "
            f"{', '.join((*_NUMBERS, *_TEXTS))}"
        )
    numbers = {
        key: number(entry[key], f"{place}: {key}", "1e12") for key in _NUMBERS if key in entry
    }
    source = ", ".join(str(entry[key]) for key in _TEXTS if key in entry)
    if "per_hour" in numbers and not numbers.keys() - {"per_hour"}:
        return Price(entry["for"], numbers["per_hour"], source=source)
    if numbers.keys() - {"hours_per_year"} != {"purchase", "years"}:
        raise FigureError(
            f"{place} needs per_hour alone, or purchase with years (and hours_per_year, of use); "
            f"{_HOW}"
        )
    hours = numbers["years"] * numbers.get("hours_per_year", _HOURS_PER_YEAR)
    bought = numbers["purchase"]
    return Price(entry["for"], bought / hours, purchase=bought, source=source)


def rates(prices: Sequence[Price]) -> dict[str, Price]:
    """Side → the price that counts: the rent, where it is both rented and bought."""
    return {price.side: price for price in sorted(prices, key=lambda each: each.purchase == 0)}


def per_second(prices: Sequence[Price]) -> dict[str, float]:
    """What a second of each side costs."""
    return {side: price.per_hour / _SECONDS_PER_HOUR for side, price in rates(prices).items()}


def with_costs(file: File, prices: Sequence[Price]) -> File:
    """`file` with what an iteration costs in each row whose side has a price."""
    known = per_second(prices)

    def costs(row: Row) -> dict[str, np.ndarray]:
        price = known.get(side_of(row))
        if price is None:
            return {}
        cost = row.samples / row.count * price  # of one operation of many
        words = FAMILIES.get(row.family)
        if not (words and words.samples in row.counters):
            return {COST: cost}
        return {COST: cost, COST_OF_A_MILLION: cost / row.counters[words.samples] * 1e6}

    return with_counters(file, costs)


def sentences(prices: Sequence[Price]) -> Iterator[str]:
    """Which prices count, and when a purchase pays, a sentence each."""
    known = rates(prices)
    for side, price in sorted(known.items()):
        bought = f", bought for {units.money(price.purchase)}" if price.purchase else ""
        source = f" ({printable(price.source, 200)})" if price.source else ""
        yield f"{side.upper()}: {units.money(price.per_hour)} an hour{bought}{source}."
    for price in prices:
        rent = known[price.side]
        if price.purchase and not rent.purchase:
            hours = units.count(math.ceil(price.purchase / rent.per_hour))
            yield (
                f"{price.side.upper()}: bought for {units.money(price.purchase)}, it costs less "
                f"than rented after {hours} hours of use."
            )


def lacking(needed: Iterable[str], prices: Sequence[Price]) -> str:
    """What is wrong where a side that needs a price has none, in a sentence; else empty."""
    sides = sorted({*needed} - rates(prices).keys())
    return f"--of=cost needs --price, of the {' and of the '.join(sides)}: {_HOW}" if sides else ""
