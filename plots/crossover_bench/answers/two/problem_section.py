# SPDX-License-Identifier: Apache-2.0
"""What rows of other programs' benchmarks answer: in words, as tables, and on the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from crossover_bench.answers.two.answered import Answered, answered
from crossover_bench.answers.two.problems import problems_of
from crossover_bench.answers.two.sides import AskError, Wanted
from crossover_bench.curves.crossover_words import spread_words
from crossover_bench.curves.problem import Answer
from crossover_bench.curves.problem_words import details, lead, lead_of_both
from crossover_bench.files.google_benchmark import Timing
from crossover_bench.parallel import Map
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.problem import crossovers_table, sizes_table
from crossover_bench.show.tables.table import Table
from crossover_bench.words.text import printable

if TYPE_CHECKING:  # matplotlib takes long to load
    from crossover_bench.show.charts.style import Chart

_LEAD = (
    "Rows that another program's benchmark has measured: nothing of what they compute is verified "
    "here."
)


def rows_section(
    timings: Sequence[Timing], wanted: Wanted, apply: Map
) -> tuple[list[Section], list[str]]:
    """The section on `timings`, for the report, none where there are none; and a sentence for each
    problem without an answer. `apply` draws, perhaps several charts at once."""
    if not timings:
        return [], []
    try:
        problems = problems_of(timings, wanted)
    except AskError as error:
        return [], [f"{printable(str(timings[0].source.path))}: {error}"]
    known, faults = answered(problems)
    return ([section(known, problems.left_out, Context(map=apply))] if known else []), faults


def section(known: Sequence[Answered], left_out: Sequence[str], context: Context) -> Section:
    """The section on problems of files."""
    added = known[0].answer.spreads if len(known) == 1 else ()
    charts = context.draw(_draw, [of.answer for of in known])
    blocks = [
        Block(
            lead=first_words(of),
            points=tuple(points(of)),
            pictures=tuple(pictures),
            tables=(sizes_table(of.answer),),
            emphasis=True,
        )
        for of, pictures in zip(known, _named(charts), strict=True)
    ]
    return Section(
        title="Rows of Google Benchmark",
        anchor="google-benchmark",
        blocks=tuple(blocks),
        tables=(_crossovers(known),) if len(known) > 1 else (),
        notes=tuple(filter(None, (*left_out, spread_words(added), _lead(known)))),
    )


def tables(known: Sequence[Answered], left_out: Sequence[str]) -> tuple[Table, ...]:
    """What programs read: all crossovers, with what is said of the rows, then the times of each
    problem."""
    remarks = dict.fromkeys(remark for of in known for remark in of.asked.problem.remarks)
    taken = dict.fromkeys(of.asked.taken for of in known)
    crossovers = _crossovers(known)
    notes = tuple(filter(None, (*crossovers.notes, *left_out, *remarks, *taken, _lead(known))))
    return (
        replace(crossovers, notes=notes),
        *(sizes_table(of.answer) for of in known),
    )


def _crossovers(known: Sequence[Answered]) -> Table:
    return crossovers_table([answer for of in known for answer in _answers(of)])


def _answers(of: Answered) -> Iterator[Answer]:
    yield of.answer
    if of.copied:
        yield of.copied


def first_words(of: Answered) -> str:
    """Who wins from where on; with --once both where data is there and where it is copied."""
    return lead_of_both(of.answer, of.copied) if of.copied else lead(of.answer)


def points(of: Answered) -> Iterator[str]:
    """The other sentences."""
    yield from details(of.answer)
    if of.asked.taken:
        yield of.asked.taken


def _lead(known: Sequence[Answered]) -> str:
    return "" if all(of.asked.is_verified for of in known) else _LEAD


def _draw(of: Answer) -> Sequence[Chart]:
    # Imported here because matplotlib takes long to load.
    from crossover_bench.show.charts.crossover import draw_problem  # noqa: PLC0415

    return [draw_problem(of)]


def _named(charts: Sequence[Sequence[Chart]]) -> list[tuple[Chart, ...]]:
    """`charts` under names of which no two are alike."""
    names = [chart.name for of in charts for chart in of]
    return [
        tuple(replace(chart, name=f"{chart.name}{_again(names, place)}") for chart in of)
        for place, of in enumerate(charts)
    ]


def _again(names: Sequence[str], place: int) -> str:
    """What is added to the name at `place`, which stood there before: "-2"."""
    count = names[:place].count(names[place]) if place < len(names) else 0
    return f"-{count + 1}" if count else ""
