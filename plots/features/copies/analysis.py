# SPDX-License-Identifier: Apache-2.0
"""From how many copies of one network on, trained at once, the GPU wins, and what a copy takes.

docs/method/many_networks.md defines each figure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from plots import units
from plots.core.crossover import Comparison, comparisons
from plots.core.crossover_words import claim
from plots.core.headline import of_each_network
from plots.core.tables.cells import count_cell, network_cells, number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.file.families import EPOCH, Scale
from plots.file.quantities import TIME
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
    has = [any(one.cpu for one in found), any(one.gpu for one in found)]
    columns = [
        Column("network", "network"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("copies", "copies", numeric=True),
    ]
    for device, is_there in zip(("CPU", "GPU"), has, strict=True):
        if is_there:
            key = device.lower()
            columns += [
                Column(f"{key}_{quantity.unit}", "all", numeric=True, group=device),
                Column(f"{key}_{quantity.unit}_a_copy", "a copy", numeric=True, group=device),
                Column(f"{key}_how", "how", group=device),
            ]
    if all(has):
        title = "speedup" if quantity is TIME else quantity.quotient()
        columns.append(Column("speedup", title, numeric=True))
    lines = []
    for one in found:
        line = [*network_cells(one.row), count_cell(one.copies)]
        for row, is_there in zip((one.cpu, one.gpu), has, strict=True):
            line += _cells(row, one.copies) if is_there else ()
        lines.append((*line, number_cell(one.ratio)) if all(has) else tuple(line))
    return Table(
        f"Copies of a network trained at once: {quantity.noun} of one epoch, on {file.machine.id}",
        tuple(columns),
        tuple(lines),
    )


def _cells(row: Row | None, copies: int) -> tuple[Cell, ...]:
    if row is None:
        return NOTHING, NOTHING, NOTHING
    return (
        *(Cell(row.quantity.show(value), value) for value in (row.median, row.median / copies)),
        text_cell(row.axes.label(dict(row.axes.how(row.configuration))).there),
    )
