# SPDX-License-Identifier: Apache-2.0
"""The parts of a report as data: what sections build and plots/core/page/page.py writes out.

Text in them is still as the result file has it; the page escapes and shortens it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from markupsafe import Markup

from plots.core.crossover import Comparison
from plots.core.machines import SideBySide
from plots.core.tables.table import Table
from plots.file.quantities import TIME, Quantity
from plots.file.rows import File
from plots.parallel import Map, in_process

if TYPE_CHECKING:  # matplotlib takes long to load
    from plots.core.charts.style import Chart, Pictures
from collections.abc import Collection
from dataclasses import replace

from plots.core.statistics import spread
from plots.core.tables.table import NOTHING


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart. `stem` is its file name without ending. `alt` says what the
    chart shows to those who don't see it, in a sentence that can stand alone and others that add to
    it; `caption` what to look at."""

    pictures: Pictures
    stem: str
    alt: str
    caption: str = ""


@dataclass(frozen=True, slots=True)
class Fold:
    """What only opens when asked to: `summary` is what one clicks."""

    summary: str
    tables: tuple[Table, ...] = ()
    commands: tuple[str, ...] = ()
    points: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @classmethod
    def of(cls, table: Table, summary: str = "", pictures: tuple[Picture, ...] = ()) -> Fold:
        """`table` with its number of lines beside the summary, or else its title."""
        return cls(f"{summary or table.title} ({len(table.lines)})", (table,), pictures=pictures)


@dataclass(frozen=True, slots=True)
class Block:
    """What a section says about one machine, or on one matter, in this order.

    `machine` is a heading where several machines are shown, `title` always. `lead` is a paragraph,
    `points` a list, `facts` pairs of term and description, `commands` lines for a shell, `notes`
    small print. `emphasis` shows the lead as the answer.
    """

    machine: str = ""
    title: str = ""
    lead: str = ""
    points: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folds: tuple[Fold, ...] = ()
    emphasis: bool = False

    @property
    def parts(self) -> tuple[Block | Fold, ...]:
        """What has pictures and tables: the block, and its folds."""
        return (self, *self.folds)


@dataclass(frozen=True, slots=True)
class Widget:
    """What a section does in the browser: `html` from a template of its own, with all text in it
    escaped, and the `script` and `style` that it needs."""

    html: Markup
    script: str
    style: str


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of the report. `anchor` is its id in the page: letters and hyphens.

    A `widget` stands first, then `blocks`; `tables` and `notes` on all of it follow.
    A section with nothing but a `lead` says why it is empty. What is `folded` opens below its lead
    when asked to.
    """

    title: str
    anchor: str
    lead: str = ""
    blocks: tuple[Block, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    widget: Widget | None = None
    folded: bool = False

    @property
    def pictures(self) -> list[Picture]:
        """Those of all blocks and folds."""
        parts = (part for block in self.blocks for part in block.parts)
        return [picture for part in parts for picture in part.pictures]


class Predicted(Protocol):
    """What is predicted of the files; plots/features/predict/answer.py has it."""

    def clause(self, file: File) -> str:
        """A clause on `file`; empty where nothing is predicted."""

    def of(self, file: File) -> Sequence[Any]:
        """The verdicts on `file` (plots/features/predict/answer.py); none where there are none."""


@dataclass(frozen=True, slots=True)
class Context:
    """What sections share besides the files.

    The first `detailed` files are shown in full, the others as lines of tables. `older` files are
    of machines that have a newer one. `stems` are the machines' parts of file names, `side` has the
    files beside each other, `predictions` what cards would do on their machines. The files are in
    `quantity`, of which `said` tells where it is another than time. Work on many files goes through
    `map`.
    """

    detailed: int = 1
    older: tuple[File, ...] = ()
    stems: dict[Path, str] | None = None
    compared: dict[Path, list[Comparison]] | None = None
    side: SideBySide | None = None
    predictions: Predicted | None = None
    quantity: Quantity = TIME
    said: tuple[str, ...] = ()
    map: Map = in_process

    def comparisons(self, file: File) -> list[Comparison]:
        """The comparisons() of `file` (plots/core/crossover.py), made once for all sections."""
        return (self.compared or {}).get(file.path, [])

    def predicted(self, file: File) -> str:
        """What is predicted of `file`, a clause; empty where nothing is."""
        return self.predictions.clause(file) if self.predictions else ""

    def verdicts(self, file: File) -> Sequence[Any]:
        """What each card would do on the machine of `file`; none where nothing is predicted."""
        return self.predictions.of(file) if self.predictions else ()

    def picture(self, file: File, chart: Chart, caption: str = "") -> Picture:
        """A chart of `file`, whose name has no dot, in a file named after the machine too."""
        stem = f"{(self.stems or {}).get(file.path, 'machine')}.{chart.name}"
        return Picture(chart.pictures, stem, chart.alt, caption)


# ---- tables as a page shows them


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
