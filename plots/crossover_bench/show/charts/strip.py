# SPDX-License-Identifier: Apache-2.0
"""Draws strips: bars under each other on one logarithmic scale, with networks marked on them."""

import math
from collections.abc import Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from crossover_bench.show.charts.style import (
    GREY,
    INK,
    Chart,
    finish,
    is_narrow,
    logarithmic,
    render,
    text_width,
    write,
)
from crossover_bench.show.strip import Mark, Segment, Side, Strip, Strips
from crossover_bench.words import units
from crossover_bench.words.text import printable

COLOURS: dict[Side | None, str] = {
    "cpu": "#0072B2",
    "open": "#D9D9D9",
    "gpu": "#D55E00",
    None: "#FFFFFF",
}
_INK_ON: dict[Side, str] = {"cpu": "#FFFFFF", "open": INK, "gpu": "#FFFFFF"}
_HEIGHT, _ABOVE = 0.46, 0.54  # of a bar, and of what stands above it, in strips
_INCHES = 0.62  # of a strip
_LINE = 0.3  # strips that a line of names takes
_HATCH = "////"
AXES = {  # what a scale of sizes counts
    "parameters": "trainable parameters",
    "batch": "samples in a batch",
    "copies": "networks that train at once",
    "size": "rows and columns of the square matrices",
    "width": "width of the layer",
}


def draw_strips(strips: Strips, name: str = "strip") -> Chart:
    """The chart of `strips`; what is predicted is hatched, and said to be."""
    return Chart(name, render(partial(_draw, strips)), _alt(strips))


def _draw(strips: Strips, figure: Figure) -> None:
    low, high = strips.ends
    room = 72 * figure.get_figwidth() - 24  # points
    names = _stacked(figure, strips, room)
    below = _LINE * (1 + max((line for _, line in names), default=-1))
    count = len(strips.strips)
    figure.set_figheight(_INCHES * (count + below) + 0.5)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_xlim(low, max(high, 1.01 * low))
    axes.set_ylim(count - 0.5 + below + 0.15, -_ABOVE)
    for spine in ("left", "bottom"):
        axes.spines[spine].set_visible(False)
    axes.set_yticks([])
    logarithmic(axes.xaxis, units.power_of_ten_count)
    axes.set_xlabel(AXES.get(strips.measure, strips.measure))
    _draw_guides(axes, names, count)
    for place in range(count):
        _draw_strip(axes, strips, place, figure, room / math.log(high / low or math.e))
    patches = [Patch(facecolor=COLOURS[side], label=strips.words(side)) for side in strips.sides]
    legend = patches if is_narrow(figure) else []  # a narrow bar has no words in it
    finish(figure, strips.title, _lines(strips), legend)


def _draw_strip(axes: Axes, strips: Strips, place: int, figure: Figure, scale: float) -> None:
    """`scale` is in points for each factor of e."""
    strip = strips.strips[place]
    for segment in strip.segments:
        axes.barh(
            place,
            segment.high - segment.low,
            left=segment.low,
            height=_HEIGHT,
            color=COLOURS[segment.side],
            hatch=_HATCH if strip.is_predicted else None,
            edgecolor="#FFFFFF",
            linewidth=0,
            alpha=0.999,  # matplotlib draws a hatch of full strength otherwise over any text
        )
        has_tick = strip.crossover and segment.low < strip.crossover < segment.high
        if not has_tick:
            _name_segment(axes, segment, strips.words(segment.side), place, scale)
    left = strip.segments[0].low if strip.segments else axes.get_xlim()[0]
    label = f"{strip.label}, predicted" if strip.label and strip.is_predicted else strip.label
    label = printable(label, 90)
    top = place - _HEIGHT / 2 - 0.05
    write(axes, (left, top), label, va="bottom")
    first = axes.get_xlim()[0]
    taken = [(0.0, text_width(figure, label) + 8 + scale * math.log(left / first))]  # points
    ends = [segment.low for segment in strip.segments[1:]]
    for size in [*filter(None, [strip.crossover]), *ends]:
        number = units.size(size, 2 if strip.is_predicted else 3)
        half = text_width(figure, number, "title") / 2 * 0.7 + 4
        at = scale * math.log(size / first)
        if size == strip.crossover:
            axes.plot([size] * 2, [place - _HEIGHT / 2, place + _HEIGHT / 2], color=INK, zorder=3)
        if any(at - half < right and at + half > begin for begin, right in taken):
            continue
        taken.append((at - half, at + half))
        weight = "bold" if size == strip.crossover else "normal"
        write(axes, (size, top), number, va="bottom", ha="center", fontweight=weight)
    for mark in strip.marks:
        axes.plot(
            mark.size,
            place + _HEIGHT / 2,
            marker="o",
            markersize=6.5,
            color=COLOURS[mark.side],
            markeredgecolor=INK,
            markeredgewidth=0.9,
            linestyle="",
            zorder=5,
            clip_on=False,
        )


