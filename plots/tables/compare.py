# SPDX-License-Identifier: Apache-2.0
"""A comparison of two files as tables."""

from __future__ import annotations

from plots import units
from plots.analysis.compare import FEWEST_REPETITIONS, SIGNIFICANCE, Comparison, Pair
from plots.row_names import short_names
from plots.rows import File
from plots.tables.table import NOTHING, Cell, Column, Table

_VERDICTS = ("faster", "slower", "same", "ambiguous")

_RUNS = (
    "The test knows the spread within each run. What differs from run to run (clock, neighbours, "
    "where memory lies) counts as a difference, too: to see how much that is, compare two runs of "
    "the baseline."
)

_COLUMNS = (
    Column("name", "row"),
    Column("verdict", "other is"),
    Column("baseline_seconds", "baseline", True, "median time"),
    Column("other_seconds", "other", True, "median time"),
    Column("ratio", "ratio", True, "other / baseline"),
    Column("ratio_low", "from", True, "other / baseline"),
    Column("ratio_high", "to", True, "other / baseline"),
    Column("p", "p", True),
)


def compare_tables(comparison: Comparison) -> list[Table]:
    """The rows that were compared, and those that were not, where there are any."""
    rows = [pair.baseline for pair in comparison.pairs]
    rows += [unmatched.row for unmatched in comparison.unmatched]
    names, common = short_names(rows)
    tables = [_ratios(comparison, names, common)]
    if comparison.unmatched:
        lines = [
            (
                Cell(names[unmatched.row.name], unmatched.row.name),
                Cell(unmatched.reason, unmatched.reason),
            )
            for unmatched in comparison.unmatched
        ]
        columns = Column("name", "row"), Column("reason", "not compared, because")
        title = f"Rows that could not be compared: {len(lines)}"
        tables.append(Table(title, columns, tuple(lines)))
    return tables


def headline(comparison: Comparison) -> str:
    """How many rows have which verdict: "24 rows compared: 3 faster, 2 slower, …"."""
    counts = [f"{comparison.count(verdict)} {verdict}" for verdict in _VERDICTS]
    total = len(comparison.pairs)
    return f"{total} {_rows(total)} compared: {', '.join(counts)}"


def described(file: File) -> str:
    """Machine, commit and date of `file`."""
    commit = file.software.commit[:7] or "unknown"
    changed = ", uncommitted changes" if file.software.dirty else ""
    return f"{file.machine.id}, commit {commit}{changed}, {file.date:%Y-%m-%d}"


def _rows(count: int) -> str:
    return "row" if count == 1 else "rows"


def _ratios(comparison: Comparison, names: dict[str, str], common: str) -> Table:
    notes = [
        f"Baseline: {comparison.baseline.path.name}: {described(comparison.baseline)}.",
        f"Other: {comparison.other.path.name}: {described(comparison.other)}.",
        f"{headline(comparison)}.{_by_chance(comparison)}",
        "A ratio above 1: the other file is slower. Same: the whole 95 % interval is within "
        f"{100 * comparison.minimum_effect:.3g} % of 1. Faster, slower: the ratio is beyond that, "
        f"its interval does not hold 1, and p is below {SIGNIFICANCE}. Ambiguous: neither.",
    ]
    if comparison.pairs:
        notes.append(_RUNS)
    if common:
        notes.append(f"All rows: {common}.")
    if comparison.misnamed:
        count = comparison.misnamed
        notes.append(
            f"{count} {_rows(count)} {'has' if count == 1 else 'have'} the same name but "
            f"{'trains' if count == 1 else 'train'} differently (optimizer, data or size), and "
            f"{'is' if count == 1 else 'are'} not compared."
        )
    few = sum(pair.repetitions < FEWEST_REPETITIONS for pair in comparison.pairs)
    if few:
        notes.append(
            f"{few} {_rows(few)} of fewer than {FEWEST_REPETITIONS} repetitions: ambiguous, "
            "whatever they show."
        )
    notes += (f"{remark[:1].upper()}{remark[1:]}." for remark in comparison.remarks)
    lines = tuple(_line(pair, names, notes) for pair in comparison.pairs)
    return Table("Times of the same rows in two files", _COLUMNS, lines, tuple(notes))


def _by_chance(comparison: Comparison) -> str:
    called = comparison.count("faster") + comparison.count("slower")
    if not called:
        return ""
    expected = SIGNIFICANCE * called
    return (
        f" Of those called faster or slower, at most {SIGNIFICANCE:.0%} ({expected:.1f} rows) are "
        "expected to be so by chance: p is corrected for the number of rows."
    )


def _line(pair: Pair, names: dict[str, str], notes: list[str]) -> tuple[Cell, ...]:
    marks = []
    for which, row in (("baseline", pair.baseline), ("other", pair.other)):
        for flag in row.warnings:
            note = f"{which}: {flag}"
            if note not in notes:
                notes.append(note)
            marks.append(notes.index(note) + 1)
    called = pair.verdict in ("faster", "slower")
    return (
        Cell(names[pair.baseline.name], pair.baseline.name, marks=tuple(marks)),
        Cell(pair.verdict, pair.verdict, bold=called),
        Cell(units.seconds(pair.baseline.median), pair.baseline.median),
        Cell(units.seconds(pair.seconds), pair.seconds),
        _ratio(pair.ratio),
        _ratio(pair.low),
        _ratio(pair.high),
        Cell(f"{pair.p:.2g}" if pair.p >= 1e-4 else "<0.0001", pair.p),
    )


def _ratio(value: float | None) -> Cell:
    if value is None:
        return NOTHING
    return Cell(f"{value:.3f}" if value < 10 else units.significant(value), value)
