# SPDX-License-Identifier: Apache-2.0
"""How well the model predicts what it was not fitted to, as tables."""

import math
from collections.abc import Sequence

import numpy as np

from plots import units
from plots.core.cards import Card, load_cards
from plots.core.costs import find_cost
from plots.core.tables.cells import count_cell, seconds_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.predict.analysis import Times, predict_times
from plots.features.predict.data import Observation, published_points
from plots.features.predict.fit import LEFT, Fit, fit, unseen
from plots.features.predict.model import PARAMETERS

_LEFT = {
    "card": "the card",
    "network": "the network",
    "both": "both the card and the network",
}


def left_out_table(fitted: Fit) -> Table:
    """The errors where card, network or both were left out of the fit."""
    columns = (
        Column("left_out", "left out of the fit"),
        Column("observations", "times", numeric=True),
        Column("median_factor", "median", numeric=True, group="off by a factor of"),
        Column("worst_factor", "worst", numeric=True, group="off by a factor of"),
        Column("worst", "the worst"),
    )
    lines = []
    for left in LEFT:
        off = np.abs(fitted.residuals[left])
        worst = fitted.observations[int(off.argmax())]
        lines.append(
            (
                Cell(_LEFT[left], left),
                Cell(str(len(off)), len(off)),
                _factor(float(np.median(off))),
                _factor(float(off.max())),
                text_cell(f"{worst.network} on {worst.card}"),
            )
        )
    title = "Predictions of what was not in the fit"
    return Table(title, columns, tuple(lines), (_made_of(fitted),))


def networks_left_out_table(fitted: Fit) -> Table:
    """Of each network the errors of all its times, with it and the card left out."""
    columns = (
        Column("network", "network"),
        Column("observations", "times", numeric=True),
        Column("low", "fastest", numeric=True, group="predicted over observed"),
        Column("high", "slowest", numeric=True, group="predicted over observed"),
        Column("score", "off by at most", numeric=True),
    )
    lines = []
    for network, score in sorted(fitted.scores.items(), key=lambda item: item[1]):
        own = [
            residual
            for one, residual in zip(fitted.observations, fitted.residuals["both"], strict=True)
            if one.network == network and one in fitted.scored
        ]
        lines.append(
            (
                text_cell(network),
                Cell(str(len(own)), len(own)),
                _factor(min(own)),
                _factor(max(own)),
                _factor(score),
            )
        )
    title = "Networks, each predicted without it and without the card"
    note = (
        f"The band is a factor of {units.significant(fitted.factor, 3)}, and covers "
        f"{100 * fitted.coverage:.1f} % of networks like these."
    )
    return Table(title, columns, tuple(lines), (note,))


def parameters_table(fitted: Fit) -> Table:
    """What the parameters were expected to be, and what the fit found."""
    columns = (
        Column("parameter", "parameter"),
        Column("low", "from", numeric=True, group="expected"),
        Column("expected", "value", numeric=True, group="expected"),
        Column("high", "to", numeric=True, group="expected"),
        Column("fitted", "fitted", numeric=True),
        Column("meaning", "meaning"),
    )
    lines = []
    for parameter, value in zip(PARAMETERS, fitted.parameters.tolist(), strict=True):
        numbers = (
            parameter.expected - parameter.spread,
            parameter.expected,
            parameter.expected + parameter.spread,
            value,
        )
        plain = [number if parameter.is_exponent else math.exp(number) for number in numbers]
        seconds = parameter.name == "operation"
        cells = [
            Cell(units.seconds(number, 2) if seconds else units.significant(number, 2), number)
            for number in plain
        ]
        if value == parameter.expected:  # nothing that was observed depends on it
            cells[-1] = NOTHING
        lines.append((text_cell(parameter.name), *cells, text_cell(parameter.meaning)))
    return Table("Parameters of the prediction", columns, tuple(lines))


