# SPDX-License-Identifier: Apache-2.0
"""What all charts share: fonts, header, legend, axes, and how a figure becomes files."""

import html
import io
import math
import re
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
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator
from matplotlib.transforms import ScaledTranslation

from crossover_bench.files.quantities import TIME, Quantity
from crossover_bench.files.rows import File
from crossover_bench.words import units
from crossover_bench.words.text import printable

# Okabe and Ito's palette, which colour-blind readers can tell apart, without its yellow (too pale
# on white): for what is neither a CPU nor a GPU (show/charts/looks.py).
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00")
# Of GPUs that were not measured: those that no measured CPU or GPU has, and their line.
CARD_COLOURS = tuple(COLOURS[place] for place in (2, 1, 3, 6, 5, 4))
PREDICTED_DASH = (0, (4, 2.5))
GREY = "#595959"
INK = "#262626"
RULE = "#E3E3E3"
# Keeps text readable on a line. An outline would do too, but turns text into shapes in an SVG.
BEHIND_TEXT = {"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1}

WIDE, NARROW = 8.4, 4.6  # inches; at 72 px each, the narrow one is as wide as a phone
_MARGIN = 4.0  # points beside the header
_SIZES = {"title": 13.0, "line": 9.0, "legend": 9.0}  # points
_SPACING = 1.35  # of lines, times their size
_HANDLE = 50.0  # points of a legend's sample of a line, with its gaps
_MOST_COLUMNS = 3  # of a legend
_LONGEST_NAME = 160  # characters of a point's
_MOST_TICKS = {True: 6, False: 12}  # in a narrow and in a wide chart
_BESIDE_TICK = 24.0  # points between the names of two ticks, and what a y axis takes of each

_FONTS = ["DejaVu Sans", "sans-serif"]
STYLE: dict[Any, Any] = {  # matplotlib lists every name that there is as a Literal
    "font.family": _FONTS,
    "font.size": 10,
    # Not black: matplotlib leaves black out of an SVG, and a dark page could not replace it.
    "text.color": INK,
    "axes.labelcolor": INK,
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
    """One chart as the bytes of a PNG and of an SVG file, and of an SVG for a narrow screen."""

    png: bytes
    svg: bytes
    narrow: bytes = b""


@dataclass(frozen=True, slots=True)
class Chart:
    """`name` is a file name without ending. `alt` says what the pictures show to those who don't
    see them, in a sentence that can stand alone and others that add to it; `caption` what to look
    at."""

    name: str
    pictures: Pictures
    alt: str
    caption: str = ""


@contextmanager
def drawing(width: float) -> Iterator[Figure]:
    """A figure of `width` inches, in which all of it must be drawn and rendered."""
    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # A name may hold characters that the font lacks; they are drawn as boxes.
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        # A file may hold numbers so small that a rate is 0.
        warnings.filterwarnings("ignore", message="Data has no positive values")
        figure = Figure(figsize=(width, 5.2), layout="constrained")
        FigureCanvasAgg(figure)
        yield figure


def render(draw: Callable[[Figure], object]) -> Pictures:
    """What `draw` puts on a figure, once on a wide and once on a narrow one.

    It sets the figure's height and calls finish() in the end; is_narrow() tells it which it has.
    """
    with drawing(WIDE) as figure:
        draw(figure)
        place(figure)
        png = _saved(figure, "png", {"Software": None})
        svg = _saved(figure, "svg", {"Date": None, "Creator": None})
    with drawing(NARROW) as figure:
        draw(figure)
        place(figure)
        return Pictures(png, svg, _saved(figure, "svg", {"Date": None, "Creator": None}))


def place(figure: Figure) -> None:
    """Places everything on `figure` once, not again for each format."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")


def is_narrow(figure: Figure) -> bool:
    return bool(figure.get_figwidth() < (WIDE + NARROW) / 2)


def _saved(figure: Figure, kind: str, metadata: dict[str, None]) -> bytes:
    buffer = io.BytesIO()
    figure.set_dpi(160)
    # Not by savefig(), which draws everything twice.
    if kind == "svg":
        FigureCanvasSVG(figure).print_svg(buffer, metadata=metadata)
        return _NAMED_POINTS.sub(_titled, buffer.getvalue().decode()).encode()
    FigureCanvasAgg(figure).print_png(buffer, metadata=metadata)
    return buffer.getvalue()


# ---- names of points, which an SVG tells where the pointer rests

_NAMES_IN_ID = "points of "
_NAMED_POINTS = re.compile(
    rf"""^( *)<g id=(["']){_NAMES_IN_ID}(.*?)\2>(.*?)^\1</g>""", re.DOTALL | re.MULTILINE
)
_POINT = re.compile(r"<use ([^>]*)/>")


def name_points(line: Artist, names: Iterable[str]) -> None:
    """Names each point of `line`, which has a marker: an SVG then has the names as titles."""
    line.set_gid(_NAMES_IN_ID + "\n".join(printable(name, _LONGEST_NAME) for name in names))


def _titled(group: re.Match[str]) -> str:
    """A group of an SVG whose id has the names of its points, with each in its point."""
    names = html.unescape(group[3]).split("\n")
    if len(_POINT.findall(group[4])) != len(names):  # some lie outside
        return f"{group[1]}<g>{group[4]}{group[1]}</g>"
    told = iter(names)

    def point(use: re.Match[str]) -> str:
        return f"<use {use[1]}><title>{html.escape(next(told), quote=False)}</title></use>"

    return f"{group[1]}<g>{_POINT.sub(point, group[4])}{group[1]}</g>"


def finish(
    figure: Figure, title: str, lines: Sequence[str], handles: Sequence[Artist] = ()
) -> None:
    """Writes `title` and, in grey below it, `lines` on top of `figure`, and a legend of `handles`
    at its foot, where it covers no data. The figure grows by what they take."""
    width, height = figure.get_size_inches()
    room = 72 * width - 2 * _MARGIN
    written = [("title", line) for line in wrapped(figure, title, room, "title")]
    written += [("line", line) for text in lines for line in wrapped(figure, text, room, "line")]
    top = sum(_SPACING * _SIZES[kind] for kind, _ in written) + 10
    below = _add_legend(figure, handles, room) if handles else 0.0
    total = height + (top + below) / 72
    figure.set_size_inches(width, total)
    engine = figure.get_layout_engine()
    assert isinstance(engine, ConstrainedLayoutEngine)
    engine.set(rect=(0, 0, 1, 1 - top / 72 / total))
    depth = _MARGIN
    for kind, line in written:
        figure.text(
            0,
            1,
            line,
            transform=figure.transFigure
            + ScaledTranslation(_MARGIN / 72, -depth / 72, figure.dpi_scale_trans),
            va="top",
            fontsize=_SIZES[kind],
            fontweight="bold" if kind == "title" else "normal",
            color=INK if kind == "title" else GREY,
        ).set_in_layout(False)
        depth += _SPACING * _SIZES[kind]


def wrapped(figure: Figure, text: str, room: float, kind: str = "line") -> list[str]:
    """`text` in lines of at most `room` points; a word that is longer is broken."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if text_width(figure, joined, kind) <= room:
            lines[-1] = joined
            continue
        if lines[-1]:
            lines.append("")
        for letter in word:
            if lines[-1] and text_width(figure, lines[-1] + letter, kind) > room:
                lines.append("")
            lines[-1] += letter
    return lines


def text_width(figure: Figure, text: str, kind: str = "line") -> float:
    """Points that `text` takes."""
    font = FontProperties(
        family=_FONTS,
        size=_SIZES[kind],
        weight="bold" if kind == "title" else "normal",
    )
    canvas = figure.canvas
    assert isinstance(canvas, FigureCanvasAgg)
    width, *_ = canvas.get_renderer().get_text_width_height_descent(text, font, False)
    return width * 72 / figure.dpi


def _add_legend(figure: Figure, handles: Sequence[Artist], room: float) -> float:
    """Adds the legend; returns the points that it takes."""
    texts = [str(handle.get_label()) for handle in handles]
    widest = max(text_width(figure, text, "legend") for text in texts)
    columns = min(len(handles), _MOST_COLUMNS, max(1, int(room // (widest + _HANDLE))))
    if columns == 1 and len(handles) > 3 and not is_narrow(figure):
        columns = 2  # long labels wrap
    labels = [wrapped(figure, text, room / columns - _HANDLE, "legend") for text in texts]
    figure.legend(
        handles=handles,
        labels=["\n".join(lines) for lines in labels],
        loc="outside lower left",
        ncols=columns,
        frameon=False,
        fontsize=_SIZES["legend"],
        handlelength=3.2,
        columnspacing=1.2,
    )
    per_column = -(-len(handles) // columns)
    counts = [len(lines) for lines in labels]
    most = max(sum(counts[at : at + per_column]) for at in range(0, len(counts), per_column))
    return 1.75 * _SIZES["legend"] * most


def annotate(axes: Axes, text: str, place: tuple[float, float], **options: Any) -> None:
    """Writes `text` beside `place`, outside the layout: no text can squeeze the axes."""
    options.setdefault("bbox", BEHIND_TEXT)
    axes.annotate(text, place, textcoords="offset points", **options).set_in_layout(False)


def write(axes: Axes, at: tuple[float, float], text: str, **options: Any) -> None:
    """Writes `text` at a place of the data, outside the layout as well."""
    axes.text(*at, text, **{"fontsize": 9, **options}).set_in_layout(False)


def write_above(axes: Axes, text: str, room: float) -> None:
    """Writes `text` above the left end of `axes`, in lines of at most `room` inches."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    lines = wrapped(figure, text, 72 * room)
    axes.set_title("\n".join(lines), loc="left", fontsize=_SIZES["line"], color=INK)


def logarithmic(axis: Axis, label: Callable[[float], str]) -> None:
    """Ticks of `axis` at powers of ten, each named by `label`, a function of its value; of a
    short axis at 1, 2 and 5 times powers of ten. The axis must have its limits."""
    low, high = axis.get_view_interval()
    decades = math.log10(high / low) if low > 0 else 9.0
    subs = (1.0, 2.0, 5.0) if decades < 2.5 else (1.0,)
    axis.set_major_formatter(FuncFormatter(lambda value, _: label(value)))
    axis.set_major_locator(LogLocator(subs=subs, numticks=20))
    axis.set_minor_locator(NullLocator())


def name_sizes(axes: Axes, sizes: Iterable[float], label: Callable[[float], str]) -> None:
    """Ticks of the logarithmic x axis at `sizes`, without those too near to another to be read.

    The axis must have its limits.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    low, high = axes.get_xlim()
    spec = axes.get_subplotspec()
    columns = spec.get_gridspec().ncols if spec else 1
    sizes = list(sizes)
    widest = max((text_width(figure, label(size)) for size in sizes), default=0.0) + _BESIDE_TICK
    fitting = int(72 * figure.get_figwidth() / columns / widest)
    most = max(2, min(_MOST_TICKS[is_narrow(figure)] // columns, fitting))
    axes.xaxis.set_major_locator(FixedLocator(thinned(sizes, math.log(high / low) / most)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda size, _: label(size)))
    axes.xaxis.set_minor_locator(NullLocator())


def thinned(sizes: Iterable[float], gap: float) -> list[float]:
    """Those of `sizes` that are `gap` or more apart in their logarithms, powers of 2 first."""
    kept: list[float] = []
    positive = {size for size in sizes if size > 0}
    for size in sorted(positive, key=lambda size: (not math.log2(size).is_integer(), size)):
        if all(abs(math.log(size / other)) >= gap for other in kept):
            kept.append(size)
    return sorted(kept)


def set_logarithmic_axes(axes: Axes, size_label: str, quantity: Quantity = TIME) -> None:
    """Sizes to the right, the quantity upwards, both logarithmic, with a grid at powers of ten. The
    axes must have their limits."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(size_label)
    logarithmic(axes.xaxis, units.power_of_ten_count)
    logarithmic(axes.yaxis, units.power_of_ten_seconds if quantity is TIME else quantity.show)
    axes.grid(color=RULE, linewidth=0.8)
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
