# SPDX-License-Identifier: Apache-2.0
"""How long single products take on cards, from plots/reference."""

import csv
from dataclasses import dataclass
from pathlib import Path

from plots.core.cost import Cost, Operation, Product
from plots.core.published import PUBLISHED_PATH

PRODUCTS_PATH = PUBLISHED_PATH.with_name("products.csv")
NETWORK = "products"  # what they are called beside networks: one, as they are all alike
_ENTRY_BYTES = 4


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
