# SPDX-License-Identifier: Apache-2.0
"""Fits the model of model.py, and earns its band: how far off it is where it was not fitted.

docs/method/prediction.md says what is left out, and what came of it.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from plots import units
from plots.core.statistics import conformal
from plots.features.predict.data import Observation
from plots.features.predict.model import CEILINGS, EXPECTED, PARAMETERS, SPREADS, Stack
from plots.features.predict.simulate import Error
from plots.features.predict.ways import OURS, published

# Measured ones, from which the band is theirs alone. One card tells nothing of another.
FEWEST_NETWORKS = 6
FEWEST_CARDS = 2
MATRIX_UNITS = "matrix units"  # all precisions on them together
Left = Literal["card", "network", "both"]
LEFT: tuple[Left, ...] = ("card", "network", "both")
# By how much an observation may well differ from the model, as a logarithm: what others published
# has their software in it, and is not of our networks to the last operation.
_SPREAD = {"published": 0.3, "measured": 0.1}
_NAMES = [parameter.name for parameter in PARAMETERS]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The model as fitted to `observations`.

    `residuals[left]` are log(predicted / observed) of each observation where its card, its network,
    or both were left out of the fit. `errors` have for each precision what those with both left out
    say of a card more. Where `measured` rows take over, `scores` hold for each of their networks
    its largest |residual|, and `band`, half the width of the band of whole times as a logarithm,
    covers `coverage` of networks like these.
    """

    parameters: np.ndarray
    observations: tuple[Observation, ...]
    residuals: dict[Left, np.ndarray]
    errors: dict[str, Error]
    measured: bool
    scores: dict[str, float]
    band: float
    coverage: float

    @property
    def scored(self) -> list[Observation]:
        """The observations that the band is earned on."""
        return [one for one in self.observations if (one.kind == "measured") == self.measured]

    @property
    def factor(self) -> float:
        """By what the band of whole times goes up and down."""
        return math.exp(self.band)

    def error(self, precision: str) -> Error:
        """Of the time that a card computes in `precision`; in one that nobody timed, of all
        precisions on matrix units."""
        return self.errors.get(precision) or self.errors[MATRIX_UNITS]


def fit(observations: Sequence[Observation]) -> Fit:
    """The fit to `observations`, of two networks and two cards at least."""
    stack, logs = _stacked(observations)
    residuals = {left: _left_out(observations, left) for left in LEFT}
    own = [one for one in observations if one.kind == "measured"]
    measured = (
        len({one.network for one in own}) >= FEWEST_NETWORKS
        and len({one.card for one in own}) >= FEWEST_CARDS
    )
    scores: dict[str, float] = {}
    for one, residual in zip(observations, residuals["both"], strict=True):
        if measured and one.kind == "measured":
            scores[one.network] = max(scores.get(one.network, 0.0), abs(float(residual)))
    band, coverage = conformal(list(scores.values())) if scores else (math.nan, math.nan)
    return Fit(
        parameters=_fitted(observations, stack, logs),
        observations=tuple(observations),
        residuals=residuals,
        errors=_errors(observations, residuals["both"]),
        measured=measured,
        scores=scores,
        band=band,
        coverage=coverage,
    )


def off_by_card(
    observations: Sequence[Observation], residuals: np.ndarray, precision: str
) -> dict[str, np.ndarray]:
    """The residuals of published times in `precision`, or on all matrix units, of each card."""
    found: dict[str, list[float]] = {}
    for one, residual in zip(observations, residuals.tolist(), strict=True):
        alike = one.precision == precision or (precision == MATRIX_UNITS and one.precision != "f32")
        if one.kind == "published" and alike:
            found.setdefault(one.card, []).append(residual)
    return {card: np.array(own) for card, own in found.items()}


def spread_of(cards: Iterable[np.ndarray]) -> Error:
    """What the residuals of cards say of one more: the card is what varies, and all that it trains
    varies with it, so that each card counts once however many times it has."""
    squares = [float(np.mean(own**2)) for own in cards]
    return Error(math.sqrt(float(np.mean(squares))), len(squares))


def _errors(observations: Sequence[Observation], residuals: np.ndarray) -> dict[str, Error]:
    found = {}
    for precision in (*CEILINGS, MATRIX_UNITS):
        cards = off_by_card(observations, residuals, precision)
        if len(cards) >= FEWEST_CARDS:
            found[precision] = spread_of(cards.values())
    return found


def parameters_of(observations: Sequence[Observation]) -> np.ndarray:
    """The parameters that fit `observations` best; what is expected of them where there is none."""
    return _fitted(observations, *_stacked(observations)) if observations else EXPECTED


