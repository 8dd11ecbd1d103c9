# SPDX-License-Identifier: Apache-2.0
"""A network on cards that were not measured, beside what is predicted of a file's CPU."""

from collections.abc import Sequence

from plots import units
from plots.core.cards import Card
from plots.core.cost import Cost
from plots.core.machines import short_gpu
from plots.core.tables.cells import seconds_cell, text_cell
from plots.core.tables.table import Cell, Column, Table
from plots.features.advise.analysis import Prediction, best
from plots.features.predict.analysis import NOT_MEASURED, Times, predict_times
from plots.features.predict.fit import Fit, band_notes
from plots.features.predict.ways import WAYS


def advised_cards_table(
    machine: str, cost: Cost, fit: Fit, cards: Sequence[Card], predictions: Sequence[Prediction]
) -> Table:
    """An epoch of `cost` on each of `cards` in each way; `predictions` are those of the file, whose
    fastest CPU each is compared with, if there is one."""
    cpu = best(predictions, on_cpu=True)
    lines, reasons = [], []
    for card in cards:
        for way in WAYS:
            steps = float(cost.fields["steps"])
            answer = predict_times(fit, cost, card, way, steps)
            if isinstance(answer, str):
                reasons.append(f"No prediction on {card.id}: {answer}.")
                continue
            name = Cell(short_gpu(card.name), card.id)
            how = (text_cell(way.execution), text_cell(way.data))
            times = (answer.seconds, answer.low, answer.high, answer.seconds / steps)
            lines.append(
                (
                    name,
                    *how,
                    *(seconds_cell(each, 2) for each in times),
                    Cell("no", 0),
                    _winner(answer, cpu),
                )
            )
    columns = (
        Column("card", "card"),
        Column("execution", "execution"),
        Column("data", "data"),
        Column("epoch_seconds", "epoch", numeric=True),
        Column("low_seconds", "from", numeric=True),
        Column("high_seconds", "to", numeric=True),
        Column("step_seconds", "step", numeric=True),
        Column("measured", "measured", for_programs=True),
        Column("winner", "faster"),
    )
    against = f", against the CPU of {machine}" if cpu else ""
    title = (
        f"{cost.model} in batches of {cost.batch:,.0f} on cards{against}; the cards' times are "
        f"{NOT_MEASURED}"
    )
    notes = list(dict.fromkeys(reasons))
    if cpu:
        notes.insert(0, f"{cpu.series.label}: {units.seconds(cpu.seconds, 2)} an epoch, predicted.")
    return Table(title, columns, tuple(lines), (*notes, *band_notes(fit, cost.precision)))


def _winner(times: Times, cpu: Prediction | None) -> Cell:
    """The side whose whole band is below the other's."""
    if cpu is not None and times.high < cpu.low:
        return Cell("GPU", "gpu", bold=True)
    if cpu is not None and cpu.high < times.low:
        return Cell("CPU", "cpu", bold=True)
    return Cell("not sure" if cpu else "–", None)
