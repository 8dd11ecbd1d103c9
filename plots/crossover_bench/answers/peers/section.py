# SPDX-License-Identifier: Apache-2.0
"""Ours beside another framework: times, the ratio of pairs and its interval, and both crossovers;
as tables, and on the page."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from crossover_bench.answers.peers.analysis import (
    SCRIPT,
    Pair,
    failed_pairs,
    pair_of,
    pairs,
    programs_of,
    seconds,
)
from crossover_bench.curves.crossover_words import crossover_words, instances_words
from crossover_bench.curves.headline import way
from crossover_bench.curves.series import chosen_words
from crossover_bench.files.axes import Items
from crossover_bench.files.families import FAMILIES, OF_NETWORKS
from crossover_bench.files.rows import File, Row
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    FAILED,
    Field,
    count_cell,
    interval_fields,
    network_fields,
    number_field,
    range_cell,
    seconds_field,
    shown_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.study.programs import Answered, by_program
from crossover_bench.study.study import OURS, Study, once
from crossover_bench.words import units
from crossover_bench.words.text import printable

_FEW = "Too few pairs of repetitions, or of instances, for a 95 % interval, which needs 6."
_APART = "Not measured in turn: the ratio of the medians, without an interval."


@once
def peer_tables(study: Study, every: bool = False) -> list[Table]:
    """A table for each family and framework, a line for each pairs() and failed_pairs() of a file,
    those that we lose first; and one of the crossovers where a framework has both devices. What
    trains comes first, copies last."""
    file, groups = study.file, dict[tuple[str, str], list[Pair]]()
    for pair in sorted([*pairs(file, every), *failed_pairs(file)], key=lambda pair: pair.rank):
        groups.setdefault((pair.ours.family, pair.theirs.program), []).append(pair)
    there = dict.fromkeys(family for family, _ in groups)
    families = [name for name in FAMILIES if name in there]
    families += [name for name in there if name not in FAMILIES]
    tables = [
        _table(file, family, program, groups[family, program])
        for family in families
        for program in programs_of(file)
        if (family, program) in groups
    ]
    rest = script_table(file), crossover_table(study)
    return [*filter(None, (as_is_table(file), *tables, *rest))]


def as_is_table(file: File) -> Table | None:
    """Modules that PyTorch trained as they are, which bench has no row of; None without any."""
    rows = [row for row in file.peers if row.as_is and row.failure is None]
    if not rows:
        return None
    notes: dict[str, int] = {}

    def median(row: Row) -> Cell:
        return Cell(units.seconds(seconds(row)), seconds(row), marks=marks(row.warnings, notes))

    fields = (
        *network_fields(),
        text_field("iteration", "of", lambda row: FAMILIES[row.family].a),
        text_field("on", "on", _where),
        text_field("how", "how", _how),
        (Column("seconds", "median", numeric=True), median),
        (Column("range", "from … to", numeric=True), range_cell),
    )
    reasons = dict.fromkeys(f"{row.model}: {row.as_is}" for row in rows)
    return table_of("Modules as they are, in PyTorch alone", rows, fields, chain(notes, reasons))


def script_table(file: File) -> Table | None:
    """What a framework takes as people write it, beside its row of the same work whose batches lie
    ready; None without any."""

    def work(row: Row) -> Items:
        return tuple(sorted(each for each in row.configuration.items() if each[0] != SCRIPT))

    rows = [row for row in file.peers if row.failure is None]
    lean = {work(row): row for row in rows if SCRIPT not in row.configuration}
    usual = [row for row in rows if SCRIPT in row.configuration]
    beside = {row.name: pair_of(lean[work(row)], row, None) for row in usual if work(row) in lean}
    notes: dict[str, int] = {}

    def in_words(row: Row) -> str:
        return ", ".join((row.axes["program"].word(row.program), _where(row)))

    def of_pair(value: Callable[[Pair], float | None]) -> Callable[[Row], float | None]:
        return lambda row: value(beside[row.name]) if row.name in beside else None

    def ratio(row: Row) -> Cell:
        pair = beside.get(row.name)
        return _ratio_cell(pair, notes) if pair else NOTHING

    fields = (
        *network_fields(),
        text_field("iteration", "of", lambda row: FAMILIES[row.family].a),
        text_field("on", "on", in_words),
        seconds_field("seconds", "ready", of_pair(lambda pair: seconds(pair.ours))),
        seconds_field("usual_seconds", "as written", seconds),
        (Column("ratio", "times as long", numeric=True), ratio),
        shown_field("low", "from", of_pair(lambda pair: pair.low), units.significant, "95 %"),
        shown_field("high", "to", of_pair(lambda pair: pair.high), units.significant, "95 %"),
    )
    title = "What a loader and a loss read in each step cost"
    return table_of(title, usual, fields, notes) if usual else None


def crossover_table(study: Study) -> Table | None:
    """From which size the GPU wins, by our two curves and by a framework's; None without the
    latter."""
    told = by_program(study)
    others = [each for each in told if each.of != OURS]
    if not others:
        return None

    def from_where(each: Answered) -> str:
        return crossover_words(each.comparison.crossover)

    fields: tuple[Field, ...] = (
        text_field("whose", "with", lambda each: each.label),
        text_field("cpu", "CPU", lambda each: each.comparison.cpu.label),
        text_field("gpu", "GPU", lambda each: way(each.comparison)),
        text_field(
            "answer", "the GPU wins", lambda each: crossover_words(each.comparison.crossover)
        ),
        (
            Column("crossover", "from", numeric=True, for_programs=True),
            lambda each: count_cell(each.comparison.crossover.size),
        ),
    )
    title = f"From which size the GPU trains {others[0].comparison.networks} faster"
    return table_of(title, told, fields)


def missing_table(file: File) -> Table:
    """The rows of the frameworks without a result, and why."""
    rows = [row for row in file.peers if row.failure]
    return table_of(f"Rows of {names_of(file)} without a result", rows, FAILED)


def name_of(file: File, program: str) -> str:
    """A framework of the file in words."""
    row = next(row for row in file.peers if row.program == program)
    return row.axes["program"].word(program)


def names_of(file: File) -> str:
    """All frameworks of the file in words: "PyTorch and JAX"."""
    return " and ".join(name_of(file, program) for program in programs_of(file))


def _table(file: File, family: str, program: str, matched: Sequence[Pair]) -> Table:
    notes: dict[str, int] = {}
    framework = name_of(file, program)

    def time(
        key: str, group: str, of: Callable[[Pair], Row], wins: Callable[[Pair], bool]
    ) -> Field:
        def cell(pair: Pair) -> Cell:
            row = of(pair)
            if row.failure is None:
                return Cell(units.seconds(seconds(row)), seconds(row), bold=wins(pair))
            taken = row.failure.seconds
            return Cell("failed", marks=marks([_failed(pair, row, taken)], notes))

        return Column(key, "median", True, group), cell

    def what(pair: Pair) -> str:
        axes, configuration = pair.example.axes, pair.example.configuration
        return ", ".join(axes.words(configuration, roles=["what"], without={"family", "cache"}))

    fields = (
        *(
            network_fields(of=lambda pair: pair.example)
            if family in OF_NETWORKS
            else [text_field("what", "what", what)]
        ),
        text_field("precision", "precision", lambda pair: pair.ours.configuration.get("precision")),
        text_field("on", "on", lambda pair: _where(pair.ours)),
        time("seconds", "ours", lambda pair: pair.ours, lambda pair: (pair.low or 0) > 1),
        text_field("how", "how", lambda pair: _how(pair.ours), "ours"),
        time(
            *("peer_seconds", framework, lambda pair: pair.theirs),
            lambda pair: pair.high is not None and pair.high < 1,
        ),
        text_field("peer_how", "how", lambda pair: _how(pair.theirs), framework),
        (Column("ratio", f"{framework} / ours", numeric=True), lambda of: _ratio_cell(of, notes)),
        *interval_fields(),
        number_field("most", "ratio if we reached our bound", lambda pair: pair.most),
    )
    added = instances_words(file, [family]) if any(pair.low for pair in matched) else ""
    work = FAMILIES[family].noun if family in FAMILIES else "copy"
    title = f"What {framework} takes for the same {work}"
    table = table_of(title, matched, fields, chain(notes, filter(None, [added]))).of_rows(family)
    return table if any(pair.most for pair in matched) else table.without("most")


def _ratio_cell(pair: Pair, notes: dict[str, int]) -> Cell:
    """The ratio, with what casts doubt on it in `notes`."""
    if pair.ratio is None:
        return NOTHING
    doubts = list(dict.fromkeys((*pair.ours.warnings, *pair.theirs.warnings)))
    if not pair.in_turn:
        doubts.append(_APART)
    elif pair.low is None:
        doubts.append(_FEW)
    return Cell(units.significant(pair.ratio), pair.ratio, marks=marks(doubts, notes))


def _failed(pair: Pair, row: Row, taken: float | None) -> str:
    """That `row` has no result, and why, in a sentence."""
    whose = "Ours" if row is pair.ours else row.axes["program"].word(row.program)
    model = f" of {row.model}" if row.model else ""
    precision = f" in {row.precision}" if "precision" in row.configuration else ""
    time = f" after {units.seconds(taken)}" if taken else ""
    message = row.failure.message if row.failure else ""
    return f"{whose}{model}{precision} failed{time}: {printable(message, 300)}."


def _where(row: Row) -> str:
    named = {key: row.configuration[key] for key in _PLACE if key in row.configuration}
    return ", ".join(row.axes.words(named))


_PLACE = ("copies", "device", "ranks", "cpu_threads")


def _how(row: Row) -> str:
    if chosen := chosen_words(row):
        return chosen
    without = ["program", *_PLACE]
    # What is compiled is not done operation by operation, which is the plainest execution.
    if "compiler" in row.configuration and row.execution == row.axes["execution"].plainest:
        without.append("execution")
    return ", ".join(row.axes.words(row.configuration, roles=["how"], without=without))


_FIRST = (
    *("network", "iteration", "what", "on", "ratio", "low", "high", "seconds", "peer_seconds"),
    *("usual_seconds", "most", "params"),
)
_NOTES = (
    "Theirs / ours above 1: ours is so many times as fast. Both took their repetitions in turn; "
    "the ratio is the median over the pairs, with what differs between instances of both programs "
    "in its interval. Of several ways to do the same the fastest of each side is shown. At our "
    "bound: the ratio of a row that takes no longer than the machine's measured ceilings let it. "
    "Bold: the interval says who wins. What we lose stands first, then what failed here. "
    "docs/method/peers.md says what is alike in both and what is not.",
)

_ALONE = "Modules as their users wrote them, verified against their own float64."


def build(files: Sequence[File], context: Context, every: bool = False) -> Section | None:
    """The section on `files`; None where none has rows of a peer. `every` row of theirs, or the
    fastest alone."""
    shown = context.showing(files, lambda file: file.peers)
    if not shown:
        return None
    names = " and ".join(dict.fromkeys(_names(shown)))
    return Section(
        title=f"What you would get from {names}",
        anchor="pytorch",
        lead=_ALONE
        if all(row.as_is or row.failure for file in shown for row in file.peers)
        else f"The same networks from the same start on the same data, trained and used with "
        f"{names} as their users write it, and verified in the same way.",
        blocks=tuple(_block(context.study(file), every) for file in shown),
        notes=_NOTES,
    )


def _names(files: Sequence[File]) -> Iterator[str]:
    for file in files:
        yield from (name_of(file, program) for program in programs_of(file))


def _block(study: Study, every: bool) -> Block:
    file, libraries = study.file, study.file.software.libraries
    versions = [f"{name} {libraries.get(name, 'of an unknown version')}" for name in _names([file])]
    tables = []
    for table in peer_tables(study, every):
        is_of_parts = table.columns[0].key == "what"  # products and copies
        tables.append(replace(table.led_by(*_FIRST).in_brief(), folded=is_of_parts))
    return Block(
        machine=file.machine.id,
        lead=f"{', '.join(versions)}.",
        tables=(*tables, missing_table(file).as_folded()),
    )
