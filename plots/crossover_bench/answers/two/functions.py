# SPDX-License-Identifier: Apache-2.0
"""A user's functions that solve one problem (docs/howto/two-functions.md): from which size on each
wins against the first, and what each takes at each size; in words, as a table, and on the page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from crossover_bench.answers.paired import pairs_words
from crossover_bench.curves.crossover import find_crossover
from crossover_bench.curves.crossover_words import claim
from crossover_bench.curves.curves import FUNCTIONS, Curve, function_curves
from crossover_bench.files.rows import File, Refinement, Row
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.cells import (
    count_field,
    for_programs,
    seconds_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import Table
from crossover_bench.words.text import counted, printable, sentence

_PARTS = (
    ("first_call_seconds", "first call"),
    ("copy_in_seconds", "copy in"),
    ("call_seconds", "until it returns"),
    ("wait_seconds", "wait behind it"),
    ("copy_out_seconds", "copy out"),
)


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where none has functions."""
    blocks = tuple(
        Block(
            machine=file.machine.id,
            points=(*answers(file), *doubts(file)),
            tables=tuple(_tables(file)),
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


def side_words(configuration: dict[str, str]) -> str:
    """The side as its user calls it: "CUB", "CUB with its copies"."""
    copies = " with its copies" if configuration.get("transfers") == "each" else ""
    return f"{printable(configuration.get('side', '?'), 60)}{copies}"


def answers(file: File) -> Iterator[str]:
    """Of each problem from which size on each side wins against the first, a sentence each."""
    for problem, curves in function_curves(file).items():
        first, *others = curves
        if not others:
            alone = side_words(first.configuration)
            yield f"{printable(problem, 60)}: {alone} has nothing beside it."
        for other in others:
            yield f"{printable(problem, 60)}, {_compared(first, other)}."
    for pairs in reversed(file.refinements):  # a resumed run adds one
        if pairs.kind == "function":
            yield _paired(pairs)
            break


def _compared(first: Curve, other: Curve) -> str:
    sides = side_words(first.configuration), side_words(other.configuration)
    begin = f"{sides[1]} against {sides[0]}:"
    if not first.meets(other):
        return f"{begin} they have fewer than two sizes in common"
    crossover = find_crossover(first, other, FUNCTIONS.measure, sides)
    return f"{begin} {claim(crossover, article='').strip()}"


def _paired(pairs: Refinement) -> str:
    sides = side_words(pairs.first), side_words(pairs.second)
    problem = printable(pairs.common.get("problem", "?"), 60)
    count = sum(size.pairs for size in pairs.sizes)
    return (
        f"{problem}: in {counted(count, 'pair')} of runs, 95 % sure, {pairs_words(pairs, sides)}."
    )


def doubts(file: File) -> Iterator[str]:
    """Which rows have no times, and how many of each side are in doubt, a sentence each."""
    sides: dict[str, list[Row]] = {}
    for row in file.functions:
        side = side_words(row.configuration)
        sides.setdefault(side, []).append(row)
        if row.failure:
            message = printable(row.failure.message, 400)
            yield sentence(f"{side} at size {row.configuration['size']}: {message}")
    for side, rows in sides.items():
        if doubtful := [warning for row in rows for warning in row.warnings[:1]]:
            count = f"{len(doubtful)} of {counted(len(rows), 'row')} of {side}"
            yield f"In doubt: {count}, the first because {printable(doubtful[0], 200)}."


def _tables(file: File) -> Iterator[Table]:
    for problem in dict.fromkeys(row.configuration["problem"] for row in file.functions):
        rows = [row for row in file.functions if row.configuration["problem"] == problem]
        yield times_table(problem, [row for row in rows if not row.failure])


def times_table(problem: str, rows: Sequence[Row]) -> Table:
    """A line for each size and side, the fastest of a size first."""
    ordered = sorted(rows, key=lambda row: (float(row.configuration["size"]), row.median))

    def part(counter: str) -> Callable[[Row], float | None]:
        return lambda row: row.counters.get(counter) if _has(row, counter) else None

    fields = (
        count_field("size", "size", FUNCTIONS.size),
        text_field("side", "side", lambda row: side_words(row.configuration)),
        text_field("device", "on", lambda row: row.device.upper()),
        seconds_field("seconds", "a call", lambda row: row.median),
        for_programs(seconds_field("least_seconds", "least", lambda row: row.minimum)),
        for_programs(seconds_field("most_seconds", "most", lambda row: row.maximum)),
        *(
            seconds_field(counter, title, part(counter), "its parts, once")
            for counter, title in _PARTS
            if any(_has(row, counter) for row in rows)
        ),
        count_field("repetitions", "repetitions", lambda row: len(row.samples)),
    )
    return table_of(f"Calls of {problem}", ordered, fields)


def _has(row: Row, counter: str) -> bool:
    """Whether the part is one: the CPU's calls are done when they return."""
    return counter in row.counters and (row.device != "cpu" or counter == _PARTS[0][0])
