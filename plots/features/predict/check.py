# SPDX-License-Identifier: Apache-2.0
"""How well the model predicts what it was not fitted to, as tables."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from plots import units
from plots.core.cards import Card, load_cards, overheads
from plots.core.costs import find_cost
from plots.core.tables.cells import count_cell, seconds_cell, text_cell
from plots.core.tables.table import NOTHING, Cell, Column, Table
from plots.features.predict.analysis import predict_times
from plots.features.predict.check_scaling import scaling_table
from plots.features.predict.data import Observation, published_points
from plots.features.predict.fit import (
    Fit,
    errors_of,
    fit,
    is_network,
    parameters_without,
)
from plots.features.predict.floors import several
from plots.features.predict.model import CEILINGS, PARAMETERS
from plots.features.predict.products import KERNELS, NETWORK
from plots.features.predict.scaling import load_scaling
from plots.features.predict.simulate import Error, Errors, Times
from plots.features.predict.ways import PYTORCH, Way

_SINGLE = tuple(f"{kind} in {precision}" for kind in (NETWORK, KERNELS) for precision in CEILINGS)
_FRAMEWORK = Way("eager", "resident", PYTORCH)
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
    for left, residuals in fitted.residuals.items():
        off = np.abs(residuals)
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
    found: dict[str, list[float]] = {}
    for one, residual in zip(fitted.observations, fitted.residuals["both"], strict=True):
        if one in fitted.scored:
            found.setdefault(one.network, []).append(float(residual))
    lines = [
        (
            text_cell(network),
            Cell(str(len(own)), len(own)),
            _factor(min(own)),
            _factor(max(own)),
            _factor(max(map(abs, own))),
        )
        for network, own in sorted(found.items(), key=lambda item: max(map(abs, item[1])))
    ]
    title = "Networks, each predicted without it and without the card"
    notes = ()
    if fitted.measured:
        notes = (
            f"The band is a factor of {units.significant(fitted.factor, 3)}, and covers "
            f"{100 * fitted.coverage:.1f} % of networks like these.",
        )
    return Table(title, columns, tuple(lines), notes)


def cards_left_out_table(fitted: Fit) -> Table:
    """Of each card and precision the errors of all its times, with it and the network left out, and
    whether they lie in the band that the other cards give."""
    columns = (
        Column("precision", "of"),
        Column("card", "card"),
        Column("observations", "times", numeric=True),
        Column("low", "fastest", numeric=True, group="predicted over observed"),
        Column("high", "slowest", numeric=True, group="predicted over observed"),
        Column("band", "band of the others", numeric=True),
        Column("inside", "times in it", numeric=True),
    )
    lines, notes = [], []
    every = fitted.observations
    found = [
        (one, residual, share)
        for one, residual, share in zip(
            every, fitted.residuals["both"].tolist(), fitted.shares, strict=True
        )
        if one.kind == "published"
    ]
    without = {
        card: errors_of(*zip(*(each for each in found if each[0].card != card), strict=True))
        for card in dict.fromkeys(one.card for one, *_ in found)
    }
    for sort in (*CEILINGS, *_SINGLE):
        alike = [each for each in found if _sort(each[0]) == sort]
        kept = times = 0
        for card in dict.fromkeys(one.card for one, *_ in alike):
            own = [
                (off, _half(without[card], one, share))
                for one, off, share in alike
                if one.card == card
            ]
            inside = sum(abs(off) <= half for off, half in own)
            kept += inside == len(own)
            times += inside
            lines.append(
                (
                    text_cell(sort),
                    text_cell(card),
                    Cell(str(len(own)), len(own)),
                    _factor(min(off for off, _ in own)),
                    _factor(max(off for off, _ in own)),
                    _factor(max(half for _, half in own)),
                    Cell(f"{inside} of {len(own)}", inside),
                )
            )
        if not alike:
            continue
        cards = len({one.card for one, *_ in alike})
        halves = [_half(fitted.errors, one, share) for one, _, share in alike]
        least, most = (math.exp(end) for end in (min(halves), max(halves)))
        mean = math.exp(float(np.mean([off for _, off, _ in alike])))
        notes.append(
            f"{sort}: {times} of {len(alike)} times; {_covered(kept, cards, 'card', 'all')}. "
            f"The band of a card more is a factor of {least:.2f} to {most:.2f}; predicted over "
            f"observed is {mean:.2f} in the geometric mean."
        )
    title = "Cards, each predicted without it and without the network"
    return Table(title, columns, tuple(lines), tuple(notes))


def _sort(one: Observation) -> str:
    return one.precision if is_network(one) else f"{one.network} in {one.precision}"


def _half(errors: Errors, one: Observation, share: np.ndarray) -> float:
    return errors.half_width(*share.tolist(), whole=float(is_network(one)))


def errors_table(fitted: Fit) -> Table:
    """What varies of a card's work, independently of each other."""
    columns = (
        Column("error", "of"),
        Column("spread", "spread", numeric=True),
        Column("factor", "90 % within", numeric=True),
        Column("cards", "networks or cards", numeric=True),
    )
    named = (
        ("all that a network computes", fitted.errors.whole),
        ("arithmetic", fitted.errors.arithmetic),
        ("traffic of memory", fitted.errors.memory),
    )
    lines = tuple(
        (
            text_cell(name),
            _factor(one.spread),
            _factor(one.half_width),
            Cell(str(one.cards), one.cards),
        )
        for name, one in named
    )
    return Table("Errors of a network or card more, each drawn by itself", columns, lines)


