# SPDX-License-Identifier: Apache-2.0
"""What is missing and what is in doubt: rows without a result, warnings."""

from collections.abc import Sequence
from dataclasses import replace

from crossover_bench.counts.peaks import doubts, peaks
from crossover_bench.files.rows import File
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    FAILED,
    number_field,
    seconds_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import Table
from crossover_bench.words.text import sentence

_FEW = 12  # lines of a table that is not folded


def build(files: Sequence[File], context: Context) -> Section:
    return Section(
        title="What is missing or in doubt",
        anchor="doubts",
        lead="Rows without a result stand here with the reason. A row whose results were wrong has "
        "its time in a table of its own, and counts nowhere. A flagged row is never dropped: the "
        "flag says what casts doubt on it. Two peaks: the repetitions fall into two groups, a "
        "fast and a slow one, and the median shows one of them alone.",
        blocks=tuple(_block(file) for file in files[: context.detailed]),
    )


def _block(file: File) -> Block:
    points = []
    if not file.complete:
        points.append(f"The run was {file.ended}, so rows are missing.")
    if file.software.dirty:
        points.append("Measured from a checkout with uncommitted changes.")
    missing, wrong, flagged = missing_table(file), _not_verified(file), _flagged(file)
    rows = len(file.own_rows)
    doubtful = sum(bool(row.warnings) for row in file.own_rows)
    peaked = sum(peaks(row) is not None for row in file.own_rows)
    lead = f"{_of(rows - len(missing.lines), rows)} a result, {_of(doubtful, rows)} a flag"
    lead += f", {_of(peaked, rows)} two peaks" if peaked else ""
    tables = (
        replace(table, folded=len(table.lines) > _FEW)
        for table in (missing, wrong, flagged)
        if table.lines
    )
    return Block(
        machine=file.machine.id, lead=sentence(lead), points=tuple(points), tables=tuple(tables)
    )


def _of(number: int, rows: int) -> str:
    if number == rows > 1:
        return f"all {rows} rows have"
    return f"{number or 'none'} of {rows} rows {'has' if number < 2 else 'have'}"


def missing_table(file: File) -> Table:
    """The rows of `file` without a result, and why."""
    return table_of("Rows without a result", [row for row in file.own_rows if row.failure], FAILED)


def _not_verified(file: File) -> Table:
    """What rows with wrong results took: for whoever looks for the fault, and for nothing else."""
    rows = (*file.own_rows, *file.peers)
    fields = (
        text_field("row", "row", lambda row: row.name),
        seconds_field("seconds", "time", lambda row: row.failure.seconds),
        number_field("relative_error", "relative error", lambda row: row.failure.relative_error),
        number_field("tolerance", "tolerance", lambda row: row.failure.tolerance),
    )
    wrong = [row for row in rows if row.failure and row.failure.seconds is not None]
    return table_of("Times of wrong results, which count nowhere", wrong, fields)


def _flagged(file: File) -> Table:
    fields = (
        text_field("row", "row", lambda of: of[0].name),
        text_field("flag", "what casts doubt on it", lambda of: of[1]),
    )
    flagged = [(row, flag) for row in file.own_rows for flag in doubts(row)]
    return table_of("Rows in doubt", flagged, fields).of_rows("all")
