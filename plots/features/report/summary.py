# SPDX-License-Identifier: Apache-2.0
"""What `report --summary` prints of a file: the answer at a glance, and a few of its times."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import replace

from plots.core.crossover import Comparison
from plots.core.network import familiar, training_rows
from plots.core.statistics import spread
from plots.core.strip import strip_text
from plots.core.tables.formats import as_text, wrapped
from plots.core.tables.table import Table
from plots.features.answer.glance import Glance, glance
from plots.features.answer.section import measured
from plots.features.predict.answer import Verdict
from plots.features.training.table import best_table, compared_and_alone
from plots.file.families import EPOCH, TRAINING
from plots.file.quantities import TIME
from plots.file.rows import Failure, File, Row
from plots.text import printable

_MOST = 10  # lines of times
_STEPS = 4  # of them of training steps, where there are epochs, too
_ROOM = 400  # characters of a path
_COLUMNS = {
    "network",
    "params",
    "batch",
    "speed_up",
    *(f"{side}_seconds_per_{unit}" for side in ("cpu", "gpu") for unit in ("epoch", "step")),
}


def summary(file: File, compared: Sequence[Comparison], found: Sequence[Verdict] = ()) -> str:
    """The strip, the sentence and three lines, a few times, what is missing, how to see the rest,
    and the answer in a line to share; `compared` and `found` are those of glance()."""
    answer = glance(file, compared, found)
    parts = [
        glance_text(answer),
        wrapped(
            f"{printable(file.machine.id, 60)}: {printable(measured(file), 400)}; from "
            f"{printable(str(file.path), _ROOM)}"
        ),
    ]
    families = [family for family in TRAINING if _times(file, family)]
    left = 0
    for family in families:
        rows = familiar(_times(file, family))
        table = best_table(compared_and_alone(rows)[0] or rows)
        most = _MOST
        if len(families) > 1:
            most = _MOST - _STEPS if family == EPOCH else _STEPS
        left += max(0, len(table.lines) - most)
        parts.append(as_text(_short(table, most)).rstrip())
    path = shlex.quote(printable(str(file.path), _ROOM))
    if families:
        more = f"{left} more, and ranges" if left else "Ranges"
        parts[-1] += f"\n{more}: .venv/bin/python -m plots times {path}"
    if missing := _without_a_result(file):
        parts.append(missing)
    if answer.to_share:
        parts.append(f"To share: {answer.to_share}")
    return "\n\n".join(parts)


def _times(file: File, family: str) -> list[Row]:
    return [row for row in training_rows(file, family) if row.quantity is TIME]


def _without_a_result(file: File) -> str:
    """Those rows, of one reason together: their messages differ in numbers and names alone."""
    reasons: dict[str, list[tuple[str, Failure]]] = {}
    for row in file.rows:
        if row.failure:
            reason = re.sub(r"'[^']*'|[\d.]+(e-?\d+)?", "", row.failure.message)
            reasons.setdefault(reason, []).append((row.name, row.failure))
    if not reasons:
        return ""
    lines = ["Rows without a result"]
    for alike in reasons.values():
        name, failure = alike[0]
        more = f" ({len(alike) - 1} more like it)" if len(alike) > 1 else ""
        text = f"{printable(name, _ROOM)} {failure.outcome}: {printable(failure.message, _ROOM)}"
        lines.append(wrapped(text + more, "    ", "  - "))
    return "\n".join(lines)


def glance_text(one: Glance) -> str:
    """The strip, the sentence and the lines."""
    parts = [strip_text(one.strips), ""] if one.strips else []
    parts.append(wrapped(printable(one.sentence)))
    parts += [wrapped(printable(line, 400), "    ", "  - ") for line in one.lines]
    return "\n".join(parts)


def _short(table: Table, most: int) -> Table:
    """At most so many lines of `table`, evenly spread, and the columns that answer."""
    count = len(table.lines)
    kept = spread(count, most)
    places = [place for place, column in enumerate(table.columns) if column.key in _COLUMNS]
    places += [
        place
        for place, column in enumerate(table.columns)
        if column.key == "cpu_on" and "speed_up" not in {one.key for one in table.columns}
    ]
    lines = tuple(table.lines[place] for place in kept)
    return replace(table, lines=lines).noted().only(places)
