# SPDX-License-Identifier: Apache-2.0
"""What all charts share: colours, fonts, how a figure becomes files."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from plots import units
from plots.rows import File
from plots.text import printable

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow (too pale
# on white). Dashes of another length than the palette's keep more than seven lines apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
DASHES = ("-", (0, (5, 2)), (0, (1, 1.5)), (0, (5, 2, 1, 2)))
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
GREY = "#595959"
# Keeps text readable on a line. An outline would do too, but turns text into shapes in an SVG.
BEHIND_TEXT = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1}
_LEGEND_WIDTH = 96  # characters that fit beside each other; the sample of a line takes 10

STYLE = {
    "font.family": ["DejaVu Sans", "sans-serif"],
    "font.size": 10,
    # Not black: matplotlib leaves black out of an SVG, and a dark page could not replace it.
    "text.color": "#262626",
    "axes.labelcolor": "#262626",
    "xtick.color": "#404040",
    "ytick.color": "#404040",
    "axes.edgecolor": "#808080",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # a dollar sign in a file is a dollar sign
    "svg.hashsalt": "crossover",  # the same file always gives the same picture, byte for byte
    "svg.fonttype": "none",  # text that can be searched and read aloud
}


@dataclass(frozen=True, slots=True)
class Pictures:
    """One chart as the bytes of a PNG and of an SVG file."""

    png: bytes
    svg: bytes


@dataclass(frozen=True, slots=True)
class Chart:
    """`name` is a file name without ending; `alt` states in a sentence what the pictures show."""

    name: str
    pictures: Pictures
    alt: str


@contextmanager
def drawing(width: float = 8.4, height: float = 5.2) -> Iterator[Figure]:
    """A figure of `width` × `height` inches, in which all of it must be drawn and rendered."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # A name may hold characters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        # A file may hold numbers so small that a rate is 0.
        warnings.filterwarnings("ignore", message="Data has no positive values")
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


@contextmanager
def chart(width: float = 8.4, height: float = 5.8) -> Iterator[tuple[Figure, Axes]]:
    """A drawing() with one pair of axes."""
    with drawing(width, height) as figure:
        yield figure, figure.add_subplot()


def render(figure: Figure) -> Pictures:
    """`figure` as files. Call it where the figure was drawn, within drawing() or chart()."""
    figure.draw_without_rendering()  # places everything once, not again for each format
    figure.set_layout_engine("none")
    return Pictures(
        png=_saved(figure, "png", {"Software": None}),
        svg=_saved(figure, "svg", {"Date": None, "Creator": None}),
    )


def _saved(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=160, metadata=metadata)
    return buffer.getvalue()


def line_style(place: int) -> tuple[str, str | tuple[float, tuple[float, ...]]]:
    """Colour and dash of the line number `place`; the first 28 differ."""
    return COLOURS[place % len(COLOURS)], DASHES[place % len(DASHES)]


def add_legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Puts the legend below the axes, where it covers no data, and makes the figure fit it."""
    longest = max(len(str(handle.get_label())) for handle in handles)
    columns = min(len(handles), max(1, min(3, _LEGEND_WIDTH // (longest + 10))))
    lines = -(-len(handles) // columns)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.22 * lines)
    figure.legend(
        handles=handles,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handlelength=3.2,
    )


def annotate(axes: Axes, text: str, place: tuple[float, float], **options: Any) -> None:
    """Writes `text` beside `place`, outside the layout: no text can squeeze the axes."""
    options.setdefault("bbox", BEHIND_TEXT)
    axes.annotate(text, place, textcoords="offset points", **options).set_in_layout(False)


def write_titles(axes: Axes, title: str, lines: Sequence[str]) -> None:
    """Writes `title`, and below it `lines` in grey, above the axes."""
    annotate(
        axes,
        "\n".join(lines),
        (0, 1),
        xycoords="axes fraction",
        xytext=(0, 7),
        fontsize=9,
        color=GREY,
        linespacing=1.35,
        bbox=None,
    )
    axes.set_title(title, loc="left", pad=14 + 13 * len(lines), fontsize=13, fontweight="bold")


def logarithmic(axis: Axis, label: Callable[[float], str], base: int = 10) -> None:
    """Ticks of `axis` at powers of `base`, each named by `label`, a function of its value."""
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))
    axis.set_major_locator(LogLocator(base=base, numticks=20))
    axis.set_minor_locator(NullLocator())


def set_logarithmic_axes(axes: Axes, size_label: str, time_label: str) -> None:
    """Sizes to the right, seconds upwards, both logarithmic, with a grid at powers of ten."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(size_label)
    axes.set_ylabel(time_label)
    logarithmic(axes.xaxis, units.power_of_ten_count)
    logarithmic(axes.yaxis, units.power_of_ten_seconds)
    axes.grid(color="#E3E3E3", linewidth=0.8)
    axes.set_axisbelow(True)


def devices(file: File) -> str:
    """The machine's processors in a line."""
    cpu = file.machine.cpu
    names = [f"{printable(cpu.model, 40)}, {cpu.cores} core{'s' if cpu.cores != 1 else ''}"]
    if file.machine.gpu:
        names.append(printable(file.machine.gpu, 40))
    return " · ".join(names)


def repetitions(counts: Iterable[int]) -> str:
    """How many repetitions the points of a chart have: "9", "3 to 9"."""
    known = set(counts)
    fewest, most = min(known), max(known)
    return str(most) if fewest == most else f"{fewest} to {most}"
