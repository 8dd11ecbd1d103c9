# SPDX-License-Identifier: Apache-2.0
"""The tables of `why`: where the time goes, bounds, threads, what changes the crossover; and the
quotients of what else grows with time, such as energy, beside those of times. People are shown the
fastest way of each device, of each network in one batch size, and the columns that answer."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain

from plots import units
from plots.core.bounds import bounds
from plots.core.crossover import Comparison, Crossover, SpeedUp, speed_ups
from plots.core.crossover_words import crossover_words
from plots.core.headline import own_batch, way
from plots.core.network import best, familiar, networks, on_device, training_rows
from plots.core.series import series_key, series_labels
from plots.core.tables.cells import (
    Field,
    count_cell,
    count_field,
    network_fields,
    number_cell,
    number_field,
    seconds_cell,
    seconds_field,
    table_of,
    text_cell,
    text_field,
)
from plots.core.tables.formats import as_text, wrapped
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.features.why.analysis import (
    PARTS,
    UNATTRIBUTED,
    Counterfactual,
    Repayment,
    Threads,
    counterfactuals,
    is_profiled,
    missing_gpu,
    repayments,
    splits,
    threads,
)
from plots.file.axes import BUILT_IN
from plots.file.families import EPOCH, FAMILIES, MINIBATCH, TRAINING
from plots.file.quantities import TIME
from plots.file.rows import Bound, File, Row, median_of
from plots.text import counted, printable, sentence
from plots.units import written

_FIRST = "first_call_seconds"
_NO_BOUND = Bound(None, None, None)
_UNSURE = "The repetitions of both thread counts overlap: the difference may be chance."


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
    closing = [missing] if (missing := missing_gpu(file)) else []
    if slow := sum(is_profiled(row) and row.index not in found for row in rows):
        closing.append(
            f"Not split: {counted(slow, 'row')} whose profile took over 10 % longer than the row."
        )
    title = f"Where the time of {words.a} goes, on {file.machine.id}"
    return table_of(title, rows, fields, chain(notes, closing))


def thread_table(file: File, rows: Sequence[Row]) -> Table:
    """What more CPU threads bring to each network."""
    words, found = FAMILIES[_family(rows)], threads(rows)
    counts = sorted({count for item in found for count in item.rows})
    notes: dict[str, int] = {}

    def time(count: int) -> Field:
        def cell(item: Threads) -> Cell:
            return seconds_cell(item.rows[count].median) if count in item.rows else NOTHING

        return Column(f"seconds_{count}", counted(count, "thread"), True, "time"), cell

    def speed_up(count: int) -> Field:
        def cell(item: Threads) -> Cell:
            if count not in item.rows:
                return NOTHING
            said = [_UNSURE] if count in item.unsure else []
            ratio = item.speed_ups[count]
            return Cell(f"{ratio:.2f}", ratio, marks=marks(said, notes))

        return Column(f"speed_up_{count}", counted(count, "thread"), True, "speedup"), cell

    fields = (
        *network_fields("model", lambda item: next(iter(item.rows.values()))),
        *map(time, counts),
        *map(speed_up, counts[1:]),
    )
    title = f"What more threads bring{words.beside('in')}, on {file.machine.id}"
    return table_of(title, found, fields, notes)


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
            *map(_crossover, (item.before, item.after)),
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


def _crossover(found: Crossover) -> Cell:
    size = found.size
    return Cell(crossover_words(found)) if size is None else number_cell(size)


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
        blocks += _blocks(file, compared, rows)
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


def _blocks(file: File, compared: Sequence[Comparison], rows: Sequence[Row]) -> list[str]:
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