def _stacked(observations: Iterable[Observation]) -> tuple[Stack, np.ndarray]:
    chosen = list(observations)
    return Stack([one.demand for one in chosen]), np.log([one.seconds for one in chosen])


def _fitted(observations: Sequence[Observation], stack: Stack, logs: np.ndarray) -> np.ndarray:
    """Least squares of logarithms, robust against what is far off, drawn to what is expected."""
    from scipy.optimize import least_squares  # noqa: PLC0415 (takes long to load)

    kinds = {one.kind for one in observations}
    spreads = np.array([_SPREAD[one.kind] for one in observations])
    # Only beside measured rows can it be known how much the software of others takes.
    free = np.array([name != "software" or kinds == {"published", "measured"} for name in _NAMES])

    def full(values: np.ndarray) -> np.ndarray:
        parameters = EXPECTED.copy()
        parameters[free] = values
        return parameters

    def off(values: np.ndarray) -> np.ndarray:
        data = (stack.log_seconds(full(values)) - logs) / spreads
        return np.concatenate([data, (values - EXPECTED[free]) / SPREADS[free]])

    def slope(values: np.ndarray) -> np.ndarray:
        data = stack.jacobian(full(values))[:, free] / spreads[:, None]
        return np.concatenate([data, np.diag(1 / SPREADS[free])])

    return full(least_squares(off, EXPECTED[free], slope, loss="soft_l1").x)


def parameters_without(fitted: Fit, point: Observation) -> np.ndarray:
    """Those that fit the observations of other networks on other cards than that of `point`."""
    return parameters_of(
        [
            one
            for one in fitted.observations
            if one.network != point.network and one.card != point.card
        ]
    )


def _left_out(observations: Sequence[Observation], left: Left) -> np.ndarray:
    """log(predicted / observed) of each, without those that share with it what is `left` out."""
    keeps: dict[Left, Callable[[Observation, Observation], bool]] = {
        "card": lambda one, other: other.card != one.card,
        "network": lambda one, other: other.network != one.network,
        "both": lambda one, other: other.card != one.card and other.network != one.network,
    }
    fitted: dict[tuple[int, ...], np.ndarray] = {}
    found = []
    for one in observations:
        kept = tuple(i for i, other in enumerate(observations) if keeps[left](one, other))
        if kept not in fitted:
            fitted[kept] = parameters_of([observations[i] for i in kept])
        stack, log = _stacked([one])
        found.append(float(stack.log_seconds(fitted[kept])[0] - log[0]))
    return np.array(found)


def band_notes(fit: Fit, precision: str = "f32", loop: str = OURS) -> tuple[str, ...]:
    """What the band is worth, for whom it is, and where it is from."""
    notes = [_measured_note(fit) if fit.measured and loop == OURS else _simulated_note()]
    if loop == OURS:
        notes.append(
            "It is for this program. PyTorch starts each operation from Python, which takes "
            f"{_ends('torch_operation')} where a node of a graph takes {_ends('graph_node')}, so "
            "that there a GPU wins from a larger network on: predict --as=pytorch."
        )
    else:
        notes.append(
            "It is for PyTorch's eager loop on the GPU, whose operations Python starts one by one, "
            "against this program on the CPU; the processor decides how long that takes."
        )
    if precision not in fit.errors:
        notes.append(
            f"Nobody's times in {precision} were found; the error is that of other 16-bit and tf32 "
            "times."
        )
    return tuple(notes)


def _ends(id: str) -> str:
    band = published(id)
    return " to ".join(units.seconds_ends(band.low, band.high, 2))


def _measured_note(fit: Fit) -> str:
    cards: dict[str, set[str]] = {}
    for one in fit.scored:
        cards.setdefault(one.network, set()).add(one.card)
    counts = [len(own) for own in cards.values()]
    within = sum(score <= fit.band for score in fit.scores.values())
    factor = units.significant(fit.factor, 2)
    return (
        f"These cards were not measured on this machine. The band is a factor of {factor} up and "
        f"down: {within} of {len(cards)} networks, each on {min(counts)} to {max(counts)} cards, "
        f"were at most that far off where they and the card were left out of the fit to measured "
        f"rows, so it covers {100 * fit.coverage:.0f} % of networks like these "
        "(docs/method/prediction.md)."
    )


def _simulated_note() -> str:
    return (
        "These cards were not measured on this machine. The band holds 90 % of simulated cards, on "
        "which computing, launches and waits vary independently, as far as published times do; "
        "no whole step of a small network on such a card was there to test it on "
        "(docs/method/prediction.md)."
    )
