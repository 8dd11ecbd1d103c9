# SPDX-License-Identifier: Apache-2.0
"""A comparison of two files as tables."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from crossover_bench.answers.compare.analysis import (
    FEWEST_REPETITIONS,
    SIGNIFICANCE,
    Comparison,
    InTurn,
    Pair,
    Verdict,
)
from crossover_bench.curves.series import short_names
from crossover_bench.files.rows import File, Row
from crossover_bench.files.samples import FEW
from crossover_bench.show.tables.cells import Field, Of, count_field, table_of, text_field
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.words import units
from crossover_bench.words.text import counted, sentence

_VERDICTS: tuple[Verdict, ...] = ("better", "worse", "same", "ambiguous", "disturbed")
_CHANGED = ("better", "worse")


def compare_tables(
    comparison: Comparison, everything: bool = False, means: bool = True
) -> list[Table]:
    """What changed: by family, then by row, then the rows that were not compared, if any.

    The largest effect stands first. Rows without a change are counted, and rows that
    were not compared stand in a line for each reason; with `everything` all of them are listed.
    `means`: with the mean ratio of each family; machines_table() has another one of machines, over
    the fastest way to do each piece of work.
    """
    rows = [pair.baseline for pair in comparison.pairs]
    rows += [unmatched.row for unmatched in comparison.unmatched]
    names, common = short_names(rows)
    tables = [_in_turn(comparison.in_turn)] if comparison.in_turn else []
    tables += [_families(comparison, means)] if comparison.pairs else []
    tables.append(_ratios(comparison, names, common, everything))
    if comparison.unmatched:
        tables.append(_unmatched(comparison, names, everything))
    return tables


def _in_turn(networks: Sequence[InTurn]) -> Table:
    """Networks that two builds trained in pairs."""

    def outcome(network: InTurn) -> Cell:
        return Cell(network.outcome, network.outcome, bold=network.outcome != "open")

    fields = (
        text_field("model", "network", lambda network: network.size.model),
        count_field("params", "parameters", lambda network: network.size.parameters),
        (Column("verdict", "other is"), outcome),
        count_field("won", "other faster", lambda network: network.size.won_by_first, "pairs"),
        count_field("pairs", "of", lambda network: network.size.pairs + network.size.ties, "pairs"),
        *_ratio_fields(lambda network: network.pair),
    )
    note = (
        "Both trained an epoch in turn, each pair made anew. Slower, faster: the pairs are sure, "
        "with an error of 5 % for all networks together. This finds smaller differences than the "
        "rows do."
    )
    return table_of("Networks measured in pairs, the largest first", networks, fields, [note])


def _unmatched(comparison: Comparison, names: dict[str, str], everything: bool) -> Table:
    """A line for each reason, or with `everything` for each row."""
    title = f"Rows that could not be compared: {len(comparison.unmatched)}"
    reasons: dict[str, list[Row]] = {}
    for unmatched in comparison.unmatched:
        reasons.setdefault(unmatched.reason, []).append(unmatched.row)
    because = text_field("reason", "not compared, because", lambda of: of[0])
    rows = count_field("rows", "rows", lambda of: len(of[1]))

    def name(title: str) -> Field:
        return Column("name", title), lambda of: Cell(names[of[1][0].name], of[1][0].name)

    if everything:
        every = [(unmatched.reason, [unmatched.row]) for unmatched in comparison.unmatched]
        return table_of(title, every, (name("row"), because))
    fields = (because, rows, name("such as"))
    return table_of(title, reasons.items(), fields, ["--all lists each row."])


def _families(comparison: Comparison, with_means: bool) -> Table:
    """A line for each family: the geometric mean of its rows' ratios, and how many changed."""
    groups: dict[str, list[Pair]] = {}
    for pair in comparison.pairs:
        groups.setdefault(pair.baseline.family, []).append(pair)
    families = [
        (family, math.exp(sum(_log(pair.ratio) for pair in pairs) / len(pairs)), pairs)
        for family, pairs in groups.items()
    ]

    def count(verdict: Verdict) -> Field:
        word = comparison.word(verdict)
        return count_field(word, word, lambda of: [pair.verdict for pair in of[2]].count(verdict))

    fields = (
        text_field("family", "family", lambda of: of[0]),
        *([(Column("ratio", "ratio", True), lambda of: _ratio(of[1]))] if with_means else []),
        count_field("rows", "rows", lambda of: len(of[2])),
        *map(count, _VERDICTS),
    )
    what = "geometric mean of the ratio" if with_means else "rows of the same name"
    title = f"{comparison.other.path.name} over {comparison.baseline.path.name}: {what}"
    families.sort(key=lambda of: -abs(math.log(of[1])))
    return table_of(f"{title} in each family", families, fields)


def _log(ratio: float) -> float:
    """The logarithm, also of a quotient that no double can hold."""
    return math.log(min(max(ratio, 1e-300), 1e300))


def headline(comparison: Comparison) -> str:
    """How many rows have which verdict: "24 rows compared: 3 faster, 2 slower, …"."""
    counts = [f"{comparison.count(each)} {comparison.word(each)}" for each in _VERDICTS]
    return f"{counted(len(comparison.pairs), 'row')} compared: {', '.join(counts)}"


