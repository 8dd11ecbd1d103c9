# SPDX-License-Identifier: Apache-2.0
"""The advice on a network in words: the fastest prediction of each side, and where they meet."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

from plots import units
from plots.core.cost import Cost
from plots.core.tables.cells import seconds_cell, text_cell
from plots.core.tables.table import Cell, Column, Table
from plots.features.advise.analysis import FARTHEST, Prediction, Series, best, predict

# By which hidden layers are widened or narrowed to find where the other side wins.
_FACTORS = [2.0**power for power in range(-8, 9)]


def advice_table(
    machine: str,
    cost: Cost,
    predictions: Sequence[Prediction],
    problems: Sequence[str],
    meeting: str = "",
) -> Table:
    """`predictions` for `cost`, at least one, under the advice as the title; `meeting` is a
    sentence on where the sides meet, `problems` say which series have no prediction."""
    notes = [note for note in (meeting, *(_beyond(item) for item in predictions)) if note]
    notes += [_method(item.series) for item in predictions[:1]]
    notes += [f"No prediction for {text}." for text in problems]
    lines = tuple(_line(item) for item in sorted(predictions, key=lambda item: item.seconds))
    return Table(
        title=f"{cost.model} in batches of {cost.batch:,.0f}, on {machine}: {advice(predictions)}",
        columns=(
            Column("on", "on"),
            Column("epoch_seconds", "epoch", numeric=True),
            Column("low_seconds", "from", numeric=True),
            Column("high_seconds", "to", numeric=True),
            Column("step_seconds", "step", numeric=True),
            Column("networks", "networks", numeric=True),
            Column("typical_error_percent", "typical error", numeric=True),
        ),
        lines=lines,
        notes=tuple(dict.fromkeys(notes)),
    )


def advice(predictions: Sequence[Prediction]) -> str:
    """Where to train, in one sentence without its end; `predictions` are one at least."""
    cpu, gpu = best(predictions, on_cpu=True), best(predictions, on_cpu=False)
    if cpu is None or gpu is None:
        only, other = (cpu, "GPU") if cpu else (gpu, "CPU")
        assert only is not None
        return f"{_banded(only)} with {_named(only)}; the file has no times of the {other}"
    first, second = sorted((cpu, gpu), key=lambda item: item.seconds)
    if first.high < second.low:
        device = "CPU" if first is cpu else "GPU"
        return (
            f"train it on the {device}: {_banded(first, _named(first))} "
            f"against {_banded(second, _named(second))}"
        )
    return (
        f"too close to call: {_banded(first, _named(first))} and "
        f"{_banded(second, _named(second))}, and the error bands overlap; measure it with ./run"
    )


def meeting(series: Sequence[Series], cost: Cost, scaled: Callable[[float], Cost | None]) -> str:
    """From what size on the other side would win, as a sentence; empty where that is not known.

    `scaled(factor)` is the cost of the network with its hidden layers that many times as wide.
    """
    found = []
    for factor in _FACTORS:
        other = cost if factor == 1 else scaled(factor)
        speed_up = _speed_up(series, other) if other else None
        if other is not None and speed_up is not None:
            found.append((other.params, math.log(speed_up), factor))
    points = sorted(found)
    here = next((log for params, log, factor in points if factor == 1), None)
    if here is None:
        return ""
    crossings = []
    for (low, before, _), (high, after, _) in pairwise(points):
        if (before > 0) != (after > 0):
            share = before / (before - after)
            crossings.append(low * (high / low) ** share)
    if not crossings:
        device = "GPU" if here > 0 else "CPU"
        low, high = points[0][0], points[-1][0]
        return (
            f"With wider or narrower hidden layers the {device} stays ahead from "
            f"{units.count(low)} to {units.count(high)} parameters, the range of the prediction."
        )
    nearest = min(crossings, key=lambda params: abs(math.log(params / cost.params)))
    winner = "CPU" if here > 0 else "GPU"
    size = f"{units.significant(nearest, 2)} parameters"
    where = f"from about {size}" if nearest > cost.params else f"below about {size}"
    return (
        f"With wider or narrower hidden layers the {winner} would win {where}; this network has "
        f"{units.count(cost.params)}."
    )


def _speed_up(series: Sequence[Series], cost: Cost) -> float | None:
    """Time of the fastest CPU series over that of the fastest GPU series."""
    answers = [predict(item, cost) for item in series]
    predictions = [item for item in answers if isinstance(item, Prediction)]
    cpu, gpu = best(predictions, on_cpu=True), best(predictions, on_cpu=False)
    return cpu.seconds / gpu.seconds if cpu and gpu else None


def _named(prediction: Prediction) -> str:
    return prediction.series.label


def _banded(prediction: Prediction, name: str = "") -> str:
    band = " to ".join(units.seconds_ends(prediction.low, prediction.high, 2))
    band += f"; {name}" if name else ""
    return f"{units.seconds(prediction.seconds, 2)} per epoch ({band})"


def _line(item: Prediction) -> tuple[Cell, ...]:
    series = item.series
    error = 100 * series.typical_error
    return (
        text_cell(series.label),
        seconds_cell(item.seconds, 2),
        seconds_cell(item.low, 2),
        seconds_cell(item.high, 2),
        seconds_cell(item.seconds / item.steps, 2),
        Cell(str(len(series.residuals)), len(series.residuals)),
        Cell(f"{units.significant(error, 2)} %", error),
    )


def _beyond(item: Prediction) -> str:
    if item.beyond <= 1.0:
        return ""
    return (
        f"{item.series.label}: the network is {units.significant(item.beyond, 2)} times beyond the "
        f"measured range, so the band is wider; beyond {FARTHEST:g} times there is no prediction."
    )


def _method(series: Series) -> str:
    calls = "matrix products" if "products" in series.features else "launches"
    return (
        f"Predicted from the counts of bench --cost ({calls}, rows, operations, bytes) with "
        f"weights fitted to the file's rows; the band covers {100 * series.coverage:.0f} % of "
        "networks like the measured ones, each left out of the fit in turn (docs/method/advice.md)."
    )
