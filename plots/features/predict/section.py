# SPDX-License-Identifier: Apache-2.0
"""What GPUs that were not measured would do on these machines: bands, and how to make them sure."""

import shlex
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots import units
from plots.core.charts.lines import name_ends
from plots.core.charts.looks import Looks
from plots.core.charts.style import (
    CARD_COLOURS,
    GREY,
    PREDICTED_DASH,
    Chart,
    devices,
    finish,
    is_narrow,
    render,
    set_logarithmic_axes,
    write_above,
)
from plots.core.crossover import Comparison
from plots.core.crossover_words import crossover_words, doubt
from plots.core.curves import Curve
from plots.core.machines import short_gpu
from plots.core.network import ODD, on_device, training_rows
from plots.core.page.section import Block, Context, Section
from plots.core.tables.table import Table
from plots.features.predict.analysis import NOT_MEASURED
from plots.features.predict.answer import Predictions, Verdict, ends, sentence
from plots.features.predict.fit import Fit, band_notes
from plots.features.predict.table import bands_table, crossover_table
from plots.file.families import FAMILIES, FORWARD, OF_NETWORKS, TRAINING
from plots.file.quantities import TIME
from plots.file.rows import File
from plots.text import printable, slug

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
    drawn = context.draw(
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
    machine = file.machine.id
    tables, notes = [], band_notes(fit)
    cards = [verdict.card.id for verdict in found or used]
    for family in OF_NETWORKS:
        of_family = used if family == FORWARD else found
        title = f"{FAMILIES[family].title}: CPU measured, cards {NOT_MEASURED} (from – to)"
        bands = _familiar(_plain(bands_table(of_family, fit, machine, family), notes))
        if bands.lines:
            tables.append(bands.led_by(*_BANDS, *cards, title=title).in_brief())
    crossovers = _plain(crossover_table([*found, *used], fit, machine), notes)
    if crossovers.lines:
        name = f"From which size each card would win, in every way, {NOT_MEASURED}"
        tables.append(crossovers.led_by(*_FIRST, title=name).as_folded())
    path = shlex.quote(printable(str(file.path), 400))
    return Block(
        machine=machine,
        points=tuple(sentence(verdict) for verdict in (*found, *used)),
        pictures=context.pictures(file, charts),
        tables=tuple(tables),
        commands=(f".venv/bin/python -m plots predict {path} --all --gpu={','.join(cards)}",),
    )


def _familiar(table: Table) -> Table:
    """Without networks that nobody trains, unless there are no others: the fold has them."""
    place = [column.key for column in table.columns].index("model")
    lines = tuple(line for line in table.lines if line[place].text not in ODD)
    return replace(table, lines=lines or table.lines)


def _plain(table: Table, notes: Sequence[str]) -> Table:
    """Without what is for programs, and without the notes on the band, which the section has."""
    return replace(table.shown(), notes=tuple(one for one in table.notes if one not in notes))


# ---- the chart: the measured CPU, and the bands of cards


_BAND = "#D9D9D9"

Compared = tuple[Verdict, Comparison]


def draw_predicted(shown: tuple[File, Sequence[Verdict]], fit: Fit) -> list[Chart]:
    """The chart of the headline's curve of a file, where there is one."""
    file, found = shown
    compared = [(verdict, one) for verdict in found if (one := verdict.comparison)]
    if not compared:
        return []
    findings = []
    for verdict, one in compared:
        is_open = one.crossover.kind == "ambiguous"
        said = doubt(one.crossover) if is_open else crossover_words(one.crossover)
        findings.append(f"{_label(verdict)}: {said}")
    common, cpu = compared[0][1].common, compared[0][1].cpu
    alt = (
        f"{cpu.quantity.noun.capitalize()} of one epoch against trainable parameters: the CPU "
        f"measured, and the bands of cards that are {NOT_MEASURED}. {'; '.join(findings)}."
    )
    pictures = render(partial(_draw, file, compared, fit))
    return [Chart(slug("-".join(["predicted", *common.values()]), 100), pictures, alt)]


def _label(verdict: Verdict) -> str:
    return f"{short_gpu(verdict.card.name)}, predicted"


def _draw(file: File, compared: Sequence[Compared], fit: Fit, figure: Figure) -> None:
    narrow = is_narrow(figure)
    figure.set_figheight(3.8 if narrow else 4.8)
    axes = figure.add_subplot()
    cpu, cards = compared[0][1].cpu, [one.gpu for _, one in compared]
    times = np.array([np.median(samples) for samples in cpu.samples])
    sizes = np.concatenate([cpu.sizes, *(card.sizes for card in cards)])
    every = np.concatenate([times, *(np.ravel(card.samples) for card in cards)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes.min() / 1.6, sizes.max() * 1.6)
    axes.set_ylim(every.min() / 2, every.max() * 2)
    set_logarithmic_axes(axes, "trainable parameters", cpu.quantity)
    cpu_line = _draw_cpu(axes, file, cpu, times)
    _draw_band(axes, cards)
    lines = [_draw_card(axes, place, *each) for place, each in enumerate(compared)]
    handles = name_ends(axes, [cpu_line, *lines])
    _draw_range(axes, compared)
    noun = "wall-clock time" if cpu.quantity is TIME else cpu.quantity.noun
    write_above(axes, f"{noun} of one epoch", figure.get_figwidth() - 1)
    title = f"If this machine had {'another' if file.machine.gpu else 'a'} GPU: epochs"
    finish(figure, title, _lines(file, compared, fit), handles)


def _draw_cpu(axes: Axes, file: File, cpu: Curve, times: np.ndarray) -> Line2D:
    threads = max(row.threads or 0 for row in file.rows)
    look = Looks(file.rows).of({"device": "cpu", "cpu_threads": str(threads)})
    (line,) = axes.plot(
        cpu.sizes,
        times,
        linewidth=2.2,
        markersize=4.5,
        zorder=4,
        label="this CPU, measured",
        **{**look.line, "linestyle": "-"},
    )
    return line


def _draw_card(axes: Axes, place: int, verdict: Verdict, one: Comparison) -> Line2D:
    (line,) = axes.plot(
        one.gpu.sizes,
        [samples[1] for samples in one.gpu.samples],
        color=CARD_COLOURS[place % len(CARD_COLOURS)],
        linewidth=1.6,
        linestyle=PREDICTED_DASH,
        label=_label(verdict),
    )
    return line


def _draw_band(axes: Axes, cards: Sequence[Curve]) -> None:
    """One band for all cards, as several on each other would be of a colour that none has."""
    sizes = np.unique(np.concatenate([card.sizes for card in cards]))

    def at(card: Curve, end: int) -> np.ndarray:
        values = np.log([samples[end] for samples in card.samples])
        return np.exp(np.interp(np.log(sizes), np.log(card.sizes), values, np.nan, np.nan))

    low = np.nanmin([at(card, 0) for card in cards], axis=0)
    high = np.nanmax([at(card, -1) for card in cards], axis=0)
    axes.fill_between(sizes, low, high, color=_BAND, alpha=0.35, linewidth=0)


def _draw_range(axes: Axes, compared: Sequence[Compared]) -> None:
    """Shades from the earliest crossover of all cards to the latest."""
    left, right = axes.get_xlim()
    reach = [ends(one.crossover) for _, one in compared]
    low = max(left, min(low for low, _ in reach))
    high = min(right, max(high for _, high in reach))
    if low < high:
        axes.axvspan(low, high, color=GREY, alpha=0.08, linewidth=0, zorder=0)


def _lines(file: File, compared: Sequence[Compared], fit: Fit) -> list[str]:
    common, cpu = compared[0][1].common, compared[0][1].cpu
    ways = {f"{one.way.name}, {one.way.data}" for each, _ in compared if (one := each.chosen)}
    behind = "90 % of cards as simulated from published times"
    if fit.measured:
        behind = f"a factor of {units.significant(fit.factor, 2)} up and down"
    return [
        devices(file),
        f"GPU: {' or '.join(sorted(ways))}; batch {common['batch']}, {common['precision']}",
        f"line: {printable(cpu.label, 60)}, measured; dashed, grey band: {NOT_MEASURED}",
        f"band: {behind}; upright: from the earliest to the latest crossover",
    ]
