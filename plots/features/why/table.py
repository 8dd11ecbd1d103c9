# SPDX-License-Identifier: Apache-2.0
"""The tables of `why`: where the time goes, bounds, threads, what changes the crossover; and the
quotients of what else grows with time, such as energy, beside those of times. People are shown the
fastest way of each device, of each network in one batch size, and the columns that answer."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from plots import units
from plots.core.bounds import bounds
from plots.core.crossover import Comparison, Crossover, SpeedUp
from plots.core.crossover_words import crossover_words
from plots.core.headline import way
from plots.core.series import series_key, series_labels
from plots.core.tables.cells import (
    Field,
    count_cell,
    count_field,
    network_fields,
    number_cell,
    number_field,
    seconds_field,
    table_of,
    text_cell,
    text_field,
)
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.features.why.analysis import (
    PARTS,
    UNATTRIBUTED,
    Counterfactual,
    Repayment,
    counterfactuals,
    repayments,
    splits,
    threads,
)
from plots.file.families import EPOCH, FAMILIES
from plots.file.rows import Bound, File, Row, median_of
from plots.text import counted, sentence
from plots.units import written

_FIRST = "first_call_seconds"
_NO_BOUND = Bound(None, None, None)
_MOST_PARTS = 2  # in words
_UNSURE = "The repetitions of both thread counts overlap: the difference may be chance."


def quotient_table(file: File, found: Sequence[SpeedUp]) -> Table:
    """A line for each of `found`, one at least, in another quantity than time; `file` has the times
    of the same rows."""
    quantity = found[0].gpu.quantity
    seconds = {row.index: row.median for row in file.rows if not row.failure}
    unit = f"{quantity.unit}_per_second"

    def values(one: SpeedUp) -> tuple[float, float]:
        return median_of(one.cpu.samples[0]), median_of(one.gpu.samples[0])

    def times(one: SpeedUp) -> tuple[float, float]:
        return seconds[one.cpu.rows[0]], seconds[one.gpu.rows[0]]

    def rates(one: SpeedUp) -> tuple[float, float]:
        (cpu, gpu), (cpu_time, gpu_time) = values(one), times(one)
        return cpu / cpu_time, gpu / gpu_time

    def ratio(key: str, title: str, of: Callable[[SpeedUp], tuple[float, float]]) -> Field:
        return number_field(key, title, lambda one: of(one)[0] / of(one)[1], "CPU / GPU")

    def rate(key: str, title: str, side: int) -> Field:
        column = Column(key, title, numeric=True, group=quantity.rate)
        return column, lambda one: Cell(quantity.show_rate(rates(one)[side]), rates(one)[side])

    fields = (
        text_field("model", "model", lambda one: one.model),
        count_field("params", "parameters", lambda one: one.parameters),
        (Column("batch", "batch", numeric=True), lambda one: text_cell(written(one.batch))),
        text_field("cpu", "CPU", lambda one: one.cpu.words.how),
        text_field("gpu", "GPU", way),
        ratio("ratio", quantity.noun, values),
        ratio("time_ratio", "time", times),
        ratio("rate_ratio", quantity.rate, rates),
        rate(f"cpu_{unit}", "CPU", 0),
        rate(f"gpu_{unit}", "GPU", 1),
    )
    made = " × ".join(f"CPU {noun} / GPU {noun}" for noun in ("time", quantity.rate))
    return table_of(f"{quantity.quotient()} = {made}, on {file.machine.id}", found, fields)


def split_table(file: File, rows: Sequence[Row]) -> Table:
    """Where the time of each of `rows` goes, in percent, and what bounds it. The rows of this table
    and of those below are of one family."""
    words = FAMILIES[_family(rows)]
    found = {split.row.index: split for split in splits(rows)}
    bound, labels = bounds(file), series_labels(rows)
    used = [part for part in PARTS if any(part in split.parts for split in found.values())]
    notes: dict[str, int] = {}

    def share(part: str) -> Field:
        def cell(row: Row) -> Cell:
            split = found.get(row.index)
            own = {**split.parts, UNATTRIBUTED: split.unattributed} if split else {}
            percent = 100 * own[part] / row.median if part in own else None
            return NOTHING if percent is None else Cell(f"{percent:.1f}", percent)

        return Column(f"{part}_percent", PARTS.get(part, part), True, "%"), cell

    def known(row: Row) -> Bound:
        return bound.get(row.index, _NO_BOUND)

    def by(row: Row) -> Cell:
        reason = known(row).reason
        return (
            Cell("–", marks=marks([f"No bound: {reason}."], notes))
            if reason
            else text_cell(known(row).name)
        )

    def reached(row: Row) -> Cell:
        percent = known(row).percent
        return NOTHING if percent is None else Cell(f"{units.significant(percent, 2)} %", percent)

    fields = (
        *network_fields("model"),
        text_field("on", "on", lambda row: labels[series_key(row)]),
        seconds_field(f"{words.short}_seconds", words.short, lambda row: row.median),
        *map(share, [*used, UNATTRIBUTED] if found else []),
        (Column("bound", "by", group="bound"), by),
        seconds_field("bound_seconds", "at least", lambda row: known(row).seconds, "bound"),
        (Column("bound_percent", "reached", True, "bound"), reached),
    )
    closing = []
    profiled = [row for row in rows if any(f"seconds_{part}" in row.counters for part in PARTS)]
    if slow := sum(row.index not in found for row in profiled):
        closing.append(
            f"Not split: {counted(slow, 'row')} whose profile took over 10 % longer than the row."
        )
    title = f"Where the time of {words.a} goes, on {file.machine.id}"
    return table_of(title, rows, fields, chain(notes, closing))


def thread_table(file: File, rows: Sequence[Row]) -> Table:
    """What more CPU threads bring to each network: its time on the fewest over its time."""
    words, found = FAMILIES[_family(rows)], threads(rows)
    counts = sorted({count for own in found for count in own})
    notes: dict[str, int] = {}

    def speed_up(count: int) -> Field:
        def cell(own: dict[int, Row]) -> Cell:
            if count not in own:
                return NOTHING
            base, row = next(iter(own.values())), own[count]
            overlap = row.minimum <= base.maximum and base.minimum <= row.maximum
            said = [_UNSURE] if overlap and row is not base else []
            ratio = base.median / row.median
            return Cell(f"{ratio:.2f}", ratio, marks=marks(said, notes))

        return Column(f"speed_up_{count}", counted(count, "thread"), True, "speedup"), cell

    def time(count: int) -> Field:
        def median(own: dict[int, Row]) -> float | None:
            return own[count].median if count in own else None

        return seconds_field(f"seconds_{count}", counted(count, "thread"), median, "time")

    fields = (
        *network_fields("model", lambda own: next(iter(own.values()))),
        *map(time, counts),
        *map(speed_up, counts[1:]),
    )
    title = f"What more threads bring{words.beside('in')}, on {file.machine.id}"
    return table_of(title, found, fields, notes)


def counterfactual_table(file: File, compared: Sequence[Comparison], family: str = EPOCH) -> Table:
    """What would change the crossovers of `family`; each line's note says it as a sentence."""
    found = counterfactuals(file, compared, family)
    numbers = {id(item): number for number, item in enumerate(found, 1)}

    def size(key: str, of: Callable[[Counterfactual], Crossover]) -> Field:
        def cell(item: Counterfactual) -> Cell:
            size = of(item).size
            return Cell(crossover_words(of(item))) if size is None else number_cell(size)

        return Column(key, key, True, "crossover"), cell

    fields = (
        (
            Column("change", "change"),
            lambda item: Cell(item.change, item.change, marks=(numbers[id(item)],)),
        ),
        text_field("held", "all else", lambda item: item.held),
        size("before", lambda item: item.before),
        size("after", lambda item: item.after),
        text_field("from", "from", lambda item: "measured" if item.measured else "the profile"),
    )
    title = f"What changes the crossover{FAMILIES[family].over}, on {file.machine.id}"
    return table_of(title, found, fields, [sentence(item.sentence) for item in found])


