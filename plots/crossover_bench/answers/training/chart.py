# SPDX-License-Identifier: Apache-2.0
"""Draws seconds per epoch, or per forward pass, against the number of parameters, both axes
logarithmic, and which lines of them are few enough for a chart; of forward passes also samples per
second over the batch, and how late single passes are."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import compress

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from crossover_bench.answers.training.table import QUANTILES, over_repetitions
from crossover_bench.curves.network import familiar, on_device, training_rows
from crossover_bench.curves.rates import lines
from crossover_bench.curves.series import SeriesKey, device_label, series_key, series_labels
from crossover_bench.curves.statistics import spread
from crossover_bench.files.families import EPOCH, FORWARD
from crossover_bench.files.rows import File, Row
from crossover_bench.show.charts.lines import MOST_LINES, name_ends
from crossover_bench.show.charts.looks import MARKERS, Looks
from crossover_bench.show.charts.rates import MOST_PANELS, Panel, draw_rates
from crossover_bench.show.charts.style import (
    GREY,
    INK,
    RULE,
    Chart,
    Pictures,
    devices,
    finish,
    is_narrow,
    logarithmic,
    name_points,
    render,
    repetitions,
    set_logarithmic_axes,
    write_above,
)
from crossover_bench.words import units
from crossover_bench.words.text import printable

_POINT_SHAPES = ("D", "s", "^", "v", "P", "X")  # one for each network on no ladder
# What others published of networks that are trained here, too; docs/published.md has all of it.
_WINS_FROM = 703_142  # parameters of disc-10
_WINS_SOURCE = "Penny Xu, PyTorch, 2019"
_HEART = 1522  # parameters
_HEART_EPOCH = {"CPU": 27.75 / 100, "GPU": 27.89 / 100}  # seconds
_MOST_POINTS = 6  # networks on no ladder
# Of a family: the chart's title, and what its upper axis is.
_NAMES = {
    EPOCH: ("Epochs: time of one, by size of the network", "wall-clock time of one epoch"),
    FORWARD: (
        "Forward passes: time of one, by size of the network",
        "wall-clock time of one pass, the mean of many",
    ),
}
_Line = list[Row]  # of one ladder, by size


def lines_of(rows: Sequence[Row]) -> list[_Line]:
    """A line for each way, ladder and batch among `rows`."""
    groups: dict[tuple[SeriesKey, str, float], _Line] = {}
    for row in sorted(rows, key=lambda row: row.counters["params"]):
        if row.ladder:
            key = (series_key(row), row.ladder.name, row.counters["batch"])
            groups.setdefault(key, []).append(row)
    return list(groups.values())


def best_of_devices(rows: Sequence[Row]) -> list[Row]:
    """All of `rows` where MOST_LINES draw them; else those of each device's fastest way, at each
    ladder's own batch and in the plainest precision where there are any."""
    if len(lines_of(rows)) <= MOST_LINES:
        return list(rows)
    usual = [row for row in rows if row.ladder is None or row.batch == row.ladder.batch]
    return fastest_ways([row for row in usual if is_in_plainest_precision(row)] or rows)


def fastest_ways(rows: Sequence[Row]) -> list[Row]:
    """Those of the fastest way of each device. It is the fastest on the networks that all of the
    device's ways have; ways with less than half as many of `rows` as another do not count."""
    kept = set()
    for device in dict.fromkeys(row.device for row in rows):
        ways: dict[SeriesKey, dict[tuple[str, str], float]] = {}
        for row in on_device(rows, device):
            ways.setdefault(series_key(row), {})[row.model, row.batch] = math.log(row.median)
        most = max(map(len, ways.values()), default=0)
        ways = {key: logs for key, logs in ways.items() if 2 * len(logs) >= most}
        shared = set.intersection(*map(set, ways.values())) if ways else set()
        sums = {key: sum(logs[network] for network in shared) for key, logs in ways.items()}
        kept |= {min(sums, key=sums.__getitem__)} if sums else set()
    return [row for row in rows if series_key(row) in kept]


def is_in_plainest_precision(row: Row) -> bool:
    return row.axes.value(row.configuration, "precision") == row.axes["precision"].plainest


