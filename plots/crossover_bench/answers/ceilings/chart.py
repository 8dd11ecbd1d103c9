# SPDX-License-Identifier: Apache-2.0
"""Draws the roofline of a device: its ceilings as lines, networks as dots under them.

The model is that of S. Williams, A. Waterman and D. Patterson, Roofline, CACM 52(4), 2009; the
bytes are those that the operations of a row read and write, wherever these lie.
"""

from dataclasses import dataclass
from functools import partial

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crossover_bench.counts.bounds import Ceilings, bounds
from crossover_bench.curves.network import best, familiar, networks
from crossover_bench.curves.rates import rate
from crossover_bench.curves.series import device_label
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.families import FAMILIES, OF_NETWORKS
from crossover_bench.files.rows import Bound, File, Row
from crossover_bench.show.charts.looks import Looks
from crossover_bench.show.charts.style import (
    GREY,
    INK,
    RULE,
    Chart,
    annotate,
    devices,
    finish,
    is_narrow,
    logarithmic,
    name_points,
    render,
)
from crossover_bench.words import units
from crossover_bench.words.text import listed, printable

_NEAR = 1.2  # times as high, and two levels are told together


@dataclass(frozen=True, slots=True)
class Roofline:
    """Of a device: `memory` bytes per second, operations per second by precision, and the `rows`
    under them: of each network, batch and precision the fastest."""

    file: File
    device: str
    memory: float
    arithmetic: dict[str, float]
    rows: tuple[Row, ...]

    @property
    def name(self) -> str:
        return DEVICES[self.device]


def rooflines(file: File) -> list[Roofline]:
    """Those of the devices of `file` of which the ceilings of arithmetic and of memory were
    measured; a CPU's on the most threads that they were."""
    ceilings, made = Ceilings(file.rows), list[Roofline]()
    precisions = file.rows[0].axes["precision"].values if file.rows else ()
    for device in DEVICES:
        rows = [row for row in file.rows if row.device == device and not row.failure]
        counts = [row.threads or 0 for row in rows if row.family == "Peak"]
        on = {"device": device, "cpu_threads": str(max(counts, default=0) or "")}
        levels = {name: ceilings.find("flops", {**on, "precision": name}) for name in precisions}
        arithmetic = {name: level for name, level in levels.items() if level}
        memory = ceilings.find("memory_bytes", on)
        known = [row for row in rows if row.family in OF_NETWORKS and _counts(row)]
        fastest = [best(members) for members in networks(familiar(known)).values()]
        if memory and arithmetic and fastest:
            made.append(Roofline(file, device, memory, arithmetic, tuple(fastest)))
    return made


def _counts(row: Row) -> bool:
    return bool(row.counters.get("flops") and row.counters.get("bytes"))


def intensity(row: Row) -> float:
    """Operations of `row` for each byte that they read or write."""
    return row.counters["flops"] / row.counters["bytes"]


def draw_rooflines(file: File) -> list[Chart]:
    """A chart of each of the rooflines of `file`."""
    return [_chart(roofline) for roofline in rooflines(file)]


def _chart(roofline: Roofline) -> Chart:
    levels = ", ".join(f"{name} {_flops(rate)}" for name, rate in roofline.arithmetic.items())
    alt = (
        f"Roofline of the {roofline.name}: operations a second against operations a byte, both "
        f"axes logarithmic, a dot for each of {len(roofline.rows)} rows. Ceilings: memory "
        f"{units.rate(roofline.memory, 'B/s')}; {levels}."
    )
    name = f"roofline-{roofline.name.lower()}"
    return Chart(name, render(partial(_draw, roofline)), alt)


def _flops(value: float) -> str:
    return units.rate(value, "FLOP/s")


