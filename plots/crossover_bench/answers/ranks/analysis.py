# SPDX-License-Identifier: Apache-2.0
"""From which size several ranks train faster than one process, on the CPU or with a GPU for each,
and what their sums cost.

docs/method/several.md defines each figure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TypeVar

import numpy as np

from crossover_bench.curves.crossover import EQUAL_WITHIN, Comparison, find_crossover
from crossover_bench.curves.crossover_words import faster, instances_words
from crossover_bench.curves.curves import SCALES, rank_pairs
from crossover_bench.curves.network import best
from crossover_bench.files.axes import Axes, Axis, Configuration, Items
from crossover_bench.files.families import EPOCH, TRAINING, steps_of
from crossover_bench.files.rows import File, Row
from crossover_bench.show.tables.cells import (
    Field,
    Of,
    crossover_fields,
    network_fields,
    number_field,
    seconds_field,
    shown_field,
    table_of,
    text_cell,
    text_field,
)
from crossover_bench.show.tables.table import Column, Table
from crossover_bench.words.text import printable, sentence

_FLOAT_BYTES = 4
_COMMUNICATION = "seconds_communication"
_NAME = 60
_SHARE_A_GPU = "NCCL_MULTI_RANK_GPU_ENABLE"  # a row warns of it: bench/families/device.cpp


@dataclass(frozen=True, slots=True)
class Called:
    """What a process that trains alone is called, `single`, and those that train together, `many`;
    at the beginning of a page `several`."""

    single: str
    many: str
    several: str


CALLED = {
    "cpu": Called("process", "ranks", "several processes"),
    "cuda": Called("GPU", "GPUs", "several GPUs"),
}


@dataclass(frozen=True, slots=True)
class Shared:
    """One network on several ranks, in the fastest way of that many, beside one process.

    `alone` is the fastest row of one process on that device, `like` the fastest with the threads of
    one rank. Both are None where there are none; on a GPU they are the same. `communication` is the
    share of the time in which the first rank waits for sums. `modelled` is the time in seconds that
    follows from `like` and the sums by themselves.
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


_Compared = TypeVar("_Compared", Comparison, Shared)


def by_device(compared: Sequence[_Compared]) -> list[tuple[str, list[_Compared]]]:
    """`compared` of each device that has any."""
    every = ((device, [each for each in compared if each.device == device]) for device in CALLED)
    return [(device, of_device) for device, of_device in every if of_device]


def more_ranks(file: File, weak: bool = False) -> list[Comparison]:
    """One process, with whatever threads and execution are the fastest, against several ranks: for
    each device, batch size, precision and number of ranks of `file`; of a device in the file's
    order. `weak`: of ranks that have a batch each."""
    compared = []
    for common, ranks, alone, many in rank_pairs(_compared(file, weak)):
        called = CALLED[alone.configuration["device"]]
        together = f"{ranks} {called.many}{' with a batch each' if weak else ''}"
        sides = (f"1 {called.single}", together)
        crossover = find_crossover(alone, many, sides=sides, equal_within=EQUAL_WITHIN)
        measure = SCALES[common["family"]].measure
        compared.append(Comparison(common, measure, alone, many, crossover))
    return [*chain(*(of_device for _, of_device in by_device(compared)))]


def _compared(file: File, weak: bool) -> File:
    """What counts of the file."""
    kept = (row for row in file.rows if row.device in CALLED and not shares_a_gpu(row))
    file = replace(file, rows=tuple(kept))
    return _weakly(file) if weak else file


def shares_a_gpu(row: Row) -> bool:
    """Whether its ranks may have shared a GPU: then its time says nothing of several."""
    return any(_SHARE_A_GPU in warning for warning in row.warnings)


def _weakly(file: File) -> File:
    """The file with the batch of one rank as that of each row of epochs, so that ranks stand beside
    a process with one such batch. Rows whose batch the ranks cannot share evenly are left out."""

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
    groups: dict[tuple[Items, str, int, int | None], list[Row]] = {}
    trained = [row for row in file.rows if row.family in TRAINING and row.failure is None]
    for row in trained:
        if row.ranks > 1:
            groups.setdefault((_work(row), row.device, row.ranks, row.threads), []).append(row)
    networks = []
    for (work, device, ranks, threads), rows in groups.items():
        row = best(rows)
        alike = (1, device, row.program)
        others = [each for each in trained if (each.ranks, each.device, each.program) == alike]
        same = [each for each in others if _work(each) == work]
        of_threads = [each for each in same if each.threads == threads]
        alone, like = (best(each) if each else None for each in (same, of_threads))
        waits, size = row.counters.get(_COMMUNICATION), _FLOAT_BYTES * row.counters["params"]
        share = None if waits is None else min(1.0, waits / row.median)
        summed = sum_seconds(file, device, ranks, size)
        modelled = None
        if like and summed is not None:
            modelled = like.median / ranks + steps_of(row) * summed
        networks.append(Shared(row, alone, like, share, modelled))
    return networks


