# SPDX-License-Identifier: Apache-2.0
"""The Epoch rows of one file as a table, in plain text and in Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plots import units
from plots.rows import Row
from plots.series import SeriesKey, series_key, series_labels
from plots.text import markdown, printable


@dataclass(frozen=True, slots=True)
class _Cell:
    median: str
    spread: str
    rate: str
    marks: tuple[int, ...]  # numbers of the quality flags, from 1


@dataclass(frozen=True, slots=True)
class EpochTable:
    """Lines of networks and columns of series; text in it is still as the file has it."""

    networks: dict[tuple[str, str], float]  # (model, batch size) → parameters, in that order
    columns: dict[SeriesKey, str]
    cells: dict[tuple[str, str, SeriesKey], _Cell]
    flags: tuple[str, ...]


def epoch_table(rows: Sequence[Row]) -> EpochTable:
    """The table of `rows`, which are Epoch rows with a result."""
    flags: dict[str, int] = {}
    networks: dict[tuple[str, str], float] = {}
    cells = {}
    for row in sorted(rows, key=_size):
        network = (row.configuration["model"], row.configuration["batch"])
        networks[network] = row.counters["params"]
        cells[(*network, series_key(row))] = _Cell(
            median=units.seconds(row.median),
            spread=units.seconds_range(row.minimum, row.maximum),
            rate=units.significant(row.counters["rows"] / row.median),
            marks=tuple(flags.setdefault(flag, len(flags) + 1) for flag in row.quality),
        )
    return EpochTable(networks, series_labels(rows), cells, tuple(flags))


def as_text(table: EpochTable) -> str:
    """Aligned plain text, one line for each network and series, for a terminal."""
    header = ["model", "parameters", "batch", "on", "median", "range", "samples/s", ""]
    lines = [header]
    for (model, batch), params in table.networks.items():
        network = [printable(model, 28), units.count(params), printable(batch, 12)]
        for key, label in table.columns.items():
            cell = table.cells.get((model, batch, key))
            if cell:
                marks = " ".join(f"[{mark}]" for mark in cell.marks)
                lines.append([*network, label, cell.median, cell.spread, cell.rate, marks])
                network = ["", "", ""]  # said once for all its lines
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = {1, 2, 4, 5, 6}
    text = [
        "  ".join(
            field.rjust(width) if place in right else field.ljust(width)
            for place, (field, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    text += [f"[{mark}] {printable(flag)}" for mark, flag in enumerate(table.flags, 1)]
    return "\n".join(text)


def as_markdown(table: EpochTable) -> str:
    """A Markdown table, one line for each network and three columns for each series."""
    header = ["model", "parameters", "batch"]
    for label in table.columns.values():
        header += [f"{markdown(label)}: median", "range", "samples/s"]
    lines = [header, ["---", *["---:"] * (len(header) - 1)]]
    for (model, batch), params in table.networks.items():
        line = [markdown(model, 60), units.count(params), markdown(batch, 20)]
        for key in table.columns:
            cell = table.cells.get((model, batch, key))
            if cell:
                marks = "".join(f" <sup>{mark}</sup>" for mark in cell.marks)
                line += [f"**{cell.median}**{marks}", cell.spread, cell.rate]
            else:
                line += ["–"] * 3
        lines.append(line)
    text = ["| " + " | ".join(line) + " |" for line in lines]
    if table.flags:
        text += ["", "Quality flags:", ""]
        text += [f"{mark}. {markdown(flag, 400)}" for mark, flag in enumerate(table.flags, 1)]
    return "\n".join(text)


def _size(row: Row) -> tuple[float, str, float]:
    return row.counters["params"], row.configuration["model"], row.counters["batch"]
