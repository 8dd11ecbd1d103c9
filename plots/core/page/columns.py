# SPDX-License-Identifier: Apache-2.0
"""Tables as a page shows them: what is asked for first, and what all lines share in the title."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from plots.core.statistics import spread
from plots.core.tables.table import NOTHING, Table

_FEW = 12  # lines of a table that is shown whole though it is not folded
_SHOWN = 10  # of a longer one


def on_page(table: Table, first: Sequence[str], title: str = "") -> Table:
    """`table` with the columns whose keys are in `first` before all others, in that order.

    A column that says the same in all of several lines is left out, and said in the title, which
    is `title` where that is given; but not those in `first`, nor what is for programs.
    """
    kept, shared = _shared(table, first)
    places = {column.key: place for place, column in enumerate(table.columns)}
    order = [places[key] for key in first if key in places]
    order += [place for place in kept if place not in order]
    said = f" ({', '.join(shared)})" if shared else ""
    return table.only(order, f"{title or table.title}{said}")


def brief(table: Table, where: str) -> Table:
    """Ten lines of a long `table`, evenly spread; a note says that `where` has all."""
    if len(table.lines) <= _FEW:
        return table
    kept = spread(len(table.lines), _SHOWN)
    note = f"{len(kept)} of {len(table.lines)} lines, evenly spread; {where} has all."
    short = table.taking(kept)
    return replace(short, notes=(*short.notes, note))


def _shared(table: Table, first: Collection[str]) -> tuple[list[int], list[str]]:
    """The places of the columns that stay, and in words what the others say in every line."""
    kept, shared = [], []
    for place, column in enumerate(table.columns):
        texts = {(line[place].text, line[place].marks) for line in table.lines}
        stays = column.for_programs or column.key in first
        if stays or len(table.lines) < 2 or len(texts) > 1:
            kept.append(place)
            continue
        ((text, marks),) = texts
        if marks:
            kept.append(place)
        elif text != NOTHING.text:
            shared.append(" ".join(filter(None, (column.group, column.title, text))))
    return kept, shared
