# SPDX-License-Identifier: Apache-2.0
"""The tables of `why`: where the time goes, bounds, threads, what changes the crossover."""

from collections.abc import Sequence

from plots import units
from plots.core.bounds import bounds
from plots.core.crossover import Comparison, Crossover, speed_ups
from plots.core.crossover_words import crossover_words
from plots.core.network import training_rows
from plots.core.series import series_key, series_labels
from plots.core.tables.cells import count_cell, network_cells, number_cell, seconds_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.why.analysis import (
    PARTS,
    UNATTRIBUTED,
    Split,
    is_profiled,
    missing_gpu,
    repayments,
    splits,
    threads,
)
from plots.features.why.counterfactuals import counterfactuals
from plots.features.why.quotient import quotient_table
from plots.file.families import EPOCH, FAMILIES, TRAINING
from plots.file.rows import Bound, File, Row
from plots.text import counted, sentence

_NETWORK = (
    Column("model", "model"),
    Column("params", "parameters", numeric=True),
    Column("batch", "batch", numeric=True),
)


def why_tables(file: File, compared: Sequence[Comparison]) -> list[Table]:
    """All that `why` says of `file`; `compared` are its comparisons(). Tables without a line are
    left out."""
    tables = []
    for family in TRAINING:
        rows = training_rows(file, family)
        tables += [
            split_table(file, rows),
            thread_table(file, rows),
            counterfactual_table(file, compared, family),
            repayment_table(file, rows),
            engine_table(file, rows),
        ]
    return [table for table in tables if table.lines]


def quotient_tables(file: File, own: File, compared: Sequence[Comparison]) -> list[Table]:
    """What makes the quotients of `own`, which is `file` in another quantity, whose comparisons()
    are `compared`, and what changes its crossovers. Tables without a line are left out."""
    tables = []
    for family in TRAINING:
        found = speed_ups(own, family, compared)
        tables += [quotient_table(file, found)] if found else []
        tables.append(counterfactual_table(own, compared, family))
    return [table for table in tables if table.lines]


def split_table(file: File, rows: Sequence[Row]) -> Table:
    """Where the time of each of `rows` goes, in percent, and what bounds it. The rows of this table
    and of those below are of one family."""
    words = FAMILIES[_family(rows)]
    found = {split.row.index: split for split in splits(rows)}
    bound = bounds(file)
    used = [part for part in PARTS if any(part in split.parts for split in found.values())]
    labels = series_labels(rows)
    shares = [*used, UNATTRIBUTED] if found else []
    columns = (
        *_NETWORK,
        Column("on", "on"),
        Column(f"{words.short}_seconds", words.short, numeric=True),
        *(
            Column(f"{part}_percent", PARTS.get(part, part), numeric=True, group="%")
            for part in shares
        ),
        Column("bound", "by", group="bound"),
        Column("bound_seconds", "at least", numeric=True, group="bound"),
        Column("bound_percent", "reached", numeric=True, group="bound"),
    )
    notes: dict[str, int] = {}
    lines = [
        (
            *network_cells(row),
            text_cell(labels[series_key(row)]),
            seconds_cell(row.median),
            *_share_cells(row, found.get(row.index), shares),
            *_bound_cells(bound.get(row.index), notes),
        )
        for row in rows
    ]
    closing = [missing] if (missing := missing_gpu(file)) else []
    slow = sum(is_profiled(row) and row.index not in found for row in rows)
    if slow:
        closing.append(
            f"Not split: {counted(slow, 'row')} whose profile took over 10 % longer than the row."
        )
    return Table(
        title=f"Where the time of {words.a} goes, on {file.machine.id}",
        columns=columns,
        lines=tuple(lines),
        notes=(*notes, *closing),
    )


def thread_table(file: File, rows: Sequence[Row]) -> Table:
    """What more CPU threads bring to each network."""
    words, found = FAMILIES[_family(rows)], threads(rows)
    counts = sorted({count for item in found for count in item.rows})
    columns = (
        *_NETWORK,
        *(
            Column(f"seconds_{count}", counted(count, "thread"), numeric=True, group="time")
            for count in counts
        ),
        *(
            Column(f"speed_up_{count}", counted(count, "thread"), numeric=True, group="speedup")
            for count in counts[1:]
        ),
    )
    lines = []
    for item in found:
        times = [
            seconds_cell(item.rows[count].median) if count in item.rows else NOTHING
            for count in counts
        ]
        speed_ups = [
            Cell(
                f"{item.speed_ups[count]:.2f}",
                item.speed_ups[count],
                marks=(1,) if count in item.unsure else (),
            )
            if count in item.speed_ups
            else NOTHING
            for count in counts[1:]
        ]
        lines.append((*network_cells(next(iter(item.rows.values()))), *times, *speed_ups))
    unsure = any(item.unsure for item in found)
    note = "The repetitions of both thread counts overlap: the difference may be chance."
    return Table(
        title=f"What more threads bring{words.beside('in')}, on {file.machine.id}",
        columns=columns,
        lines=tuple(lines),
        notes=(note,) if unsure else (),
    )