def before_table(fitted: Fit) -> Table | None:
    """What was predicted of measured rows from published times alone; None without any."""
    found = [one for one in fitted.observations if one.kind == "measured"]
    if not found:
        return None
    before = fit([one for one in fitted.observations if one.kind == "published"])
    cards = load_cards()
    columns = (
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("precision", "precision"),
        Column("card", "card"),
        Column("seconds", "measured now", numeric=True),
        Column("predicted_seconds", "before", numeric=True, group="predicted"),
        Column("low_seconds", "from", numeric=True, group="predicted"),
        Column("high_seconds", "to", numeric=True, group="predicted"),
        Column("in_band", "in the band"),
        Column("where", "where"),
    )
    lines = tuple(_before_line(one, before, cards[one.card]) for one in found)
    inside = sum(line[-2].value == 1 for line in lines)
    note = f"{inside} of {len(found)} lie in the band that published times alone have given."
    return Table("Predicted before, measured now: training steps", columns, lines, (note,))


def _before_line(one: Observation, before: Fit, card: Card) -> tuple[Cell, ...]:
    cost = find_cost(one.network, one.batch, one.precision)
    assert cost is not None and one.way is not None  # as in measured()
    times = predict_times(before, cost, card, one.way, one.steps)
    assert isinstance(times, Times)
    low, point, high = (each / one.steps for each in (times.low, times.seconds, times.high))
    inside = low <= one.seconds <= high
    return (
        text_cell(one.network),
        count_cell(one.batch),
        text_cell(one.precision),
        text_cell(one.card),
        seconds_cell(one.seconds),
        *(Cell(units.seconds(each, 2), each) for each in (point, low, high)),
        Cell("yes" if inside else "no", int(inside)),
        text_cell(one.label),
    )


def points_table(fitted: Fit, points: Sequence[Observation]) -> Table:
    """The published comparisons of a CPU with a known card, predicted without their network and
    card."""
    columns = (
        Column("experiment", "experiment"),
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("card", "card"),
        Column("seconds", "published step", numeric=True),
        Column("predicted_seconds", "predicted", numeric=True),
        Column("factor", "predicted over published", numeric=True),
        Column("in_band", "in the band"),
    )
    residuals = unseen(fitted, points).tolist()
    lines = tuple(
        (
            text_cell(one.label),
            text_cell(one.network),
            count_cell(one.batch),
            text_cell(one.card),
            seconds_cell(one.seconds),
            *_predicted(one, residual, fitted),
        )
        for one, residual in zip(points, residuals, strict=True)
    )
    inside = sum(abs(residual) <= fitted.band for residual in residuals)
    factor = units.significant(fitted.factor, 2)
    note = f"{inside} of {len(points)} lie within a factor of {factor}."
    return Table("Published comparisons of a CPU with a GPU, predicted", columns, lines, (note,))


def _predicted(one: Observation, residual: float, fitted: Fit) -> tuple[Cell, ...]:
    seconds = one.seconds * math.exp(residual)
    inside = abs(residual) <= fitted.band
    return (
        Cell(units.seconds(seconds, 2), seconds),
        _factor(residual),
        Cell("yes" if inside else "no", int(inside)),
    )


def check_tables(fitted: Fit) -> list[Table]:
    """All of them."""
    tables = [left_out_table(fitted), networks_left_out_table(fitted)]
    tables += [points_table(fitted, published_points()), parameters_table(fitted)]
    before = before_table(fitted)
    return [*tables, before] if before else tables


def _made_of(fitted: Fit) -> str:
    def some(observations: Sequence[Observation], kind: str) -> str:
        networks = len({one.network for one in observations})
        cards = len({one.card for one in observations})
        return f"{len(observations)} {kind} times of {networks} networks on {cards} cards"

    parts = [
        some(own, kind)
        for kind in ("published", "measured")
        if (own := [one for one in fitted.observations if one.kind == kind])
    ]
    return f"Fitted to {' and '.join(parts)}."


def _factor(log: float) -> Cell:
    return Cell(f"{math.exp(log):.2f}", math.exp(log))