def draw_epochs(file: File) -> Chart:
    """The chart of the epochs of `file`, of networks that people train where there are any."""
    rows = best_of_devices(familiar(training_rows(file, EPOCH)))
    alt = (
        "Seconds per epoch against the number of trainable parameters, both axes logarithmic, a "
        "line for each way to compute. The table below has the same figures."
    )
    return Chart("epochs", draw_times(file, rows), alt)


def draw_passes(file: File) -> list[Chart]:
    """The charts of the forward passes of `file`: of their times in the smallest batch, in which
    one waits for a single answer; of throughput and of latencies where the file has these."""
    rows = training_rows(file, FORWARD)
    plain = [row for row in rows if is_in_plainest_precision(row)]
    batch = min(row.counters["batch"] for row in rows)
    single = [row for row in rows if row.counters["batch"] == batch]
    single = [row for row in single if is_in_plainest_precision(row)] or single
    alt = (
        "Seconds per forward pass of the smallest batch against the number of trainable "
        "parameters, both axes logarithmic, a line for each way to compute. The table below has "
        "the same figures."
    )
    times = Chart("passes", draw_times(file, best_of_devices(single)), alt)
    return [times, *filter(None, [draw_throughput(file, plain), draw_latencies(file, single)])]


def draw_times(file: File, rows: Sequence[Row]) -> Pictures:
    """Draws `rows` of `file`, which have a result and are of one family: epochs beside what was
    published on the same networks, or forward passes. At most _MOST_POINTS networks on no ladder
    are drawn, evenly spread over their sizes.

    A point is the median over the repetitions. The middle half of the repetitions is shaded behind
    a line and drawn as a bar at a single point: one wild repetition is for the tables.
    """
    return render(partial(_draw, file, rows))


def _draw(file: File, rows: Sequence[Row], figure: Figure) -> None:
    figure.set_figheight(3.9 if is_narrow(figure) else 4.6)
    axes = figure.add_subplot()
    family = rows[0].family
    title, above = _NAMES[family]
    looks = Looks(file.rows)
    has_published = family == EPOCH
    _set_axes(axes, rows, has_published)
    handles = name_ends(axes, _draw_lines(axes, rows, looks))
    handles += _draw_points(axes, _on_no_ladder(rows), looks)
    handles += _draw_published(axes) if has_published else []
    write_above(axes, above, figure.get_figwidth() - 1)
    finish(figure, title, _subtitle(file, rows), handles)


def _draw_lines(axes: Axes, rows: Sequence[Row], looks: Looks) -> list[Line2D]:
    """Draws the ladders, a line for each, series and batch size; returns the legend."""
    lines = lines_of(rows)
    kinds = sorted({_kind(line) for line in lines})
    several = [len({kind[place] for kind in kinds}) > 1 for place in range(2)]
    handles = []
    for key, label in series_labels(rows).items():
        look, name = looks.of(dict(key)), printable(label, 60)
        of_way = [line for line in lines if series_key(line[0]) == key]
        if not of_way:  # single points only: their colour still needs an entry
            handles.append(Line2D([], [], linestyle="", label=name, **look.points))
        for line in sorted(of_way, key=_kind):
            ladder, batch = _kind(line)
            words = compress((ladder, f"batch {batch:,.0f}"), several)
            style = look.line
            if place := kinds.index((ladder, batch)):  # colour tells the way, the marker the batch
                style["marker"] = MARKERS[(MARKERS.index(look.marker) + place) % len(MARKERS)]
            params = [row.counters["params"] for row in line]
            low, high = zip(*map(_middle_half, line), strict=True)
            axes.fill_between(params, low, high, color=look.colour, alpha=0.18, linewidth=0)
            (drawn,) = axes.plot(
                params,
                [row.median for row in line],
                linewidth=1.8,
                markersize=4.5,
                label=", ".join([name, *words]),
                **style,
            )
            name_points(drawn, map(_name, line))
            handles.append(drawn)
    return handles


def _name(row: Row) -> str:
    """What a reader who points at the point of `row` is told."""
    size = f"{row.model}, {units.count(row.counters['params'])} parameters, batch {row.batch}"
    low, high = _middle_half(row)
    middle = f"middle half {units.seconds_range(low, high)}"
    return f"{size}: {units.seconds(row.median)} ({middle}), {device_label(row)}"


