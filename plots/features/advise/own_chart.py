# SPDX-License-Identifier: Apache-2.0
"""Draws how long a network of one's own trains, over its batches and over its sizes: measured here,
with other programs, and on GPUs."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from plots import units
from plots.core.charts.looks import CPU_COLOURS, GPU_COLOURS
from plots.core.charts.style import (
    CARD_COLOURS,
    PREDICTED_DASH,
    Chart,
    devices,
    finish,
    is_narrow,
    name_sizes,
    render,
    set_logarithmic_axes,
    write_above,
)
from plots.features.advise.advice import CPU, GPU
from plots.features.advise.analysis import Prediction
from plots.features.advise.own import Own, Size, key_of, title_of
from plots.features.predict.analysis import NOT_MEASURED
from plots.file.rows import File
from plots.text import printable, slug


def draw_own(file: File, own: Own) -> Chart | None:
    """The chart of `own`; None where one size and batch alone was measured."""
    lines = [
        (what, line)
        for what, line in (("samples in a batch", own.batches), ("parameters", own.widths))
        if len(line) > 1
    ]
    if not lines:
        return None
    pictures = render(partial(_draw, file, own, lines))
    over = " and over ".join(what for what, _ in lines)
    who = ["measured here", *(["with other programs"] if own.peers else [])]
    who += [f"on cards, {NOT_MEASURED}"] if any(one.row is None for one in own.gpus) else []
    alt = (
        f"Time of one epoch of {printable(own.cost.model, 60)} over {over}: {', '.join(who)}. The "
        "table has the figures."
    )
    return Chart(slug(f"own-{own.cost.model}", 80), pictures, alt)


def _draw(
    file: File, own: Own, lines: Sequence[tuple[str, list[tuple[float, Size]]]], figure: Figure
) -> None:
    narrow = is_narrow(figure)
    rows, columns = (len(lines), 1) if narrow else (1, len(lines))
    figure.set_figheight(3.4 * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=not narrow).flat
    handles: dict[str, Line2D] = {}
    for axes, (what, line) in zip(panels, lines, strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        set_logarithmic_axes(axes, what)
        name_sizes(axes, [size for size, _ in line], units.short_count)
        _draw_lines(axes, line, handles)
    write_above(figure.axes[0], "wall-clock time of one epoch", figure.get_figwidth() - 1)
    fixed = f"{own.cost.precision}; over sizes: batch {own.cost.batch:,.0f}"
    text = [devices(file), fixed, f"dashed and shaded: {NOT_MEASURED}"]
    drawn = text if any(one.row is None for one in own.gpus) else text[:2]
    finish(figure, f"{printable(own.cost.model, 60)}: one epoch", drawn, list(handles.values()))


def _draw_lines(axes: Axes, line: Sequence[tuple[float, Size]], handles: dict[str, Line2D]) -> None:
    """Each of all that is known at any place of `line`; a GPU that is predicted in its band."""
    series: dict[str, list[tuple[float, Prediction]]] = {}
    for place, size in line:
        for one in size.known:
            series.setdefault(key_of(one), []).append((place, one))
    cards = [key for key, points in series.items() if points[0][1].row is None]
    for key, points in series.items():
        places = [place for place, _ in points]
        first = points[0][1]
        name = title_of(first)
        style = _style(first, cards.index(key) if key in cards else 0)
        (drawn,) = axes.plot(
            places, [one.middle for _, one in points], label=name, markersize=4.5, **style
        )
        if first.row is None:
            low, high = ([getattr(one, end) for _, one in points] for end in ("low", "high"))
            axes.fill_between(places, low, high, color=style["color"], alpha=0.1, linewidth=0)
        handles.setdefault(name, drawn)


def _style(one: Prediction, place: int) -> dict[str, Any]:
    if one.row is None:
        return {
            "color": CARD_COLOURS[place % len(CARD_COLOURS)],
            "linestyle": PREDICTED_DASH,
            "linewidth": 1.6,
        }
    colour = CPU_COLOURS[1] if one.device == CPU else GPU_COLOURS["resident"]
    is_peer = key_of(one) not in (f"bench-{CPU}", f"bench-{GPU}")
    shape = {"marker": "s", "linestyle": (0, (1, 1.5))} if is_peer else {"marker": "o"}
    return {"color": colour, "linewidth": 1.8, "markerfacecolor": "white", **shape}
