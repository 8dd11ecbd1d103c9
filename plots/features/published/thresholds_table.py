# SPDX-License-Identifier: Apache-2.0
"""What others hard-code, beside the crossovers of a file that are nearest to it."""

import math
from collections.abc import Iterable, Sequence

from plots import units
from plots.core.crossover import Comparison
from plots.core.crossover_words import crossover_words, what
from plots.core.tables.cells import count_cell, number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.core.thresholds import Nearest, Threshold
from plots.file.families import EPOCH, MINIBATCH
from plots.file.rows import File
from plots.text import sentence

_COLUMNS = (
    Column("id", "id", for_programs=True),
    Column("code", "code"),
    Column("between", "uses"),
    Column("rule", "from"),
    Column("operation", "for", for_programs=True),
    Column("value", "value", for_programs=True),
    Column("year", "year", for_programs=True),
    Column("url", "source", for_programs=True),
    Column("nearest", "nearest here"),
    Column("size", "size there", numeric=True, for_programs=True),
    Column("crossover", "GPU wins from", numeric=True, for_programs=True),
    Column("low", "from", numeric=True, group="95 %", for_programs=True),
    Column("high", "to", numeric=True, group="95 %", for_programs=True),
    Column("answer", "measured here: the GPU wins"),
)
_USES = {"devices": "the GPU", "threads": "threads"}
_PLAIN = "f32"
_PLACED = (
    "Here the matrices and the parameters are on the GPU already; code that copies them first "
    "needs larger sizes."
)


def thresholds_table(
    thresholds: Sequence[Threshold], file: File, compared: Sequence[Comparison]
) -> Table:
    """One line for each of `thresholds` and each comparison of `file` that is nearest to it; one
    where there is none. `compared` are the comparisons() of `file`.

    The comparisons are in f32, with the CPU's best number of threads and the GPU's way that wins
    earliest: of each network, and of the first kind of square products.
    """
    notes: dict[str, int] = {_PLACED: 1} if compared else {}
    lines = []
    for threshold in thresholds:
        found = _nearest(threshold, compared)
        lines += [_line(threshold, one, notes) for one in found or (None,)]
    return Table(
        "What others hard-code"
        + (f", and what is measured on {file.machine.id}" if compared else ""),
        _COLUMNS,
        tuple(lines),
        tuple(notes),
    )


def _nearest(threshold: Threshold, compared: Iterable[Comparison]) -> list[Comparison]:
    near = threshold.nearest
    if not near or threshold.between == "threads":
        return []
    groups: dict[str, list[Comparison]] = {}
    for one in compared:
        is_plain = one.precision in ("", _PLAIN) and one.cpu.candidates
        if one.family == near.family and is_plain:
            groups.setdefault(what(one.common, one.gpu.axes), []).append(one)
    earliest = [min(group, key=_start) for group in groups.values()]
    return earliest if near.family == MINIBATCH else earliest[:1]


def _start(one: Comparison) -> float:
    if one.crossover.kind == "always":
        return 0.0
    return one.crossover.size or math.inf


def _line(threshold: Threshold, one: Comparison | None, notes: dict[str, int]) -> tuple[Cell, ...]:
    near, note, year, value = threshold.nearest, threshold.note, threshold.year, threshold.value
    noted = marks((sentence(note),), notes) if note else ()
    return (
        text_cell(threshold.id),
        text_cell(threshold.code),
        Cell(_USES[threshold.between], threshold.between),
        Cell(threshold.rule, threshold.rule, marks=noted),
        text_cell(threshold.operation),
        Cell(str(value), tuple(value) if isinstance(value, list) else value),
        Cell(str(year), year) if year else NOTHING,
        text_cell(threshold.url),
        _workload(near, one),
        count_cell(near.size) if near else NOTHING,
        *_measured(one),
    )


def _workload(near: Nearest | None, one: Comparison | None) -> Cell:
    """What is nearest here at which size: "product, n = 500", "step of fcn-r, batch 32"."""
    if not near:
        return NOTHING
    kind = {"Gemm": "product, n =", MINIBATCH: "step, batch", EPOCH: "epoch, parameters"}[
        near.family
    ]
    if one and near.family == MINIBATCH:
        kind = f"step of {one.model}, batch"
    text = f"{kind} {units.count(near.size)}"
    return text_cell(text)


def _measured(one: Comparison | None) -> tuple[Cell, ...]:
    if one is None:
        return (NOTHING,) * 4
    crossover = one.crossover
    sizes = (crossover.size, crossover.low, crossover.high)
    numbers = (number_cell(each) for each in sizes)
    words = crossover_words(crossover)
    return (*numbers, text_cell(words))
