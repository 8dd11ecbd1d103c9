# SPDX-License-Identifier: Apache-2.0
"""Many networks at once: from how many copies of a network on the GPU wins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from crossover_bench.answers.copies.analysis import Copies, copies_of, copies_sentences, over_copies
from crossover_bench.curves.crossover import Comparison
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File, Row
from crossover_bench.place import RUN
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    Field,
    Of,
    count_field,
    network_fields,
    number_field,
    shown_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import Table
from crossover_bench.study.study import Study

if TYPE_CHECKING:
    from crossover_bench.show.charts.style import Chart

_MOST_CHARTS = 2
_NOTES = (
    "Copies are networks of one kind that train at once on the same rows, each from other "
    "parameters; each is verified. On the CPU each thread trains some of them, one after the "
    "other. On a GPU one kernel trains all of them, or each launch is for all of them, or each "
    "copy has a stream of its own. docs/method/several.md says more.",
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has rows of copies."""
    with_copies = context.showing(files, lambda file: file.copies)
    of_files = ((file, copies_of(file)) for file in with_copies)
    shown = [(context.study(file), copies) for file, copies in of_files if copies]
    if not shown:
        return None
    curves = [(study.file, over_copies(study)[:_MOST_CHARTS]) for study, _ in shown]
    drawn = context.draw(_draw, curves)
    unit = context.quantity.unit
    first = ("network", "copies", f"cpu_{unit}_a_copy", f"gpu_{unit}_a_copy", "speedup")
    return Section(
        title="Many networks at once",
        anchor="copies",
        lead="From how many copies of a network on, trained at once, the GPU "
        f"{context.quantity.wins}.",
        blocks=tuple(
            Block(
                machine=study.file.machine.id,
                points=tuple(copies_sentences(study)),
                pictures=context.pictures(study.file, charts),
                tables=(copies_table(study.file, copies).led_by(*first),),
            )
            for (study, copies), charts in zip(shown, drawn, strict=True)
        ),
        notes=_NOTES,
    )


def draw_all(file: File) -> list[Chart]:
    """A chart of each network that was trained in copies on both devices."""
    return _draw((file, over_copies(Study(file))))


def _draw(pair: tuple[File, Sequence[Comparison]]) -> list[Chart]:
    # Imported here because matplotlib takes long to load.
    from crossover_bench.show.charts.crossover import draw_crossovers  # noqa: PLC0415

    file, curves = pair
    return [draw_crossovers(file, [curve]) for curve in curves]


def lacking(_: File) -> str:
    """Why there is no section on a file, and what gives one."""
    return (
        f"no network was trained in copies; {RUN} --family=Epoch --model=disc-5,policy "
        "--copies=1,4,16,64 does it"
    )


def copies_table(file: File, groups: Sequence[Copies]) -> Table:
    """One line for each network and number of copies; of devices that trained any. All rows are in
    one quantity."""
    quantity = groups[0].row.quantity
    fields = [*network_fields(of=lambda line: line.row)]
    fields.append(count_field("copies", "copies", lambda line: line.copies))
    there = [device for device in DEVICES if any(device in line.rows for line in groups)]
    for device in there:
        fields += _device_fields(device, quantity)
    if len(there) == len(DEVICES):
        title = "speedup" if quantity is TIME else quantity.quotient()
        fields.append(number_field("speedup", title, lambda line: line.ratio))
    title = f"Copies of a network trained at once: {quantity.noun} of one epoch"
    return table_of(f"{title}, on {file.machine.id}", groups, fields)


def _device_fields(device: str, quantity: Quantity) -> Iterator[Field]:
    """The columns of a device: all copies, a copy, and how it computes."""

    def of(value: Callable[[Row], object]) -> Of:
        return lambda line: value(line.rows[device]) if device in line.rows else None

    group = DEVICES[device]
    key = f"{group.lower()}_{quantity.unit}"
    all_of, a_copy = of(lambda row: row.median), of(lambda row: row.median / row.copies)
    yield shown_field(key, "all", all_of, quantity.show, group)
    yield shown_field(f"{key}_a_copy", "a copy", a_copy, quantity.show, group)
    how = of(lambda row: row.axes.label(dict(row.axes.how(row.configuration))).there)
    yield text_field(f"{group.lower()}_how", "how", how, group)
