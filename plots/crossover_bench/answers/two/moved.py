# SPDX-License-Identifier: Apache-2.0
"""Which crossovers have moved: from one commit to the next, or since they were written into a file
of thresholds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crossover_bench.answers.two.threshold import Threshold
from crossover_bench.show.tables.cells import Field, shown_field, table_of, text_field
from crossover_bench.show.tables.table import Table
from crossover_bench.words import units
from crossover_bench.words.text import printable


@dataclass(frozen=True, slots=True)
class Move:
    """A problem's threshold `before` and `after`."""

    before: Threshold
    after: Threshold

    @property
    def title(self) -> str:
        """Of what: "sort", "sort on NVIDIA H200"."""
        device = self.after.device or self.before.device
        return f"{self.after.problem} on {device}" if device else self.after.problem

    @property
    def verdict(self) -> str:
        """Whether it has moved: surely, where the intervals do not overlap."""
        first, second = map(_reach, (self.before, self.after))
        if first is None or second is None:
            return "not sure"
        if first[0] > second[1]:
            return "moved down"
        return "moved up" if second[0] > first[1] else "same within intervals"


def _reach(of: Threshold) -> tuple[float, float] | None:
    """Between which sizes it surely lies; None where nothing is sure."""
    if of.low is None and of.high is None:
        return None
    return of.low or 0.0, math.inf if of.high is None else of.high


def moves(before: Sequence[Threshold], after: Sequence[Threshold]) -> list[Move]:
    """Of each problem that both have, on the same device: one without a name is any."""
    pairs = ((_same(of, before), of) for of in after)
    return [Move(known, of) for known, of in pairs if known]


def _same(of: Threshold, every: Sequence[Threshold]) -> Threshold | None:
    """The one of `every` for the problem and device of `of`: the most exact name of it counts."""
    known = [each for each in every if each.problem == of.problem]
    if not of.device:
        return known[0] if len(known) == 1 else None
    fitting = [each for each in known if each.device in of.device]
    return max(fitting, key=lambda each: len(each.device), default=None)


def move_words(move: Move) -> str:
    """ "sort, moved up: from n = 7,500 (7,000 to 8,100) before, from n = 9,900 (9,100 to 11,000)
    now."."""
    before, after = move.before.answer, move.after.answer
    return f"{printable(move.title, 200)}, {move.verdict}: {before} before, {after} now."


def moves_table(moved: Sequence[Move]) -> Table:
    """A line for each problem."""

    def end(of: str, key: str, title: str) -> Field:
        return shown_field(
            f"{of}_{key}",
            title,
            lambda move: getattr(getattr(move, of), key),
            units.size,
            {"before": "before", "after": "now"}[of],
        )

    columns = (("size", "from"), ("low", "low"), ("high", "high"))
    fields = (
        text_field("problem", "problem", lambda move: move.title),
        text_field("verdict", "crossover", lambda move: move.verdict),
        *(end(of, *column) for of in ("before", "after") for column in columns),
    )
    return table_of("The crossovers, before and now", moved, fields)
