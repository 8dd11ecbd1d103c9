# SPDX-License-Identifier: Apache-2.0
"""The answer at a glance: of each machine a strip, a sentence and three lines; of many machines all
strips under each other, and of most a line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from crossover_bench.answers.answer.glance import glance, machines
from crossover_bench.answers.answer.words import Glance
from crossover_bench.curves.network import on_device, training_rows
from crossover_bench.files.families import EPOCH, FORWARD, MINIBATCH
from crossover_bench.files.file_order import passed_over
from crossover_bench.files.rows import File, Row
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.strip import Strips, strip_text
from crossover_bench.show.tables.cells import Field, count_field, date_cell, table_of, text_field
from crossover_bench.show.tables.table import Cell, Column, Table

if TYPE_CHECKING:
    from crossover_bench.show.charts.style import Chart

_MOST_MACHINES = 12  # strips of a picture
_COMPARED = (
    "At each size the CPU runs on its best thread count; the GPU runs as auto chooses, or without "
    "such rows in the mode that wins earliest. The 95 % interval is in brackets. The networks of a "
    "ladder, such as disc, grow step by step, so they form a curve. docs/method/crossover.md says "
    "how batch and mode are chosen."
)
_STEPS = (
    "A network that was trained step by step at several batch sizes forms a curve over them: the "
    "batch size from which the GPU wins is found, and its interval, as the number of parameters is."
)


def build(files: Sequence[File], context: Context) -> Section:
    glances = [glance(context.study(file)) for file in files]
    shown = list(zip(files, glances, strict=True))[: context.detailed]
    side = machines(zip(files[:_MOST_MACHINES], glances, strict=False)) if len(files) > 1 else None
    drawn = context.draw(partial(_draw, beside=bool(side)), [answer.strips for _, answer in shown])
    blocks = [
        block_of(file, answer, context.pictures(file, charts))
        for (file, answer), charts in zip(shown, drawn, strict=True)
    ]
    if side:
        charts = context.draw(partial(_draw, name="strips"), [side])[0]
        blocks.insert(0, Block(pictures=tuple(charts)))
    rest = list(zip(files, glances, strict=True))[context.detailed :]
    notes = [*context.notes, *_how([file for file, _ in shown])]
    if rest:
        blocks.append(Block(tables=(_overview(rest).as_folded(),)))
        notes.append(
            f"The charts and tables below show {context.detailed} of these {len(files)} files, in "
            "the order of this page; --detail=N shows the first N, --detail=all shows all."
        )
    notes += [
        f"{file.path.name} does not answer for its machine as a complete default or full sweep "
        f"does: {'; '.join(lack.fault for lack in file.shortcomings)}."
        for file in files
        if file.shortcomings
    ]
    left_out = passed_over(files, context.older)
    notes += [passed.sentence for passed in left_out]
    if older := len(context.older) - sum(len(passed.files) for passed in left_out):
        notes.append(
            f"Older files of the same machines: {older}. A section shows them, by their names, "
            "where no file above has such rows; --all shows each file."
        )
    return Section(title="The answer", anchor="answer", blocks=tuple(blocks), notes=tuple(notes))


def _draw(strips: Strips | None, beside: bool = False, name: str = "strip") -> list[Chart]:
    """The strips of a machine: `beside` others, only what the machines' strips and the section on
    cards do not show."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.show.charts.strip import draw_strips  # noqa: PLC0415

    if strips is None or (beside and (strips.is_predicted or len(strips.strips) == 1)):
        return []
    return [draw_strips(strips, name)]


def block_of(file: File, answer: Glance, pictures: tuple[Chart, ...] = ()) -> Block:
    """The strip, the sentence, three lines, and what they are of."""
    return Block(
        machine=file.machine.id,
        lead=answer.sentence,
        points=answer.lines,
        strip=strip_text(answer.strips) if answer.strips else "",
        pictures=pictures,
        notes=(measured(file),),
        emphasis=True,
    )


def _how(files: Sequence[File]) -> list[str]:
    """How the answer was found on those of `files` with a GPU's times."""
    epochs, steps, passes = (
        any(on_device(training_rows(file, family), "cuda") for file in files)
        for family in (EPOCH, MINIBATCH, FORWARD)
    )
    return [*([_COMPARED] if epochs or passes else []), *([_STEPS] if steps else [])]


def measured(file: File) -> str:
    """On what, when, and at which commit `file` was measured."""
    devices = file.machine.cpu.words
    if file.machine.gpu:
        devices += f"; {file.machine.gpu}"
    dirty = " with uncommitted changes" if file.software.dirty else ""
    commit = f", commit {file.software.commit[:7]}{dirty}" if file.software.commit else ""
    interrupted = "" if file.complete else f"; {file.ended}, so rows are missing"
    return f"{devices}; measured on {file.date.date().isoformat()}{commit}{interrupted}"


def _overview(rest: Sequence[tuple[File, Glance]]) -> Table:
    def counted_rows(key: str, title: str, counts: Callable[[Row], bool]) -> Field:
        return count_field(key, title, lambda of: sum(map(counts, of[0].rows)))

    fields = (
        (
            Column("machine", "machine"),
            lambda of: Cell(of[0].machine.id, of[0].machine.id, bold=True),
        ),
        (
            Column("cpu", "CPU"),
            lambda of: Cell(of[0].machine.cpu.words, of[0].machine.cpu.model),
        ),
        text_field("gpu", "GPU", lambda of: of[0].machine.gpu),
        text_field("answer", "answer", lambda of: of[1].sentence),
        (Column("measured", "measured"), lambda of: date_cell(of[0])),
        counted_rows("rows", "rows", lambda _: True),
        counted_rows("without_result", "without result", lambda row: row.failure is not None),
        counted_rows("flagged", "flagged", lambda row: bool(row.warnings)),
    )
    return table_of("The other files", rest, fields)
