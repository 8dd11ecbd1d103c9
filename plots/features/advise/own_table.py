# SPDX-License-Identifier: Apache-2.0
"""A network of one's own as tables: a line for each device, program and card, and a line for each
size and batch that was measured."""

from collections.abc import Sequence
from dataclasses import replace

from plots.core.cost import memory_of
from plots.core.tables.cells import bytes_cell, count_cell, seconds_cell, text_cell
from plots.core.tables.plain import as_text, wrapped
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.advise.advice import CPU, Adviser
from plots.features.advise.analysis import Prediction
from plots.features.advise.own import Own, Size, key_of, name_of, title_of
from plots.features.advise.own_words import own_sentences
from plots.features.advise.table import against
from plots.features.advise.words import span
from plots.text import counted

WIDTH = 80  # of the screen


def own_table(own: Own, epochs: int = 1) -> Table:
    """The fastest way of each: of the CPU, of other programs, of GPUs."""
    of = "an epoch" if epochs == 1 else counted(epochs, "epoch")
    columns = (
        Column("on", "on"),
        Column("step_seconds", "a step", numeric=True),
        Column("seconds", of, numeric=True),
        Column("range", "from … to"),
        Column("winner", "than the CPU"),
    )
    shown = [*([own.cpu] if own.cpu else []), *own.peers, *own.gpus]
    cost = own.cost
    title = (
        f"{cost.model}: {cost.params:,.0f} parameters, batch {cost.batch:,.0f}, "
        f"{cost.fields['rows']:,} rows an epoch, {cost.precision}"
    )
    return Table(title, columns, tuple(_line(one, own, epochs) for one in shown))


def screen(own: Own, adviser: Adviser, epochs: int) -> str:
    """All that is known of it on one screen of 80 columns."""
    shown = [as_text(own_table(own, epochs)).rstrip(), ""]
    shown += [wrapped(one, "  ", "- ", most=WIDTH) for one in own_sentences(own, adviser)]
    return "\n".join(shown) + "\n\n"


def _line(one: Prediction, own: Own, epochs: int) -> tuple[Cell, ...]:
    return (
        text_cell(name_of(one)),
        seconds_cell(one.middle / float(own.cost.fields["steps"]), 2),
        seconds_cell(epochs * one.middle, 2),
        text_cell(span(one, epochs)),
        NOTHING if own.cpu is None or one is own.cpu else against(own.cpu, one),
    )


def sizes_table(own: Own) -> Table:
    """A line for each size and batch: a step here, with other programs and on each GPU, where bold
    is faster than here."""
    cards = _all([size.gpus for size in own.sizes])
    programs = _all([size.peers for size in own.sizes])
    columns = [
        Column("network", "network"),
        Column("params", "parameters", numeric=True),
        Column("batch", "batch", numeric=True),
        Column("memory_bytes", "memory", numeric=True),
        Column("cpu_step_seconds", "a step here", numeric=True),
    ]
    columns += [Column(f"{key}_step_seconds", name, numeric=True) for key, name in programs.items()]
    for key, name in cards.items():
        columns += [
            Column(f"{key}_step_seconds", name, numeric=True),
            Column(f"{key}_low_step_seconds", f"{name}, from", numeric=True, for_programs=True),
            Column(f"{key}_high_step_seconds", f"{name}, to", numeric=True, for_programs=True),
            Column(f"{key}_winner", f"{name}, than the CPU", for_programs=True),
        ]
    lines = tuple(_size_line(one, list(programs), list(cards)) for one in own.sizes)
    return Table(f"{own.cost.model} in the sizes and batches measured", tuple(columns), lines)


def _all(each: Sequence[Sequence[Prediction]]) -> dict[str, str]:
    """The names of all there are, by a key of each."""
    found: dict[str, str] = {}
    for one in (one for own in each for one in own):
        found.setdefault(key_of(one), title_of(one))
    return found


def _size_line(size: Size, programs: Sequence[str], cards: Sequence[str]) -> tuple[Cell, ...]:
    steps = float(size.cost.fields["steps"])
    theirs = {key_of(one): one for one in (*size.peers, *size.gpus)}
    cells = [
        text_cell(size.cost.model),
        count_cell(size.cost.params),
        count_cell(size.cost.batch),
        bytes_cell(memory_of(size.cost, CPU)),
        seconds_cell(size.cpu.middle / steps, 2),
    ]
    for key in programs:
        one = theirs.get(key)
        cells.append(seconds_cell(one.middle / steps if one else None, 2))
    for key in cards:
        one = theirs.get(key)
        if one is None:
            cells += [NOTHING] * 4
            continue
        compared, time = against(size.cpu, one), one.middle / steps
        middle = seconds_cell(time, 2)
        cells += [
            Cell(middle.text, time, bold=compared.bold),
            seconds_cell(one.low / steps, 2),
            seconds_cell(one.high / steps, 2),
            replace(compared, bold=False),
        ]
    return tuple(cells)