def repayment_table(file: File, rows: Sequence[Row]) -> Table:
    """After how many iterations the start-up of each GPU row is repaid."""
    words, labels = FAMILIES[_family(rows)], series_labels(rows)
    one = words.short

    def first(key: str, title: str, of: Callable[[Repayment], Row]) -> Field:
        return seconds_field(key, title, lambda item: of(item).counters[_FIRST], "first call")

    fields = (
        *network_fields("model", lambda item: item.gpu),
        text_field("gpu", "GPU", lambda item: labels[series_key(item.gpu)]),
        text_field("cpu", "against", lambda item: labels[series_key(item.cpu)]),
        first("gpu_first_seconds", "GPU", lambda item: item.gpu),
        first("cpu_first_seconds", "CPU", lambda item: item.cpu),
        seconds_field(f"gpu_{one}_seconds", "GPU", lambda item: item.gpu.median, one),
        seconds_field(f"cpu_{one}_seconds", "CPU", lambda item: item.cpu.median, one),
        (
            Column(f"{one}s", f"repaid after {one}s", numeric=True),
            lambda item: Cell("never") if item.iterations is None else count_cell(item.iterations),
        ),
    )
    title = f"When the GPU's start-up is repaid{words.beside('in')}, on {file.machine.id}"
    return table_of(title, repayments(rows), fields)


def engine_table(file: File, rows: Sequence[Row]) -> Table:
    """Which engines of a GPU's library compute the convolutions of a step."""
    labels, family = series_labels(rows), FAMILIES[_family(rows)]
    fields = (
        *network_fields("model", lambda of: of[0]),
        text_field("on", "on", lambda of: labels[series_key(of[0])]),
        text_field("engine", "pass and engine", lambda of: of[1]),
        count_field("convolutions", "a step", lambda of: of[2]),
    )
    found = [(row, name, count) for row in rows for name, count in row.convolutions.items()]
    title = f"What computes the convolutions{family.beside('in')}, on {file.machine.id}"
    return table_of(title, found, fields)


def _family(rows: Sequence[Row]) -> str:
    return rows[0].family if rows else EPOCH


def largest_parts(table: Table) -> Table:
    """split_table() with the largest parts in words, in place of a column for each."""
    parts = {one.key: at for at, one in enumerate(table.columns) if one.group == "%"}
    short = table.without(*parts, "bound_seconds", "params")
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
