# SPDX-License-Identifier: Apache-2.0
"""What came of a suite's cases."""

from __future__ import annotations

import json
import re
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
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


_INTERNAL = ("it can't be imported as it is used here (", " can't be imported: ")
_OTHER = ("gives other numbers", "gives other gradients")


def of_refusal(case: str, sentence: str) -> Verdict:
    """What an importer's refusal is: one of its sentences, an error told as one, or the finding of
    its proof."""
    if any(words in sentence for words in _INTERNAL):
        return Verdict(case, "fault", sentence)
    is_other = any(words in sentence for words in _OTHER)
    return Verdict(case, "different" if is_other else "refused", sentence)


@dataclass(frozen=True)
class Suite:
    """`how`: what was compared with what, and how closely; `unit`: what a case is; `is_listed`:
    each case has a line; `seconds`: what it took."""

    name: str
    version: str
    how: str
    verdicts: Sequence[Verdict]
    unit: str = "cases"
    notes: Sequence[str] = field(default=())
    is_listed: bool = False
    seconds: float = 0.0

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


class Kept:
    """Parts that have finished, in files of this folder: the next run has them if it is `measured`
    alike, at a commit."""

    def __init__(self, folder: Path, measured: str, is_commit: bool) -> None:
        self._folder, self._measured = folder, measured if is_commit else ""

    def suites(self, part: str) -> list[Suite]:
        """None where the part has not finished."""
        file = self._folder / f"{part}.json"
        kept = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        if not self._measured or kept.get("measured") != self._measured:
            return []
        verdicts = [[Verdict(**verdict) for verdict in each["verdicts"]] for each in kept["suites"]]
        return [
            Suite(**{**each, "verdicts": of_suite})
            for each, of_suite in zip(kept["suites"], verdicts, strict=True)
        ]

    def keep(self, part: str, suites: Sequence[Suite]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        kept = {"measured": self._measured, "suites": [asdict(suite) for suite in suites]}
        (self._folder / f"{part}.json").write_text(json.dumps(kept), encoding="utf-8")


def whole(name: str, part: Callable[[], Iterable[Suite]]) -> Iterator[Suite]:
    """The suites of a part; behind those that it gave, a fault where it breaks."""
    try:
        yield from part()
    except Exception as error:
        traceback.print_exc()
        broken = Verdict(name, "fault", f"{type(error).__name__}: {error}")
        yield Suite(name, "–", "nothing, as it broke", [broken])


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