def _name_segment(axes: Axes, segment: Segment, words: str, place: int, scale: float) -> None:
    """Says who wins in a bar that has room for it."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    if text_width(figure, words) + 10 > scale * math.log(segment.high / segment.low):
        return
    behind = {"facecolor": COLOURS[segment.side], "linewidth": 0, "pad": 2}
    look = {"fontweight": "bold", "color": _INK_ON[segment.side], "bbox": behind, "zorder": 4}
    middle = math.sqrt(segment.low * segment.high), place
    write(axes, middle, words, ha="center", va="center", **look)


def _stacked(figure: Figure, strips: Strips, room: float) -> list[tuple[Mark, int]]:
    """The networks, each with the line that its name stands in, so that no two overlap."""
    low, high = strips.ends
    taken: list[float] = []  # how far each line is written, in points
    stacked = []
    for mark in strips.marks:
        at = room * math.log(mark.size / low) / math.log(high / low or math.e)
        half = text_width(figure, _name(mark)) / 2 + 5
        at = min(max(at, half), room - half)
        line = next((line for line, end in enumerate(taken) if at - half >= end), len(taken))
        taken[line : line + 1] = [at + half]
        stacked.append((mark, line))
    return stacked


def _draw_guides(axes: Axes, names: Sequence[tuple[Mark, int]], count: int) -> None:
    """A thin line from the strips down to each name."""
    left, right = axes.get_xlim()
    for mark, line in names:
        foot = count - 0.5 + _LINE * line + 0.1
        axes.plot([mark.size] * 2, [-0.2, foot], color=GREY, linewidth=0.6, zorder=3, clip_on=False)
        share = math.log(mark.size / left) / math.log(right / left)
        align = "left" if share < 0.06 else "right" if share > 0.94 else "center"
        write(axes, (mark.size, foot), _name(mark), ha=align, va="top", color=GREY)


def _name(mark: Mark) -> str:
    return printable(mark.name, 24)


def _lines(strips: Strips) -> list[str]:
    hatched = "hatched: predicted, not measured" if strips.is_predicted else ""
    grey = f"grey: {strips.words('open')}" if "open" in strips.sides else ""
    circles = (
        f"circles: {strips.circles}, in the colour of who wins on them" if strips.marks else ""
    )
    first = "; ".join(filter(None, [strips.conditions, hatched, grey]))
    return list(filter(None, [first, circles]))


def _alt(strips: Strips) -> str:
    def words(strip: Strip) -> str:
        predicted = " (predicted, not measured)" if strip.is_predicted else ""
        parts = (
            f"{strips.words(part.side)} from {units.count(part.low)} to {units.count(part.high)}"
            for part in strip.segments
        )
        return f"{strip.label or 'GPU'}{predicted}: {', '.join(parts)}"

    title = strips.title.removesuffix("?")
    about = "; ".join(map(words, strips.strips))
    return f"{title}, on a logarithmic scale of {strips.measure}. {about}."