def _kind(line: _Line) -> tuple[str, float]:
    """The ladder and the batch of a line."""
    ladder = line[0].ladder
    assert ladder is not None
    return ladder.name, line[0].counters["batch"]


def _draw_points(axes: Axes, networks: dict[str, list[Row]], looks: Looks) -> list[Line2D]:
    """Networks on no ladder: a shape for each; returns their part of the legend.

    They are larger than the points of a line, and stand on it in the paper's colour.
    """
    handles = []
    for place, (model, points) in enumerate(sorted(networks.items())):
        shape = _POINT_SHAPES[place % len(_POINT_SHAPES)]
        for row in points:
            low, high = _middle_half(row)
            drawn = axes.errorbar(
                row.counters["params"],
                row.median,
                yerr=[[row.median - low], [high - row.median]],
                color=looks.of(dict(series_key(row))).colour,
                marker=shape,
                markersize=8,
                markerfacecolor="white",
                markeredgewidth=1.8,
                elinewidth=1.2,
                linestyle="",
                zorder=4,
            )
            name_points(drawn.lines[0], [_name(row)])
        batches = sorted({row.counters["batch"] for row in points})
        batch = " and ".join(f"{size:,.0f}" for size in batches[:3])
        handles.append(
            Line2D(
                [],
                [],
                color=INK,
                marker=shape,
                markersize=7,
                markerfacecolor="white",
                markeredgewidth=1.4,
                linestyle="",
                label=f"{printable(model, 24)}, batch {batch}",
            )
        )
    return handles


def _on_no_ladder(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """The rows of each network that is drawn as a point, the smallest network first."""
    networks: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.counters["params"]):
        if row.ladder is None:
            networks.setdefault(row.model, []).append(row)
    names = list(networks)
    return {names[place]: networks[names[place]] for place in spread(len(names), _MOST_POINTS)}


def _middle_half(row: Row) -> tuple[float, float]:
    low, high = np.percentile(row.samples, (25, 75))
    return float(min(low, row.median)), float(max(high, row.median))


def _set_axes(axes: Axes, rows: Sequence[Row], has_published: bool) -> None:
    times = [time for row in rows for time in _middle_half(row)]
    params = [row.counters["params"] for row in rows]
    if has_published:
        times += _HEART_EPOCH.values()
        params += [_WINS_FROM, _HEART]
    axes.set_xscale("log")
    axes.set_yscale("log")
    # Starting at the same place makes charts of different machines comparable.
    axes.set_xlim(min(10, min(params) / 2), max(params) * 3)
    axes.set_ylim(min(times) / 2, max(times) * 4)
    set_logarithmic_axes(axes, "trainable parameters")


def _draw_published(axes: Axes) -> list[Line2D]:
    """Draws what was published, in grey; returns its part of the legend."""
    figures = ", ".join(f"{name} {units.seconds(time, 4)}" for name, time in _HEART_EPOCH.items())
    return [
        axes.axvline(
            _WINS_FROM,
            color=GREY,
            linestyle=":",
            linewidth=1.4,
            label=f"published: GPU wins from {_WINS_FROM:,} parameters ({_WINS_SOURCE})",
        ),
        *axes.plot(
            _HEART,
            max(_HEART_EPOCH.values()),
            color=GREY,
            marker="*",
            markersize=11,
            linestyle="",
            zorder=3,
            label=f"published: heart, {figures}",
        ),
    ]


def _subtitle(file: File, rows: Sequence[Row]) -> list[str]:
    count = repetitions(len(row.samples) for row in rows)
    batches = sorted({row.counters["batch"] for row in rows if row.ladder})
    lines = [
        devices(file),
        f"points: median of {count} repetitions; shading, bars: the middle half of them",
    ]
    if batches:
        sizes = ", ".join(f"{batch:,.0f}" for batch in batches[:4])
        names = dict.fromkeys(f"{row.ladder.name}-N" for row in rows if row.ladder)
        on_lines = printable(", ".join(names), 60)
        lines.append(f"lines: networks {on_lines}, batch {sizes}; large shapes: others")
    if not file.complete:
        lines.append(f"from a run that was {file.ended}: rows are missing")
    return lines


# ---- forward passes: throughput and latencies, of the fastest way of each device


_BESIDES = 3  # networks on no ladder that do without those of ladders


