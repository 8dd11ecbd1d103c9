# SPDX-License-Identifier: Apache-2.0
"""A user's functions that solve one problem (docs/howto/two-functions.md): from which size on which
side wins, how long data must stay on a device, and what each takes at each size; in words, as a
table, and on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from crossover_bench.answers.paired import pairs_words
from crossover_bench.answers.two.answered import Answered, answered
from crossover_bench.answers.two.function_problems import (
    asked_of,
    by_problem,
    side_words,
    size_of,
    title_of,
)
from crossover_bench.curves.crossover_words import spread_words
from crossover_bench.curves.kept import kept_words
from crossover_bench.curves.problem_words import details, lead, lead_of_both
from crossover_bench.files.rows import File, Refinement, Row
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    Field,
    count_field,
    for_programs,
    seconds_field,
    shown_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import Table
from crossover_bench.words import units
from crossover_bench.words.text import counted, printable, sentence

_FIRST = "first_call_seconds"
PARTS = (
    (_FIRST, "first call"),
    ("copy_in_seconds", "copy in"),
    ("call_seconds", "until it returns"),
    ("wait_seconds", "wait behind it"),
    ("copy_out_seconds", "copy out"),
)
BESIDE = (
    ("back_to_back_seconds", "back to back"),
    ("device_seconds", "device's clock"),
)
_RATES = (("bytes", "B"), ("items", "items"))


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has functions."""
    blocks = tuple(
        Block(
            machine=file.machine.id,
            points=(*answers(file), *doubts(file)),
            tables=tuple(_tables(file)),
            notes=tuple(_notes(file)),
        )
        for file in files[: context.detailed]
        if file.functions
    )
    if not blocks:
        return None
    return Section(
        title="Functions",
        anchor="functions",
        lead="Functions that compute the same: each result was compared before it was timed.",
        blocks=blocks,
    )


def answers(file: File) -> Iterator[str]:
    """Of each problem from which size on which side wins, and what belongs to that, a sentence
    each."""
    asked = asked_of(file)
    known, faults = answered(asked)
    pairs = {title_of(of.common): of for of in file.refinements if of.kind == "function"}
    for of in known:  # of pairs the last: a resumed run adds some
        yield from _answer(of, pairs.get(of.answer.problem.name))
    yield from asked.left_out
    yield from map(sentence, faults)


def _notes(file: File) -> Iterator[str]:
    known, _ = answered(asked_of(file))
    if added := spread_words(dict.fromkeys(spread for of in known for spread in of.answer.spreads)):
        yield added


def _answer(of: Answered, pairs: Refinement | None) -> Iterator[str]:
    yield lead_of_both(of.answer, of.copied) if of.copied else lead(of.answer)
    if of.copied and (kept := kept_words(of.answer, of.copied)):
        yield kept
    if pairs and (count := sum(size.pairs for size in pairs.sizes)):
        sides = side_words(pairs.first), side_words(pairs.second)
        told = pairs_words(pairs, sides)
        yield f"In {counted(count, 'pair')} of runs, 95 % sure, {told}."
    yield from details(of.answer)


def doubts(file: File) -> Iterator[str]:
    """How many rows of each side are in doubt, and why, a sentence each."""
    sides: dict[str, list[Row]] = {}
    for row in file.functions:
        sides.setdefault(side_words(row.configuration), []).append(row)
    for side, rows in sides.items():
        if doubtful := [warning for row in rows for warning in row.warnings[:1]]:
            count = f"{len(doubtful)} of {counted(len(rows), 'row')} of {side}"
            yield f"In doubt: {count}, the first because {printable(doubtful[0], 200)}."


def _tables(file: File) -> Iterator[Table]:
    for problem, rows in by_problem(file).items():
        yield times_table(problem, [row for row in rows if not row.failure])


def times_table(problem: str, rows: Sequence[Row]) -> Table:
    """A line for each size and side, the fastest of a size first."""
    ordered = sorted(rows, key=lambda row: (size_of(row), row.median))

    fields = (
        count_field("size", "size", size_of),
        text_field("side", "side", lambda row: side_words(row.configuration)),
        text_field("device", "on", lambda row: row.device.upper()),
        seconds_field("seconds", "a call", lambda row: row.median),
        for_programs(seconds_field("least_seconds", "least", lambda row: row.minimum)),
        for_programs(seconds_field("most_seconds", "most", lambda row: row.maximum)),
        *(_rate_field(*rate) for rate in _RATES if any(rate[0] in row.counters for row in rows)),
        *part_fields(rows, BESIDE, "beside it"),
        *map(for_programs, part_fields(rows, PARTS, "its parts, once")),
        count_field("repetitions", "repetitions", lambda row: len(row.samples)),
    )
    return table_of(f"Calls of {problem}", ordered, fields)


def part_fields(
    rows: Sequence[Row], counters: Sequence[tuple[str, str]], group: str = ""
) -> Iterator[Field]:
    """A column for each of `counters`, with its title, that any of `rows` has."""
    for counter, title in counters:
        if any(_has(row, counter) for row in rows):
            yield seconds_field(counter, title, _part(counter), group)


def _rate_field(name: str, unit: str) -> Field:
    rate = f"{name}_per_second"
    return shown_field(
        rate, f"{name} a second", _part(rate), lambda value: units.rate(value, f"{unit}/s")
    )


def _part(counter: str) -> Callable[[Row], float | None]:
    return lambda row: row.counters[counter] if _has(row, counter) else None


def _has(row: Row, counter: str) -> bool:
    """Whether the part is one: the CPU's calls are done when they return."""
    is_of_device = counter in dict((*PARTS, *BESIDE)) and counter != _FIRST
    return counter in row.counters and (row.device != "cpu" or not is_of_device)
