# SPDX-License-Identifier: Apache-2.0
"""What `crossover` prints for people: the answer, then a block for each question."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from plots import units
from plots.core.crossover import Comparison, SpeedUp
from plots.core.crossover_words import crossover_words, other_work, what
from plots.core.headline import foremost, ladders_of, way
from plots.core.strip import strip_text
from plots.core.tables.cells import text_cell
from plots.core.tables.plain import as_text, wrapped
from plots.core.tables.table import Column, Table
from plots.features.answer.analysis import LONGEST, sentences
from plots.features.answer.glance import glance
from plots.features.crossover.table import is_best_of_one, ratio_title, speed_up_table
from plots.file.axes import Label
from plots.file.families import EPOCH, FORWARD, MINIBATCH
from plots.file.rows import File
from plots.text import printable

_MOST = 12  # lines of products, and of layers
_PLAIN = "f32"
_SAID = ("precision", "execution", "data")  # columns that a title speaks for
_TITLES = {
    EPOCH: "From which size the GPU trains {networks}",
    MINIBATCH: "From which batch size the GPU trains step by step",
    FORWARD: "From which size the GPU computes forward passes of {networks}",
    "Gemm": "From which size the GPU multiplies square matrices",
    "Layer": "From which width the GPU computes layers",
}
_ALL = "--all shows each precision and each number of CPU threads"


def crossover_text(
    file: File,
    compared: Sequence[Comparison],
    ratios: Sequence[SpeedUp],
    steps: Sequence[SpeedUp] = (),
    passes: Sequence[SpeedUp] = (),
) -> str:
    """The answer of `file`, and a table for each question: where the GPU wins, how much faster it
    is, and the same of training steps, forward passes, products and layers. `compared` are its
    comparisons(), the others its speed_ups() of epochs, of training steps and of passes."""
    blocks = [answer_text(file, compared)]
    tables = [_where(compared, EPOCH), _how_much(file, foremost(compared), ratios)]
    tables += [_where(compared, MINIBATCH, _MOST), _of_batches(file, steps, "trains a step")]
    tables += [
        _where(compared, FORWARD, _MOST),
        _of_batches(file, passes, "computes a forward pass"),
    ]
    tables += [_where(compared, family, _MOST) for family in ("Gemm", "Layer")]
    blocks += [as_text(table).rstrip() for table in tables if table]
    if left_out := other_work(file):
        blocks.append(wrapped(f"{left_out}."))
    return "\n\n".join(blocks) + "\n"


def answer_text(file: File, compared: Sequence[Comparison]) -> str:
    """The machine, its strip and its answer, a paragraph for each sentence of it."""
    strips = glance(file, compared).strips
    said = [strip_text(strips), ""] if strips else []
    texts = sentences(file, compared)
    said += [wrapped(printable(text, LONGEST), "  ") for text in texts]
    return "\n".join([wrapped(printable(file.machine.id)), *said])


def _where(compared: Sequence[Comparison], family: str, most: int | None = None) -> Table | None:
    """Each way of the GPU against the best number of CPU threads, and where it wins."""
    every = [one for one in compared if one.family == family]
    best = [one for one in every if one.cpu.candidates]
    plain = [one for one in best if one.precision in ("", _PLAIN)] or best
    shown = plain[:most]
    if not shown:
        return None
    columns = (
        Column("what", "of"),
        Column("batch", "batch", numeric=True),
        Column("precision", "precision"),
        Column("gpu", "GPU"),
        Column("answer", "answer"),
    )
    texts = [
        (
            what(one.common, one.gpu.axes),
            units.written(one.batch) or None,
            one.precision or None,
            way(one),
            crossover_words(one.crossover),
        )
        for one in shown
    ]
    names, batches, precisions, *_ = map(set, zip(*texts, strict=True))
    said = (len(names) > 1, batches != {None}, precisions != {_PLAIN}, True, True)
    left = sum(not is_best_of_one(one.cpu) for one in every) - len(shown)
    cpu = shown[0].cpu.words
    if is_best_of_one(shown[0].cpu):
        cpu = Label(how=", ".join(filter(None, (cpu.how, cpu.best_of))))
    ladders = ladders_of(shown)
    networks = ladders[0] if len(ladders) == 1 else "networks"
    how = shown[0].gpu.quantity.how
    title = f"{_TITLES[family].format(networks=networks)} {how} than the CPU ({cpu.there})"
    more = (f"{left} more: {_ALL}.",) if left > 0 else ()
    lines = tuple(tuple(map(text_cell, line)) for line in texts)
    return Table(title, columns, lines, more).only([*compress(range(len(said)), said)])


def _how_much(file: File, first: Comparison | None, ratios: Sequence[SpeedUp]) -> Table | None:
    """The speedups of all networks, the discs at the batch of the headline, in its first way."""
    shown = list(ratios)
    if first:
        batch = first.batch
        discs = {float(size) for size in first.sizes}
        shown = [
            one
            for one in ratios
            if one.gpu.configuration == first.gpu.configuration
            and one.precision == first.precision
            and (one.batch == batch or one.parameters not in discs)
        ]
    if not shown:
        return None
    table = speed_up_table([(file, shown)])
    if not first:
        return table
    how = f"{first.gpu.quantity.how_much} the GPU trains, {way(first)}"
    title = f"{how}: {ratio_title(first.gpu)}"
    return _more(
        table.without(*_SAID, title=title), len(ratios) - len(shown), "batches, ways of the GPU"
    )


def _of_batches(file: File, ratios: Sequence[SpeedUp], does: str) -> Table | None:
    """The speedup of each network in each batch size, on the GPU's fastest way in f32."""
    fastest: dict[tuple[str, str], SpeedUp] = {}
    plain = [one for one in ratios if one.precision == _PLAIN] or ratios
    for one in plain:
        place = one.model, one.batch
        if place not in fastest or _gpu_cost(one) < _gpu_cost(fastest[place]):
            fastest[place] = one
    if not fastest:
        return None
    shown = list(fastest.values())
    table = speed_up_table([(file, shown)])
    ways = {(way(one), one.precision) for one in shown}
    if ways == {(how := way(shown[0]), _PLAIN)}:
        gpu = shown[0].gpu
        title = f"{gpu.quantity.how_much} the GPU {does}, {how}: {ratio_title(gpu)}"
        table = table.without(*_SAID, title=title)
    return _more(table, len(ratios) - len(shown), "ways of the GPU")


def _more(table: Table, left: int, what: str) -> Table:
    """`table` with a note on `left` speedups that it leaves out."""
    more = (f"{left} more: --all shows other {what} and precisions.",) if left else ()
    return replace(table, notes=(*table.notes, *more))


def _gpu_cost(one: SpeedUp) -> float:
    return one.gpu.quantity.cost(float(np.median(one.gpu.samples[0])))
