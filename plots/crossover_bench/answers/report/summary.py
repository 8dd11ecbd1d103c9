# SPDX-License-Identifier: Apache-2.0
"""What `report --summary` prints of a file: the answer at a glance, and a few of its times."""

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from crossover_bench.answers.answer.glance import glance
from crossover_bench.answers.answer.section import block_of
from crossover_bench.answers.training.table import best_table, on_both
from crossover_bench.curves.network import familiar, on_device, training_rows
from crossover_bench.curves.statistics import spread
from crossover_bench.files.families import EPOCH, FAMILIES, MINIBATCH
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import Failure, File, Row
from crossover_bench.place import CROSSOVER
from crossover_bench.show.page.section import Block, Section
from crossover_bench.show.page.text import text_of
from crossover_bench.show.tables.table import Table
from crossover_bench.study.study import Study
from crossover_bench.words.text import printable

_MOST = {EPOCH: 6, MINIBATCH: 4}  # lines of times
_TIMES = [f"{side}_{FAMILIES[family].time}" for family in _MOST for side in ("cpu", "gpu")]
_GOES_ON = (
    "The answer so far is above. Measuring goes on and makes it sharper; Ctrl-C ends it and keeps "
    "what is there."
)
_COLUMNS = ("network", "params", "batch", "speed_up", *_TIMES)


def summary(study: Study) -> list[str]:
    """In parts, the strip and the sentence first: three lines, a few times, what is missing, how to
    see the rest, and the answer in a line to share."""
    file, answer = study.file, glance(study)
    times, left = _times(file)
    missing = tuple(_without_a_result(file))
    whole = block_of(file, answer)
    blocks = [
        replace(whole, points=(), notes=()),
        Block(points=whole.points),
        Block(notes=whole.notes),
        *(Block(tables=(table.on(file.machine.id),)) for table in times),
        *([Block(title="Rows without a result", points=missing)] if missing else []),
    ]
    # On one line each, as they are copied.
    path = shlex.quote(printable(str(file.path), 400))
    lines = []
    if times:
        more = f"{left} more, and ranges" if left else "Ranges"
        lines.append(f"{more}: {CROSSOVER} times {path}")
    if answer.to_share:
        lines.append(f"To share: {answer.to_share}")
    texts = [text_of([Section("", "", blocks=(block,))]).rstrip("\n") for block in blocks]
    return [text for text in [*texts, "\n".join(lines)] if text]


def since(summaries: Sequence[Sequence[str]], kept: Path) -> list[str]:
    """What is said of a run that goes on, whose summary() of each file is kept at `kept`: all, the
    first time; from then on the parts that are new. Raises OSError."""
    parts = [part for summary in summaries for part in summary]
    before = kept.read_text(encoding="utf-8", errors="replace") if kept.exists() else ""
    kept.write_text(_whole(parts), encoding="utf-8")
    if not before:
        return [*parts, _GOES_ON]
    new = [part for part in parts if _whole([part]) not in before]
    stands = not any(summary[0] in new for summary in summaries)
    head = "The answer above stands" if stands else "Since the answer above this has changed"
    return [f"{head}{'; this has changed' if stands and new else ''}{':' if new else '.'}", *new]


def _whole(parts: Sequence[str]) -> str:
    """Each between empty lines."""
    return "".join(f"\n\n{part}\n\n" for part in parts)


def _times(file: File) -> tuple[tuple[Table, ...], int]:
    """Of each family a few lines of its table, evenly spread, and the columns that answer; and how
    many lines are left out."""
    by_family = {
        family: familiar(rows)
        for family in _MOST
        if (rows := [row for row in training_rows(file, family) if row.quantity is TIME])
    }
    tables, left = [], 0
    for family, rows in by_family.items():
        table = best_table(_in_usual_batches(on_both(rows) or rows))
        most = _MOST[family] if len(by_family) > 1 else sum(_MOST.values())
        kept = spread(len(table.lines), most)
        left += len(best_table(on_both(rows) or rows).lines) - len(kept)
        how = () if on_device(rows, "cuda") else ("cpu_on",)
        shown = [at for at, column in enumerate(table.columns) if column.key in (*_COLUMNS, *how)]
        tables.append(table.taking(kept).only(shown))
    return tuple(tables), left


def _in_usual_batches(rows: Sequence[Row]) -> list[Row]:
    """Of each network the rows in the batches that most networks have; all where they are even."""
    pairs = {(row.model, row.batch) for row in rows}
    counts = Counter(batch for _, batch in pairs)
    most = {
        model: max(counts[batch] for of, batch in pairs if of == model)
        for model in {model for model, _ in pairs}
    }
    return [row for row in rows if counts[row.batch] == most[row.model]]


def _without_a_result(file: File) -> Iterator[str]:
    """Those rows, of one reason together: their messages differ in numbers and names alone."""
    reasons: dict[str, list[tuple[str, Failure]]] = {}
    for row in file.rows:
        if row.failure:
            reason = re.sub(r"'[^']*'|[\d.]+(e-?\d+)?", "", row.failure.message)
            reasons.setdefault(reason, []).append((row.name, row.failure))
    for (name, failure), *others in reasons.values():
        more = f" ({len(others)} more like it)" if others else ""
        yield f"{printable(name, 400)} {failure.outcome}: {printable(failure.message, 400)}{more}"