def _draw(roofline: Roofline, figure: Figure) -> None:
    figure.set_figheight(3.9 if is_narrow(figure) else 4.6)
    axes = figure.add_subplot()
    axes.set_xscale("log")
    axes.set_yscale("log")
    places = [intensity(row) for row in roofline.rows]
    rates = [rate(row, "flops") for row in roofline.rows]
    ridges = [level / roofline.memory for level in roofline.arithmetic.values()]
    beside = 30 if is_narrow(figure) else 8  # for the names of the levels
    axes.set_xlim(min(places) / 3, max(*places, *ridges) * beside)
    axes.set_ylim(min(rates) / 3, max(*rates, *roofline.arithmetic.values()) * 3)
    _draw_ceilings(axes, roofline)
    handles = _draw_rows(axes, roofline)
    axes.set_xlabel("operations for each byte that they read or write")
    logarithmic(axes.xaxis, lambda value: f"{value:g}")
    logarithmic(axes.yaxis, lambda value: units.power_of_ten_rate(value, "FLOP/s"))
    axes.grid(color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    lines = [
        devices(roofline.file),
        "dots: the fastest row of each network, batch and precision; lines: measured ceilings",
        f"left of the dotted line memory bounds {_ridge(roofline)[0]}, right of it arithmetic",
    ]
    finish(figure, f"{roofline.name}: what bounds each network", lines, handles)


def _draw_ceilings(axes: Axes, roofline: Roofline) -> None:
    """The slope of memory up to the highest level, and each level from the slope on."""
    left, right = axes.get_xlim()
    top = max(roofline.arithmetic.values()) / roofline.memory
    slope = [roofline.memory * place for place in (left, top)]
    axes.plot([left, top], slope, color=INK, linewidth=1.4)
    middle = max((left * top) ** 0.5, axes.get_ylim()[0] / roofline.memory * 2)
    text = f"memory, {units.rate(roofline.memory, 'B/s')}"
    annotate(axes, text, (middle, middle * roofline.memory), xytext=(-6, 4), ha="right", color=INK)
    named: dict[float, list[str]] = {}  # those that would be one line
    for name, level in sorted(roofline.arithmetic.items(), key=lambda item: -item[1]):
        axes.plot([level / roofline.memory, right], [level, level], color=INK, linewidth=1.4)
        same = next((other for other in named if other < _NEAR * level), level)
        named.setdefault(same, []).append(printable(name, 24))
    for level, names in named.items():
        above, up_to = level == max(named), "up to " if len(names) > 1 else ""
        annotate(
            axes,
            f"{listed(names)}, {up_to}{_flops(level)}",
            (right, level),
            xytext=(-2, 3 if above else -3),
            ha="right",
            va="bottom" if above else "top",
            fontsize=9,
            color=INK,
        )
    axes.axvline(_ridge(roofline)[1], color=GREY, linewidth=0.9, linestyle=":")


def _ridge(roofline: Roofline) -> tuple[str, float]:
    """The plainest precision with a ceiling, and where its level meets the slope."""
    name, level = next(iter(roofline.arithmetic.items()))
    return name, level / roofline.memory


def _draw_rows(axes: Axes, roofline: Roofline) -> list[Artist]:
    """A dot for each row, in the look of its way; returns the legend: a dot of each look."""
    looks, bound_of = Looks(roofline.file.rows), bounds(roofline.file)
    groups: dict[str, list[Row]] = {}
    for row in roofline.rows:
        # A dot's look has no dash, which would tell the execution.
        words = row.axes.words(row.configuration, roles=["how", "alike"], without=["execution"])
        groups.setdefault(printable(", ".join(words), 60), []).append(row)
    handles: list[Artist] = []
    for label, rows in sorted(groups.items()):
        (dots,) = axes.plot(
            [intensity(row) for row in rows],
            [rate(row, "flops") for row in rows],
            linestyle="",
            markersize=6,
            label=label,
            zorder=4,
            **looks.of(rows[0].configuration).points,
        )
        name_points(dots, [_words(row, bound_of.get(row.index)) for row in rows])
        handles.append(dots)
    return handles


def _words(row: Row, bound: Bound | None) -> str:
    """What a reader who points at the dot of `row` is told."""
    figures = f"{units.significant(intensity(row))} operations a byte, {_flops(rate(row, 'flops'))}"
    what = f"{FAMILIES[row.family].noun} of {row.model}, batch {row.batch}, {row.precision}"
    words = f"{what}: {figures}, {device_label(row)}"
    if bound and bound.percent:
        words += f"; bound by {bound.name}, {units.significant(bound.percent, 2)} % reached"
    return words
