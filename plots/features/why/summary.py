# SPDX-License-Identifier: Apache-2.0
"""What `why` prints for people: of the tables of plots/features/why/table.py the fastest way of
each device, of each network in one batch size, and the columns that answer."""

from collections.abc import Sequence
from dataclasses import replace

from plots.core.crossover import Comparison, SpeedUp, speed_ups
from plots.core.headline import own_batch
from plots.core.network import best, familiar, networks, on_device, training_rows
from plots.core.tables.cells import text_cell
from plots.core.tables.plain import as_text, wrapped
from plots.core.tables.table import Cell, Column, Table
from plots.features.why.analysis import missing_gpu
from plots.features.why.counterfactuals import Counterfactual, counterfactuals
from plots.features.why.table import (
    engine_table,
    quotient_table,
    repayment_table,
    split_table,
    thread_table,
)
from plots.file.axes import BUILT_IN
from plots.file.families import FAMILIES, MINIBATCH, TRAINING
from plots.file.quantities import TIME
from plots.file.rows import File, Row
from plots.text import printable, sentence

_MOST_PARTS = 2
_MOST_CHANGES = 3
_PLAIN = BUILT_IN["precision"].plainest


def why_text(file: File, compared: Sequence[Comparison]) -> str:
    """Where the time of an epoch and of a training step goes on the fastest way of each device,
    what more threads bring, what would change the crossover, when a start-up is repaid. Empty
    without a row that trains."""
    shown = {family: _own_rows(file, compared, family) for family in TRAINING}
    shown = {family: rows for family, rows in shown.items() if rows}
    if not shown:
        return ""
    blocks = []
    left = 0
    for family, rows in shown.items():
        blocks += _family(file, compared, rows)
        left += len(training_rows(file, family)) - len(_fastest(rows))
    if missing := missing_gpu(file):
        blocks.append(wrapped(printable(missing, 400)))
    if left:
        blocks.append(
            wrapped(
                f"Shown is the fastest way of each device; --all shows {left} more rows, each part "
                "of their time, and every change of the crossover."
            )
        )
    timed = " and ".join(f"the {FAMILIES[family].one}s" for family in shown)
    head = f"{printable(file.machine.id)}: why {timed} take the time they take"
    return "\n\n".join([wrapped(head), *filter(None, blocks)]) + "\n"


def quotient_text(file: File, own: File, compared: Sequence[Comparison]) -> str:
    """What makes the quotient of each network on the fastest way of the GPU, in the quantity of
    `own`, which is `file` in that, and what would change the crossover. Empty without a network on
    both devices."""
    blocks, quantity = [], TIME
    for family in TRAINING:
        rows = tuple(_own_rows(own, compared, family))
        found: dict[str, SpeedUp] = {}
        for one in speed_ups(replace(own, rows=rows), family, compared):
            found[one.model] = max(found.get(one.model, one), one, key=lambda own: own.ratio)
        if found:
            quantity = next(iter(found.values())).gpu.quantity
            table = quotient_table(file, list(found.values()))
            title = table.title.removesuffix(f", on {file.machine.id}")
            words = FAMILIES[family]
            blocks += [
                _block(table, f"{title}{words.beside('of')}"),
                _changes(counterfactuals(own, compared, family), words.over),
            ]
    if not blocks:
        return ""
    head = f"{printable(file.machine.id)}: what makes the {quantity.noun}"
    more = f"{quantity.noun.capitalize()} grows with time; why without --of says where that goes."
    return "\n\n".join([wrapped(head), *filter(None, blocks), wrapped(more)]) + "\n"


def _family(file: File, compared: Sequence[Comparison], rows: Sequence[Row]) -> list[str]:
    """The blocks on `rows`, which are of one family."""
    family, fastest = rows[0].family, _fastest(rows)
    words = FAMILIES[family]
    split, repaid = split_table(file, fastest), repayment_table(file, fastest)
    notes = tuple(note for note in split.notes if note != missing_gpu(file))
    return [
        _block(_largest(replace(split, notes=notes)), f"Where the time of {words.a} goes"),
        _changes(counterfactuals(file, compared, family), words.over),
        _block(thread_table(file, rows), f"What more CPU threads bring{words.beside('to')}"),
        _block(
            repaid.without("cpu", f"gpu_{words.short}_seconds", f"cpu_{words.short}_seconds"),
            f"After how many {words.one}s the GPU's start-up is repaid",
        ),
        _block(engine_table(file, fastest)),
    ]


def _block(table: Table, title: str = "") -> str:
    return as_text(table.without("params", title=title)).rstrip() if table.lines else ""


def _own_rows(file: File, compared: Sequence[Comparison], family: str) -> list[Row]:
    """The rows of `family` in f32: of epochs on a ladder those at the headline's batch, of each
    network's training steps those in its largest batch; no network that nobody trains, nor between
    the sizes of a ladder."""
    rows = familiar(training_rows(file, family))
    rows = [row for row in rows if not row.is_between] or rows
    rows = [row for row in rows if row.precision == _PLAIN] or rows
    if family == MINIBATCH:
        largest: dict[str, float] = {}
        for row in rows:
            model, batch = row.model, row.counters["batch"]
            largest[model] = max(batch, largest.get(model, batch))
        return [row for row in rows if row.counters["batch"] == largest[row.model]]
    of_all = own_batch(compared)
    own = [row for row in rows if not row.ladder or row.batch == (of_all or row.ladder.batch)]
    return own if any(row.ladder for row in own) else rows


def _fastest(rows: Sequence[Row]) -> list[Row]:
    """Of each network the fastest row of each device, the CPU's first."""
    fastest = []
    for members in networks(rows).values():
        devices = dict.fromkeys(row.device for row in members)
        fastest += [best(on_device(members, device)) for device in sorted(devices)]
    return fastest


def _largest(table: Table) -> Table:
    """split_table() with the largest parts in words, in place of a column for each."""
    parts = {one.key: at for at, one in enumerate(table.columns) if one.group == "%"}
    short = table.without(*parts, "bound_seconds")
    columns = [
        replace(one, group="", title=one.group if one.key == "bound" else one.title)
        for one in short.columns
    ]
    lines = tuple(
        (*cells, _parts({table.columns[at].title: line[at] for at in parts.values()}))
        for cells, line in zip(short.lines, table.lines, strict=True)
    )
    columns.append(Column("parts", "largest parts"))
    return replace(short, columns=tuple(columns), lines=lines)


def _parts(shares: dict[str, Cell]) -> Cell:
    """The largest of `shares` in percent: "products 62 %, launch 30 %"."""
    known = {name: cell.value for name, cell in shares.items() if isinstance(cell.value, float)}
    largest = sorted(known, key=lambda name: -abs(known[name]))[:_MOST_PARTS]
    words = [f"{name} {known[name]:.0f} %" for name in largest if abs(known[name]) >= 0.5]
    return text_cell(", ".join(words) or None)


def _changes(changes: Sequence[Counterfactual], over: str) -> str:
    """The changes that matter most, a sentence each."""
    sentences = [item.sentence for item in changes[:_MOST_CHANGES]]
    if not sentences:
        return ""
    left = len(changes) - len(sentences)
    lines = [f"What would change the crossover{over}", ""]
    for text in sentences:
        lines.append(wrapped(printable(sentence(text), 400), "  ", "- "))
    if left:
        lines.append(f"- {left} more with --all")
    return "\n".join(lines)
