# SPDX-License-Identifier: Apache-2.0
"""The answer: of each machine in a sentence or two; of many machines, of most in a line."""

from collections.abc import Sequence

from plots.core.network import epoch_rows, on_device, step_rows
from plots.core.page.section import Block, Context, Fold, Section
from plots.core.tables.cells import count_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.answer.analysis import sentences
from plots.file.file_order import newer_but_short
from plots.file.rows import File
from plots.text import counted

_WITHOUT_GPU = (
    "None of these files has times of a GPU. With a file from a machine with a GPU, where ./run "
    "measures both, this page says from how many parameters the GPU wins, how sure that is, what "
    "limits each side, and how many times as fast the GPU is. Until then it predicts that, with a "
    "band."
)
_COMPARED = (
    "At each size the CPU runs on its best thread count; the GPU runs in the mode that wins "
    "earliest. The 95 % interval is in brackets. The networks of a ladder, such as disc, grow step "
    "by step, so they form a curve. docs/method/crossover.md says how batch and mode are chosen."
)
_STEPS = (
    "A network that was trained step by step at several batch sizes forms a curve over them: the "
    "batch size from which the GPU wins is found, and its interval, as the number of parameters is."
)


def build(files: Sequence[File], context: Context) -> Section:
    answers = [
        sentences(file, context.comparisons(file), context.predicted(file)) for file in files
    ]
    blocks = [
        Block(
            machine=file.machine.id,
            lead=first,
            points=tuple(more),
            notes=(measured(file),),
            emphasis=True,
        )
        for file, (first, *more) in zip(files[: context.detailed], answers, strict=False)
    ]
    epochs = any(on_device(epoch_rows(file), "cuda") for file in files)
    steps = any(on_device(step_rows(file), "cuda") for file in files)
    if not epochs and not steps:
        blocks.append(Block(lead=_WITHOUT_GPU))
    rest = list(zip(files, answers, strict=True))[context.detailed :]
    notes = [text for text, has in ((_COMPARED, epochs), (_STEPS, steps)) if has]
    if rest:
        blocks.append(Block(folds=(Fold(f"The other files ({len(rest)})", (_overview(rest),)),)))
        notes.append(
            f"The charts and tables below show {context.detailed} of these {len(files)} files, in "
            "the order of this page; --detail=N shows the first N, --detail=all shows all."
        )
    passed_over = newer_but_short(files, context.older)
    notes += passed_over
    if older := len(context.older) - len(passed_over):
        notes.append(
            f"Left out: {counted(older, 'older file')} of the same machines; --all shows each file."
        )
    return Section(
        title="The answer",
        anchor="answer",
        lead="From what network size or batch size is a GPU worth it?"
        if steps
        else "From what network size is a GPU worth it?",
        blocks=tuple(blocks),
        notes=tuple(notes),
    )


def measured(file: File) -> str:
    """On what, when, and at which commit `file` was measured."""
    devices = f"{file.machine.cpu.model}, {counted(file.machine.cpu.cores, 'core')}"
    if file.machine.gpu:
        devices += f"; {file.machine.gpu}"
    dirty = " with uncommitted changes" if file.software.dirty else ""
    commit = f", commit {file.software.commit[:7]}{dirty}" if file.software.commit else ""
    interrupted = "" if file.complete else f"; {file.ended}, so rows are missing"
    return f"{devices}; measured on {file.date.date().isoformat()}{commit}{interrupted}"


def _overview(rest: Sequence[tuple[File, list[str]]]) -> Table:
    columns = (
        Column("machine", "machine"),
        Column("cpu", "CPU"),
        Column("gpu", "GPU"),
        Column("answer", "answer"),
        Column("measured", "measured"),
        Column("rows", "rows", numeric=True),
        Column("without_result", "without result", numeric=True),
        Column("flagged", "flagged", numeric=True),
    )
    lines = tuple(_line(file, answers[0]) for file, answers in rest)
    return Table("The other files", columns, lines)


def _line(file: File, answer: str) -> tuple[Cell, ...]:
    cpu, gpu = file.machine.cpu, file.machine.gpu
    cores = counted(cpu.cores, "core")
    failed = sum(row.failure is not None for row in file.rows)
    flagged = sum(bool(row.warnings) for row in file.rows)
    return (
        Cell(file.machine.id, file.machine.id, bold=True),
        Cell(f"{cpu.model}, {cores}", cpu.model),
        text_cell(gpu) if gpu else NOTHING,
        text_cell(answer),
        Cell(file.date.date().isoformat(), file.date.isoformat()),
        *(count_cell(number) for number in (len(file.rows), failed, flagged)),
    )
