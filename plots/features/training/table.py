# SPDX-License-Identifier: Apache-2.0
"""The rows of one file that train as tables: the best of each device, and every row.

Those that are given together are of one family.
"""

from collections.abc import Sequence

import numpy as np

from plots import units
from plots.core.network import NetworkKey, best, network_label, networks, on_device
from plots.core.peaks import doubts
from plots.core.series import device_label
from plots.core.tables.cells import (
    bytes_cell,
    count_cell,
    number_cell,
    range_cell,
    seconds_cell,
    text_cell,
)
from plots.core.tables.table import NOTHING, Cell, Column, Table, marks
from plots.file.families import FAMILIES
from plots.file.ladders import networks_of_any
from plots.file.rows import Row

_NETWORK = (
    Column("network", "network"),
    Column("params", "parameters", numeric=True),
    Column("batch", "batch", numeric=True),
)
# Of best_table() on a page.
SPEED_UP = "Speedup: CPU time / GPU time, each the best of its device, in the same precision."
_GROUPS = {"cpu": "CPU", "cuda": "GPU"}
_PREFIXES = {"cpu": "cpu", "cuda": "gpu"}
QUANTILES = {"p50": "50 %", "p90": "90 %", "p99": "99 %", "p999": "99.9 %", "max": "longest"}
_MEMORY = ("peak_bytes", "reorders", "reorder_bytes")


def best_table(rows: Sequence[Row]) -> Table:
    """A line for each network: the fastest way on each device, and how many times faster the GPU.

    `rows`, one at least, are of epochs or of training steps, with a result. Times are medians with
    the range of all repetitions; the faster device's is bold. Networks between the sizes of their
    ladder are counted in a note, unless there are no others.
    """
    listed = [row for row in rows if not row.is_between] or list(rows)
    left_out = len(networks(rows)) - len(networks(listed))
    between = networks_of_any(row.ladder for row in rows if row.is_between and row.ladder)
    rows = listed
    groups, family = networks(rows), rows[0].family
    devices = [device for device in _GROUPS if on_device(rows, device)]
    several = len(devices) > 1
    columns = [*_NETWORK]
    if several:
        columns.append(Column("speed_up", "speedup", numeric=True))
    for device in devices:
        columns += _device_columns(device, several, family)
    flags: dict[str, int] = {}
    lines = []
    for key, members in groups.items():
        found = {device: on_device(members, device) for device in devices}
        chosen = {device: best(own) for device, own in found.items() if own}
        fastest = best(list(chosen.values())) if len(chosen) > 1 else None
        line = _network_cells(key, members[0], list(groups))
        if several:
            line.append(_speed_up(chosen))
        for device in devices:
            row = chosen.get(device)
            cells = _best_cells(row, row is fastest, several, flags) if row else []
            line += cells or [NOTHING] * len(_device_columns(device, several, family))
        lines.append(tuple(line))
    title = f"Time of one {FAMILIES[family].one}, the best thread count and mode of each device"
    notes = [*flags]
    if left_out:
        notes.append(f"{left_out} {between} between these sizes were measured as well.")
    return Table(title, tuple(columns), tuple(lines), tuple(notes))


def on_both(rows: Sequence[Row]) -> list[Row]:
    """The rows of networks that several devices have in one precision."""
    groups = (own for own in networks(rows).values() if len({row.device for row in own}) > 1)
    return [row for own in groups for row in own]


def every_table(rows: Sequence[Row]) -> Table:
    """A line for each network and way to compute it, the fastest first. `rows` as above."""
    groups, family = networks(rows), rows[0].family
    flags: dict[str, int] = {}
    columns = (
        *_NETWORK,
        Column("on", "on"),
        Column(FAMILIES[family].time, "median", numeric=True),
        Column("range", "range", numeric=True),
        Column("samples_per_second", "samples/s", numeric=True, for_programs=True),
        Column("flops_per_second", "operations", numeric=True),
        Column("first_call_seconds", "first call", numeric=True),
    )
    lines = []
    for key, members in groups.items():
        for row in sorted(members, key=lambda row: row.median):
            rate = row.counters["flops"] / row.median
            first = row.counters["first_call_seconds"]
            lines.append(
                (
                    *_network_cells(key, row, list(groups)),
                    text_cell(str(device_label(row))),
                    _median(row, False, flags),
                    range_cell(row),
                    _samples(row),
                    Cell(units.rate(rate, "FLOP/s"), rate),
                    seconds_cell(first),
                )
            )
    return Table(f"Time of one {FAMILIES[family].one}, every row", columns, tuple(lines), (*flags,))


