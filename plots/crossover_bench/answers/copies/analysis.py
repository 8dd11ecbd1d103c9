# SPDX-License-Identifier: Apache-2.0
"""From how many copies of one network on, trained at once, the GPU wins, and what a copy takes.

docs/method/several.md defines each figure.
"""

from dataclasses import dataclass, replace

from crossover_bench.curves.crossover import Comparison, comparisons
from crossover_bench.curves.crossover_words import claim
from crossover_bench.curves.headline import of_each_network
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.families import EPOCH, Scale
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import File, Row
from crossover_bench.study.study import Study, once
from crossover_bench.words import units
from crossover_bench.words.text import printable

_NAME = 60
COPIES = {EPOCH: Scale("copies", lambda row: float(row.copies), ("copies",))}


@dataclass(frozen=True, slots=True)
class Copies:
    """So many `copies` of a network at once: the fastest row of each device; and that of one copy
    there, where there is one."""

    copies: int
    rows: dict[str, Row]
    alone: dict[str, Row]

    @property
    def row(self) -> Row:
        """That of either device."""
        return next(iter(self.rows.values()))

    @property
    def ratio(self) -> float | None:
        """By how many times the GPU is better: CPU time / GPU time."""
        if len(self.rows) < len(DEVICES):
            return None
        ratio = self.rows["cpu"].median / self.rows["cuda"].median
        return 1 / ratio if self.row.quantity.is_more_better else ratio


def copies_of(file: File) -> list[Copies]:
    """Each network that was trained in copies, in each batch size and precision, by the number of
    copies, the fewest first."""
    groups: dict[tuple[tuple[str, str], ...], dict[int, dict[str, Row]]] = {}
    for row in _rows(file):
        alike = ((axis.key, value) for axis, value in row.axes.of(row.configuration, "alike"))
        work = (*_without_copies(row), *alike)
        fastest = groups.setdefault(work, {}).setdefault(row.copies, {})
        cost, other = row.quantity.cost, fastest.get(row.device, row)
        fastest[row.device] = min(other, row, key=lambda row: cost(row.median))
    return [
        Copies(copies, rows, by_copies.get(1, {}))
        for by_copies in groups.values()
        for copies, rows in sorted(by_copies.items())
    ]


@once
def over_copies(study: Study) -> list[Comparison]:
    """Each network's best of the CPU against the GPU, over the number of copies."""
    compared = comparisons(replace(study.file, rows=tuple(_rows(study.file))), COPIES)
    return of_each_network(compared, EPOCH)


def _rows(file: File) -> list[Row]:
    """Those of networks that were trained in copies, and of each alone."""
    if not file.copies:
        return []
    every = [row for row in file.own_rows if row.family == EPOCH and not row.failure]
    work = {_without_copies(row) for row in every if row.copies > 1}
    return [row for row in every if row.ranks == 1 and _without_copies(row) in work]


def _without_copies(row: Row) -> tuple[tuple[str, str], ...]:
    return row.axes.what(row.configuration, ("copies",))


def copies_sentences(study: Study) -> list[str]:
    """The answer for each network in a sentence: who wins from how many copies on, or without two
    devices, what the most copies take of one's time."""
    if curves := over_copies(study):
        return [
            f"{_called(curve.model, curve.batch)}: with copies of it trained at once, "
            f"{claim(curve.crossover)}."
            for curve in curves
        ]
    most = {_without_copies(group.row): group for group in copies_of(study.file)}
    return [
        _beside_one(group.rows[device], group.alone[device], name)
        for group in most.values()
        for device, name in DEVICES.items()
        if group.copies > 1 and device in group.rows and device in group.alone
    ]


def _beside_one(row: Row, alone: Row, device: str) -> str:
    """What the copies of `row` take of the time of one network `alone`, in a sentence."""
    show, noun = row.quantity.show, row.quantity.noun
    times = f"{units.significant(row.median / alone.median)} times"
    take = f"take {times} as long as" if row.quantity is TIME else f"have {times} the {noun} of"
    return (
        f"{_called(row.model, row.batch)}: {row.copies:,} copies at once {take} one, "
        f"{show(row.median / row.copies)} a copy instead of {show(alone.median)}, on the {device}."
    )


def _called(model: str, batch: str) -> str:
    return f"{printable(model, _NAME)}, batch {printable(batch, _NAME)}"
