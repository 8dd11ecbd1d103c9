# SPDX-License-Identifier: Apache-2.0
"""Whether a framework's training is the one that its float64 gives, within bench's tolerances
(docs/method/verification.md)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from peers.protocol import Configuration
from peers.tasks import Task

_MORE_STEPS_SECONDS = 2.0  # beyond the second, where they are cheap
_MOST_STEPS = 256
_FEWEST_STEPS = 2
_AFFORDABLE_FLOPS = 1.5e11  # of two steps in float64; larger batches stand for themselves in part
_LEAST_BATCH = 2
_SMALL_LOSS = 0.1  # a difference of large logits: relative to this
_LEAST_NORM = 1e-30

# Where rounding decides much of a training: tolerance_of_roundings().
_SIXTEEN_ROUNDINGS = 16 * 2.0**-24
_STARTS = 5
_FURTHER = 3.0
_MOST_OF_UPDATE = 0.5
_MOST_OF_LOSS = 1e-2

MODULE = "module"  # the type of a layer that is a user's own module, as it is


class Mismatch(Exception):  # noqa: N818 - what was found, not what went wrong
    """In what a training differs from its reference; `seconds` are of an iteration, if known."""

    seconds: float | None = None


class Training(Protocol):
    """A framework's training of a task. Its class makes another one of a task and the same
    configuration."""

    task: Task

    def __init__(self, task: Task, configuration: Configuration) -> None: ...

    def run_steps(self, count: int) -> list[float]:
        """So many steps from the start, with the reference's dropout; returns their losses."""

    def loss(self) -> float:
        """Of the first batch at the start."""

    def start_off(self, by: float, seed: int) -> None:
        """From now on each parameter starts off by up to so much of itself, at random."""

    def parameters(self) -> list[np.ndarray]:
        """As they are now, in float64."""


@dataclass(frozen=True)
class Tolerance:
    loss: float
    parameters: float
    tensors: tuple[float, ...] = ()  # of each by itself; empty: that of all


@dataclass(frozen=True)
class Trajectory:
    """Of the reference: losses of the first steps, parameters after them. `batch` is a smaller one
    than the row's, whose first loss is then `first_loss`; None where it is the row's own."""

    losses: list[float]
    parameters: list[np.ndarray]
    batch: int | None = None
    first_loss: float | None = None

    @property
    def mean_loss(self) -> float:
        """Of the first iteration, if its steps are all there."""
        return sum(self.losses) / len(self.losses)


def is_compared_together(task: Task) -> bool:
    """Whether some parameters are nothing but updates, or have no gradient but rounding. Of a
    user's module nobody knows."""
    several = {"batch_norm", "layer_norm", "rms_norm", "attention", MODULE}
    return bool(task.layer_types & several)


def tolerance_of(task: Task, precision: str) -> Tolerance:
    normalized = "batch_norm" in task.layer_types
    magnified = 5 if task.optimizer.kind in ("adam", "adamw") else 1
    if precision == "f32":
        tolerance = Tolerance(loss=1e-5 * magnified, parameters=1e-4)
        return replace(tolerance, loss=1e-3) if normalized else tolerance
    two_roundings = 2 * 2.0**-8 * magnified
    return Tolerance(2e-2 if normalized else two_roundings, two_roundings)


