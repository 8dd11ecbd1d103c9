# SPDX-License-Identifier: Apache-2.0
"""What GPUs that were not measured would do on these machines: bands, and how to make them sure."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from plots.core.charts.style import Chart
from plots.core.network import ODD, on_device, training_rows
from plots.core.page.columns import brief, on_page
from plots.core.page.section import Block, Context, Fold, Picture, Section
from plots.core.tables.table import Table
from plots.features.predict.analysis import NOT_MEASURED
from plots.features.predict.answer import sentence
from plots.features.predict.chart import draw_predicted
from plots.features.predict.files import Predictions
from plots.features.predict.fit import band_notes
from plots.features.predict.table import bands_table, crossover_table
from plots.file.families import FAMILIES, FORWARD, OF_NETWORKS, TRAINING
from plots.file.rows import File
from plots.text import printable

_CERTAIN = (
    "What would make it certain: measure such a card. Where there is one, ./run measures it in a "
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
    drawn = context.map(
        partial(draw_predicted, fit=predicted.fit), [(one, predicted.trained(one)) for one in shown]
    )
    another = any(
        on_device(training_rows(file, family), "cuda") for file in shown for family in TRAINING
    )
    return Section(
        title=f"If {'this machine' if len(shown) == 1 else 'these machines'} had "
        f"{'another' if another else 'a'} GPU",
        anchor="predicted",
        lead=f"From which size a card would win against the measured CPU: {NOT_MEASURED}.",
        blocks=tuple(
            _block(file, predicted, charts, context)
            for file, charts in zip(shown, drawn, strict=True)
        ),
        notes=(*band_notes(predicted.fit), _CERTAIN),
    )


def _block(file: File, predicted: Predictions, charts: Sequence[Chart], context: Context) -> Block:
    fit, found, used = predicted.fit, predicted.trained(file), predicted.of_passes(file)
    pictures = [
        Picture(chart.pictures, context.stem(file, chart.name), alt=chart.alt) for chart in charts
    ]
    machine = file.machine.id
    tables, folds, notes = [], [], band_notes(fit)
    cards = [verdict.card.id for verdict in found or used]
    for family in OF_NETWORKS:
        of_family = used if family == FORWARD else found
        title = f"{FAMILIES[family].title}: CPU measured, cards {NOT_MEASURED} (from – to)"
        bands = _familiar(_plain(bands_table(of_family, fit, machine, family), notes))
        if bands.lines:
            tables.append(brief(on_page(bands, (*_BANDS, *cards), title), "the command below"))
    crossovers = _plain(crossover_table([*found, *used], fit, machine), notes)
    if crossovers.lines:
        name = f"From which size each card would win, in every way, {NOT_MEASURED}"
        table = on_page(crossovers, _FIRST, name)
        folds.append(Fold.of(table, name))
    path = shlex.quote(printable(str(file.path), 400))
    return Block(
        machine=machine,
        points=tuple(sentence(verdict) for verdict in (*found, *used)),
        pictures=tuple(pictures),
        tables=tuple(tables),
        commands=(f".venv/bin/python -m plots predict {path} --all --gpu={','.join(cards)}",),
        folds=tuple(folds),
    )


def _familiar(table: Table) -> Table:
    """Without networks that nobody trains, unless there are no others: the fold has them."""
    place = [column.key for column in table.columns].index("model")
    lines = tuple(line for line in table.lines if line[place].text not in ODD)
    return replace(table, lines=lines or table.lines)


def _plain(table: Table, notes: Sequence[str]) -> Table:
    """Without what is for programs, and without the notes on the band, which the section has."""
    shown = table.shown()
    kept = tuple(note for note in shown.notes if note not in notes)
    return type(shown)(shown.title, shown.columns, shown.lines, kept)
