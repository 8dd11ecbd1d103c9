# SPDX-License-Identifier: Apache-2.0
"""Advice and what it brought, as a table."""

from collections.abc import Sequence

from plots.core.tables.cells import count_cell, number_cell, text_cell
from plots.core.tables.table import Cell, Column, Table
from plots.features.advice_check.analysis import Finding, Pair
from plots.file.axes import OWN
from plots.file.rows import File

_COLUMNS = (
    Column("advice", "advice"),
    Column("way", "followed"),
    Column("device", "on"),
    Column("pairs", "rows", numeric=True),
    Column("ratio", "median", numeric=True, group="times as fast"),
    Column("least", "least", numeric=True, group="times as fast"),
    Column("most", "most", numeric=True, group="times as fast"),
    Column("faster", "faster", numeric=True, group="surely"),
    Column("slower", "slower", numeric=True, group="surely"),
    Column("least_model", "gained least", for_programs=True),
    Column("most_model", "gained most", for_programs=True),
    Column("low", "from", numeric=True, for_programs=True),
    Column("high", "to", numeric=True, for_programs=True),
)
_NOTES = (
    "Times as fast: the time without the advice over that with it, paired by repetition, of rows "
    "that differ in nothing else; median, least and most over these rows.",
    "Surely: the 95 % interval of that ratio lies above 1; or below it, where the advice costs "
    "time. Fewer than six instances of a row prove nothing (--benchmark_repetitions=12).",
)


def advice_tables(file: File, found: Sequence[Finding]) -> list[Table]:
    """What the file answers, a line for each way to follow each piece of advice; and what it does
    not."""
    answered = tuple(_line(one) for one in found if one.pairs)
    open_ = tuple(
        (text_cell(one.claim.advice), text_cell(one.claim.flags)) for one in found if not one.pairs
    )
    tables = []
    if answered:
        title = f"What guides advise, and what it brought on {file.machine.id}"
        tables.append(Table(title, _COLUMNS, answered, _NOTES))
    if open_:
        columns = (Column("advice", "advice"), Column("flags", "measure it with ./run and"))
        tables.append(Table("What guides advise, and this file does not answer", columns, open_))
    return tables


def _line(one: Finding) -> tuple[Cell, ...]:
    axes = one.pairs[0].followed.axes
    program = "" if one.program == OWN else f"{axes['program'].word(one.program)}, "
    only = one.pairs[0] if len(one.pairs) == 1 else None
    return (
        text_cell(one.claim.advice),
        text_cell(one.way),
        text_cell(f"{program}{axes['device'].word(one.device)}"),
        count_cell(len(one.pairs)),
        number_cell(one.ratio),
        number_cell(one.least.ratio),
        number_cell(one.most.ratio),
        count_cell(one.count("faster")),
        count_cell(one.count("slower")),
        text_cell(_network(one.least)),
        text_cell(_network(one.most)),
        number_cell(only.low if only else None),
        number_cell(only.high if only else None),
    )


def _network(pair: Pair) -> str:
    return f"{pair.followed.model}, batch {pair.followed.batch}"
