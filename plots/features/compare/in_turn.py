# SPDX-License-Identifier: Apache-2.0
"""What pairs say of two builds that one file measured in turn: bench --refine=program.

A pair decides by which of its two times is shorter (docs/method/refinement.md), so that what
differs from row to row or from run to run need not be known, and small differences are found.
"""

from dataclasses import dataclass
from typing import Literal

from plots.features.compare.analysis import Comparison, Pair
from plots.file.builds import path_of_build
from plots.file.rows import File, PairedSize

Said = Literal["slower", "faster", "open"]


@dataclass(frozen=True, slots=True)
class InTurn:
    """A network that both builds trained in turn, each pair with instances of its own. `pair` has
    its times, and `said` is what the file's own build surely is, in comparison with the other."""

    size: PairedSize
    pair: Pair
    said: Said

    @property
    def pairs(self) -> int:
        return self.size.pairs + self.size.ties

    @property
    def won(self) -> int:
        """Pairs in which the file's own build was faster."""
        return self.size.won_by_first


def in_turn(file: File, comparison: Comparison) -> list[InTurn]:
    """The networks of `file` that were measured in pairs of its own build and the other one, the
    baseline of `comparison`; the largest first. None where the baseline is another file."""
    found: list[InTurn] = []
    for one in file.refinements:
        if comparison.baseline.path == path_of_build(file, one.second.get("program", "")):
            way = {**one.common, **one.first}
            rows = {
                pair.baseline.model: pair
                for pair in comparison.pairs
                if way.items() <= pair.baseline.configuration.items()
            }
            said: dict[str | None, Said] = {"first": "faster", "second": "slower", None: "open"}
            found += [
                InTurn(size, rows[size.model], said[size.winner])
                for size in one.sizes
                if size.model in rows
            ]
    return sorted(found, key=lambda one: -one.size.parameters)
