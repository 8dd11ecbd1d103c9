# SPDX-License-Identifier: Apache-2.0
"""Published comparisons of CPU and GPU as a table."""

import math
from collections.abc import Sequence

from plots import units
from plots.core.published import Experiment
from plots.core.tables.cells import count_cell, number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table

_COLUMNS = (
    Column("id", "id", for_programs=True),
    Column("title", "published"),
    Column("kind", "kind"),
    Column("params", "parameters", numeric=True),
    Column("batch", "batch", numeric=True),
    Column("of", "time of"),
    Column("cpu_seconds", "CPU", numeric=True),
    Column("gpu_seconds", "GPU", numeric=True),
    Column("speed_up", "SPEEDUP", numeric=True),
    Column("framework", "framework", for_programs=True),
    Column("cpu", "CPU", for_programs=True),
    Column("year", "year", numeric=True),
    Column("url", "source", for_programs=True),
    Column("gpu", "GPU; CPU"),
)
_KINDS = {"mlp": "MLP", "cnn": "CNN", "rnn": "RNN"}


def published_table(experiments: Sequence[Experiment]) -> Table:
    """One line for each of `experiments` that has times, the smallest network of each kind first,
    and a note for each that has a crossover alone; the faster device's time is bold."""
    timed = [one for one in experiments if one.speed_up]
    kinds = list(_KINDS)
    ordered = sorted(
        timed, key=lambda one: (kinds.index(one.kind), one.params or math.inf, one.batch or 0)
    )
    return Table(
        "What others measured: SPEEDUP = CPU time / GPU time",
        _COLUMNS,
        tuple(_line(one) for one in ordered),
        tuple(
            f"{one.title} ({one.citation.text}): {one.finding}."
            for one in experiments
            if not one.speed_up
        ),
    )


def _line(one: Experiment) -> tuple[Cell, ...]:
    of, times = one.timed
    ratio = times["CPU"] / times["GPU"]
    year = one.citation.year
    return (
        text_cell(one.id),
        text_cell(one.title),
        Cell(_KINDS[one.kind], one.kind),
        _count(one.params),
        _count(one.batch),
        text_cell(of),
        Cell(units.seconds(times["CPU"]), times["CPU"], bold=ratio < 1),
        Cell(units.seconds(times["GPU"]), times["GPU"], bold=ratio > 1),
        number_cell(ratio),
        text_cell(one.framework),
        Cell(one.cpu or NOTHING.text, one.cpu),
        Cell(str(year), year) if year else NOTHING,
        text_cell(one.citation.url),
        _devices(one),
    )


def _count(number: int | None) -> Cell:
    return count_cell(number) if number else NOTHING


def _devices(one: Experiment) -> Cell:
    if not one.gpu and not one.cpu:
        return Cell("not stated")
    return Cell(f"{one.gpu or 'not stated'}; {one.cpu or 'not stated'}", one.gpu)