class References:
    """Trajectories in float64 on the CPU, made once for all rows of a network. `name` is what
    files call them; `in_float64` makes the training."""

    def __init__(self, name: str, in_float64: Callable[[Task], Training]) -> None:
        self.name = name
        self._in_float64 = in_float64
        self._made: dict[Task, Trajectory] = {}
        self._determined: dict[tuple[Task, Tolerance], tuple[Trajectory, Tolerance]] = {}

    def of(self, task: Task) -> Trajectory:
        if task not in self._made:
            self._made.clear()  # rows of one network come one behind the other
            self._made[task] = self._trajectory(task)
        return self._made[task]

    def within_roundings(self, task: Task, usual: Tolerance) -> tuple[Trajectory, Tolerance]:
        """What a training in f32 may differ by where rounding decides much of it, and the
        trajectory without the steps of which rounding decides too much: as
        tolerance_of_roundings() of include/crossover/verify.h."""
        if (task, usual) not in self._determined:
            self._determined.clear()
            self._determined[task, usual] = self._within_roundings(task, usual, self.of(task))
        return self._determined[task, usual]

    def _within_roundings(
        self, task: Task, usual: Tolerance, trajectory: Trajectory
    ) -> tuple[Trajectory, Tolerance]:
        compared = task if trajectory.batch is None else of_batch(task, trajectory.batch)
        plain = self._in_float64(compared)
        plain.run_steps(0)
        update = _distances(plain.parameters(), trajectory.parameters)
        norms = _distances(trajectory.parameters, [0.0] * len(trajectory.parameters))
        loss, moved, all_moved = usual.loss, [0.0] * len(norms), 0.0
        for seed in range(1, _STARTS + 1):
            other = self._in_float64(compared)
            other.start_off(_SIXTEEN_ROUNDINGS, seed)
            losses = other.run_steps(len(trajectory.losses))
            apart_in_loss = [
                _FURTHER * _relative_loss(*both)
                for both in zip(losses, trajectory.losses, strict=True)
            ]
            for step in range(_FEWEST_STEPS, len(losses)):
                if apart_in_loss[step] > _MOST_OF_LOSS:
                    losses = plain.run_steps(step)
                    shorter = replace(trajectory, losses=losses, parameters=plain.parameters())
                    return self._within_roundings(task, usual, shorter)
            apart = _distances(other.parameters(), trajectory.parameters)
            moved, all_moved = list(map(max, moved, apart)), max(all_moved, math.hypot(*apart))
            loss = max(loss, min(max(apart_in_loss), _MOST_OF_LOSS))
        all_update, norm = math.hypot(*update), math.hypot(*norms)

        def allowed(moved: float, update: float, norm: float) -> float:
            own = min(_FURTHER * moved, _MOST_OF_UPDATE * update) / max(norm, _LEAST_NORM)
            return max(usual.parameters, own)

        if is_compared_together(task):
            return trajectory, Tolerance(loss, allowed(all_moved, all_update, norm))
        # One that hardly changes has no gradient but rounding.
        tensors = tuple(
            allowed(own_moved, own_update, own_norm)
            if own_update > _SIXTEEN_ROUNDINGS * all_update
            else usual.parameters * max(1.0, norm / max(own_norm, _LEAST_NORM))
            for own_moved, own_update, own_norm in zip(moved, update, norms, strict=True)
        )
        return trajectory, Tolerance(loss, max(tensors), tensors)

    def _trajectory(self, task: Task) -> Trajectory:
        own = min(task.batch, task.rows)
        flops = task.flops / task.rows * own
        batch = own
        while _FEWEST_STEPS * flops * batch / own > _AFFORDABLE_FLOPS and batch > _LEAST_BATCH:
            batch = 1 << ((batch - 1).bit_length() - 1)
        if batch == own:
            training = self._in_float64(task)
            losses = _losses(training, task.steps)
            return Trajectory(losses, training.parameters())
        first_loss = self._in_float64(replace(task, rows=own)).loss()
        training = self._in_float64(of_batch(task, batch))
        losses = training.run_steps(_FEWEST_STEPS)
        return Trajectory(losses, training.parameters(), batch, first_loss)


def of_batch(task: Task, batch: int) -> Task:
    """One step of so many rows."""
    return replace(task, batch=batch, rows=batch, flops=task.flops / task.rows * batch)


def _losses(training: Training, steps: int) -> list[float]:
    """Of two steps; of as many more of the iteration as take little time."""
    start = time.perf_counter()
    losses = training.run_steps(_FEWEST_STEPS)
    each = (time.perf_counter() - start) / _FEWEST_STEPS
    affordable = min(steps, _MOST_STEPS, int(_MORE_STEPS_SECONDS / max(each, 1e-9)))
    if affordable <= _FEWEST_STEPS:
        return losses
    return training.run_steps(affordable)


