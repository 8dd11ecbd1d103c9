# SPDX-License-Identifier: Apache-2.0
"""docs/evidence/outside.md: what came of the suites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tools.outside.results import Kept, Suite

_WIDTH = 120
_MOST_REASONS = 15
_TITLE = "# Evidence: test suites of others"
_MEANING = (
    "`./test --only=outside` runs them and writes this page. A case is **equal** if it comes in "
    "and gives the suite's numbers. It is **refused** if the answer is a sentence. It is "
    "**different** if the numbers are others. It is a **fault** if the answer is a traceback or an "
    "internal error, or if a network comes in and then has no verified row. A case is **no "
    "question** if it asks for nothing that this project does, such as one of whole numbers. "
    "**Seconds** are those of this run, of which other programs may have slowed a part."
)


def text_of(suites: Sequence[Suite], measured: str) -> str:
    """`measured`: the commit and the machine, in a sentence."""
    return "\n".join([*_lines(suites, measured), ""])


def written(
    path: Path, measured: str, parts: dict[str, Callable[[], Iterable[Suite]]], kept: Kept
) -> list[Suite]:
    """The suites of all parts, each in the page as soon as it is there. Parts that are kept do not
    run again."""
    suites: list[Suite] = []
    left = list(parts)
    for name, part in parts.items():
        before = len(suites)
        left.remove(name)
        for suite in kept.suites(name) or part():
            suites.append(suite)
            note = f" Still to run: {', '.join(left)}." if left else ""
            path.write_text(text_of(suites, measured + note), encoding="utf-8")
        kept.keep(name, suites[before:])
    return suites


def _lines(suites: Sequence[Suite], measured: str) -> Iterator[str]:
    yield f"{_TITLE}\n"
    yield from _wrapped(_MEANING)
    yield ""
    yield from _wrapped(measured)
    yield ""
    heads = ("cases", "equal", "refused", "different", "fault", "no question", "seconds")
    yield f"| suite | version | {' | '.join(heads)} |"
    yield f"| --- | --- |{' ---: |' * len(heads)}"
    for suite in suites:
        counts = suite.counts
        columns = [counts[name] for name in ("equal", "refused", "different", "fault", "other")]
        row = [suite.name, suite.version, len(suite.verdicts), *columns, round(suite.seconds)]
        yield f"| {' | '.join(map(str, row))} |"
    for suite in suites:
        yield from _section(suite)


def _section(suite: Suite) -> Iterator[str]:
    yield f"\n## {suite.name}\n"
    closest = f" The largest difference is {suite.largest:.1e}." if suite.largest else ""
    unit = "" if suite.unit == "cases" else f" A case is one of the {suite.unit}."
    yield from _wrapped(f"Compared: {suite.how}.{unit}{closest}")
    for note in suite.notes:
        yield ""
        yield from _wrapped(note)
    if suite.is_listed:
        yield "\n| case | answer | why |"
        yield "| --- | --- | --- |"
        for verdict in suite.verdicts:
            yield f"| `{verdict.case}` | {verdict.outcome} | {_plain(verdict.reason)} |"
        return
    if wrong := suite.of("different", "fault"):
        yield "\nDifferent, or a fault:\n"
        for verdict in wrong:
            yield from _wrapped(f"- `{verdict.case}`: {_plain(verdict.reason)}", "  ")
    if reasons := suite.reasons():
        yield "\nWhy cases are refused, the most frequent reasons first:\n"
        yield "| cases | reason | such as |"
        yield "| ---: | --- | --- |"
        for reason, cases in reasons[:_MOST_REASONS]:
            yield f"| {len(cases)} | {_plain(reason)} | `{cases[0]}` |"
        if left := sum(len(cases) for _, cases in reasons[_MOST_REASONS:]):
            yield f"| {left} | {len(reasons) - _MOST_REASONS} other reasons | |"


def _plain(text: str) -> str:
    """In one line of a table."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")[:300]


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    line = ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > _WIDTH:
            yield line
            line = f"{indent}{word}"
        else:
            line = f"{line} {word}" if line else word
    yield line