def floors_table() -> Table:
    """What each source says of small products, beside what the others foretell."""
    sources = overheads("product_inner")
    columns = (
        Column("source", "card"),
        Column("seconds", "measured", numeric=True, group="an entry of the inner dimension"),
        Column("predicted_seconds", "predicted", numeric=True, group="by the others"),
        Column("low_seconds", "from", numeric=True, group="by the others"),
        Column("high_seconds", "to", numeric=True, group="by the others"),
        Column("in_band", "in the band"),
    )
    lines = []
    for one in sources:
        inner = several([other for other in sources if other is not one])
        half = Error(inner.spread, inner.count).half_width
        seconds, ends = one.low_seconds, (math.exp(-half), math.exp(half))
        low, high = (inner.middle * end for end in ends)
        cells = [Cell(units.seconds(each, 2), each) for each in (seconds, inner.middle, low, high)]
        inside = low <= seconds <= high
        cells.append(Cell("yes" if inside else "no", int(inside)))
        lines.append((text_cell(one.note.split(":")[0]), *cells))
    kept = sum(line[-1].value == 1 for line in lines)
    note = f"{_covered(kept, len(lines), 'card')}."
    title = "Small products on cards, each predicted from the others"
    return Table(title, columns, tuple(lines), (note,))


def _covered(inside: int, count: int, noun: str, share: str = "") -> str:
    """How many of them, and what that says of a band that is meant to hold 90 %: the lower end of
    Clopper and Pearson's interval, a quantile of the beta distribution."""
    from scipy.stats import beta  # noqa: PLC0415 (takes long to load)

    least = beta.ppf(0.05, inside, count - inside + 1) if inside else 0.0
    with_share = f" with {share} their times" if share else ""
    return (
        f"{inside} of {count} {noun}s{with_share} lie in the band that the others give, so it "
        f"covers at least {100 * least:.0f} % (95 % sure)"
    )


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
        if (
            abs(value - parameter.expected) < 1e-3
        ):  # hardly anything that was observed depends on it
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
    """The published comparisons of a CPU with a known card, as the eager loop of a framework,
    predicted without their network and card."""
    columns = (
        Column("experiment", "experiment"),
        Column("network", "network"),
        Column("batch", "batch", numeric=True),
        Column("card", "card"),
        Column("seconds", "published step", numeric=True),
        Column("predicted_seconds", "step", numeric=True, group="predicted"),
        Column("low_seconds", "from", numeric=True, group="predicted"),
        Column("high_seconds", "to", numeric=True, group="predicted"),
        Column("in_band", "in the band"),
    )
    cards = load_cards()
    lines = []
    for one in points:
        cost = find_cost(one.network, one.batch, one.precision)
        assert cost is not None  # as in published_points()
        without = replace(fitted, parameters=parameters_without(fitted, one))
        times = predict_times(without, cost, cards[one.card], _FRAMEWORK, 1.0)
        assert isinstance(times, Times)
        inside = times.low <= one.seconds <= times.high
        each = (times.seconds, times.low, times.high)
        lines.append(
            (
                text_cell(one.label),
                text_cell(one.network),
                count_cell(one.batch),
                text_cell(one.card),
                seconds_cell(one.seconds),
                *(Cell(units.seconds(value, 2), value) for value in each),
                Cell("yes" if inside else "no", int(inside)),
            )
        )
    inside = sum(line[-1].value == 1 for line in lines)
    note = f"{inside} of {len(points)} lie in the band."
    title = "Published comparisons of a CPU with a GPU, predicted"
    return Table(title, columns, tuple(lines), (note,))


def check_tables(fitted: Fit) -> list[Table]:
    """All of them."""
    tables = [left_out_table(fitted), errors_table(fitted), cards_left_out_table(fitted)]
    tables += [networks_left_out_table(fitted), floors_table()]
    tables += [points_table(fitted, published_points()), parameters_table(fitted)]
    tables.append(scaling_table(load_scaling()))
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
