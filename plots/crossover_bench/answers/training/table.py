# SPDX-License-Identifier: Apache-2.0
"""The rows of one file that train as tables: the best of each device, and every row.

Those that are given together are of one family.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from crossover_bench.counts.peaks import doubts
from crossover_bench.curves.network import best, network_label, networks, on_device
from crossover_bench.curves.series import device_label
from crossover_bench.files.axes import DEVICES
from crossover_bench.files.families import FAMILIES
from crossover_bench.files.ladders import networks_of_any
from crossover_bench.files.rows import Row
from crossover_bench.show.tables.cells import (
    Field,
    bytes_cell,
    count_field,
    for_programs,
    network_fields,
    number_cell,
    number_field,
    range_cell,
    seconds_field,
    shown_field,
    table_of,
    text_cell,
    text_field,
)
from crossover_bench.show.tables.table import NOTHING, Cell, Column, Table, marks
from crossover_bench.words import units

# Of best_table() on a page.
SPEED_UP = "Speedup: CPU time / GPU time, each the best of its device, in the same precision."
_PREFIXES = {"cpu": "cpu", "cuda": "gpu"}
_TITLES = {"p50": "50 %", "p90": "90 %", "p99": "99 %", "p999": "99.9 %", "max": "longest"}
QUANTILES = {f"latency_{key}_seconds": title for key, title in _TITLES.items()}
_MEMORY = {"peak_bytes", "reorders", "reorder_bytes"}
_Fastest = dict[str, Row]  # of a network, by device


def best_table(rows: Sequence[Row]) -> Table:
    """A line for each network: the fastest way on each device, and how many times faster the GPU.

    `rows`, one at least, are of epochs or of training steps, with a result. Times are medians with
    the range of all repetitions; the faster device's is bold. Networks between the sizes of their
    ladder are counted in a note, unless there are no others.
    """
    listed = [row for row in rows if not row.is_between] or list(rows)
    left_out = len(networks(rows)) - len(networks(listed))
    between = networks_of_any(row.ladder for row in rows if row.is_between and row.ladder)
    family = FAMILIES[rows[0].family]
    devices = [device for device in DEVICES if on_device(listed, device)]
    fastest = [
        {device: best(ways) for device in DEVICES if (ways := on_device(members, device))}
        for members in networks(listed).values()
    ]
    notes: dict[str, int] = {}
    label = _labels(listed)

    def of_device(device: str) -> Iterator[Field]:
        """Beside a second device there is no room for what every_table() has as well."""
        group, prefix = (DEVICES[device] if len(devices) > 1 else "", _PREFIXES[device])

        def cell(show: Callable[[Row], Cell]) -> Callable[[_Fastest], Cell]:
            return lambda ways: show(ways[device]) if device in ways else NOTHING

        def median(ways: _Fastest) -> Cell:
            if device not in ways:
                return NOTHING
            is_faster = len(ways) > 1 and ways[device] is best(list(ways.values()))
            return _median(ways[device], notes, is_faster)

        yield Column(f"{prefix}_{family.time}", "median", True, group), median
        yield Column(f"{prefix}_range", "range", True, group), cell(range_cell)
        if len(devices) > 1:  # the group's heading names the device
            on = cell(lambda row: text_cell(device_label(row).there))
        else:
            rate = cell(lambda row: number_cell(_samples(row)))
            yield Column(f"{prefix}_samples_per_second", "samples/s", True), rate
            on = cell(lambda row: text_cell(str(device_label(row))))
        yield Column(f"{prefix}_on", "how", group=group), on

    def speed_up(ways: _Fastest) -> float | None:
        return ways["cpu"].median / ways["cuda"].median if len(ways) > 1 else None

    ratio = shown_field(
        "speed_up", "speedup", speed_up, lambda ratio: f"{units.significant(ratio)}×"
    )
    fields = (
        *_network_fields(label, lambda ways: next(iter(ways.values()))),
        *([ratio] if len(devices) > 1 else []),
        *(field for device in devices for field in of_device(device)),
    )
    title = f"Time of one {family.noun}, the best thread count and mode of each device"
    table = table_of(title, fastest, fields)
    if left_out:
        of = between.removesuffix("s") if left_out == 1 else between
        were = "was" if left_out == 1 else "were"
        marks([f"{left_out} {of} between these sizes {were} measured as well."], notes)
    return replace(table, notes=tuple(notes))


def on_both(rows: Sequence[Row]) -> list[Row]:
    """The rows of networks that several devices have in one precision."""
    groups = networks(rows).values()
    return [row for group in groups if len({row.device for row in group}) > 1 for row in group]


def without_lone(rows: Sequence[Row]) -> list[Row]:
    """`rows` but for those of a network in a precision that one device alone has, where several
    have the network in another."""
    both = on_both(rows)
    kept = {row.index for row in both}
    known = {(row.model, row.batch) for row in both}
    return [row for row in rows if row.index in kept or (row.model, row.batch) not in known]


def every_table(rows: Sequence[Row]) -> Table:
    """A line for each network and way to compute it, the fastest first. `rows` as above."""
    family, notes = FAMILIES[rows[0].family], dict[str, int]()
    fields = (
        *_network_fields(_labels(rows)),
        text_field("on", "on", lambda row: str(device_label(row))),
        (Column(family.time, "median", True), lambda row: _median(row, notes)),
        (Column("range", "range", True), range_cell),
        for_programs(number_field("samples_per_second", "samples/s", _samples)),
        shown_field(
            *("flops_per_second", "operations"),
            lambda row: row.counters["flops"] / row.median,
            lambda rate: units.rate(rate, "FLOP/s"),
        ),
        seconds_field(
            "first_call_seconds", "first call", lambda row: row.counters["first_call_seconds"]
        ),
    )
    return table_of(f"Time of one {family.noun}, every row", _by_time(rows), fields, notes)


def latency_table(rows: Sequence[Row]) -> Table:
    """A line for each of `rows`, which are forward passes, that was timed pass by pass: the median
    over its repetitions of what so much of the passes of each did not exceed."""
    network, _, batch = _network_fields(_labels(rows))
    fields = (
        *(network, batch, text_field("on", "on", lambda row: str(device_label(row)))),
        *(
            seconds_field(key, title, partial(over_repetitions, key), "of passes, latency")
            for key, title in QUANTILES.items()
        ),
        count_field("latency_passes", "passes each", partial(over_repetitions, "latency_passes")),
        seconds_field("clock_seconds", "clock", partial(over_repetitions, "clock_seconds")),
    )
    timed = [row for row in _by_time(rows) if row.measured.get("latency_passes") is not None]
    notes = ["Each latency has one reading of the clock in it."] if timed else []
    return table_of("Latency of forward passes", timed, fields, notes)


def memory_table(rows: Sequence[Row]) -> Table:
    """A line for each of `rows`, which are of training steps, that counts any of it."""
    network, _, batch = _network_fields(_labels(rows))

    def size(key: str, title: str, group: str = "") -> Field:
        return Column(key, title, True, group), lambda row: bytes_cell(row.counters.get(key))

    fields = (
        *(network, batch, text_field("on", "on", lambda row: str(device_label(row)))),
        size("peak_bytes", "most memory"),
        count_field("reorders", "reorders", lambda row: row.counters.get("reorders"), "a step"),
        size("reorder_bytes", "of bytes", "a step"),
    )
    shown = [
        row
        for members in networks(rows).values()
        for row in members
        if not _MEMORY.isdisjoint(row.counters)
    ]
    return table_of("Memory and reorders of a training step", shown, fields)


def over_repetitions(counter: str, row: Row) -> float | None:
    """The median over the repetitions that have the counter; None where none has."""
    values = row.measured.get(counter)
    return None if values is None else float(np.nanmedian(values))


def _by_time(rows: Sequence[Row]) -> list[Row]:
    """The smallest network first, and of each the fastest way."""
    groups = networks(rows).values()
    return [row for group in groups for row in sorted(group, key=lambda row: row.median)]


def _labels(rows: Sequence[Row]) -> dict[int, str]:
    """What the network of each of `rows` is called among them, by the row's place in its file."""
    groups = networks(rows)
    return {
        row.index: network_label(key, list(groups), row.axes)
        for key, members in groups.items()
        for row in members
    }


def _network_fields(
    labels: dict[int, str], of: Callable[..., Row] = lambda row: row
) -> tuple[Field, Field, Field]:
    _, params, batch = network_fields(of=of)
    return text_field("network", "network", lambda line: labels[of(line).index]), params, batch


def _median(row: Row, notes: dict[str, int], bold: bool = False) -> Cell:
    return Cell(units.seconds(row.median), row.median, bold, marks(doubts(row), notes))


def _samples(row: Row) -> float:
    return row.counters[FAMILIES[row.family].samples] / row.median
