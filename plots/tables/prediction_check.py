# SPDX-License-Identifier: Apache-2.0
"""How well the model predicts what it was not fitted to, as tables."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from plots import units
from plots.analysis.predict_data import Observation, published_points
from plots.analysis.predict_fit import LEFT, Fit, unseen
from plots.analysis.predict_model import PARAMETERS
from plots.tables.table import NOTHING, Cell, Column, Table

_LEFT = {
    "card": "the card",
    "network": "the network",
    "both": "both the card and the network",
}


def left_out_table(fit: Fit) -> Table:
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
        off = np.abs(fit.residuals[left])
        worst = fit.observations[int(off.argmax())]
        lines.append(
            (
                Cell(_LEFT[left], left),
                Cell(str(len(off)), len(off)),
                _factor(float(np.median(off))),
                _factor(float(off.max())),
                _text(f"{worst.network} on {worst.card}"),
            )
        )
    return Table("Predictions of what was not in the fit", columns, tuple(lines), (_made_of(fit),))


def networks_left_out_table(fit: Fit) -> Table:
    """Of each network the errors of all its times, with it and the card left out."""
    columns = (
        Column("network", "network"),
        Column("observations", "times", numeric=True),
        Column("low", "fastest", numeric=True, group="predicted over observed"),
        Column("high", "slowest", numeric=True, group="predicted over observed"),
        Column("score", "off by at most", numeric=True),
    )
    lines = []
    for network, score in sorted(fit.scores.items(), key=lambda item: item[1]):
        own = [
            residual
            for one, residual in zip(fit.observations, fit.residuals["both"], strict=True)
            if one.network == network
        ]
        lines.append(
            (
                _text(network),
                Cell(str(len(own)), len(own)),
                _factor(min(own)),
                _factor(max(own)),
                _factor(score),
            )
        )
    title = "Networks, each predicted without it and without the card"
    note = (
        f"The band is a factor of {units.significant(fit.factor, 3)}, and covers "
        f"{100 * fit.coverage:.1f} % of networks like these."
    )
    return Table(title, columns, tuple(lines), (note,))


def parameters_table(fit: Fit) -> Table:
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
    for parameter, value in zip(PARAMETERS, fit.parameters.tolist(), strict=True):
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
        lines.append((_text(parameter.name), *cells, _text(parameter.meaning)))
    return Table("Parameters of the prediction", columns, tuple(lines))


def before_table(fit: Fit) -> Table | None:
    """What would have been predicted of measured rows, without their card; None without any."""
    found = [
        (one, residual)
        for one, residual in zip(fit.observations, fit.residuals["card"], strict=True)
        if one.kind == "measured"
    ]
    if not found:
        return None
    columns = (
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("precision", "precision"),
        Column("card", "card"),
        Column("seconds", "measured now", numeric=True),
        Column("predicted_seconds", "predicted before", numeric=True),
        Column("factor", "predicted over measured", numeric=True),
        Column("in_band", "in the band"),
        Column("where", "where"),
    )
    lines = [_before_line(one, float(residual), fit) for one, residual in found]
    inside = sum(abs(residual) <= fit.band for _, residual in found)
    note = f"{inside} of {len(found)} lie within a factor of {units.significant(fit.factor, 2)}."
    title = "Predicted before, measured now: training steps, each card left out of the fit"
    return Table(title, columns, tuple(lines), (note,))


def _before_line(one: Observation, residual: float, fit: Fit) -> tuple[Cell, ...]:
    return (
        _text(one.network),
        Cell(units.count(one.batch), one.batch),
        _text(one.precision),
        _text(one.card),
        Cell(units.seconds(one.seconds), one.seconds),
        *_predicted(one, residual, fit),
        _text(one.label),
    )


def points_table(fit: Fit, points: Sequence[Observation]) -> Table:
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
    residuals = unseen(fit, points).tolist()
    lines = tuple(
        (
            _text(one.label),
            _text(one.network),
            Cell(units.count(one.batch), one.batch),
            _text(one.card),
            Cell(units.seconds(one.seconds), one.seconds),
            *_predicted(one, residual, fit),
        )
        for one, residual in zip(points, residuals, strict=True)
    )
    inside = sum(abs(residual) <= fit.band for residual in residuals)
    note = f"{inside} of {len(points)} lie within a factor of {units.significant(fit.factor, 2)}."
    return Table("Published comparisons of a CPU with a GPU, predicted", columns, lines, (note,))


def _predicted(one: Observation, residual: float, fit: Fit) -> tuple[Cell, ...]:
    seconds = one.seconds * math.exp(residual)
    inside = abs(residual) <= fit.band
    return (
        Cell(units.seconds(seconds, 2), seconds),
        _factor(residual),
        Cell("yes" if inside else "no", int(inside)),
    )


def check_tables(fit: Fit) -> list[Table]:
    """All of them."""
    tables = [left_out_table(fit), networks_left_out_table(fit)]
    tables += [points_table(fit, published_points()), parameters_table(fit)]
    before = before_table(fit)
    return [*tables, before] if before else tables


def _made_of(fit: Fit) -> str:
    def some(observations: Sequence[Observation], kind: str) -> str:
        networks = len({one.network for one in observations})
        cards = len({one.card for one in observations})
        return f"{len(observations)} {kind} times of {networks} networks on {cards} cards"

    parts = [
        some(own, kind)
        for kind in ("published", "measured")
        if (own := [one for one in fit.observations if one.kind == kind])
    ]
    return f"Fitted to {' and '.join(parts)}."


def _factor(log: float) -> Cell:
    return Cell(f"{math.exp(log):.2f}", math.exp(log))


def _text(text: str) -> Cell:
    return Cell(text, text)
