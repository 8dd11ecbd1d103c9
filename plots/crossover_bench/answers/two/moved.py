# SPDX-License-Identifier: Apache-2.0
"""Which crossovers of another program's benchmarks have moved from one commit to the next."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crossover_bench.answers.two.answered import Answered
from crossover_bench.curves.crossover import Crossover
from crossover_bench.curves.crossover_words import crossover_words
from crossover_bench.curves.problem import Answer
from crossover_bench.show.tables.cells import Field, shown_field, table_of, text_field
from crossover_bench.show.tables.table import Table
from crossover_bench.words import units
from crossover_bench.words.text import printable


@dataclass(frozen=True, slots=True)
class Move:
    """A problem's answer `before` and `after`."""

    before: Answer
    after: Answer

    @property
    def verdict(self) -> str:
        """Whether the crossover has moved: surely, where the intervals do not overlap."""
        first, second = (_reach(answer.crossover) for answer in (self.before, self.after))
        if first is None or second is None:
            return "not sure"
        if first[0] > second[1]:
            return "moved down"
        return "moved up" if second[0] > first[1] else "same within intervals"


def _reach(crossover: Crossover) -> tuple[float, float] | None:
    """Between which sizes the crossover surely lies; None where too few repetitions tell."""
    if crossover.medians:
        return None
    if crossover.kind == "always":
        return 0.0, crossover.sizes[0]
    if crossover.kind == "never":
        return crossover.sizes[-1], math.inf
    low, high = crossover.low, crossover.high
    return 0.0 if low is None else low, math.inf if high is None else high


def moves(before: Sequence[Answered], after: Sequence[Answered]) -> list[Move]:
    """Of each problem that both have."""
    known = {of.answer.problem.title: of.answer for of in before}
    return [
        Move(known[title], of.answer) for of in after if (title := of.answer.problem.title) in known
    ]


def move_words(move: Move) -> str:
    """ "sort, moved up: from n = 7,500 (7,000 to 8,100) before, from n = 9,900 (9,100 to 11,000)
    now."."""
    first, second = (crossover_words(of.crossover) for of in (move.before, move.after))
    title = printable(move.after.problem.title, 120)
    return f"{title}, {move.verdict}: {first} before, {second} now."


def moves_table(moved: Sequence[Move]) -> Table:
    """A line for each problem."""

    def end(of: str, key: str, title: str) -> Field:
        return shown_field(
            f"{of}_{key}",
            title,
            lambda move: getattr(getattr(move, of).crossover, key),
            units.size,
            {"before": "before", "after": "now"}[of],
        )

    columns = (("size", "from"), ("low", "low"), ("high", "high"))
    fields = (
        text_field("problem", "problem", lambda move: move.after.problem.title),
        text_field("verdict", "crossover", lambda move: move.verdict),
        *(end(of, *column) for of in ("before", "after") for column in columns),
    )
    return table_of("From which size the GPU wins, before and now", moved, fields)
