# SPDX-License-Identifier: Apache-2.0
"""Several ranks beside one process, as tables: from which size they pay, and what they cost."""

from collections.abc import Sequence

from plots.core.tables.cells import kind_cell, network_cells, number_cell, seconds_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.ranks.analysis import MoreRanks, Shared
from plots.file.rows import File


def ranks_table(file: File, found: Sequence[MoreRanks]) -> Table:
    """One line for each comparison of `file`: the size from which more ranks win."""
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
        f"From which size several ranks train faster than one process, on {file.machine.id}",
        (
            Column("networks", "networks"),
            Column("batch", "batch", numeric=True),
            Column("precision", "precision"),
            Column("ranks", "ranks"),
            Column("kind", "answer"),
            Column("crossover", "ranks pay from", numeric=True),
            Column("low", "from", numeric=True, group="95 %"),
            Column("high", "to", numeric=True, group="95 %"),
        ),
        tuple(lines),
    )


def shared_table(found: Sequence[Shared]) -> Table:
    """One line for each network and number of ranks and threads."""
    lines = []
    for one in found:
        row = one.row
        threads = row.axes["cpu_threads"].word(row.configuration["cpu_threads"])
        alone = (
            row.axes["cpu_threads"].word(one.alone.configuration["cpu_threads"])
            if one.alone
            else ""
        )
        lines.append(
            (
                *network_cells(row),
                text_cell(f"{row.ranks} ranks of {threads}"),
                seconds_cell(row.median),
                text_cell(row.execution),
                seconds_cell(one.modelled),
                _share(one.communication),
                seconds_cell(one.alone.median if one.alone else None),
                text_cell(f"{one.alone.execution}, {alone}" if one.alone else None),
                number_cell(one.speed_up),
                _share(one.efficiency),
            )
        )
    return Table(
        "What several ranks bring",
        (
            Column("network", "network"),
            Column("params", "parameters", numeric=True),
            Column("batch", "batch", numeric=True),
            Column("ranks", "on"),
            Column("seconds", "median", numeric=True, group="ranks"),
            Column("execution", "how", group="ranks"),
            Column("modelled", "expected", numeric=True, group="ranks"),
            Column("communication", "waits for sums", numeric=True, group="ranks"),
            Column("alone", "median", numeric=True, group="one process"),
            Column("alone_how", "how", group="one process"),
            Column("speed_up", "speedup", numeric=True),
            Column("efficiency", "efficiency", numeric=True),
        ),
        tuple(lines),
    )


def _share(value: float | None) -> Cell:
    return NOTHING if value is None else Cell(f"{100 * value:.0f} %", value)
