# SPDX-License-Identifier: Apache-2.0
"""What came of a suite's cases."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

# "fault": a traceback, an error told as if it were a refusal, or a file that is taken in and then
# has no row. "other": what the case asks for is nothing that this project does.
Outcome = Literal["equal", "refused", "different", "fault", "other"]
WORST_FIRST: tuple[Outcome, ...] = ("different", "fault", "equal", "refused", "other")


@dataclass(frozen=True)
class Verdict:
    """Of a case: `reason` is a sentence where it is not equal, `apart` the largest difference
    relative to the largest number."""

    case: str
    outcome: Outcome
    reason: str = ""
    apart: float = 0.0


@dataclass(frozen=True)
class Suite:
    """`how`: what was compared with what, and how closely; `unit`: what a case is."""

    name: str
    version: str
    how: str
    verdicts: Sequence[Verdict]
    unit: str = "cases"
    notes: Sequence[str] = field(default=())

    @property
    def counts(self) -> Counter[Outcome]:
        return Counter(verdict.outcome for verdict in self.verdicts)

    def of(self, *outcomes: Outcome) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.outcome in outcomes]

    @property
    def largest(self) -> float:
        """The largest difference of what is equal."""
        return max((verdict.apart for verdict in self.of("equal")), default=0.0)

    def reasons(self) -> list[tuple[str, list[str]]]:
        """Of what is refused: each kind of sentence with the cases that have it, the most frequent
        first."""
        kinds: dict[str, list[str]] = {}
        for verdict in self.of("refused"):
            kinds.setdefault(_kind(verdict.reason), []).append(verdict.case)
        return sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """Of several ways to read one case."""
    return min(verdicts, key=lambda verdict: WORST_FIRST.index(verdict.outcome))


def _kind(reason: str) -> str:
    """A sentence without the names and numbers of its case."""
    text = re.sub(r"^\S+ \((\w+)\): ", r"\1: ", reason)
    text = re.sub(r"^\S+ \((\w+), [^)]*\): ", r"\1: ", text)
    text = re.sub(r"'[^']*'", "'…'", text)
    text = re.sub(r"\[[^]]*\]", "[…]", text)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "N", text)