def described(file: File) -> str:
    """Machine, commit and date of `file`; of functions no commit says what they are."""
    commit = "" if file.functions else f", commit {file.software.commit[:7] or 'unknown'}"
    changed = ", uncommitted changes" if file.software.dirty else ""
    return f"{file.machine.id}{commit}{changed}, {file.date:%Y-%m-%d}"


def _ratios(comparison: Comparison, names: dict[str, str], common: str, everything: bool) -> Table:
    effect = f"{100 * comparison.minimum_effect:.3g} %"
    quantity = comparison.quantity
    better, worse = quantity.better, quantity.worse
    above = better if quantity.is_more_better else worse
    notes = [
        f"Baseline: {comparison.baseline.path.name}: {described(comparison.baseline)}.",
        f"Other: {comparison.other.path.name}: {described(comparison.other)}.",
        f"{headline(comparison)}.",
        *filter(None, [comparison.cannot_tell]),
        f"A ratio above 1: the other file is {above}. Same: the whole 95 % interval is within "
        f"{effect} of 1. {better.capitalize()}, {worse}: the whole interval is beyond that, and p "
        f"is below {SIGNIFICANCE}. Ambiguous: neither. Disturbed: other programs used the "
        "processors in most repetitions of the row in one of the files. p is that of a difference "
        f"of more than {effect} (Welch's t test on logarithms), corrected for the number of rows.",
    ]
    notes += _between(comparison)
    if common:
        notes.append(f"All rows: {common}.")
    if comparison.misnamed:
        count = comparison.misnamed
        notes.append(
            f"{counted(count, 'row')} {'has' if count == 1 else 'have'} the same name but "
            f"{'trains' if count == 1 else 'train'} differently (optimizer, data or size), and "
            f"{'is' if count == 1 else 'are'} not compared."
        )
    few = sum(pair.repetitions < FEWEST_REPETITIONS for pair in comparison.pairs)
    if few:
        notes.append(
            f"{counted(few, 'row')} of fewer than {FEWEST_REPETITIONS} repetitions: ambiguous, "
            "whatever they show."
        )
    notes += map(sentence, comparison.remarks)
    changed = [pair for pair in comparison.pairs if pair.verdict in _CHANGED]
    rest = [pair for pair in comparison.pairs if pair.verdict not in _CHANGED]
    if rest and not everything:
        notes.append(
            f"{counted(len(rest), 'row')} the same, ambiguous or disturbed: --all lists them."
        )

    numbered = {note: number for number, note in enumerate(notes, 1)}

    def name(pair: Pair) -> Cell:
        sides = ("baseline", pair.baseline), ("other", pair.other)
        flags = [f"{which}: {flag}" for which, row in sides for flag in row.warnings]
        return Cell(names[pair.baseline.name], pair.baseline.name, marks=marks(flags, numbered))

    def verdict(pair: Pair) -> Cell:
        word = comparison.word(pair.verdict)
        return Cell(word, word, bold=pair.verdict in _CHANGED)

    def median(which: str, of: Callable[[Pair], float]) -> Field:
        column = Column(f"{which}_{quantity.unit}", which, True, f"median {quantity.noun}")
        return column, lambda pair: Cell(pair.baseline.quantity.show(of(pair)), of(pair))

    def p(pair: Pair) -> Cell:
        return Cell(f"{pair.p:.2g}" if pair.p >= 1e-4 else "<0.0001", pair.p)

    fields = (
        (Column("name", "row"), name),
        (Column("verdict", "other is"), verdict),
        median("baseline", lambda pair: pair.baseline.median),
        median("other", lambda pair: pair.value),
        *_ratio_fields(),
        (Column("p", "p", True), lambda pair: NOTHING if pair.is_disturbed else p(pair)),
    )
    listed = [*by_effect(changed), *(by_effect(rest) if everything else ())]
    what = f"{quantity.noun.capitalize()} of the same rows in two files"
    title = f"{what if everything else 'Rows that changed'}, the largest effect first"
    table = table_of(title, listed, fields, numbered)
    # A column more makes lines of text break.
    return table if everything else replace(table, short=table.without("p"))


def by_effect(pairs: Sequence[Pair]) -> list[Pair]:
    """The largest effect first; effects that differ by rounding alone in the file's order."""
    return sorted(pairs, key=lambda pair: -round(abs(_log(pair.ratio)), 9))


def _between(comparison: Comparison) -> list[str]:
    """What is taken to lie between the runs, in a sentence."""
    if not comparison.effects:
        return []
    effects = [
        f"{each.family} on the {'CPU' if each.device == 'cpu' else 'GPU'} "
        f"{units.significant(100 * each.deviation, 2)} % "
        f"({f'scatter of {each.rows} ratios' if each.rows else 'at most, as between instances'})"
        for each in comparison.effects
    ]
    return [
        f"Rows of fewer than {FEW} instances: from run to run their ratio varies by its own, which "
        f"intervals and p allow for: {', '.join(effects)}."
    ]


def _ratio_fields(of: Of = lambda pair: pair) -> tuple[Field, ...]:
    group = "other / baseline"
    return (
        (Column("ratio", "ratio", True, group), lambda line: _ratio(of(line).ratio)),
        (Column("ratio_low", "from", True, group), lambda line: _ratio(of(line).low)),
        (Column("ratio_high", "to", True, group), lambda line: _ratio(of(line).high)),
    )


def _ratio(value: float | None) -> Cell:
    if value is None:
        return NOTHING
    return Cell(f"{value:.3f}" if value < 10 else units.significant(value), value)
