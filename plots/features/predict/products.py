# SPDX-License-Identifier: Apache-2.0
"""How long single products and kernels take on cards, from plots/reference."""

import csv
from dataclasses import dataclass
from pathlib import Path

from plots.core.cost import Cost, Operation, Product
from plots.core.reference import REFERENCE

PRODUCTS_PATH = REFERENCE / "products.csv"
KERNELS_PATH = REFERENCE / "kernels.csv"
# What they are called beside networks: one, as they are all alike.
NETWORK, KERNELS = "products", "kernels"
_ENTRY_BYTES = 4
_LARGE, _LARGE_BYTES = 8192, float(2**30)


@dataclass(frozen=True, slots=True)
class ProductTime:
    """`seconds` of an f32 product m × k by k × n on one `card`, as published;
    plots/reference/README.md has the columns."""

    card: str
    m: int
    n: int
    k: int
    seconds: float
    timed: str
    year: int
    source_url: str

    @property
    def cost(self) -> Cost:
        """Of a step that is this product alone, started by nothing that takes time."""
        entries = self.m * self.k + self.k * self.n + self.m * self.n
        product = Product(self.m, self.n, self.k)
        flops = 2.0 * self.m * self.n * self.k
        operation = Operation("product", flops, float(_ENTRY_BYTES * entries), 0.0, (product,))
        return Cost(NETWORK, "f32", 1, 0.0, float(self.m), {}, (operation,))


@dataclass(frozen=True, slots=True)
class KernelShare:
    """The `share` of a data sheet's rate that large kernels of one kind reach on one `card`, as
    published: products of its arithmetic, all others of its memory bandwidth;
    plots/reference/README.md has the columns."""

    card: str
    kernel: str
    precision: str
    share: float
    timed: str
    source_url: str

    @property
    def network(self) -> str:
        """What it is called beside networks."""
        return NETWORK if self.kernel == "product" else KERNELS

    @property
    def work(self) -> float:
        """Operations or bytes of `cost`."""
        return 2.0 * _LARGE**3 if self.kernel == "product" else _LARGE_BYTES

    @property
    def cost(self) -> Cost:
        """Of a step that is one such kernel, so large that its launch is nothing."""
        is_product = self.kernel == "product"
        products = (Product(_LARGE, _LARGE, _LARGE),) if is_product else ()
        flops, moved = (self.work, 0.0) if is_product else (0.0, self.work)
        operation = Operation(self.kernel, flops, moved, 0.0, products)
        return Cost(self.network, self.precision, 1, 0.0, 1.0, {}, (operation,))


def load_kernels(path: Path = KERNELS_PATH) -> list[KernelShare]:
    """Every kernel in `path`; raises OSError where the file cannot be read."""
    names = ("card", "kernel", "precision", "timed", "source_url")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            KernelShare(**{name: line[name] for name in names}, share=float(line["share"]))
            for line in csv.DictReader(file)
        ]


def load_products(path: Path = PRODUCTS_PATH) -> list[ProductTime]:
    """Every product in `path`; raises OSError where the file cannot be read."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            ProductTime(
                card=line["card"],
                m=int(line["m"]),
                n=int(line["n"]),
                k=int(line["k"]),
                seconds=float(line["seconds"]),
                timed=line["timed"],
                year=int(line["year"]),
                source_url=line["source_url"],
            )
            for line in csv.DictReader(file)
        ]
