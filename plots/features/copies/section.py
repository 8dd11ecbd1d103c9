# SPDX-License-Identifier: Apache-2.0
"""Many networks at once: from how many copies of one on the GPU wins, and what a copy takes.

docs/method/many_networks.md defines each figure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plots import units
from plots.core.crossover import Comparison, comparisons
from plots.core.crossover_words import claim
from plots.core.headline import of_each_network
from plots.core.page.section import Block, Context, Section
from plots.core.tables.cells import (
    Field,
    Of,
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

if TYPE_CHECKING:
    from plots.core.charts.style import Chart

_MOST_CHARTS = 2
_NOTES = (
    "Copies are networks of one kind that train at once on the same rows, each from other "
    "parameters; each is verified. On the CPU each thread trains some of them, one after the "
    "other; on a GPU one kernel trains all, or each has a stream of its own. "
    "docs/method/many_networks.md says more.",
)
_NAME = 60
_DEVICES = {"cpu": "CPU", "cuda": "GPU"}
COPIES = {EPOCH: Scale("copies", lambda row: float(row.copies), ("copies",))}


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has rows of copies."""
    shown = [(file, copies_of(file)) for file in files[: context.detailed]]
    found = [(file, own, over_copies(file)) for file, own in shown if own]
    if not found:
        return None
    drawn = context.draw(_draw, [(file, own[:_MOST_CHARTS]) for file, _, own in found])
    unit = context.quantity.unit
    first = ("network", "copies", f"cpu_{unit}_a_copy", f"gpu_{unit}_a_copy", "speedup")
    return Section(
        title="Many networks at once",
        anchor="copies",
        lead="From how many copies of a network on, trained at once, the GPU "
        f"{context.quantity.wins}.",
        blocks=tuple(
            Block(
                machine=file.machine.id,
                points=tuple(copies_sentences(file, compared)),
                pictures=context.pictures(file, charts),
                tables=(copies_table(file, own).led_by(*first),),
            )
            for (file, own, compared), charts in zip(found, drawn, strict=True)
        ),
        notes=_NOTES,
    )


def draw_all(file: File) -> list[Chart]:
    """A chart of each network that was trained in copies on both devices."""
    return _draw((file, over_copies(file)))


def _draw(pair: tuple[File, Sequence[Comparison]]) -> list[Chart]:
    # Imported here because matplotlib takes long to load.
    from plots.core.charts.crossover import draw_crossovers  # noqa: PLC0415

    file, compared = pair
    return [draw_crossovers(file, [one]) for one in compared]


def lacking(_: File) -> str:
    """Why there is no section on a file, and what gives one."""
    return (
        "no network was trained in copies; ./run --family=Epoch --model=disc-5,policy "
        "--copies=1,4,16,64 does it"
    )


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
        if len(self.rows) < len(_DEVICES):
            return None
        ratio = self.rows["cpu"].median / self.rows["cuda"].median
        return 1 / ratio if self.row.quantity.is_more_better else ratio


def copies_of(file: File) -> list[Copies]:
    """Each network that was trained in copies, in each batch size and precision, by their number:
    the one of one network first."""
    groups: dict[tuple[tuple[str, str], ...], dict[int, dict[str, Row]]] = {}
    for row in _rows(file):
        alike = ((axis.key, value) for axis, value in row.axes.of(row.configuration, "alike"))
        work = (*_without_copies(row), *alike)
        fastest = groups.setdefault(work, {}).setdefault(row.copies, {})
        cost, other = row.quantity.cost, fastest.get(row.device, row)
        fastest[row.device] = min(other, row, key=lambda one: cost(one.median))
    return [
        Copies(copies, rows, by_copies.get(1, {}))
        for by_copies in groups.values()
        for copies, rows in sorted(by_copies.items())
    ]


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
    most = {_without_copies(one.row): one for one in copies_of(file)}
    return [
        _of_one(own.rows[device], own.alone[device], name)
        for own in most.values()
        for device, name in _DEVICES.items()
        if own.copies > 1 and device in own.rows and device in own.alone
    ]


def _of_one(row: Row, one: Row, device: str) -> str:
    """What the copies of `row` take of what `one` network does, in a sentence."""
    show = row.quantity.show
    times = f"{units.significant(row.median / one.median)} times"
    is_time = row.quantity is TIME
    said = (
        f"take {times} as long as one"
        if is_time
        else f"have {times} the {row.quantity.noun} of one"
    )
    return (
        f"{_called(row.model, row.batch)}: {row.copies:,} copies at once {said}, "
        f"{show(row.median / row.copies)} a copy instead of {show(one.median)}, on the {device}."
    )


def _called(model: str, batch: str) -> str:
    return f"{printable(model, _NAME)}, batch {printable(batch, _NAME)}"


def copies_table(file: File, found: Sequence[Copies]) -> Table:
    """One line for each network and number of copies; of devices that trained any. All rows are in
    one quantity."""
    quantity = found[0].row.quantity
    fields = [*network_fields(of=lambda one: one.row)]
    fields.append(count_field("copies", "copies", lambda one: one.copies))
    there = [device for device in _DEVICES if any(device in one.rows for one in found)]
    for device in there:
        fields += _device_fields(device, quantity)
    if len(there) == len(_DEVICES):
        title = "speedup" if quantity is TIME else quantity.quotient()
        fields.append(number_field("speedup", title, lambda one: one.ratio))
    title = f"Copies of a network trained at once: {quantity.noun} of one epoch"
    return table_of(f"{title}, on {file.machine.id}", found, fields)


def _device_fields(device: str, quantity: Quantity) -> Iterator[Field]:
    """The columns of all copies on a device, of one of them, and of how it computes."""

    def of(value: Callable[[Row], object]) -> Of:
        return lambda one: value(one.rows[device]) if device in one.rows else None

    group = _DEVICES[device]
    key = f"{group.lower()}_{quantity.unit}"
    all_of, a_copy = of(lambda row: row.median), of(lambda row: row.median / row.copies)
    yield shown_field(key, "all", all_of, quantity.show, group)
    yield shown_field(f"{key}_a_copy", "a copy", a_copy, quantity.show, group)
    how = of(lambda row: row.axes.label(dict(row.axes.how(row.configuration))).there)
    yield text_field(f"{group.lower()}_how", "how", how, group)
