# SPDX-License-Identifier: Apache-2.0
"""From which size several ranks train faster than one process, on the CPU or with a GPU for each,
and what their sums cost.

docs/method/ranks.md defines each figure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from plots.core.crossover import EQUAL_WITHIN, Comparison, find_crossover
from plots.core.crossover_words import faster, instances_words
from plots.core.curves import SCALES, rank_pairs
from plots.core.network import best
from plots.core.tables.cells import (
    Field,
    Of,
    crossover_fields,
    network_fields,
    number_field,
    seconds_field,
    table_of,
    text_cell,
    text_field,
)
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.file.axes import Axes, Axis, Configuration
from plots.file.families import EPOCH, TRAINING, steps_of
from plots.file.rows import File, Row
from plots.text import printable

_FLOAT_BYTES = 4
_COMMUNICATION = "seconds_communication"
_NAME = 60
_SHARE_A_GPU = "NCCL_MULTI_RANK_GPU_ENABLE"  # in the warning of such a row (bench/rows/device.cpp)


@dataclass(frozen=True, slots=True)
class Called:
    """What `one` process that trains alone is called, and `many` that train together; `several` at
    the beginning of a page."""

    one: str
    many: str
    several: str


CALLED = {
    "cpu": Called("process", "ranks", "several processes"),
    "cuda": Called("GPU", "GPUs", "several GPUs"),
}


@dataclass(frozen=True, slots=True)
class Shared:
    """One network on several ranks, the fastest way of that many, beside one process.

    `alone` is the fastest row of one process on that device, `like` the fastest with the threads of
    one rank; both None where there are none, and on a GPU the same. `communication` is the share of
    the time that the first rank waits for sums; `modelled` the seconds that `like` and the sums by
    themselves lead to expect.
    """

    row: Row
    alone: Row | None
    like: Row | None
    communication: float | None
    modelled: float | None

    @property
    def device(self) -> str:
        return self.row.device

    @property
    def speed_up(self) -> float | None:
        """Over the fastest of one process."""
        return self.alone.median / self.row.median if self.alone else None

    @property
    def efficiency(self) -> float | None:
        """Speed-up over one rank's like, for each rank."""
        return self.like.median / self.row.median / self.row.ranks if self.like else None


_Found = TypeVar("_Found", Comparison, Shared)


def by_device(found: Sequence[_Found]) -> list[tuple[str, list[_Found]]]:
    """`found` of each device that has any."""
    every = ((device, [one for one in found if one.device == device]) for device in CALLED)
    return [(device, own) for device, own in every if own]


def more_ranks(file: File, weak: bool = False) -> list[Comparison]:
    """One process, with whatever threads and execution are the fastest, against several ranks: for
    each device, batch size, precision and number of ranks of `file`; of a device in the file's
    order. `weak`: of ranks that have a batch each."""
    found = []
    for common, ranks, one, many in rank_pairs(_compared(file, weak)):
        called = CALLED[one.configuration["device"]]
        together = f"{ranks} {called.many}{' with a batch each' if weak else ''}"
        sides = (f"1 {called.one}", together)
        crossover = find_crossover(one, many, sides=sides, equal_within=EQUAL_WITHIN)
        measure = SCALES[common["family"]].measure
        found.append(Comparison(common, measure, one, many, crossover))
    return [one for _, own in by_device(found) for one in own]


def _compared(file: File, weak: bool) -> File:
    """What counts of the file."""
    kept = (row for row in file.rows if row.device in CALLED and not shares_a_gpu(row))
    file = replace(file, rows=tuple(kept))
    return _weakly(file) if weak else file


def shares_a_gpu(row: Row) -> bool:
    """Whether its ranks may have shared a GPU: then its time says nothing of several."""
    return any(_SHARE_A_GPU in warning for warning in row.warnings)


def _weakly(file: File) -> File:
    """The file with each rank's own batch as that of its epochs: so ranks that have a batch each
    stand beside one process that has one such batch. What has no such is left out."""

    def rows() -> Iterator[Row]:
        for row in file.rows:
            batch, rest = divmod(int(row.configuration.get("batch", 0)), row.ranks)
            if row.ranks == 1 or row.family not in TRAINING:
                yield row
            elif row.family == EPOCH and not rest:
                yield replace(row, configuration={**row.configuration, "batch": str(batch)})

    return replace(file, rows=tuple(rows()))


def shared(file: File, weak: bool = False) -> list[Shared]:
    """The fastest row of each network, batch size, precision, device and number of ranks and
    threads. `weak` as in more_ranks()."""
    file = _compared(file, weak)
    groups: dict[tuple[object, ...], list[Row]] = {}
    trained = [row for row in file.rows if row.family in TRAINING and row.failure is None]
    for row in trained:
        if row.ranks > 1:
            groups.setdefault((_work(row), row.device, row.ranks, row.threads), []).append(row)
    found = []
    for (work, device, _, threads), rows in groups.items():
        own = best(rows)
        others = [
            row
            for row in trained
            if row.ranks == 1 and row.device == device and row.program == own.program
        ]
        same = [row for row in others if _work(row) == work]
        alone = best(same) if same else None
        of_threads = [row for row in same if row.threads == threads]
        like = best(of_threads) if of_threads else None
        waits, size = own.counters.get(_COMMUNICATION), _FLOAT_BYTES * own.counters["params"]
        share = None if waits is None else min(1.0, waits / own.median)
        summed = sum_seconds(file, own.device, own.ranks, size)
        modelled = None
        if like and summed is not None:
            modelled = like.median / own.ranks + steps_of(own) * summed
        found.append(Shared(own, alone, like, share, modelled))
    return found


