# SPDX-License-Identifier: Apache-2.0
"""Draws a comparison: the ratio of each row with its interval, sorted, against a line at 1."""

import math
from functools import partial

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from crossover_bench.answers.compare.analysis import Comparison, Verdict
from crossover_bench.answers.compare.table import by_effect, described, headline
from crossover_bench.curves.series import short_names
from crossover_bench.files.quantities import TIME
from crossover_bench.show.charts.style import COLOURS, GREY, Chart, finish, is_narrow, render
from crossover_bench.words.text import printable, slug

MOST = 60  # rows whose names can be read; the table has all

# Colour, marker, whether it is filled: readable without colours, too.
_MARKS: dict[Verdict, tuple[str, str, bool]] = {
    "worse": (COLOURS[1], ">", True),
    "better": (COLOURS[0], "<", True),
    "same": (GREY, "o", True),
    "ambiguous": (GREY, "o", False),
    "disturbed": (GREY, "x", True),
}
# Ratios worth a tick, the roundest first: a tick too near to an earlier one is left out.
_TICKS = (
    *(1, 0.1, 10, 0.01, 100, 0.001, 1000, 0.5, 2, 0.2, 5, 0.8, 1.2, 0.9, 1.1, 1.5, 0.7),
    *(3, 0.3, 0.6, 20, 50, 0.05, 0.02, 0.95, 1.05, 0.98, 1.02, 1.3),
)
_MOST_TICKS = 14


def draw_comparison(comparison: Comparison) -> Chart:
    """The chart of `comparison`, which has compared at least one row: those with the largest
    effects, MOST at most."""
    ratios = [pair.ratio for pair in comparison.pairs]
    noun = "times" if comparison.quantity is TIME else comparison.quantity.noun
    alt = (
        f"Ratios of {noun}, other over baseline, one point for each row, sorted, from "
        f"{min(ratios):.3g} to {max(ratios):.3g}. {headline(comparison)}."
    )
    name = f"compare-{slug(comparison.other.path.stem)}"
    return Chart(name, render(partial(_draw, comparison)), alt)


def _draw(comparison: Comparison, figure: Figure) -> None:
    shown = by_effect(comparison.pairs)[:MOST]
    pairs = sorted(shown, key=lambda pair: pair.ratio)
    figure.set_figheight(1.2 + 0.21 * len(pairs))
    axes = figure.add_subplot()
    limit = 1 + comparison.minimum_effect
    axes.axvspan(1 / limit, limit, color="#E8E8E8", linewidth=0, zorder=0)
    axes.axvline(1, color="#404040", linewidth=1.2, zorder=1)
    ends = [(pair.low or pair.ratio, pair.high or pair.ratio) for pair in pairs]
    handles: list[Artist] = []
    for verdict, (colour, marker, filled) in _MARKS.items():
        places = [place for place, pair in enumerate(pairs) if pair.verdict == verdict]
        if places:
            axes.hlines(places, *zip(*(ends[at] for at in places), strict=True), color=colour)
            handles += axes.plot(
                [pairs[place].ratio for place in places],
                places,
                color=colour,
                marker=marker,
                markersize=5.5,
                markerfacecolor=colour if filled else "white",
                linestyle="",
                label=f"{comparison.word(verdict)} ({len(places)})",
            )
    narrow, quantity = is_narrow(figure), comparison.quantity
    low, high = min(0.95, *(low for low, _ in ends)), max(1.05, *(high for _, high in ends))
    axes.set_xscale("log")
    axes.set_xlim(low / 1.01, high * 1.01)
    axes.set_ylim(-0.7, len(pairs) - 0.3)
    axes.xaxis.set_major_locator(FixedLocator(_ticks(low, high, 5 if narrow else _MOST_TICKS)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.3g}"))
    axes.grid(axis="x", color="#E3E3E3", linewidth=0.8)
    axes.set_axisbelow(True)
    sides = (quantity.better, quantity.worse)[:: -1 if quantity.is_more_better else 1]
    axes.set_xlabel(f"← {sides[0]}      ratio      {sides[1]} →")
    names, common = short_names(pair.baseline for pair in pairs)
    labels = [printable(names[pair.baseline.name], 20 if narrow else 40) for pair in pairs]
    axes.set_yticks(range(len(pairs)), labels, fontsize=8.5)
    lines = [
        f"baseline: {printable(described(comparison.baseline), 90)}",
        f"other: {printable(described(comparison.other), 90)}",
        f"points: ratio of medians; bars: 95 % interval; band: within "
        f"{100 * comparison.minimum_effect:.3g} %",
    ]
    if common:
        lines.append(printable(f"all rows: {common}", 100))
    if len(pairs) < len(comparison.pairs):
        lines.append(f"{len(pairs)} of {len(comparison.pairs)} rows, the largest effects")
    noun = quantity.noun.capitalize()
    finish(figure, f"{noun} of the other file over that of the baseline", lines, handles)


def _ticks(low: float, high: float, most: int) -> list[float]:
    """About `most` ratios between `low` and `high`, far enough from each other to be read."""
    ticks: list[float] = []
    gap = math.log(high / low) / most
    for tick in _TICKS:
        if low <= tick <= high and all(abs(math.log(tick / other)) >= gap for other in ticks):
            ticks.append(tick)
    return sorted(ticks)
