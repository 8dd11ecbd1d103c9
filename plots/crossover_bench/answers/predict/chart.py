# SPDX-License-Identifier: Apache-2.0
"""The chart of what is predicted: the measured CPU, and the bands of cards."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover_bench.answers.predict.analysis import NOT_MEASURED
from crossover_bench.answers.predict.answer import Verdict, ends
from crossover_bench.answers.predict.fit import Fit
from crossover_bench.curves.crossover import Comparison
from crossover_bench.curves.crossover_words import crossover_words, doubt
from crossover_bench.curves.curves import Curve
from crossover_bench.files.families import FAMILIES
from crossover_bench.files.quantities import TIME
from crossover_bench.files.rows import File
from crossover_bench.show.charts.lines import name_ends
from crossover_bench.show.charts.looks import Looks
from crossover_bench.show.charts.style import (
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
from crossover_bench.study.machines import short_gpu
from crossover_bench.words import units
from crossover_bench.words.text import printable, slug

_BAND = "#D9D9D9"

Compared = tuple[Verdict, Comparison]


def draw_predicted(file: File, verdicts: Sequence[Verdict], fit: Fit) -> list[Chart]:
    """The chart of the headline's curve of a file, where there is one."""
    compared = [(verdict, verdict.comparison) for verdict in verdicts if verdict.comparison]
    if not compared:
        return []
    findings = []
    for verdict, comparison in compared:
        words = doubt if comparison.crossover.kind == "ambiguous" else crossover_words
        findings.append(f"{_label(verdict)}: {words(comparison.crossover)}")
    common, cpu = compared[0][1].common, compared[0][1].cpu
    family, beside = FAMILIES[common["family"]], _cpu(compared)
    alt = (
        f"{cpu.quantity.noun.capitalize()} of {family.a} against trainable "
        f"parameters: {beside}, and the bands of cards that are {NOT_MEASURED}. "
        f"{'; '.join(findings)}."
    )
    pictures = render(partial(_draw, file, compared, fit))
    return [Chart(slug("-".join(["predicted", *common.values()]), 100), pictures, alt)]


def _cpu(compared: Sequence[Compared]) -> str:
    """What the cards are compared with: "this CPU, measured"."""
    chosen = compared[0][0].chosen
    return chosen.cpu if chosen else "this CPU"


def _label(verdict: Verdict) -> str:
    return f"{short_gpu(verdict.card.name)}, predicted"


def _draw(file: File, compared: Sequence[Compared], fit: Fit, figure: Figure) -> None:
    narrow = is_narrow(figure)
    figure.set_figheight(3.8 if narrow else 4.8)
    axes = figure.add_subplot()
    cpu, cards = compared[0][1].cpu, [comparison.gpu for _, comparison in compared]
    times = np.array([np.median(samples) for samples in cpu.samples])
    sizes = np.concatenate([cpu.sizes, *(card.sizes for card in cards)])
    every = np.concatenate([times, *(np.ravel(card.samples) for card in cards)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes.min() / 1.6, sizes.max() * 1.6)
    axes.set_ylim(every.min() / 2, every.max() * 2)
    set_logarithmic_axes(axes, "trainable parameters", cpu.quantity)
    threads = max(row.threads or 0 for row in file.rows)
    look = Looks(file.rows).of({"device": "cpu", "cpu_threads": str(threads)})
    shape = {**look.line, "linestyle": "-", "linewidth": 2.2, "markersize": 4.5, "zorder": 4}
    lines = axes.plot(cpu.sizes, times, label=_cpu(compared), **shape)
    _draw_band(axes, cards)
    for place, (verdict, comparison) in enumerate(compared):
        lines += axes.plot(
            comparison.gpu.sizes,
            [samples[1] for samples in comparison.gpu.samples],
            color=CARD_COLOURS[place % len(CARD_COLOURS)],
            linewidth=1.6,
            linestyle=PREDICTED_DASH,
            label=_label(verdict),
        )
    handles = name_ends(axes, lines)
    _draw_range(axes, compared)
    noun = "wall-clock time" if cpu.quantity is TIME else cpu.quantity.noun
    family = FAMILIES[compared[0][1].family]
    write_above(axes, f"{noun} of {family.a}", figure.get_figwidth() - 1)
    another = "another" if file.machine.gpu else "a"
    title = f"If this machine had {another} GPU: {family.title.lower()}"
    finish(figure, title, _lines(file, compared, fit), handles)


def _draw_band(axes: Axes, cards: Sequence[Curve]) -> None:
    """One band for all cards: several on each other would have a colour that none of them has."""
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
    lows, highs = zip(*(ends(comparison.crossover) for _, comparison in compared), strict=True)
    low, high = max(left, min(lows)), min(right, max(highs))
    if low < high:
        axes.axvspan(low, high, color=GREY, alpha=0.08, linewidth=0, zorder=0)


def _lines(file: File, compared: Sequence[Compared], fit: Fit) -> list[str]:
    common, cpu = compared[0][1].common, compared[0][1].cpu
    chosen = [verdict.chosen for verdict, _ in compared if verdict.chosen]
    ways = {f"{outlook.way.name}, {outlook.way.data}" for outlook in chosen}
    behind = "90 % of cards as simulated from published times"
    if fit.measured:
        behind = f"a factor of {units.significant(fit.factor, 2)} up and down"
    return [
        devices(file),
        f"GPU: {' or '.join(sorted(ways))}; batch {common['batch']}, {common['precision']}",
        f"line: {printable(cpu.label, 60)}, {_cpu(compared).rpartition(', ')[-1]}; "
        f"dashed, grey band: {NOT_MEASURED}",
        f"band: {behind}; upright: from the earliest to the latest crossover",
    ]
