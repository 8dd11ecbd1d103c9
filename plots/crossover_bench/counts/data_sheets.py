# SPDX-License-Identifier: Apache-2.0
"""Energy estimated from data sheets, where no meter was read and the user gives the thermal design
power (TDP) of each side: as if that were drawn all the time.

docs/howto/energy.md says why such a number is no measurement.
"""

import re
from collections.abc import Iterable, Mapping
from functools import partial

import numpy as np

from crossover_bench.files.rows import File, Row
from crossover_bench.files.sides import FigureError, number, side_of, with_counters
from crossover_bench.words import units
from crossover_bench.words.text import counted, printable

JOULES = "joules"  # the counter of what meters told of all that computed, and here of estimates
_ERROR = "joules_error"  # the share by which meters may be off
_POWER = re.compile(r"(cpu|gpu)=([0-9.eE+-]+)W?")
_HOW = "say cpu=65, gpu=700: watts by the data sheets of all processors, and of the card"
_SHEET = {"cpu": "processors", "gpu": "card"}


def read_watts(texts: Iterable[str]) -> dict[str, float]:
    """Side → watts, from the texts of --tdp; raises FigureError."""
    watts: dict[str, float] = {}
    for text in texts:
        match = _POWER.fullmatch(text)
        if not match:
            raise FigureError(f"{printable(text, 60)} is no power of a side; {_HOW}")
        side, amount = match.groups()
        if side in watts:
            raise FigureError(f"{text}: {side} has {watts[side]:g} W already; leave out one")
        watts[side] = number(amount, text, "1e6")
    return watts


def of_sides(watts: Mapping[str, float]) -> dict[str, float]:
    """Side → W of all that is on while it trains: beside a card, the processors wait for it."""
    return {"cpu": watts["cpu"], "gpu": watts["gpu"] + watts["cpu"]}


def _parts(row: Row) -> tuple[str, ...]:
    return ("cpu",) if side_of(row) == "cpu" else ("gpu", "cpu")


def _metered(row: Row, part: str) -> np.ndarray | None:
    """The joules that the meters of a part told of each repetition; None where they did not."""
    values = row.measured.get(f"joules_{part}")
    return values if values is not None and len(values) in (1, len(row.samples)) else None


def _lacks_meters(row: Row) -> bool:
    """Whether no meters told of all parts that computed it. Rows that repeat one operation many
    times lack none, as no meter is read around them."""
    return row.failure is None and "count" not in row.counters and JOULES not in row.measured


def unmetered(file: File) -> int:
    """How many of its rows lack meters."""
    return sum(map(_lacks_meters, file.own_rows))


def with_estimates(file: File, watts: Mapping[str, float]) -> File:
    """`file` with joules in each row that lacks meters: what the meter of each part told, or where
    a part has none, its watts for all of the time."""

    def estimated(row: Row) -> dict[str, np.ndarray]:
        if not _lacks_meters(row):
            return {}
        joules = np.zeros(len(row.samples))
        for part in _parts(row):
            if (values := _metered(row, part)) is not None:
                joules = joules + values
            elif part in watts:
                joules = joules + watts[part] * row.samples
            else:
                return {}  # of a peer: lacking() has asked for what bench's own rows need
        return {JOULES: joules}

    return with_counters(file, estimated)


def lacking(files: Iterable[File], watts: Mapping[str, float]) -> str:
    """What is wrong where a part without a meter has no watts, in a sentence; else empty."""
    needed = {
        part
        for file in files
        for row in file.own_rows
        if _lacks_meters(row)
        for part in _parts(row)
        if _metered(row, part) is None
    }
    return _lacking(sorted(needed - watts.keys()))


def lacking_sides(watts: Mapping[str, float]) -> str:
    """The same for a prediction, for which no meter was read."""
    return _lacking(sorted(_SHEET.keys() - watts.keys()))


def _lacking(parts: Iterable[str]) -> str:
    missing = " and of the ".join(parts)
    return f"--tdp must say the watts of the {missing}, too: {_HOW}" if missing else ""


def sentences(watts: Mapping[str, float]) -> list[str]:
    """Which watts the estimate takes, a sentence for each side."""
    show = partial(units.rate, unit="W")
    return [
        f"{side.upper()}: {show(power)} by the data sheet of the {_SHEET[side]}, as you say, taken "
        "for all of the time: an estimate, no measurement."
        for side, power in sorted(watts.items())
    ]


def how_many(file: File, rows: int) -> str:
    """That `rows` of the rows of `file` were estimated, in a sentence."""
    path, of = printable(str(file.path)), counted(len(file.own_rows), "row")
    return f"{path}: the energy of {rows} of {of} is estimated from data sheets, all or in part"


def error_of_meters(file: File) -> str:
    """By how much the meters of a file may be off, a clause; empty where it does not say."""
    shares = [float(row.measured[_ERROR].max()) for row in file.own_rows if _ERROR in row.measured]
    if not shares:
        return ""
    percent = units.significant(100 * max(shares), 2)
    return f"the meters may be off by {percent} % of a row's energy, at most"
