# SPDX-License-Identifier: Apache-2.0
"""From how many copies of one network on, trained at once, the GPU wins, and what a copy takes.

docs/method/many_networks.md defines each figure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from plots import units
from plots.core.crossover import Comparison, comparisons
from plots.core.crossover_words import claim
from plots.core.headline import of_each_network
from plots.core.tables.cells import (
    Field,
    count_field,
    network_fields,
    number_field,
    shown_field,
    table_of,
    text_field,
)
from plots.core.tables.table import Table
from plots.file.families import EPOCH, Scale
from plots.file.quantities import TIME, Quantity
from plots.file.rows import File, Row
from plots.text import printable

_NAME = 60
_DEVICES = ("cpu", "cuda")
COPIES = {EPOCH: Scale("copies", lambda row: float(row.copies), ("copies",))}


@dataclass(frozen=True, slots=True)
class Copies:
    """So many `copies` of a network at once, on each device in its fastest way; `one` is the row of
    one copy there, None where there is none."""

    copies: int
    cpu: Row | None
    gpu: Row | None
    one_cpu: Row | None
    one_gpu: Row | None

    @property
    def row(self) -> Row:
        """That of either device."""
        row = self.cpu or self.gpu
        assert row is not None
        return row

    @property
    def ratio(self) -> float | None:
        """By how many times the GPU is better: CPU time / GPU time."""
        if not (self.cpu and self.gpu):
            return None
        ratio = self.cpu.median / self.gpu.median
        return 1 / ratio if self.row.quantity.is_more_better else ratio


def copies_of(file: File) -> list[Copies]:
    """Each network that was trained in copies, in each batch size and precision, by their number:
    the one of one network first."""
    groups: dict[tuple[tuple[str, str], ...], dict[tuple[int, str], Row]] = {}
    for row in _rows(file):
        alike = row.axes.of(row.configuration, "alike")
        work = (
            *row.axes.what(row.configuration, ("copies",)),
            *((axis.key, value) for axis, value in alike),
        )
        fastest = groups.setdefault(work, {})
        key = row.copies, row.device
        cost = row.quantity.cost
        if key not in fastest or cost(row.median) < cost(fastest[key].median):
            fastest[key] = row
    found = []
    for fastest in groups.values():
        for copies in sorted({copies for copies, _ in fastest}):
            rows = [fastest.get((count, device)) for count in (copies, 1) for device in _DEVICES]
            found.append(Copies(copies, *rows))
    return found


def over_copies(file: File) -> list[Comparison]:
    """Each network's best of the CPU against the GPU, over the number of copies."""
    compared = comparisons(replace(file, rows=tuple(_rows(file))), COPIES)
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


def copies_sentences(file: File, compared: Sequence[Comparison]) -> list[str]:
    """The answer for each network in a sentence, of `compared`, which are over_copies(): who wins
    from how many copies on, or without two devices, what the most copies take of one's time."""
    if compared:
        return [
            f"{_called(one.model, one.batch)}: with copies of it trained at once, "
            f"{claim(one.crossover)}."
            for one in compared
        ]
    return [
        f"{_called(most.row.model, most.row.configuration['batch'])}: {most.copies:,} copies at "
        f"once {_how_many_times(row, one)}, {row.quantity.show(row.median / most.copies)} a copy "
        f"instead of {row.quantity.show(one.median)}, on the "
        f"{'CPU' if row is most.cpu else 'GPU'}."
        for most in _most(copies_of(file))
        for row, one in ((most.cpu, most.one_cpu), (most.gpu, most.one_gpu))
        if row and one
    ]


def _how_many_times(row: Row, one: Row) -> str:
    """What `row` takes of what `one` does: "take 12 times as long as one"."""
    times = units.significant(row.median / one.median)
    if row.quantity is TIME:
        return f"take {times} times as long as one"
    return f"have {times} times the {row.quantity.noun} of one"


def _called(model: str, batch: str) -> str:
    return f"{printable(model, _NAME)}, batch {printable(batch, _NAME)}"


def _most(found: Sequence[Copies]) -> list[Copies]:
    """Of each network the one with the most copies."""
    most: dict[tuple[tuple[str, str], ...], Copies] = {}
    for one in found:
        most[_without_copies(one.row)] = one
    return [one for one in most.values() if one.copies > 1]


# ---- as a table


def copies_table(file: File, found: Sequence[Copies]) -> Table:
    """One line for each network and number of copies; of devices that trained any. All rows are in
    one quantity."""
    quantity = found[0].row.quantity
    fields = [*network_fields(of=lambda one: one.row)]
    fields.append(count_field("copies", "copies", lambda one: one.copies))
    for device in ("cpu", "gpu"):
        if any(getattr(one, device) for one in found):
            fields += _device_fields(device, quantity)
    if any(one.cpu for one in found) and any(one.gpu for one in found):
        title = "speedup" if quantity is TIME else quantity.quotient()
        fields.append(number_field("speedup", title, lambda one: one.ratio))
    title = f"Copies of a network trained at once: {quantity.noun} of one epoch"
    return table_of(f"{title}, on {file.machine.id}", found, fields)


def _device_fields(device: str, quantity: Quantity) -> Iterator[Field]:
    """The columns of all copies on a device, of one of them, and of how it computes."""

    def median(one: Copies) -> float | None:
        row = getattr(one, device)
        return row and row.median

    def a_copy(one: Copies) -> float | None:
        row = getattr(one, device)
        return row and row.median / one.copies

    def how(one: Copies) -> str | None:
        row = getattr(one, device)
        return row and row.axes.label(dict(row.axes.how(row.configuration))).there

    key, group = f"{device}_{quantity.unit}", device.upper()
    yield shown_field(key, "all", median, quantity.show, group)
    yield shown_field(f"{key}_a_copy", "a copy", a_copy, quantity.show, group)
    yield text_field(f"{device}_how", "how", how, group)
