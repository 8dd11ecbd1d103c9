# SPDX-License-Identifier: Apache-2.0
"""Several ranks beside one process, as tables: from which size they pay, and what they cost. Those
on GPUs have tables of their own."""

from collections.abc import Sequence

from plots.core.crossover import Comparison
from plots.core.crossover_words import instances_words
from plots.core.tables.cells import kind_cell, network_cells, number_cell, seconds_cell, text_cell
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
    lines = [
        (
            text_cell(one.networks),
            text_cell(one.batch or None),
            text_cell(one.precision or None),
            text_cell(one.sides[1]),
            kind_cell(one.crossover.kind),
            number_cell(one.crossover.size),
            number_cell(one.crossover.low),
            number_cell(one.crossover.high),
        )
        for one in found
    ]
    return Table(
        f"From which size several {called.many} train faster than one {called.one}, on "
        f"{file.machine.id}",
        (
            Column("networks", "networks"),
            Column("batch", "batch", numeric=True),
            Column("precision", "precision"),
            Column("ranks", called.many),
            Column("kind", "answer"),
            Column("crossover", f"{called.many} pay from", numeric=True),
            Column("low", "from", numeric=True, group="95 %"),
            Column("high", "to", numeric=True, group="95 %"),
        ),
        tuple(lines),
        tuple(filter(None, [instances_words(file, {one.family for one in found})])),
    )


def _shared_table(called: Called, found: Sequence[Shared]) -> Table:
    lines = []
    for one in found:
        row = one.row
        of_threads = f" of {_threads(row)}" if row.threads else ""
        more = [axis.word(value) for axis, value in unlike(row.axes, row.configuration)]
        lines.append(
            (
                *network_cells(row),
                text_cell(", ".join([f"{row.ranks} {called.many}{of_threads}", *more])),
                seconds_cell(row.median),
                text_cell(_how(row)),
                seconds_cell(one.modelled),
                _share(one.communication),
                seconds_cell(one.alone.median if one.alone else None),
                text_cell(_how(one.alone, _threads(one.alone)) if one.alone else None),
                number_cell(one.speed_up),
                _share(one.efficiency),
            )
        )
    return Table(
        f"What several {called.many} bring",
        (
            Column("network", "network"),
            Column("params", "parameters", numeric=True),
            Column("batch", "batch", numeric=True),
            Column("ranks", "on"),
            Column("seconds", "median", numeric=True, group=called.many),
            Column("execution", "how", group=called.many),
            Column("modelled", "expected", numeric=True, group=called.many),
            Column("communication", "waits for sums", numeric=True, group=called.many),
            Column("alone", "median", numeric=True, group=f"one {called.one}"),
            Column("alone_how", "how", group=f"one {called.one}"),
            Column("speed_up", "speedup", numeric=True),
            Column("efficiency", "efficiency", numeric=True),
        ),
        tuple(lines),
    )


def _threads(row: Row) -> str:
    return row.axes["cpu_threads"].word(row.configuration["cpu_threads"]) if row.threads else ""


def _how(row: Row, *more: str) -> str:
    """Its execution, on a GPU where its data lies, and what else is there to say."""
    data = row.configuration.get("data", "")
    return ", ".join(filter(None, (row.execution, data, *more)))


def _share(value: float | None) -> Cell:
    return NOTHING if value is None else Cell(f"{100 * value:.0f} %", value)