def _device_columns(device: str, several: bool, family: str) -> list[Column]:
    """Beside a second device there is no room for what every_table() has as well."""
    group, prefix = _GROUPS[device] if several else "", _PREFIXES[device]
    columns = [
        Column(f"{prefix}_{FAMILIES[family].time}", "median", numeric=True, group=group),
        Column(f"{prefix}_range", "range", numeric=True, group=group),
        Column(f"{prefix}_samples_per_second", "samples/s", numeric=True, group=group),
        Column(f"{prefix}_on", "how", group=group),
    ]
    return [*columns[:2], columns[3]] if several else columns


def _network_cells(key: NetworkKey, row: Row, keys: Sequence[NetworkKey]) -> list[Cell]:
    params, batch = row.counters["params"], row.counters["batch"]
    label = network_label(key, keys, row.axes)
    return [text_cell(label), count_cell(params), count_cell(batch)]


def _best_cells(row: Row, bold: bool, several: bool, flags: dict[str, int]) -> list[Cell]:
    times = [_median(row, bold, flags), range_cell(row)]
    if not several:
        return [*times, _samples(row), text_cell(str(device_label(row)))]
    return [*times, text_cell(device_label(row).there)]  # the group's heading names the device


def _median(row: Row, bold: bool, flags: dict[str, int]) -> Cell:
    flagged = marks(doubts(row), flags)
    return Cell(units.seconds(row.median), row.median, bold, flagged)


def _samples(row: Row) -> Cell:
    rate = row.counters[FAMILIES[row.family].samples] / row.median
    return number_cell(rate)


def _speed_up(chosen: dict[str, Row]) -> Cell:
    if len(chosen) < 2:
        return NOTHING
    ratio = chosen["cpu"].median / chosen["cuda"].median
    return Cell(f"{units.significant(ratio)}×", ratio)


def latency_table(rows: Sequence[Row]) -> Table:
    """A line for each of `rows`, which are forward passes, that was timed pass by pass: the median
    over its repetitions of what so much of the passes of each did not exceed."""
    groups = networks(rows)
    columns = (
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("on", "on"),
        *(
            Column(f"latency_{key}_seconds", title, numeric=True, group="of passes, latency")
            for key, title in QUANTILES.items()
        ),
        Column("latency_passes", "passes each", numeric=True),
        Column("clock_seconds", "clock", numeric=True),
    )
    lines = []
    for key, members in groups.items():
        for row in sorted(members, key=lambda row: row.median):
            passes = row.measured.get("latency_passes")
            if passes is None:
                continue
            lines.append(
                (
                    text_cell(network_label(key, list(groups), row.axes)),
                    count_cell(row.counters["batch"]),
                    text_cell(str(device_label(row))),
                    *(
                        seconds_cell(over_repetitions(row, f"latency_{key}_seconds"))
                        for key in QUANTILES
                    ),
                    count_cell(float(np.nanmedian(passes))),
                    seconds_cell(over_repetitions(row, "clock_seconds")),
                )
            )
    note = "Each latency has one reading of the clock in it."
    return Table("Latency of forward passes", columns, tuple(lines), (note,) if lines else ())


def over_repetitions(row: Row, counter: str) -> float | None:
    """The median over the repetitions that have the counter; None where none has."""
    values = row.measured.get(counter)
    return None if values is None else float(np.nanmedian(values))


def memory_table(rows: Sequence[Row]) -> Table:
    """A line for each of `rows`, which are of training steps, that counts any of it."""
    groups = networks(rows)
    columns = (
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("on", "on"),
        Column("peak_bytes", "most memory", numeric=True),
        Column("reorders", "reorders", numeric=True, group="a step"),
        Column("reorder_bytes", "of bytes", numeric=True, group="a step"),
    )
    lines = tuple(
        (
            text_cell(network_label(key, list(groups), row.axes)),
            count_cell(row.counters["batch"]),
            text_cell(str(device_label(row))),
            bytes_cell(row.counters.get("peak_bytes")),
            count_cell(row.counters.get("reorders")),
            bytes_cell(row.counters.get("reorder_bytes")),
        )
        for key, members in groups.items()
        for row in members
        if any(counter in row.counters for counter in _MEMORY)
    )
    return Table("Memory and reorders of a training step", columns, lines)
