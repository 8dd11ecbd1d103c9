# SPDX-License-Identifier: Apache-2.0
"""Several ranks beside one process, as tables: from which size they pay, and what they cost. Those
on GPUs have tables of their own."""

from collections.abc import Sequence

from plots.core.crossover import Comparison
from plots.core.crossover_words import instances_words
from plots.core.tables.cells import (
    Field,
    Of,
    crossover_fields,
    network_fields,
    number_field,
    seconds_field,
    table_of,
    text_cell,
    text_field,
)
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.ranks.analysis import CALLED, Called, Shared, by_device, unlike
from plots.file.rows import File, Row


def ranks_tables(file: File, found: Sequence[Comparison]) -> list[Table]:
    """One line for each comparison of `file`: the size from which more ranks win."""
    return [_ranks_table(file, CALLED[device], own) for device, own in by_device(found)]


def shared_tables(found: Sequence[Shared]) -> list[Table]:
    """One line for each network and number of ranks and threads."""
    return [_shared_table(CALLED[device], own) for device, own in by_device(found)]


def _ranks_table(file: File, called: Called, found: Sequence[Comparison]) -> Table:
    fields = (
        text_field("networks", "networks", lambda one: one.networks),
        (Column("batch", "batch", numeric=True), lambda one: text_cell(one.batch or None)),
        text_field("precision", "precision", lambda one: one.precision or None),
        text_field("ranks", called.many, lambda one: one.sides[1]),
        *crossover_fields(f"{called.many} pay from"),
    )
    title = (
        f"From which size several {called.many} train faster than one {called.one}, on "
        f"{file.machine.id}"
    )
    notes = filter(None, [instances_words(file, {one.family for one in found})])
    return table_of(title, found, fields, notes)


def _shared_table(called: Called, found: Sequence[Shared]) -> Table:
    def ranks(row: Row) -> str:
        of_threads = f" of {_threads(row)}" if row.threads else ""
        more = [axis.word(value) for axis, value in unlike(row.axes, row.configuration)]
        return ", ".join([f"{row.ranks} {called.many}{of_threads}", *more])

    def share(key: str, title: str, of: Of, group: str = "") -> Field:
        def cell(one: Shared) -> Cell:
            value = of(one)
            return NOTHING if value is None else Cell(f"{100 * value:.0f} %", value)

        return Column(key, title, True, group), cell

    many, alone = called.many, f"one {called.one}"
    fields = (
        *network_fields(of=lambda one: one.row),
        text_field("ranks", "on", lambda one: ranks(one.row)),
        seconds_field("seconds", "median", lambda one: one.row.median, many),
        text_field("execution", "how", lambda one: _how(one.row), many),
        seconds_field("modelled", "expected", lambda one: one.modelled, many),
        share("communication", "waits for sums", lambda one: one.communication, many),
        seconds_field("alone", "median", lambda one: one.alone and one.alone.median, alone),
        text_field(
            "alone_how",
            "how",
            lambda one: one.alone and _how(one.alone, _threads(one.alone)),
            alone,
        ),
        number_field("speed_up", "speedup", lambda one: one.speed_up),
        share("efficiency", "efficiency", lambda one: one.efficiency),
    )
    return table_of(f"What several {many} bring", found, fields)


def _threads(row: Row) -> str:
    return row.axes["cpu_threads"].word(row.configuration["cpu_threads"]) if row.threads else ""


def _how(row: Row, *more: str) -> str:
    """Its execution, on a GPU where its data lies, and what else is there to say."""
    data = row.configuration.get("data", "")
    return ", ".join(filter(None, (row.execution, data, *more)))