def counterfactual_table(file: File, compared: Sequence[Comparison], family: str = EPOCH) -> Table:
    """What would change the crossovers of `family`; each line's note says it as a sentence."""
    found = counterfactuals(file, compared, family)
    columns = (
        Column("change", "change"),
        Column("held", "all else"),
        Column("before", "before", numeric=True, group="crossover"),
        Column("after", "after", numeric=True, group="crossover"),
        Column("from", "from"),
    )
    lines = tuple(
        (
            Cell(item.change, item.change, marks=(number,)),
            text_cell(item.held),
            _crossover(item.before),
            _crossover(item.after),
            text_cell("measured" if item.measured else "the profile"),
        )
        for number, item in enumerate(found, 1)
    )
    return Table(
        title=f"What changes the crossover{FAMILIES[family].over}, on {file.machine.id}",
        columns=columns,
        lines=lines,
        notes=tuple(sentence(item.sentence) for item in found),
    )


def repayment_table(file: File, rows: Sequence[Row]) -> Table:
    """After how many iterations the start-up of each GPU row is repaid."""
    words = FAMILIES[_family(rows)]
    one = words.short
    labels = series_labels(rows)
    columns = (
        *_NETWORK,
        Column("gpu", "GPU"),
        Column("cpu", "against"),
        Column("gpu_first_seconds", "GPU", numeric=True, group="first call"),
        Column("cpu_first_seconds", "CPU", numeric=True, group="first call"),
        Column(f"gpu_{one}_seconds", "GPU", numeric=True, group=one),
        Column(f"cpu_{one}_seconds", "CPU", numeric=True, group=one),
        Column(f"{one}s", f"repaid after {one}s", numeric=True),
    )
    lines = tuple(
        (
            *network_cells(item.gpu),
            text_cell(labels[series_key(item.gpu)]),
            text_cell(labels[series_key(item.cpu)]),
            seconds_cell(item.gpu.counters["first_call_seconds"]),
            seconds_cell(item.cpu.counters["first_call_seconds"]),
            seconds_cell(item.gpu.median),
            seconds_cell(item.cpu.median),
            Cell("never") if item.iterations is None else count_cell(item.iterations),
        )
        for item in repayments(rows)
    )
    return Table(
        title=f"When the GPU's start-up is repaid{words.beside('in')}, on {file.machine.id}",
        columns=columns,
        lines=lines,
    )


def engine_table(file: File, rows: Sequence[Row]) -> Table:
    """Which engines of a GPU's library compute the convolutions of a step."""
    labels = series_labels(rows)
    columns = (
        *_NETWORK,
        Column("on", "on"),
        Column("engine", "pass and engine"),
        Column("convolutions", "a step", numeric=True),
    )
    lines = tuple(
        (
            *network_cells(row),
            text_cell(labels[series_key(row)]),
            text_cell(name),
            count_cell(count),
        )
        for row in rows
        for name, count in row.convolutions.items()
    )
    family = FAMILIES[_family(rows)]
    return Table(
        title=f"What computes the convolutions{family.beside('in')}, on {file.machine.id}",
        columns=columns,
        lines=lines,
    )


def _family(rows: Sequence[Row]) -> str:
    return rows[0].family if rows else EPOCH


def _share_cells(row: Row, split: Split | None, shares: Sequence[str]) -> list[Cell]:
    if split is None:
        return [NOTHING] * len(shares)
    seconds = {**split.parts, UNATTRIBUTED: split.unattributed}
    cells = []
    for part in shares:
        percent = 100 * seconds[part] / split.total if part in seconds else None
        cells.append(NOTHING if percent is None else Cell(f"{percent:.1f}", percent))
    return cells


def _bound_cells(bound: Bound | None, notes: dict[str, int]) -> tuple[Cell, Cell, Cell]:
    """What bounds a row; `notes` gets the reason where it is not known."""
    if bound is None:
        return NOTHING, NOTHING, NOTHING
    if bound.name is None or bound.seconds is None or bound.percent is None:
        mark = notes.setdefault(f"No bound: {bound.reason}.", len(notes) + 1)
        return Cell("–", marks=(mark,)), NOTHING, NOTHING
    percent = Cell(f"{units.significant(bound.percent, 2)} %", bound.percent)
    return text_cell(bound.name), seconds_cell(bound.seconds), percent


def _crossover(found: Crossover) -> Cell:
    size = found.size
    return Cell(crossover_words(found)) if size is None else number_cell(size)
