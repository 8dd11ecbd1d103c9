# SPDX-License-Identifier: Apache-2.0
"""What can be compared of two rows, and the words for it.

A new quantity is a counter in the files (bench/rows/counters.cpp) and one entry here: the flag
--of, crossovers, tables, charts and sentences follow from it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from crossover_bench.words import units


@dataclass(frozen=True, slots=True)
class Quantity:
    """`name` is what --of takes, `noun` what sentences say, `unit` how keys of columns end, and
    `show` makes text of a value, in so many digits where they are given. `counter` has the values;
    without one they are the clock's.

    `is_fact`: it is counted once for the row; else each repetition has a value of its own.
    `is_amount`: a value is of one epoch, step or operation. `is_priced`: it follows from times and
    the user's prices. `rate`: what it is in a second, which `show_rate` makes text of; empty where
    it does not grow with time. The other words follow from `noun`
    where they are not given: that a side `wins`, that several `win`, `how` they train then, by
    what `ratio`, and what the `better` and the `worse` row is called. What is below `least` is no
    difference.
    """

    name: str
    noun: str
    unit: str
    show: Callable[..., str]
    counter: str = ""
    is_fact: bool = False
    is_amount: bool = True
    is_more_better: bool = False
    is_priced: bool = False
    rate: str = ""
    show_rate: Callable[[float], str] = str
    wins: str = ""
    win: str = ""
    how: str = ""
    ratio: str = ""
    better: str = ""
    worse: str = ""
    least: float = 0.0

    def __post_init__(self) -> None:
        more = self.is_more_better
        verb, much = ("get", "more") if more else ("need", "less")
        subject = "the {winner} gets" if more else "the {loser} needs"
        words = {
            "wins": f"{verb}s {much} {self.noun}",
            "win": f"{verb} {much} {self.noun}",
            "how": f"with {much} {self.noun}",
            "ratio": f"{subject} {{ratio}} times the {self.noun}",
            "better": "higher" if more else "lower",
            "worse": "lower" if more else "higher",
        }
        for field, text in words.items():
            object.__setattr__(self, field, getattr(self, field) or text)

    def __reduce__(self) -> tuple[Callable[[str], "Quantity"], tuple[str]]:
        """Another process gets its own entry, so that `is TIME` holds there, too."""
        return _named, (self.name,)

    def cost(self, value: float) -> float:
        """A number that is smaller for the better of two values."""
        return -value if self.is_more_better else value

    def of(self, what: str) -> str:
        """`what` where it is of time, which goes without saying; else "Cost of" it."""
        return f"{self.noun.capitalize()} of {what}" if self.counter else what

    def ends(self, low: float, high: float) -> tuple[str, str]:
        """Both ends of a band, the first without its unit where the second shares it."""
        return units.sharing_unit(self.show(low, 2), self.show(high, 2))

    def quotient(self) -> str:
        """By how many times the GPU is better: "CPU time / GPU time"."""
        first, second = ("GPU", "CPU") if self.is_more_better else ("CPU", "GPU")
        return f"{first} {self.noun} / {second} {self.noun}"


PRODUCTS = "seconds_product"  # of rows whose kernels compute products alone


def _named(name: str) -> Quantity:
    return ESTIMATED_ENERGY if name == ESTIMATED_ENERGY.name else QUANTITIES[name]


TIME = Quantity(
    *("time", "time", "seconds", units.seconds),
    wins="wins",
    win="win",
    how="faster",
    ratio="the {winner} is {ratio} times as fast",
    better="faster",
    worse="slower",
    least=1e-6,
)
_ALL = (
    TIME,
    Quantity(
        *("memory", "memory", "bytes", units.binary_bytes, "peak_bytes"),
        is_fact=True,
        is_amount=False,
    ),
    Quantity(
        *("energy", "energy", "joules", units.joules, "joules"),
        rate="power",
        show_rate=partial(units.rate, unit="W"),
    ),
    *(
        Quantity(
            *(name, f"cost{of}", "money", units.money, counter),
            wins="costs less",
            win="cost less",
            how="more cheaply",
            ratio="the {loser} costs {ratio} times as much",
            better="cheaper",
            worse="dearer",
            is_amount=not of,
            is_priced=True,
            rate="" if of else "price",
            show_rate=lambda money: f"{units.money(3600 * money)} an hour",
        )
        for name, of, counter in (
            ("cost", "", "cost"),
            ("cost-per-million-samples", " of a million samples", "cost_per_million_samples"),
        )
    ),
    *(
        Quantity(
            *(f"latency-{of}", f"{of} latency", "seconds", units.seconds, f"latency_{of}_seconds"),
            wins=f"has lower {of} latency",
            win=f"have lower {of} latency",
            how=f"with lower {of} latency",
            ratio=f"the {{loser}}'s {of} latency is {{ratio}} times as long",
        )
        for of in ("p50", "p99")
    ),
    Quantity(*("products", "time in products", "seconds", units.seconds, PRODUCTS)),
)
QUANTITIES = {quantity.name: quantity for quantity in _ALL}
# In place of energy where --tdp stands in for meters, so that all that is said of it says so.
ESTIMATED_ENERGY = Quantity(
    *("estimated-energy", "estimated energy", "estimated_joules", units.joules, "joules"),
    rate="data-sheet power",
    show_rate=partial(units.rate, unit="W"),
)
