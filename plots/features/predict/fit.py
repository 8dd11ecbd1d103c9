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
from plots.features.predict.model import EXPECTED, PARAMETERS, SPREADS, Stack

# Measured ones, from which the band is theirs alone. One card tells nothing of another.
FEWEST_NETWORKS = 6
FEWEST_CARDS = 2
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
    or both were left out of the fit. `scores` hold for each network its largest |residual| with
    both left out; `band` is half the width of the error band, as a logarithm, and covers `coverage`
    of networks like these. `measured` tells whether scores are of measured rows.
    """

    parameters: np.ndarray
    observations: tuple[Observation, ...]
    residuals: dict[Left, np.ndarray]
    scores: dict[str, float]
    band: float
    coverage: float
    measured: bool

    @property
    def scored(self) -> list[Observation]:
        """The observations that the band is earned on."""
        return [one for one in self.observations if (one.kind == "measured") == self.measured]

    @property
    def factor(self) -> float:
        """By what the band goes up and down."""
        return math.exp(self.band)


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
        if (one.kind == "measured") == measured:
            scores[one.network] = max(scores.get(one.network, 0.0), abs(float(residual)))
    band, coverage = conformal(list(scores.values()))
    return Fit(
        parameters=_fitted(observations, stack, logs),
        observations=tuple(observations),
        residuals=residuals,
        scores=scores,
        band=band,
        coverage=coverage,
        measured=measured,
    )


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


def unseen(fitted: Fit, points: Sequence[Observation]) -> np.ndarray:
    """log(predicted / observed) of `points`, which are in no fit, each predicted from observations
    of other networks on other cards."""
    return _residuals(points, fitted.observations, "both")


def _left_out(observations: Sequence[Observation], left: Left) -> np.ndarray:
    """log(predicted / observed) of each, without those that share with it what is `left` out."""
    return _residuals(observations, observations, left)


def _residuals(
    points: Sequence[Observation], observations: Sequence[Observation], left: Left
) -> np.ndarray:
    keeps: dict[Left, Callable[[Observation, Observation], bool]] = {
        "card": lambda one, other: other.card != one.card,
        "network": lambda one, other: other.network != one.network,
        "both": lambda one, other: other.card != one.card and other.network != one.network,
    }
    fitted: dict[tuple[int, ...], np.ndarray] = {}
    found = []
    for one in points:
        kept = tuple(i for i, other in enumerate(observations) if keeps[left](one, other))
        if kept not in fitted:
            fitted[kept] = parameters_of([observations[i] for i in kept])
        stack, log = _stacked([one])
        found.append(float(stack.log_seconds(fitted[kept])[0] - log[0]))
    return np.array(found)


def band_notes(fit: Fit, precision: str = "f32") -> tuple[str, ...]:
    """What the band is worth, and where it is from."""
    cards: dict[str, set[str]] = {}
    for one in fit.scored:
        cards.setdefault(one.network, set()).add(one.card)
    counts = [len(own) for own in cards.values()]
    within = sum(score <= fit.band for score in fit.scores.values())
    kinds = "measured rows" if fit.measured else "published times"
    factor = units.significant(fit.factor, 2)
    notes = [
        f"These cards were not measured on this machine. The band is a factor of {factor} up and "
        f"down: {within} of {len(cards)} networks, each on {min(counts)} to {max(counts)} cards, "
        f"were at most that far off where they and the card were left out of the fit to {kinds}, "
        f"so it covers {100 * fit.coverage:.0f} % of networks like these "
        "(docs/method/prediction.md)."
    ]
    if not fit.measured:
        notes.append(
            "To it comes what launches, waits and copies take, from the least to the most that "
            "others published: that decides for small networks, and is not tested."
        )
    if precision != "f32":
        tested = len({one.network for one in fit.scored if one.precision == precision})
        networks = "network" if tested == 1 else "networks"
        notes.append(f"In {precision} the band was tested on {tested or 'no'} {networks}.")
    return tuple(notes)
