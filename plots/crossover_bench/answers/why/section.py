# SPDX-License-Identifier: Apache-2.0
"""Why: where the time of an epoch or a training step goes, what bounds it, what threads bring, what
would change the crossover; and of what the quotient of another quantity is made. People are shown
the fastest way of each device, of each network in one batch size, and the columns that answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from crossover_bench.answers.why.analysis import (
    PARTS,
    UNATTRIBUTED,
    Counterfactual,
    Repayment,
    counterfactuals,
    fastest,
    foremost_rows,
    repayments,
    splits,
    threads,
)
from crossover_bench.counts.bounds import bounds
from crossover_bench.curves.crossover import Crossover, SpeedUp
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.headline import way
from crossover_bench.curves.network import training_rows
from crossover_bench.curves.series import series_key, series_labels
from crossover_bench.files.families import EPOCH, FAMILIES, TRAINING
from crossover_bench.files.quantities import Quantity
from crossover_bench.files.rows import Bound, File, Row, median_of
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
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
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.study.study import Study
from crossover_bench.words import units
from crossover_bench.words.text import counted, sentence

if TYPE_CHECKING:
    from crossover_bench.show.charts.style import Chart

_FIRST = "first_call_seconds"
_NO_BOUND = Bound(None, None, None)
_MOST_PARTS = 2  # in words
_UNSURE = "The repetitions of both thread counts overlap: the difference may be chance."


def quotient_table(file: File, ratios: Sequence[SpeedUp]) -> Table:
    """A line for each of `ratios`, one at least, in another quantity than time; `file` has the
    times of the same rows."""
    quantity = ratios[0].gpu.quantity
    seconds = {row.index: row.median for row in file.rows if not row.failure}
    unit = f"{quantity.unit}_per_second"

    def values(of: SpeedUp) -> tuple[float, float]:
        return median_of(of.cpu.samples[0]), median_of(of.gpu.samples[0])

    def times(of: SpeedUp) -> tuple[float, float]:
        return seconds[of.cpu.rows[0]], seconds[of.gpu.rows[0]]

    def rates(of: SpeedUp) -> tuple[float, float]:
        (cpu, gpu), (cpu_time, gpu_time) = values(of), times(of)
        return cpu / cpu_time, gpu / gpu_time

    def ratio(key: str, title: str, of: Callable[[SpeedUp], tuple[float, float]]) -> Field:
        return number_field(key, title, lambda line: of(line)[0] / of(line)[1], "CPU / GPU")

    def rate(key: str, title: str, side: int) -> Field:
        column = Column(key, title, numeric=True, group=quantity.rate)
        return column, lambda of: Cell(quantity.show_rate(rates(of)[side]), rates(of)[side])

    fields = (
        text_field("model", "model", lambda of: of.model),
        count_field("params", "parameters", lambda of: of.parameters),
        (Column("batch", "batch", numeric=True), lambda of: text_cell(units.written(of.batch))),
        text_field("cpu", "CPU", lambda of: of.cpu.words.how),
        text_field("gpu", "GPU", way),
        ratio("ratio", quantity.noun, values),
        ratio("time_ratio", "time", times),
        ratio("rate_ratio", quantity.rate, rates),
        rate(f"cpu_{unit}", "CPU", 0),
        rate(f"gpu_{unit}", "GPU", 1),
    )
    made = " × ".join(f"CPU {noun} / GPU {noun}" for noun in ("time", quantity.rate))
    return table_of(f"{quantity.quotient()} = {made}, on {file.machine.id}", ratios, fields)


def split_table(file: File, rows: Sequence[Row]) -> Table:
    """Where the time of each of `rows` goes, in percent, and what bounds it. The rows of this table
    and of those below are of one family."""
    words = FAMILIES[_family(rows)]
    split_of = {split.row.index: split for split in splits(rows)}
    bound, labels = bounds(file), series_labels(rows)
    used = [part for part in PARTS if any(part in split.parts for split in split_of.values())]
    notes: dict[str, int] = {}

    def share(part: str) -> Field:
        def cell(row: Row) -> Cell:
            split = split_of.get(row.index)
            parts = {**split.parts, UNATTRIBUTED: split.unattributed} if split else {}
            if part not in parts:
                return NOTHING
            percent = 100 * parts[part] / row.median
            return Cell(f"{percent:.1f}", percent)

        return Column(f"{part}_percent", PARTS.get(part, part), True, "%"), cell

    def known(row: Row) -> Bound:
        return bound.get(row.index, _NO_BOUND)

    def by(row: Row) -> Cell:
        reason = known(row).reason
        return (
            Cell("–", marks=marks([f"No bound: {reason}."], notes))
            if reason
            else text_cell(_bound_name(known(row), row))
        )

    def reached(row: Row) -> Cell:
        percent = known(row).percent
        return NOTHING if percent is None else Cell(f"{units.significant(percent, 2)} %", percent)

    fields = (
        *network_fields("model"),
        text_field("on", "on", lambda row: labels[series_key(row)]),
        seconds_field(f"{words.short}_seconds", words.short, lambda row: row.median),
        *map(share, [*used, UNATTRIBUTED] if split_of else []),
        (Column("bound", "by", group="bound"), by),
        seconds_field("bound_seconds", "at least", lambda row: known(row).seconds, "bound"),
        (Column("bound_percent", "reached", True, "bound"), reached),
    )
    closing = []
    profiled = [row for row in rows if any(f"seconds_{part}" in row.counters for part in PARTS)]
    if slow := sum(row.index not in split_of for row in profiled):
        closing.append(
            f"Not split: {counted(slow, 'row')} whose profile took over 10 % longer than the row."
        )
    title = f"Where the time of {words.a} goes, on {file.machine.id}"
    return table_of(title, rows, fields, chain(notes, closing))


def thread_table(file: File, rows: Sequence[Row]) -> Table:
    """What more CPU threads bring to each network: its time on the fewest over its time."""
    words, networks = FAMILIES[_family(rows)], threads(rows)
    counts = sorted({count for by_count in networks for count in by_count})
    notes: dict[str, int] = {}

    def speed_up(count: int) -> Field:
        def cell(by_count: dict[int, Row]) -> Cell:
            if count not in by_count:
                return NOTHING
            base, row = next(iter(by_count.values())), by_count[count]
            overlap = row.minimum <= base.maximum and base.minimum <= row.maximum
            doubts = [_UNSURE] if overlap and row is not base else []
            ratio = base.median / row.median
            return Cell(f"{ratio:.2f}", ratio, marks=marks(doubts, notes))

        return Column(f"speed_up_{count}", counted(count, "thread"), True, "speedup"), cell

    def time(count: int) -> Field:
        def median(by_count: dict[int, Row]) -> float | None:
            return by_count[count].median if count in by_count else None

        return seconds_field(f"seconds_{count}", counted(count, "thread"), median, "time")

    fields = (
        *network_fields("model", lambda by_count: next(iter(by_count.values()))),
        *map(time, counts),
        *map(speed_up, counts[1:]),
    )
    title = f"What more threads bring{words.beside('in')}, on {file.machine.id}"
    return table_of(title, networks, fields, notes)


def counterfactual_table(study: Study, family: str = EPOCH) -> Table:
    """What would change the crossovers of `family`; each line's note says it as a sentence."""
    changes = counterfactuals(study, family)
    numbers = {id(change): number for number, change in enumerate(changes, 1)}

    def size(key: str, of: Callable[[Counterfactual], Crossover]) -> Field:
        def cell(change: Counterfactual) -> Cell:
            size = of(change).size
            return Cell(crossover_words(of(change))) if size is None else number_cell(size)

        return Column(key, key, True, "crossover"), cell

    fields = (
        (
            Column("change", "change"),
            lambda change: Cell(change.change, change.change, marks=(numbers[id(change)],)),
        ),
        text_field("held", "all else", lambda change: change.held),
        size("before", lambda change: change.before),
        size("after", lambda change: change.after),
        text_field("from", "from", lambda each: "measured" if each.measured else "the profile"),
    )
    title = f"What changes the crossover{FAMILIES[family].over}, on {study.file.machine.id}"
    return table_of(title, changes, fields, [sentence(change.sentence) for change in changes])