def verified(
    training: Training, configuration: Configuration, references: References
) -> tuple[dict[str, Any], float]:
    """`verification` of a result file's row, and the mean loss of the first iteration. Mismatch
    where something differs by more than the tolerance."""
    task = training.task
    trajectory = references.of(task)
    tolerance = tolerance_of(task, configuration["precision"])
    compared = training
    if trajectory.batch is not None:
        compared = type(training)(of_batch(task, trajectory.batch), configuration)
    together = is_compared_together(task)
    losses = compared.run_steps(len(trajectory.losses))
    parameters = compared.parameters()
    try:
        error, parameter_error = _errors(losses, parameters, trajectory, tolerance, together)
    except Mismatch as found:
        if configuration["precision"] != "f32":
            raise
        trajectory, tolerance = references.within_roundings(task, tolerance)
        losses = compared.run_steps(len(trajectory.losses))
        parameters = compared.parameters()
        try:
            error, parameter_error = _errors(losses, parameters, trajectory, tolerance, together)
        except Mismatch:
            raise found from None
    if compared is training and len(losses) >= task.steps:
        first = losses[: task.steps]
    else:
        first = training.run_steps(task.steps)
        if compared is training:  # a whole epoch may be another program than its first steps
            expected = trajectory.losses
            error = max(error, _worst_loss(first[: len(expected)], expected, tolerance.loss))
    if trajectory.first_loss is not None:
        error = max(error, _worst_loss(first[:1], [trajectory.first_loss], tolerance.loss))
    checked = {
        "reference": references.name,
        "steps": len(losses),
        "steps_of": max(len(losses), 2 if trajectory.batch is not None else task.steps),
        "tolerance": tolerance.loss,
        "relative_error": error,
        "parameter_tolerance": tolerance.parameters,
        "parameter_error": parameter_error,
    }
    if trajectory.batch is not None:
        checked["batch"] = trajectory.batch
    return checked, sum(first) / len(first)


def _errors(
    losses: list[float],
    parameters: list[np.ndarray],
    trajectory: Trajectory,
    tolerance: Tolerance,
    together: bool,
) -> tuple[float, float]:
    """The largest of a loss, and of the parameters."""
    error = _worst_loss(losses, trajectory.losses, tolerance.loss)
    found = _parameter_errors(parameters, trajectory.parameters, together)
    tolerances = tolerance.tensors or (tolerance.parameters,) * len(found)
    for own, allowed in zip(found, tolerances, strict=True):
        if not own <= allowed:
            raise Mismatch(
                f"after {len(losses)} steps the parameters differ from float64 by {own:.3g} of "
                f"their norm, and the tolerance is {allowed:.3g}"
            )
    return error, max(found)


def _relative_loss(here: float, there: float) -> float:
    return abs(here - there) / max(abs(there), _SMALL_LOSS)


def _distances(here: list[np.ndarray], there: Sequence[np.ndarray | float]) -> list[float]:
    return [math.sqrt(float(((a - b) ** 2).sum())) for a, b in zip(here, there, strict=True)]


def _worst_loss(got: list[float], expected: list[float], tolerance: float) -> float:
    worst = 0.0
    for step, (here, there) in enumerate(zip(got, expected, strict=True), 1):
        error = _relative_loss(here, there)
        if not error <= tolerance:
            raise Mismatch(
                f"the loss of step {step} is {here:.9g}, and {there:.9g} in float64: they differ "
                f"by {error:.3g} of it, and the tolerance is {tolerance:g}"
            )
        worst = max(worst, error)
    return worst


def _parameter_errors(
    got: list[np.ndarray], expected: list[np.ndarray], together: bool
) -> list[float]:
    """Of each tensor, or with `together` of the vector of all: Euclidean norm of the difference
    over the norm."""
    differences = _distances(got, expected)
    norms = _distances(expected, [0.0] * len(expected))
    if together:
        differences, norms = [math.hypot(*differences)], [math.hypot(*norms)]
    return [d / max(n, _LEAST_NORM) for d, n in zip(differences, norms, strict=True)]
