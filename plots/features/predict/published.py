# SPDX-License-Identifier: Apache-2.0
"""How fast others train networks on one GPU, and how long their single products and kernels take,
from plots/reference, whose README.md has the columns."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_type_hints

from plots.core.cost import Operation, Product
from plots.core.reference import REFERENCE

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
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        return [kind(**{name: of(line[name]) for name, of in types.items()}) for line in lines]


def load_training_rates() -> list[TrainingRate]:
    """Every rate; raises as _read()."""
    return _read(RATES_PATH, TrainingRate)


def load_products() -> list[ProductTime]:
    """Every product; raises as _read()."""
    return _read(REFERENCE / "products.csv", ProductTime)


def load_kernels() -> list[KernelShare]:
    """Every kind of kernel on every card; raises as _read()."""
    return _read(REFERENCE / "kernels.csv", KernelShare)