def repayment_table(file: File, rows: Sequence[Row]) -> Table:
    """After how many iterations the start-up of each GPU row is repaid."""
    words, labels = FAMILIES[_family(rows)], series_labels(rows)
    noun = words.short

    def first(key: str, title: str, of: Callable[[Repayment], Row]) -> Field:
        return seconds_field(key, title, lambda line: of(line).counters[_FIRST], "first call")

    def iterations(repayment: Repayment) -> Cell:
        count = repayment.iterations
        return Cell("never") if count is None else count_cell(count)

    fields = (
        *network_fields("model", lambda sides: sides.gpu),
        text_field("gpu", "GPU", lambda sides: labels[series_key(sides.gpu)]),
        text_field("cpu", "against", lambda sides: labels[series_key(sides.cpu)]),
        first("gpu_first_seconds", "GPU", lambda sides: sides.gpu),
        first("cpu_first_seconds", "CPU", lambda sides: sides.cpu),
        seconds_field(f"gpu_{noun}_seconds", "GPU", lambda sides: sides.gpu.median, noun),
        seconds_field(f"cpu_{noun}_seconds", "CPU", lambda sides: sides.cpu.median, noun),
        (Column(f"{noun}s", f"repaid after {noun}s", numeric=True), iterations),
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
    engines = [(row, name, count) for row in rows for name, count in row.convolutions.items()]
    title = f"What computes the convolutions{family.beside('in')}, on {file.machine.id}"
    return table_of(title, engines, fields)


def _bound_name(bound: Bound, row: Row) -> str | None:
    """The bound in a word: what is launched once is not bound by launches."""
    launches = row.minimum_work.launches if row.minimum_work else 0
    return "one launch" if bound.name == "launch" and launches == 1 else bound.name


def _family(rows: Sequence[Row]) -> str:
    return rows[0].family if rows else EPOCH


def largest_parts(table: Table) -> Table:
    """split_table() with the largest parts in words, in place of a column for each."""
    parts = {column.key: at for at, column in enumerate(table.columns) if column.group == "%"}
    short = table.without(*parts, "bound_seconds", "params")
    columns = [
        replace(column, group="", title=column.group if column.key == "bound" else column.title)
        for column in short.columns
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


_NOTES = (
    "The parts were measured apart from the timed epochs and steps; what they do not sum up to is "
    "called unattributed, and negative where the profiled ones were the slower ones.",
    "The bound is the longest of the times that arithmetic, memory, copies and launches would take "
    "at the ceilings measured in the same file; its percentage is what was reached of it.",
)
_MOST = 3  # changes that stand before the tables


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where no row of theirs has a profile."""
    shown = [
        file
        for file in files[: context.detailed]
        if any(splits(training_rows(file, family)) for family in TRAINING)
    ]
    return of_times(shown, context) if shown else None


def of_times(files: Sequence[File], context: Context) -> Section | None:
    """Where the times of `files` go; None where no row of theirs trains."""
    shown = [file for file in files if any(training_rows(file, each) for each in TRAINING)]
    if not shown:
        return None
    studies = list(map(context.study, shown))
    drawn = context.draw(draw_all, studies)
    families = [each for each in TRAINING if any(training_rows(file, each) for file in shown)]
    timed = " and ".join(FAMILIES[each].a for each in families)
    return Section(
        title="Why",
        anchor="why",
        lead=f"Where the time of {timed} goes on each device, and what would change the answer.",
        blocks=tuple(
            _of_times(study, charts, context) for study, charts in zip(studies, drawn, strict=True)
        ),
        notes=_NOTES,
    )


def draw_all(study: Study) -> list[Chart]:
    """A chart of each family of a file that trains and was profiled."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.answers.why.chart import draw_why  # noqa: PLC0415

    return [chart for family in TRAINING if (chart := draw_why(study, family))]


def _of_times(study: Study, charts: Sequence[Chart], context: Context) -> Block:
    file, points, tables = study.file, list[str](), list[Table]()
    for family in TRAINING:
        rows, foremost = training_rows(file, family), foremost_rows(study, family)
        best, first = fastest(foremost), (f"{FAMILIES[family].short}s", "gpu_first_seconds")
        points += _changes(study, family)
        tables += [
            split_table(file, rows)
            .shortened(largest_parts(split_table(file, best)))
            .of_rows(family),
            thread_table(file, rows).shortened(thread_table(file, foremost)).of_rows(family),
            counterfactual_table(study, family).as_folded(),
            repayment_table(file, rows)
            .shortened(repayment_table(file, best).led_by("model", *first))
            .of_rows(family),
            engine_table(file, rows).as_folded(),
        ]
    return Block(
        machine=file.machine.id,
        points=tuple(points),
        pictures=context.pictures(file, charts),
        tables=tuple(table for table in tables if table.lines),
        notes=_missing(file),
    )


def _missing(file: File) -> tuple[str, ...]:
    """What a GPU would add to a file without one, in a sentence."""
    trained = [row for family in TRAINING for row in training_rows(file, family)]
    if any(row.device != "cpu" for row in trained):
        return ()
    return (
        f"There is no GPU row here: {file.machine.gpu_reason or 'no GPU row has a result'}. A file "
        "with both sides would add the time of launches, copies and waits, the crossover, what "
        "resident data, CUDA graphs or more CPU threads do to it, and the number of epochs or "
        "steps that repay the GPU's start-up.",
    )


def of_quotients(file: File, study: Study, quantity: Quantity) -> Section | None:
    """What makes the quotients of `study`, which is of `file` in another `quantity` than time, and
    what changes its crossovers; None without a network on both devices."""
    points, tables = list[str](), list[Table]()
    for family in TRAINING:
        ratios = study.speed_ups(family)
        rows = {row.index for row in foremost_rows(study, family)}
        best: dict[str, SpeedUp] = {}
        for each in ratios:
            if each.gpu.rows[0] in rows:
                best[each.model] = max(best.get(each.model, each), each, key=lambda of: of.ratio)
        if ratios:
            shown = sorted(best.values() or ratios, key=lambda each: each.parameters)
            short = quotient_table(file, shown).led_by("model", "ratio", "time_ratio", "rate_ratio")
            tables.append(quotient_table(file, ratios).shortened(short))
        points += _changes(study, family)
        tables.append(counterfactual_table(study, family).as_folded())
    if not any(table.lines for table in tables):
        return None
    noun = quantity.noun
    block = Block(
        machine=file.machine.id,
        title=f"what makes the {noun}",
        points=tuple(points),
        tables=tuple(tables),
        notes=(f"{noun.capitalize()} grows with time; why without --of says where that goes.",),
    )
    return Section(title="Why", anchor="why", blocks=(block,))


def _changes(study: Study, family: str) -> list[str]:
    """The changes that matter most, a sentence each."""
    changes = counterfactuals(study, family)
    return [sentence(change.sentence) for change in changes if change.is_sure][:_MOST]
