# SPDX-License-Identifier: Apache-2.0
"""Fits the model of model.py, and earns its band: how far off it is where it was not fitted.

docs/evidence/prediction.md says what is left out.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crossover_bench.answers.predict import host
from crossover_bench.answers.predict.attention import FUSED, WRITTEN_OUT
from crossover_bench.answers.predict.data import KERNELS, PRODUCTS, Observation
from crossover_bench.answers.predict.model import EXPECTED, HALVES, PARAMETERS, SPREADS, Stack
from crossover_bench.answers.predict.simulate import Errors
from crossover_bench.answers.predict.ways import Estimate, published
from crossover_bench.curves.statistics import conformal
from crossover_bench.words import units

_SIMULATED = (
    "These cards were not measured on this machine. The band holds 90 % of simulated cards, on "
    "which computing, launches and waits vary independently, as far as published times do; "
    "small networks were measured on one card alone, an H200 (docs/method/prediction.md)."
)
# How such bands have done so far: docs/evidence/prediction.md#an-h200-after-it-was-predicted.
SO_FAR = (
    "On the one card that was measured afterwards, 44 of 94 rows lay in such a band; since then it "
    "was refitted."
)
_ATTENTION = {
    FUSED: "Attention is PyTorch's fused one; --attention=written-out has that of older programs.",
    WRITTEN_OUT: "Attention is written out: products, softmax and dropout.",
}
# Measured ones, from which the band is theirs alone. One card tells nothing of another.
FEWEST_NETWORKS = 6
FEWEST_CARDS = 2
# By how much an observation may well differ from the model, as a logarithm: what others published
# has their software in it, and is not of our networks to the last operation.
_SPREAD = {"published": 0.3, "measured": 0.1}
_NAMES = [parameter.name for parameter in PARAMETERS]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The model as fitted to `observations`.

    `residuals` are log(predicted / observed) of each observation where its card and its network
    were left out of the fit; `shares` how much of each time is arithmetic and traffic of memory.
    `errors` are what the residuals say of a network and a card more. Where measured rows take
    over, `scores` hold for each of their networks its largest |residual|.
    """

    parameters: np.ndarray
    observations: tuple[Observation, ...]
    residuals: np.ndarray
    shares: np.ndarray
    errors: Errors
    scores: dict[str, float]

    @property
    def measured(self) -> bool:
        """Whether measured rows take over."""
        return bool(self.scores)

    @property
    def band(self) -> tuple[float, float]:
        """Where they do: half the width of the band of whole times, as a logarithm, and the share
        of networks like these that it covers."""
        return conformal(list(self.scores.values()))

    @property
    def factor(self) -> float:
        """By which factor that band goes up and down."""
        return math.exp(self.band[0])

    @property
    def precisions(self) -> set[str]:
        """The precisions in which networks were timed."""
        return {step.precision for step in self.observations if is_network(step)}


def fit(observations: Sequence[Observation]) -> Fit:
    """The fit to `observations`, of two networks and two cards at least."""
    parameters = parameters_of(observations)
    parts = Stack([step.demand for step in observations]).parts(parameters)
    shares = parts[:, 1:] / np.maximum(parts.sum(axis=1), 1e-300)[:, None]
    residuals = left_out(observations, shares_card_or_network)
    errors = errors_of(observations, residuals, shares)
    cards, scores = set[str](), dict[str, float]()
    for step, residual in zip(observations, residuals, strict=True):
        if step.kind == "measured":
            cards.add(step.card)
            scores[step.network] = max(scores.get(step.network, 0.0), abs(float(residual)))
    if len(scores) < FEWEST_NETWORKS or len(cards) < FEWEST_CARDS:
        scores = {}
    return Fit(parameters, tuple(observations), residuals, shares, errors, scores)


def is_network(step: Observation) -> bool:
    """Whether it is of more than a single product or kernel."""
    return step.network not in (PRODUCTS, KERNELS)


def errors_of(
    observations: Sequence[Observation], residuals: np.ndarray, shares: np.ndarray
) -> Errors:
    """What the residuals of published times say of a network and a card more.

    The square of a residual is expected to be the sum of three squares, which are independent: of
    whole networks in f32, and of arithmetic and memory, each times the square of its share in the
    time. What varies is the network or, of single products and kernels, the card: each counts once
    in a precision, however many times it has. On matrix units a network has an error beside that of
    f32, which is as certain as the networks are many that were timed in such a precision.
    """
    from scipy.optimize import nnls  # noqa: PLC0415 (takes long to load)

    kinds: dict[tuple[str, str, str], list[np.ndarray]] = {}
    of_networks: dict[tuple[str, str], list[float]] = {}
    for step, residual, share in zip(observations, residuals, shares, strict=True):
        if step.kind != "published":
            continue
        if is_network(step):
            of_networks.setdefault((step.network, step.precision), []).append(float(residual))
        if step.precision == "f32" or not is_network(step):
            line = np.array([float(is_network(step)), *share**2, residual**2])
            card = "" if is_network(step) else step.card
            kinds.setdefault((step.network, step.precision, card), []).append(line)
    lines = np.array([np.mean(alike, axis=0) for alike in kinds.values()])
    squares, _ = nnls(lines[:, :-1], lines[:, -1])
    counts = [sum(not card for _, _, card in kinds)]
    for place in range(2):  # the cards whose times it makes up
        pairs = zip(observations, shares, strict=True)
        cards = {step.card for step, share in pairs if share[place] > 0.5}
        counts.append(max(len(cards), FEWEST_CARDS))
    whole, arithmetic, memory = map(Estimate, np.sqrt(squares).tolist(), counts)
    return Errors(whole, arithmetic, memory, _on_units(of_networks))


