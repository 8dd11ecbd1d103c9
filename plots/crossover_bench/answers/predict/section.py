# SPDX-License-Identifier: Apache-2.0
"""What GPUs that were not measured would do on these machines: bands, and how to make them sure."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from crossover_bench.answers.predict.analysis import NOT_MEASURED
from crossover_bench.answers.predict.answer import Predictions, Verdict, sentences
from crossover_bench.answers.predict.fit import Fit
from crossover_bench.answers.predict.table import (
    bands_table,
    crossover_table,
    networks_table,
    notes_of,
)
from crossover_bench.files.families import OF_NETWORKS
from crossover_bench.files.rows import File
from crossover_bench.place import CROSSOVER, RUN
from crossover_bench.show.page.section import Block, Context, Section
from crossover_bench.show.tables.table import Table
from crossover_bench.study.programs import NAMES, names_of
from crossover_bench.study.study import OURS, PYTORCH, Study
from crossover_bench.words.text import printable

if TYPE_CHECKING:
    from crossover_bench.show.charts.style import Chart

_CERTAIN = (
    f"What would make it certain: measure such a card. Where there is one, {RUN} measures it in a "
    "few minutes; tools/gpu_sweep does on a machine that is rented for minutes and has no network "
    "(docs/gpu.md). results/README.md, Contribute a file, says how to send the file; with it, "
    "compare --cpu-of and --gpu-of set the two machines against each other in measured times."
)
_FIRST = ("card", "crossover", "low", "high", "answer", "execution", "data")
_BANDS = ("model", "batch", "cpu_epoch_seconds", "cpu_step_seconds", "cpu_pass_seconds")


def build(files: Sequence[File], context: Context) -> Section | None:
    """The section on `files`; None where nothing is predicted of any."""
    predicted = context.predictions
    if not isinstance(predicted, Predictions):
        return None
    shown = [file for file in files[: context.detailed] if predicted.of(file)]
    if not shown:
        return None
    answers = [(file, predicted.groups[file.path]) for file in shown]
    drawn = context.draw(partial(draw, fit=predicted.fit), answers)
    another = any(file.machine.gpu for file in shown)
    return Section(
        title=f"If {'this machine' if len(shown) == 1 else 'these machines'} had "
        f"{'another' if another else 'a'} GPU",
        anchor="predicted",
        lead=f"From which size a card would win against the measured CPU: {NOT_MEASURED}.",
        blocks=tuple(
            _on_a_page(file, groups, charts, context)
            for (file, groups), charts in zip(answers, drawn, strict=True)
        ),
        notes=(*notes_of(answers[0][1][0], predicted.fit), _CERTAIN),
    )


def block(
    file: File,
    groups: Sequence[Sequence[Verdict]],
    fit: Fit | None = None,
    pytorch: Sequence[Verdict] = (),
) -> Block:
    """The sentences of `pytorch`, then of each of `groups`; then the table of a group for each
    family of networks, which shows people the bands alone until they ask for all; then from which
    size each card would win. Notes say what the bands of `fit` are worth."""
    machine, tables = file.machine.id, list[Table]()
    for group in groups:
        notes = notes_of(group, fit) if fit else ()
        for family in OF_NETWORKS:
            table = networks_table(group, machine, family, notes)
            if table.lines:
                tables.append(table.shortened(bands_table(group, family, notes)))
                notes = ()  # which stand once
        crossovers = crossover_table(group, machine)
        tables += [crossovers.led_by(*_FIRST).as_folded()] if crossovers.lines else []
    ours = "" if not pytorch else f"{NAMES[OURS][0]}, "
    points = sentences(pytorch, f"{names_of(Study(file), PYTORCH)[0]}, ")
    points += [point for group in groups for point in sentences(group, ours)]
    return Block(machine, points=tuple(points), tables=tuple(tables))


def draw(answer: tuple[File, Sequence[Sequence[Verdict]]], fit: Fit) -> list[Chart]:
    """The charts of the groups of verdicts on a file."""
    # Imported here because matplotlib takes long to load.
    from crossover_bench.answers.predict.chart import draw_predicted  # noqa: PLC0415

    file, groups = answer
    return [chart for group in groups for chart in draw_predicted(file, group, fit)]


def _on_a_page(
    file: File,
    groups: Sequence[Sequence[Verdict]],
    charts: Sequence[Chart],
    context: Context,
) -> Block:
    """The block with the bands of the networks alone, and how to ask for all."""
    cards = [verdict.card.id for verdict in groups[0]]
    made = block(file, groups, pytorch=context.study(file).pytorch_verdicts)
    path = shlex.quote(printable(str(file.path), 400))
    return replace(
        made,
        pictures=context.pictures(file, charts),
        tables=tuple(
            table.short.led_by(*_BANDS, *cards).in_brief() if table.short else table
            for table in made.tables
        ),
        commands=(f"{CROSSOVER} predict {path} --all --gpu={','.join(cards)}",),
    )
