# SPDX-License-Identifier: Apache-2.0
"""Ours beside another framework, pair by pair of repetitions: times, the ratio of pairs and its
interval, and both crossovers; as tables, and on the page.

docs/method/peers.md says how the pairs come about, and what their interval covers.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import comb

import numpy as np

from plots import units
from plots.core import statistics
from plots.core.bounds import bounds
from plots.core.crossover_words import crossover_words, instances_words
from plots.core.headline import way
from plots.core.network import difference
from plots.core.page.section import Block, Context, Section
from plots.core.programs import Answered, by_program
from plots.core.series import chosen_words
from plots.core.study import OURS, Study, once
from plots.core.tables.cells import (
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
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.file.axes import Items
from plots.file.families import FAMILIES, OF_NETWORKS
from plots.file.rows import Bound, File, Instances, Row, median_of
from plots.file.samples import FEW
from plots.text import printable

_SCRIPT = "script"  # of a training loop that loads its batches, which bench's rows do not
_ALIKE = ("device", "precision", "ranks", "cpu_threads", "memory", "mode", "loss", _SCRIPT)


@dataclass(frozen=True, slots=True)
class Pair:
    """A row of bench's and one of a peer's that do the same work on the same device.

    `ratio` is the median over the pairs of repetitions of their time over ours, None where one of
    the rows failed; [`low`, `high`] its 95 % interval, None where there are too few pairs, or none
    (`in_turn` is False). `most` is what the ratio would be at the row's bound, None where the file
    has no ceilings for it.
    """

    ours: Row
    theirs: Row
    ratio: float | None
    low: float | None
    high: float | None
    in_turn: bool
    most: float | None

    @property
    def rank(self) -> int:
        """Its place in a table: what is lost first, then what failed here, what is won, and what
        failed there."""
        if self.ratio is None:
            return 1 if self.ours.failure else 3
        return 2 if self.ratio >= 1 else 0

    @property
    def example(self) -> Row:
        """The row that counts what both do."""
        return self.theirs if self.ours.failure else self.ours


def pairs(file: File, every: bool = False) -> list[Pair]:
    """The fastest of ours against the fastest of each framework for each work, device and number of
    threads, in the order of the file; with `every`, against each of its rows."""
    matched: list[Pair] = []
    bound_of, of_theirs = bounds(file), _by_work(file.peers)
    for key, rows in _by_work(file.own_rows).items():
        ours = min(rows, key=seconds)
        same = [row for row in of_theirs.get(key, ()) if not difference(ours, row)]
        fastest: dict[str, Row] = {}
        for row in sorted(same, key=seconds):
            fastest.setdefault(row.program, row)
        others = same if every else fastest.values()
        matched += (_pair(ours, theirs, bound_of.get(ours.index)) for theirs in others)
    return matched


def failed_pairs(file: File) -> list[Pair]:
    """The work of which one side has a result and every row of the other failed: the one row, and
    of the other the first."""
    of_ours, of_theirs = _by_work(file.own_rows), _by_work(file.peers)
    wrong_ours, wrong_theirs = _by_work(file.own_rows, True), _by_work(file.peers, True)
    sides = []
    for key, failed in wrong_ours.items():
        if key not in of_ours:
            for program in dict.fromkeys(row.program for row in of_theirs.get(key, ())):
                same = [row for row in of_theirs[key] if row.program == program]
                sides.append((failed[0], min(same, key=seconds)))
    for key, failed in wrong_theirs.items():
        there = {row.program for row in of_theirs.get(key, ())}
        first = {row.program: row for row in reversed(failed) if row.program not in there}
        if key in of_ours:
            sides += [(min(of_ours[key], key=seconds), row) for row in first.values()]
    return [Pair(ours, theirs, None, None, None, False, None) for ours, theirs in sides]


def seconds(row: Row) -> float:
    """The median time of what the row is about: an epoch, a step, one product, one copy."""
    return row.median / row.count


def order_statistics(count: int) -> int | None:
    """The k for which the k-th smallest and k-th largest of `count` are an interval of at least
    95 % for their median, whatever the distribution; None where even the extremes are not."""
    k, outside = 0, 0.0
    while True:
        outside += 2 * comb(count, k) / 2**count
        if outside > 1 - statistics.CONFIDENCE:
            return k or None
        k += 1


def ratio_interval(ratios: np.ndarray, *sides: Instances) -> tuple[float, float] | None:
    """The 95 % interval of the median of `ratios`, those of pairs of repetitions, which instances
    of the two `sides` ran; None where there are too few.

    With instances enough on both sides it is of order statistics over the pairs of instances. Where
    a side has few, its share of what lies between instances is added, as in a crossover.
    """
    # Which pair of instances ran each pair of repetitions.
    ran = list(zip(*(side.of or (0,) * len(ratios) for side in sides), strict=True))
    numbers = {pair: number for number, pair in enumerate(dict.fromkeys(ran))}
    repeated = Instances(tuple(numbers[pair] for pair in ran))
    units = np.sort(statistics.units(ratios, repeated))
    k = order_statistics(len(units))
    if k is None:
        return None
    if not any(side.spread and len(set(side.of)) < FEW for side in sides):
        return float(units[k - 1]), float(units[-k])
    # A side's factor is 1 where it has instances enough: the pairs of instances vary by it.
    replicates = statistics.resampled_medians(ratios, len(sides), instances=repeated)
    for place, side in enumerate(sides):
        replicates = replicates * statistics.resampled_medians(
            np.ones(len(ratios)), place, instances=side
        )
    return statistics.interval(replicates)


def programs_of(file: File) -> list[str]:
    """The frameworks that have rows in the file, in its order."""
    return list(dict.fromkeys(row.program for row in file.peers))


def _by_work(rows: Sequence[Row], failed: bool = False) -> dict[Items, list[Row]]:
    """Those with a result, or those that `failed`, by what they compute and where."""
    groups: dict[Items, list[Row]] = {}
    for row in rows:
        counts = row.failure.outcome == "failed" if failed and row.failure else not row.failure
        if counts and failed == bool(row.failure) and row.device:
            alike = ((name, row.configuration.get(name, "")) for name in _ALIKE)
            key = (*row.axes.what(row.configuration), *alike)
            groups.setdefault(key, []).append(row)
    return groups


def _pair(ours: Row, theirs: Row, bound: Bound | None) -> Pair:
    most = None
    if bound is not None and bound.seconds:
        most = seconds(theirs) / (bound.seconds / ours.count)
    if len(ours.samples) != len(theirs.samples):
        return Pair(ours, theirs, seconds(theirs) / seconds(ours), None, None, False, most)
    ratios = theirs.samples / theirs.count / (ours.samples / ours.count)
    low, high = ratio_interval(ratios, theirs.instances, ours.instances) or (None, None)
    return Pair(ours, theirs, median_of(ratios), low, high, True, most)


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
        return tuple(sorted(each for each in row.configuration.items() if each[0] != _SCRIPT))

    rows = [row for row in file.peers if row.failure is None]
    lean = {work(row): row for row in rows if _SCRIPT not in row.configuration}
    usual = [row for row in rows if _SCRIPT in row.configuration]
    beside = {row.name: _pair(lean[work(row)], row, None) for row in usual if work(row) in lean}
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
    table = table_of(title, matched, fields, chain(notes, filter(None, [added])))
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