def _work(row: Row) -> Items:
    alike = ((axis.key, value) for axis, value in row.axes.of(row.configuration, "alike"))
    return (*row.axes.what(row.configuration, ()), *alike)


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


def ranks_sentence(comparison: Comparison) -> str:
    """The answer in a sentence."""
    claim = faster(comparison.crossover, printable(comparison.networks, _NAME))
    at = [f"at batch {printable(comparison.batch, _NAME)}"] if comparison.batch else []
    not_plain = unlike(comparison.cpu.axes, comparison.common)
    at += [printable(axis.change(value), _NAME) for axis, value in not_plain]
    return sentence(f"{' '.join(at)}, {claim}" if at else claim)


def unlike(axes: Axes, configuration: Configuration) -> list[tuple[Axis, str]]:
    """What is alike on both sides, and not the plainest: the precision tf32."""
    alike = axes.of(configuration, "alike")
    return [(axis, value) for axis, value in alike if value != axis.plainest]


# ---- as tables; those on GPUs have tables of their own


def ranks_tables(file: File, compared: Sequence[Comparison]) -> list[Table]:
    """One line for each comparison of `file`: the size from which more ranks win."""
    return [_ranks_table(file, CALLED[device], alike) for device, alike in by_device(compared)]


def shared_tables(networks: Sequence[Shared]) -> list[Table]:
    """One line for each network and number of ranks and threads."""
    return [_shared_table(CALLED[device], alike) for device, alike in by_device(networks)]


def _ranks_table(file: File, called: Called, compared: Sequence[Comparison]) -> Table:
    fields = (
        text_field("networks", "networks", lambda each: each.networks),
        (Column("batch", "batch", numeric=True), lambda each: text_cell(each.batch or None)),
        text_field("precision", "precision", lambda each: each.precision or None),
        text_field("ranks", called.many, lambda each: each.sides[1]),
        *crossover_fields(f"{called.many} pay from"),
    )
    title = f"From which size several {called.many} train faster than one {called.single}"
    notes = filter(None, [instances_words(file, {each.family for each in compared})])
    return table_of(f"{title}, on {file.machine.id}", compared, fields, notes)


def _shared_table(called: Called, networks: Sequence[Shared]) -> Table:
    def ranks(row: Row) -> str:
        of_threads = f" of {_threads(row)}" if row.threads else ""
        more = [axis.word(value) for axis, value in unlike(row.axes, row.configuration)]
        return ", ".join([f"{row.ranks} {called.many}{of_threads}", *more])

    def share(key: str, title: str, of: Of, group: str = "") -> Field:
        return shown_field(key, title, of, lambda share: f"{100 * share:.0f} %", group)

    def alone_how(network: Shared) -> str | None:
        return _how(network.alone, _threads(network.alone)) if network.alone else None

    many, alone = called.many, f"one {called.single}"
    fields = (
        *network_fields(of=lambda network: network.row),
        text_field("ranks", "on", lambda network: ranks(network.row)),
        seconds_field("seconds", "median", lambda network: network.row.median, many),
        text_field("execution", "how", lambda network: _how(network.row), many),
        seconds_field("modelled", "expected", lambda network: network.modelled, many),
        share("communication", "waits for sums", lambda network: network.communication, many),
        seconds_field("alone", "median", lambda each: each.alone and each.alone.median, alone),
        text_field("alone_how", "how", alone_how, alone),
        number_field("speed_up", "speedup", lambda network: network.speed_up),
        share("efficiency", "efficiency", lambda network: network.efficiency),
    )
    return table_of(f"What several {many} bring", networks, fields)


def _threads(row: Row) -> str:
    return row.axes["cpu_threads"].word(row.configuration["cpu_threads"]) if row.threads else ""


def _how(row: Row, *more: str) -> str:
    """Its execution, on a GPU where its data lies, and what else is there to say."""
    data = row.configuration.get("data", "")
    return ", ".join(filter(None, (row.execution, data, *more)))
