# SPDX-License-Identifier: Apache-2.0
"""Draws forward passes beyond their time: samples per second over the batch, and how late single
passes are; each on the fastest way of each device."""

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots import units
from plots.core.charts.looks import Looks
from plots.core.charts.rates import MOST_PANELS, Panel, draw_rates
from plots.core.charts.style import (
    RULE,
    Chart,
    devices,
    finish,
    is_narrow,
    logarithmic,
    render,
    write_above,
)
from plots.core.network import familiar, on_device
from plots.core.rates import lines
from plots.core.series import SeriesKey, series_key, series_labels
from plots.core.statistics import spread
from plots.features.training.table import QUANTILES, over_repetitions
from plots.file.rows import File, Row
from plots.text import printable

_BESIDES = 3  # networks on no ladder that do without those of ladders


def draw_throughput(file: File, rows: Sequence[Row]) -> Chart | None:
    """A panel for each of a few networks of `rows`, forward passes of `file`: samples per second
    over the batch. None where no network was measured in two batches."""
    lines_of: dict[tuple[str, SeriesKey], list[Row]] = {}
    for row in _fastest(rows):
        lines_of.setdefault((row.model, series_key(row)), []).append(row)
    own = _few([row for line in lines_of.values() if len(line) > 1 for row in line], MOST_PANELS)
    if not own:
        return None
    panels = [
        Panel(
            f"{name}, {units.count(members[0].counters['params'])} parameters",
            tuple(lines(members, lambda row: row.counters["batch"], ("batch",), "batch")),
        )
        for name, members in own.items()
    ]
    pictures = draw_rates(
        file,
        panels,
        title="Forward passes: samples per second, by batch",
        size_label="samples in a batch",
        rate_label="samples per second, passes one behind the other",
        unit="/s",
    )
    alt = f"Samples per second against the batch, both axes logarithmic, of {', '.join(own)}."
    return Chart("throughput", pictures, alt)


def draw_latencies(file: File, rows: Sequence[Row]) -> Chart | None:
    """How late passes of one network are, in the middle and at worst; of `rows`, forward passes of
    `file` in one batch. None where none was timed pass by pass."""
    timed = [row for row in _fastest(rows) if _latencies(row)]
    devices_of: dict[str, set[str]] = {}
    for row in timed:
        devices_of.setdefault(row.model, set()).add(row.device)
    most = max(map(len, devices_of.values()), default=0)
    own = _few([row for row in timed if len(devices_of[row.model]) == most], 3)
    if not own:
        return None
    name = list(own)[len(own) // 2]
    alt = f"What 50 % to all of the single passes of {name} do not exceed, on each device."
    return Chart("latencies", render(partial(_draw_latencies, file, own[name])), alt)


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
    late = (over_repetitions(row, f"latency_{key}_seconds") for key in QUANTILES)
    return {place: one for place, one in enumerate(late) if one and one > 0}


def _fastest(rows: Sequence[Row]) -> list[Row]:
    """Those of each device's way that is fastest in what all have, of the ways that have half as
    many of `rows` as any at least."""
    kept = set()
    for device in ("cpu", "cuda"):
        ways: dict[SeriesKey, dict[tuple[str, str], float]] = {}
        for row in on_device(rows, device):
            own = ways.setdefault(series_key(row), {})
            own[row.model, row.batch] = math.log(row.median)
        most = max(map(len, ways.values()), default=0)
        ways = {key: own for key, own in ways.items() if 2 * len(own) >= most}
        shared = set.intersection(*map(set, ways.values())) if ways else set()
        sums = {key: sum(own[one] for one in shared) for key, own in ways.items()}
        kept |= {min(sums, key=sums.__getitem__)} if sums else set()
    return [row for row in rows if series_key(row) in kept]


def _few(rows: Iterable[Row], most: int) -> dict[str, list[Row]]:
    """The rows of a few networks, by size and evenly spread, rather of those that have a name of
    their own than of those on ladders."""
    networks: dict[str, list[Row]] = {}
    for row in familiar([row for row in rows if not row.is_between]):
        networks.setdefault(row.model, []).append(row)
    named = [name for name, own in networks.items() if own[0].ladder is None]
    names = named if len(named) >= _BESIDES else list(networks)
    names.sort(key=lambda name: networks[name][0].counters["params"])
    return {names[place]: networks[names[place]] for place in spread(len(names), most)}