def draw_throughput(file: File, rows: Sequence[Row]) -> Chart | None:
    """A panel for each of a few networks of `rows`, forward passes of `file`: samples per second
    over the batch. None where no network was measured in two batches."""
    lines_of: dict[tuple[str, SeriesKey], list[Row]] = {}
    for row in fastest_ways(rows):
        lines_of.setdefault((row.model, series_key(row)), []).append(row)
    shown = _few([row for line in lines_of.values() if len(line) > 1 for row in line], MOST_PANELS)
    if not shown:
        return None
    panels = [
        Panel(
            f"{name}, {units.count(members[0].counters['params'])} parameters",
            tuple(lines(members, lambda row: row.counters["batch"], ("batch",), "batch")),
        )
        for name, members in shown.items()
    ]
    pictures = draw_rates(
        file,
        panels,
        title="Forward passes: samples per second, by batch",
        size_label="samples in a batch",
        rate_label="samples per second, passes one behind the other",
        unit="/s",
    )
    alt = f"Samples per second against the batch, both axes logarithmic, of {', '.join(shown)}."
    return Chart("throughput", pictures, alt)


def draw_latencies(file: File, rows: Sequence[Row]) -> Chart | None:
    """How late single passes of one network are, at the median and at worst, among `rows`: forward
    passes of `file` in one batch. None where none was timed pass by pass."""
    timed = [row for row in fastest_ways(rows) if _latencies(row)]
    devices_of: dict[str, set[str]] = {}
    for row in timed:
        devices_of.setdefault(row.model, set()).add(row.device)
    most = max(map(len, devices_of.values()), default=0)
    shown = _few([row for row in timed if len(devices_of[row.model]) == most], 3)
    if not shown:
        return None
    name = list(shown)[len(shown) // 2]
    alt = f"What 50 % to all of the single passes of {name} do not exceed, on each device."
    return Chart("latencies", render(partial(_draw_latencies, file, shown[name])), alt)


def _draw_latencies(file: File, rows: Sequence[Row], figure: Figure) -> None:
    figure.set_figheight(2.8 if is_narrow(figure) else 3.2)
    axes: Axes = figure.add_subplot()
    looks, labels, drawn = Looks(file.rows), series_labels(rows), []
    for row in rows:
        late = _latencies(row)
        drawn += axes.plot(
            [*late],
            [*late.values()],
            linewidth=1.8,
            markersize=5.5,
            label=printable(labels[series_key(row)], 60),
            **looks.of(row.configuration).line,
        )
    values = np.concatenate([np.asarray(line.get_ydata()) for line in drawn])
    axes.set_yscale("log")
    axes.set_ylim(values.min() / 2, values.max() * 2)
    logarithmic(axes.yaxis, units.power_of_ten_seconds)
    axes.set_xlim(-0.3, len(QUANTILES) - 0.7)
    axes.set_xticks(range(len(QUANTILES)), [*QUANTILES.values()])
    axes.set_xlabel("of all passes take no longer")
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    write_above(axes, "wall-clock time of a single pass", figure.get_figwidth() - 1)
    what = f"{rows[0].model}, {units.count(rows[0].counters['params'])} parameters"
    batch = f"batch {units.written(rows[0].batch)}"
    note = "points: median over the repetitions"
    title = "Forward passes: the latency of single ones"
    finish(figure, title, [devices(file), f"{printable(what, 60)}, {batch}; {note}"], drawn)


def _latencies(row: Row) -> dict[int, float]:
    """Place in QUANTILES → seconds, of those that were measured."""
    late = (over_repetitions(key, row) for key in QUANTILES)
    return {place: seconds for place, seconds in enumerate(late) if seconds and seconds > 0}


def _few(rows: Iterable[Row], most: int) -> dict[str, list[Row]]:
    """The rows of at `most` so many networks, the smallest first, evenly spread over their sizes:
    of those on no ladder alone where these are _BESIDES at least."""
    networks: dict[str, list[Row]] = {}
    for row in familiar([row for row in rows if not row.is_between]):
        networks.setdefault(row.model, []).append(row)
    named = [name for name, members in networks.items() if members[0].ladder is None]
    names = named if len(named) >= _BESIDES else list(networks)
    names.sort(key=lambda name: networks[name][0].counters["params"])
    return {names[place]: networks[names[place]] for place in spread(len(names), most)}