def _on_units(of_networks: Mapping[tuple[str, str], Sequence[float]]) -> dict[str, Estimate]:
    """How far a network's error is on matrix units from that in f32, by precision: from the mean
    residuals of each network and precision."""
    means = {key: float(np.mean(residuals)) for key, residuals in of_networks.items()}
    moved = {
        (network, precision): mean - means.get((network, "f32"), 0.0)
        for (network, precision), mean in means.items()
        if precision != "f32"
    }
    if not moved:
        return {}
    spread = math.sqrt(float(np.mean(np.square(list(moved.values())))))
    timed = {
        units: {network for network, precision in moved if precision in units}
        for units in (("tf32",), HALVES)
    }
    return {
        precision: Estimate(spread, max(len(networks), 1) + 1)
        for units, networks in timed.items()
        for precision in units
    }


def parameters_of(observations: Sequence[Observation]) -> np.ndarray:
    """The parameters that fit `observations` best, or the expected ones where there is none: least
    squares of logarithms, robust against what is far off, drawn to what is expected."""
    if not observations:
        return EXPECTED
    from scipy.optimize import least_squares  # noqa: PLC0415 (takes long to load)

    stack = Stack([step.demand for step in observations])
    logs = np.log([step.seconds for step in observations])
    kinds = {step.kind for step in observations}
    spreads = np.array([_SPREAD[step.kind] for step in observations])
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


def shares_card_or_network(step: Observation, other: Observation) -> bool:
    """Whether `other` tells of `step`; single products and kernels share a card alone."""
    return other.card == step.card or (other.network == step.network and is_network(step))


def left_out(
    observations: Sequence[Observation], shares: Callable[[Observation, Observation], bool]
) -> np.ndarray:
    """log(predicted / observed) of each, fitted without those that it `shares` something with."""
    fitted: dict[tuple[int, ...], np.ndarray] = {}
    residuals = []
    for step in observations:
        kept = tuple(i for i, other in enumerate(observations) if not shares(step, other))
        if kept not in fitted:
            fitted[kept] = parameters_of([observations[i] for i in kept])
        log = float(Stack([step.demand]).log_seconds(fitted[kept])[0])
        residuals.append(log - float(np.log([step.seconds])[0]))
    return np.array(residuals)


def band_notes(
    fit: Fit,
    precision: str = "f32",
    beside: str = "",
    *,
    attention: str = "",
    of_passes: bool = False,
) -> tuple[str, ...]:
    """What the band is worth, for whom it is, and where it is from. `beside` is what PyTorch on a
    card is compared with; empty of this program. `attention` is that of PyTorch's networks, empty
    where none has any."""
    notes = [_measured_note(fit) if fit.measured and not beside else f"{_SIMULATED} {SO_FAR}"]
    if of_passes:
        notes.append(
            "It is for a pass of this program alone; a framework or a service around the network "
            "takes its own time beside it."
        )
    elif not beside:
        notes.append(
            "It is for this program; auto has the share of a graph's time that one kernel for an "
            "epoch took on an H200. PyTorch starts each operation from Python, which takes "
            f"{_ends('torch_operation')} where a node of a graph takes {_ends('graph_node')}, so "
            "that there a GPU pays from a larger network on: predict --as=pytorch."
        )
    else:
        notes.append(
            f"It is for PyTorch's eager loop, against {beside}. Python starts its operations one "
            "by one, which takes "
            f"{units.significant(host.fitted().ratio.low, 2)} to "
            f"{units.significant(host.fitted().ratio.high, 2)} times as long for a GPU as on the "
            "same CPU. Data loaders and the loop of Keras or of a trainer around the steps are not "
            "in it."
        )
    if attention:
        notes.append(_ATTENTION[attention])
    if precision not in fit.precisions:
        notes.append(
            f"Nobody's times in {precision} were found; the error is that of other precisions."
        )
    return tuple(notes)


def _ends(id: str) -> str:
    band = published(id)
    return " to ".join(units.seconds_ends(band.low, band.high, 2))


def _measured_note(fit: Fit) -> str:
    cards: dict[str, set[str]] = {}
    for step in fit.observations:
        if step.kind == "measured":
            cards.setdefault(step.network, set()).add(step.card)
    counts = list(map(len, cards.values()))
    band, coverage = fit.band
    within = sum(score <= band for score in fit.scores.values())
    factor = units.significant(fit.factor, 2)
    return (
        f"These cards were not measured on this machine. The band is a factor of {factor} up and "
        f"down: {within} of {len(cards)} networks, each on {min(counts)} to {max(counts)} cards, "
        f"were at most that far off where they and the card were left out of the fit to measured "
        f"rows, so it covers {100 * coverage:.0f} % of networks like these "
        "(docs/method/prediction.md)."
    )