def _work(row: Row) -> tuple[tuple[str, str], ...]:
    axes = row.axes
    alike = ((axis.key, value) for axis, value in axes.of(row.configuration, "alike"))
    return (*axes.what(row.configuration, ()), *alike)


def sum_seconds(file: File, device: str, ranks: int, size: float) -> float | None:
    """What a sum of `size` bytes takes by itself, between the measured sizes on logarithmic axes;
    beyond the largest in proportion. None where that number of ranks has no such rows there."""
    known = sorted(
        (float(row.configuration["bytes"]), row.median)
        for row in file.rows
        if row.family == "Collective"
        and row.failure is None
        and row.ranks == ranks
        and row.device == device
    )
    if len(known) < 2:
        return None
    sizes, seconds = (np.array(values) for values in zip(*known, strict=True))
    inside = np.exp(np.interp(np.log(size), np.log(sizes), np.log(seconds)))
    return float(inside * max(1.0, size / sizes[-1]))


def ranks_sentence(one: Comparison) -> str:
    """The answer in a sentence."""
    claim = faster(one.crossover, printable(one.networks, _NAME))
    at = [f"at batch {printable(one.batch, _NAME)}"] if one.batch else []
    at += [printable(axis.change(value), _NAME) for axis, value in unlike(one.cpu.axes, one.common)]
    said = f"{' '.join(at)}, {claim}" if at else claim
    return f"{said[0].upper()}{said[1:]}."


def unlike(axes: Axes, configuration: Configuration) -> list[tuple[Axis, str]]:
    """What is alike on both sides, and not the plainest: the precision tf32."""
    alike = axes.of(configuration, "alike")
    return [(axis, value) for axis, value in alike if value != axis.plainest]


# ---- as tables; those on GPUs have tables of their own


def ranks_tables(file: File, found: Sequence[Comparison]) -> list[Table]:
    """One line for each comparison of `file`: the size from which more ranks win."""
    return [_ranks_table(file, CALLED[device], own) for device, own in by_device(found)]


def shared_tables(found: Sequence[Shared]) -> list[Table]:
    """One line for each network and number of ranks and threads."""
    return [_shared_table(CALLED[device], own) for device, own in by_device(found)]


def _ranks_table(file: File, called: Called, found: Sequence[Comparison]) -> Table:
    fields = (
        text_field("networks", "networks", lambda one: one.networks),
        (Column("batch", "batch", numeric=True), lambda one: text_cell(one.batch or None)),
        text_field("precision", "precision", lambda one: one.precision or None),
        text_field("ranks", called.many, lambda one: one.sides[1]),
        *crossover_fields(f"{called.many} pay from"),
    )
    title = (
        f"From which size several {called.many} train faster than one {called.one}, on "
        f"{file.machine.id}"
    )
    notes = filter(None, [instances_words(file, {one.family for one in found})])
    return table_of(title, found, fields, notes)


def _shared_table(called: Called, found: Sequence[Shared]) -> Table:
    def ranks(row: Row) -> str:
        of_threads = f" of {_threads(row)}" if row.threads else ""
        more = [axis.word(value) for axis, value in unlike(row.axes, row.configuration)]
        return ", ".join([f"{row.ranks} {called.many}{of_threads}", *more])

    def share(key: str, title: str, of: Of, group: str = "") -> Field:
        def cell(one: Shared) -> Cell:
            value = of(one)
            return NOTHING if value is None else Cell(f"{100 * value:.0f} %", value)

        return Column(key, title, True, group), cell

    many, alone = called.many, f"one {called.one}"
    fields = (
        *network_fields(of=lambda one: one.row),
        text_field("ranks", "on", lambda one: ranks(one.row)),
        seconds_field("seconds", "median", lambda one: one.row.median, many),
        text_field("execution", "how", lambda one: _how(one.row), many),
        seconds_field("modelled", "expected", lambda one: one.modelled, many),
        share("communication", "waits for sums", lambda one: one.communication, many),
        seconds_field("alone", "median", lambda one: one.alone and one.alone.median, alone),
        text_field(
            "alone_how",
            "how",
            lambda one: one.alone and _how(one.alone, _threads(one.alone)),
            alone,
        ),
        number_field("speed_up", "speedup", lambda one: one.speed_up),
        share("efficiency", "efficiency", lambda one: one.efficiency),
    )
    return table_of(f"What several {many} bring", found, fields)


def _threads(row: Row) -> str:
    return row.axes["cpu_threads"].word(row.configuration["cpu_threads"]) if row.threads else ""


def _how(row: Row, *more: str) -> str:
    """Its execution, on a GPU where its data lies, and what else is there to say."""
    data = row.configuration.get("data", "")
    return ", ".join(filter(None, (row.execution, data, *more)))
