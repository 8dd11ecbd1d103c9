# SPDX-License-Identifier: Apache-2.0
"""How well the model of several cards predicts what others published, as a table."""

from collections.abc import Iterable, Sequence

import numpy as np

from plots.core.tables.cells import count_cell, number_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.predict.scaling import Scaling, loss_of, others, predicted
from plots.features.predict.simulate import Times, ends

_OURS = "NCCL"  # that sums as the model does


def scaling_table(found: Sequence[Scaling]) -> Table:
    """How many times as fast as one GPU each published training was on several, beside what is
    predicted where all of its network and all of its machine are left out of the loss."""
    gpus = sorted({count for one in found for count in one.several})
    columns = (
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("card", "card"),
        Column("machine", "machine", for_programs=True),
        Column("summed_by", "summed by"),
        Column("link", "over"),
        *(column for count in gpus for column in _columns(count)),
        Column("in_band", "in the band", numeric=True),
    )
    lines: list[tuple[Cell, ...]] = []
    off: dict[str, list[float]] = {}
    inside = 0
    for one in found:
        error = loss_of(others(one, found))
        times = {count: ends(predicted(one, count, error)) for count in one.several}
        kept = sum(times[count].low <= one.gain(count) <= times[count].high for count in times)
        inside += kept
        own = off.setdefault(one.summed_by, [])
        own += [float(np.log(times[count].seconds / one.gain(count))) for count in times]
        lines.append(
            (
                text_cell(one.network),
                count_cell(one.batch),
                text_cell(one.card),
                text_cell(one.machine),
                text_cell(one.summed_by),
                text_cell(one.link),
                *(cell for count in gpus for cell in _cells(one, count, times.get(count))),
                Cell(f"{kept} of {len(times)}", kept),
            )
        )
    every = sum(map(len, off.values()))
    notes = [
        f"{inside} of {every} lie in the band. Predicted speedups are off by a factor of "
        f"{_errors(one for own in off.values() for one in own)}; those of {_OURS}, which alone "
        f"sums as the model does, of {_errors(off[_OURS])}."
        if _OURS in off
        else f"{inside} of {every} lie in the band.",
        "Batch: on each GPU. Times on one GPU are as published.",
    ]
    title = "Published trainings on several GPUs: times as fast as one"
    return Table(title, columns, tuple(lines), tuple(notes))


def _columns(gpus: int) -> tuple[Column, ...]:
    group = f"{gpus} GPUs"
    return (
        Column(f"published_{gpus}", "published", numeric=True, group=group),
        Column(f"predicted_{gpus}", "predicted", numeric=True, group=group),
        Column(f"low_{gpus}", "from", numeric=True, group=group, for_programs=True),
        Column(f"high_{gpus}", "to", numeric=True, group=group, for_programs=True),
    )


def _cells(one: Scaling, gpus: int, times: Times | None) -> tuple[Cell, ...]:
    if times is None:
        return (NOTHING,) * 4
    values = (one.gain(gpus), times.seconds, times.low, times.high)
    return tuple(number_cell(value, 3) for value in values)


def _errors(logs: Iterable[float]) -> str:
    off = np.exp(np.abs(list(logs)))
    return f"{np.median(off):.2f} (median) and {off.max():.2f} (worst)"
