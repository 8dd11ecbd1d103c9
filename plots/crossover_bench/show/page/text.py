# SPDX-License-Identifier: Apache-2.0
"""Writes sections out as text, as wide as the terminal, and their tables in any other format."""

from collections.abc import Iterable, Iterator, Sequence

from crossover_bench.show.page.section import Block, Section
from crossover_bench.show.tables.formats import as_text, wrapped
from crossover_bench.show.tables.table import LONGEST_NOTE, Table
from crossover_bench.words.text import printable


def text_of(sections: Sequence[Section], every: bool = False) -> str:
    """`sections` for a terminal, under the name of each machine: without pictures, and unless
    `every` part of them is asked for without what a page folds, which is named then. Commands are
    a page's, too."""
    parts: list[str] = []
    machine = ""
    for section in sections:
        for block in section.blocks:
            parts += _of_block(block, every, is_named=block.machine != machine)
            machine = block.machine or machine
        parts += _of_tables(section.tables, "", every)
        parts += [_paragraph(note) for note in section.notes if every]
    left = "; ".join(dict.fromkeys(name for section in sections for name in _left_out(section)))
    if left and not every:
        parts.append(_paragraph(f"--all shows, too: {left}."))
    text = "\n\n".join(filter(None, parts))
    return f"{text}\n" if text else ""


def tables_of(sections: Iterable[Section]) -> list[Table]:
    """What programs read of `sections`: each table whole, without those that are empty."""
    return [table for section in sections for table in section.every_table if not table.is_empty]


def _of_block(block: Block, every: bool, is_named: bool) -> Iterator[str]:
    names = [block.machine] if is_named and block.machine else []
    head = ": ".join([*names, *([block.title] if block.title else [])])
    lead = _paragraph(block.lead)
    yield "\n".join(filter(None, [_paragraph(head), lead or block.strip]))
    yield block.strip if lead else ""
    points = (printable(point, 2 * LONGEST_NOTE) for point in block.points)
    yield "\n".join(wrapped(point, "  ", "- ") for point in points)
    yield from _of_tables(block.tables, block.machine, every)
    yield "\n".join(
        wrapped(printable(f"{term}: {description}"), "  ", "") for term, description in block.facts
    )
    yield from map(_paragraph, block.notes)
    for fold in block.folds if every else ():
        yield _paragraph(f"{fold.title}:") if fold.tables else ""
        yield from _of_tables(fold.tables, block.machine, every)


def _of_tables(tables: Sequence[Table], machine: str, every: bool) -> Iterator[str]:
    for table in tables:
        shown = table if every else None if table.folded else table.short or table
        if shown and not shown.is_empty:
            yield as_text(shown.on(machine)).rstrip()


def _left_out(section: Section) -> Iterator[str]:
    """What only opens when asked for, in words."""
    for block in section.blocks:
        tables = [table for table in block.tables if table.folded or table.short]
        for table in (*tables, *(table for fold in block.folds for table in fold.tables)):
            if not table.is_empty:
                yield f"{table.on(block.machine).title} ({len(table.lines)})"


def _paragraph(text: str) -> str:
    return wrapped(printable(text, 2 * LONGEST_NOTE)) if text else ""
