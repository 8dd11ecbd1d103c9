# SPDX-License-Identifier: Apache-2.0
"""The parts of an answer as data: what sections build, and what show/page/page.py writes on a
page, show/page/text.py in a terminal.

Text in them is still as the result file has it; each writer escapes and shortens it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from crossover_bench.files.file_order import machine
from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File
from crossover_bench.parallel import Map, in_process
from crossover_bench.show.tables.table import Table
from crossover_bench.study.machines import SideBySide
from crossover_bench.study.study import Predicted, Study, study_of

if TYPE_CHECKING:  # matplotlib takes long to load, and `times` needs no page
    from markupsafe import Markup

    from crossover_bench.show.charts.style import Chart

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Block:
    """What a section says about one machine, or on one matter, in this order.

    `machine` is a heading where several machines are shown, `title` always. `lead` is a paragraph,
    `strip` what a terminal shows in the place of pictures, `points` a list, `facts` pairs of term
    and description, `commands` lines for a shell, `notes` small print. `folds` only open when asked
    to, each by its title. `emphasis` shows the lead as the answer.
    """

    machine: str = ""
    title: str = ""
    lead: str = ""
    strip: str = ""
    points: tuple[str, ...] = ()
    pictures: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    folds: tuple[Block, ...] = ()
    emphasis: bool = False

    @property
    def parts(self) -> tuple[Block, ...]:
        """What has pictures and tables: the block, and its folds."""
        return (self, *self.folds)


@dataclass(frozen=True, slots=True)
class Widget:
    """What a section does in the browser: `html` from a template of its own, with all text in it
    escaped, and the `script` and `style` that it needs. It `covers` the machines whose rows it has
    all of: tables that are cut from these (Table.rows) stay short on the page."""

    html: Markup
    script: str
    style: str
    covers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A chapter of the report. `anchor` is its id in the page: letters and hyphens.

    A `widget` stands first, then `blocks`; `tables` and `notes` on all of it follow.
    A section with nothing but a `lead` says why it is empty.
    """

    title: str
    anchor: str
    lead: str = ""
    blocks: tuple[Block, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    widget: Widget | None = None

    @property
    def pictures(self) -> list[Chart]:
        """Those of all blocks and folds."""
        parts = (part for block in self.blocks for part in block.parts)
        return [picture for part in parts for picture in part.pictures]

    @property
    def every_table(self) -> Iterator[Table]:
        """Those of all blocks and folds, then its own."""
        for block in self.blocks:
            for part in block.parts:
                yield from part.tables
        yield from self.tables


@dataclass(frozen=True, slots=True)
class Context:
    """What sections share besides the files.

    The first `detailed` files are shown in full, the others as lines of tables. `older` files are
    those that do not answer for their machines. `stems` are the machines' parts of file names,
    `studies` what is known of the files already, `side` has the files beside each other,
    `predictions` what cards would do on their machines. The files are in `quantity`, which `notes`
    are about where it is not time. Work on many files goes through `map`. `draws` says whether
    anyone will see pictures.
    """

    detailed: int = 1
    older: tuple[File, ...] = ()
    stems: dict[Path, str] | None = None
    studies: dict[Path, Study] = field(default_factory=dict)
    side: SideBySide | None = None
    predictions: Predicted | None = None
    quantity: Quantity = TIME
    notes: tuple[str, ...] = ()
    map: Map = in_process
    draws: bool = True

    def draw(
        self, charts_of: Callable[[Item], Sequence[Chart]], items: Iterable[Item]
    ) -> list[Sequence[Chart]]:
        """The charts of each of `items`; none where nobody will see them, as they take long."""
        return self.map(charts_of, items) if self.draws else [() for _ in items]

    def study(self, file: File) -> Study:
        """What follows from `file`, made once for all sections."""
        study = self.studies.get(file.path)
        if study is None or study.file is not file:
            study = self.studies[file.path] = study_of(file, self.predictions)
        return study

    def showing(self, files: Sequence[File], has: Callable[[File], object]) -> list[File]:
        """Those of the `detailed` of `files` that `has` holds of, for a section on it. Where it
        holds of no file of a machine, the newest of its `older` files that it holds of stand
        there, called by their names, too."""
        shown = files[: self.detailed]
        chosen = [file for file in shown if has(file)]
        told = set(map(machine, chosen))
        for of in dict.fromkeys(map(machine, shown)):
            lacking = [] if of in told else [file for file in self.older if machine(file) == of]
            chosen += map(_with_its_name, [file for file in lacking if has(file)][:_MOST_OLDER])
        return chosen

    def pictures(self, file: File, charts: Iterable[Chart]) -> tuple[Chart, ...]:
        """The `charts` of `file`, each as picture() has it."""
        return tuple(self.picture(file, chart) for chart in charts)

    def picture(self, file: File, chart: Chart, caption: str = "") -> Chart:
        """A chart of `file`, whose name has no dot, in a file named after the machine too."""
        stem = f"{(self.stems or {}).get(file.path, 'machine')}.{chart.name}"
        return replace(chart, name=stem, caption=caption)


_MOST_OLDER = 4  # files of a machine in one section


def _with_its_name(file: File) -> File:
    name = f"{file.machine.id}, {file.path.name}"
    return replace(file, machine=replace(file.machine, id=name))
