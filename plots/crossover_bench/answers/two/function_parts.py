# SPDX-License-Identifier: Apache-2.0
"""Of what the calls of functions on a device consist, in sentences: launch, wait and copies."""

from collections.abc import Iterator, Sequence

from crossover_bench.answers.two.function_problems import by_problem, is_copied, side_words, size_of
from crossover_bench.answers.two.functions import BESIDE, PARTS, part_fields
from crossover_bench.files.rows import File, Row
from crossover_bench.show.page.section import Block, Section
from crossover_bench.show.tables.cells import (
    count_field,
    seconds_field,
    table_of,
    text_field,
)
from crossover_bench.show.tables.table import Table
from crossover_bench.words import units
from crossover_bench.words.text import printable

_NOTE = "Parts are medians of a few calls of their own: they add up to about a call."
_MUCH = 0.5  # a share that decides


def section(file: File) -> Section | None:
    """Why functions of `file` take the time they take; None where it has none."""
    problems = by_problem(file)
    if not problems:
        return None
    timed = {
        name: sorted(filter(_is_on_device, rows), key=size_of) for name, rows in problems.items()
    }
    block = Block(
        machine=file.machine.id,
        points=tuple(text for name, rows in timed.items() for text in _points(name, rows)),
        tables=tuple(_parts_table(name, rows) for name, rows in timed.items() if rows),
        notes=(_NOTE,) if any(timed.values()) else (),
    )
    return Section(title="Why", anchor="why-functions", blocks=(block,))


def _points(problem: str, rows: Sequence[Row]) -> Iterator[str]:
    """Of each side on a device what its calls are at the smallest and at the largest size."""
    title = printable(problem, 60)
    sides: dict[str, list[Row]] = {}
    for row in rows:
        sides.setdefault(side_words(row.configuration), []).append(row)
    for side, of_side in sides.items():
        for place in dict.fromkeys((0, len(of_side) - 1)):
            yield from _told(f"{title}, {side}", of_side[place])
    if not sides:
        yield f"{title}: all sides compute on the CPU, so no launch and no copy is in a call."


def _is_on_device(row: Row) -> bool:
    """With its data there."""
    return row.device != "cpu" and "call_seconds" in row.counters and not is_copied(row)


def _told(whose: str, row: Row) -> Iterator[str]:
    parts = row.counters
    launch, wait = parts["call_seconds"], parts["wait_seconds"]
    call = launch + wait
    work = parts.get("device_seconds")
    clock = f"; by its own clock the device works for {units.seconds(work)}" if work else ""
    is_work = (work or wait) > _MUCH * call
    yield (
        f"{whose} at n = {units.count(size_of(row))}: the launch takes the host "
        f"{units.seconds(launch)}, the wait behind it {units.seconds(wait)}{clock}; most "
        f"of it is {'work' if is_work else 'launch and wait'}."
    )
    if "copy_in_seconds" in parts:
        into, out = parts["copy_in_seconds"], parts["copy_out_seconds"]
        advice = ": keep data there" if into + out > call else ""
        yield (
            f"Its copies take {units.seconds(into)} in and {units.seconds(out)} out, "
            f"{units.significant((into + out) / call, 2)} times the call{advice}."
        )
    if behind := parts.get("back_to_back_seconds"):
        saved = 1 - behind / call
        change = f", {100 * saved:.0f} % less than one that is waited for" if saved > 0 else ""
        yield f"Back to back a call takes {units.seconds(behind)}{change}."


def _parts_table(problem: str, rows: Sequence[Row]) -> Table:
    """A line for each size and side on a device."""
    fields = (
        count_field("size", "size", size_of),
        text_field("side", "side", lambda row: side_words(row.configuration)),
        seconds_field("seconds", "a call", lambda row: row.median),
        *part_fields(rows, (*PARTS, *BESIDE)),
    )
    return table_of(f"Parts of a call of {problem}, measured once", rows, fields)
