# SPDX-License-Identifier: Apache-2.0
"""Whether a framework's training is the one that its float64 gives, within bench's tolerances
(docs/method/verification.md)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.tasks import Task

_MORE_STEPS_SECONDS = 2.0  # beyond the second, where they are cheap
_MOST_STEPS = 256
_FEWEST_STEPS = 2
_AFFORDABLE_FLOPS = 1.5e11  # of two steps in float64; larger batches stand for themselves in part
_LEAST_BATCH = 2
_SMALL_LOSS = 0.1  # a difference of large logits: relative to this
_LEAST_NORM = 1e-30
_ROUNDING = {"tf32": 2.0**-11, "bf16": 2.0**-8}  # at most, relative

# Where rounding decides much of a training: tolerance_of_roundings().
_SIXTEEN_ROUNDINGS = 16 * 2.0**-24
_STARTS = 5
_FURTHER = 3.0
_MOST_OF_UPDATE = 0.5
_MOST_OF_LOSS = 1e-2

_MAGNIFIES = (  # as bench says it of its own rows
    "the network magnifies rounding: from starts that are 16 roundings off the reference's own "
    "loss differs by 0.3 % or more, so that in float32 nothing can be verified; a smaller --lr may "
    "help"
)

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
        """So many steps from the start, with the reference's dropout; returns their losses, in each
        step those of all copies."""

    def loss(self) -> float:
        """Of the first batch at the start, of one that is no copies."""

    def begin_as(self, copy: int) -> None:
        """From now on it starts as that copy, counted from 0, and is no copies itself."""

    def start_off(self, by: float, seed: int) -> None:
        """From now on each parameter starts off by up to so much of itself, at random."""

    def parameters(self) -> list[np.ndarray]:
        """Their values now, in float64, copy by copy."""


@dataclass(frozen=True)
class Tolerance:
    loss: float
    parameters: float
    tensors: tuple[float, ...] = ()  # of each by itself; empty: that of all


@dataclass(frozen=True)
class Trajectory:
    """Of the reference: losses of the first steps, parameters after them. `batch` is a smaller one
    than the row's, whose first losses, one of each copy, are then `first_losses`; None where it is
    the row's own."""

    losses: list[float]
    parameters: list[np.ndarray]
    batch: int | None = None
    first_losses: list[float] = field(default_factory=list)


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
    two_roundings = 2 * _ROUNDING[precision] * magnified
    return Tolerance(2e-2 if normalized else two_roundings, two_roundings)


class _InTurn:
    """What copies must come to: one training that begins as each of them in turn."""

    def __init__(self, training: Training, copies: int) -> None:
        self._training, self._copies = training, copies
        self._off: tuple[float, int] | None = None
        self._parameters: list[np.ndarray] = []

    def _each(self) -> Iterator[Training]:
        for copy in range(self._copies):
            if self._copies > 1:
                self._training.begin_as(copy)
                if self._off:
                    self._training.start_off(*self._off)
            yield self._training

    def run_steps(self, count: int) -> list[float]:
        losses: list[list[float]] = []
        self._parameters = []
        for training in self._each():
            losses.append(training.run_steps(count))
            self._parameters += map(np.copy, training.parameters())  # it goes on with those it has
        return [loss for step in zip(*losses, strict=True) for loss in step]

    def first_losses(self) -> list[float]:
        return [training.loss() for training in self._each()]

    def start_off(self, by: float, seed: int) -> None:
        self._off = by, seed
        if self._copies == 1:
            self._training.start_off(by, seed)

    def parameters(self) -> list[np.ndarray]:
        return self._parameters


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
        """The tolerance of a training in f32 of which rounding decides much, and the trajectory
        before the step from which rounding decides too much: as tolerance_of_roundings() of
        include/crossover/verify.h."""
        if (task, usual) not in self._determined:
            self._determined.clear()
            self._determined[task, usual] = self._within_roundings(task, usual, self.of(task))
        return self._determined[task, usual]

    def _within_roundings(
        self, task: Task, usual: Tolerance, trajectory: Trajectory
    ) -> tuple[Trajectory, Tolerance]:
        compared = task if trajectory.batch is None else of_batch(task, trajectory.batch)
        plain = self._training(compared)
        plain.run_steps(0)
        update = _distances(plain.parameters(), trajectory.parameters, task)
        norms = _norms(trajectory.parameters, task)
        loss, moved = usual.loss, [0.0] * len(norms)
        for seed in range(1, _STARTS + 1):
            other = self._training(compared)
            other.start_off(_SIXTEEN_ROUNDINGS, seed)
            losses = other.run_steps(len(trajectory.losses) // task.copies)
            apart_in_loss = [
                _FURTHER * _relative_loss(*both)
                for both in zip(losses, trajectory.losses, strict=True)
            ]
            for place in range(_FEWEST_STEPS * task.copies, len(losses)):
                if apart_in_loss[place] > _MOST_OF_LOSS:
                    losses = plain.run_steps(place // task.copies)
                    shorter = replace(trajectory, losses=losses, parameters=plain.parameters())
                    return self._within_roundings(task, usual, shorter)
            apart = _distances(other.parameters(), trajectory.parameters, task)
            moved = list(map(max, moved, apart))
            loss = max(loss, min(max(apart_in_loss), _MOST_OF_LOSS))
        # Of a copy.
        all_update, norm = (math.hypot(*of) / math.sqrt(task.copies) for of in (update, norms))

        def allowed(moved: float, update: float, norm: float) -> float:
            most = min(_FURTHER * moved, _MOST_OF_UPDATE * update) / max(norm, _LEAST_NORM)
            return max(usual.parameters, most)

        # A tensor that hardly changes has no gradient but rounding.
        tensors = tuple(
            allowed(its_move, its_update, its_norm)
            if is_compared_together(task) or its_update > _SIXTEEN_ROUNDINGS * all_update
            else usual.parameters * max(1.0, norm / max(its_norm, _LEAST_NORM))
            for its_move, its_update, its_norm in zip(moved, update, norms, strict=True)
        )
        return trajectory, Tolerance(loss, max(tensors), tensors)

    def _training(self, task: Task) -> _InTurn:
        return _InTurn(self._in_float64(replace(task, copies=1)), task.copies)

    def _trajectory(self, task: Task) -> Trajectory:
        whole = batch = min(task.batch, task.rows)
        flops_of_row = task.flops / task.rows
        while _FEWEST_STEPS * flops_of_row * batch > _AFFORDABLE_FLOPS and batch > _LEAST_BATCH:
            batch = 1 << ((batch - 1).bit_length() - 1)
        if batch == whole:
            training = self._training(task)
            losses = _losses(training, task.steps)
            return Trajectory(losses, training.parameters())
        first_losses = self._training(replace(task, rows=whole)).first_losses()
        training = self._training(of_batch(task, batch))
        losses = training.run_steps(_FEWEST_STEPS)
        return Trajectory(losses, training.parameters(), batch, first_losses)


def of_batch(task: Task, batch: int) -> Task:
    """One step of so many rows."""
    return replace(task, batch=batch, rows=batch, flops=task.flops / task.rows * batch)


def _losses(training: _InTurn, steps: int) -> list[float]:
    """The losses of two steps, and of as many more of the iteration as take little time."""
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
    try:
        losses, error, parameter_error = _errors(compared, trajectory, tolerance, task)
    except Mismatch as mismatch:
        if configuration["precision"] != "f32":
            raise
        trajectory, tolerance = references.within_roundings(task, tolerance)
        try:
            losses, error, parameter_error = _errors(compared, trajectory, tolerance, task)
        except Mismatch:
            if tolerance.loss < _MOST_OF_LOSS:
                raise mismatch from None
            raise Mismatch(f"{mismatch}; {_MAGNIFIES}") from None
    steps = len(losses) // task.copies
    if compared is training and steps >= task.steps:
        first = losses[: task.steps * task.copies]
    else:
        first = training.run_steps(task.steps)
        if compared is training:  # a whole epoch may be another program than its first steps
            expected = trajectory.losses
            error = max(error, _worst_loss(first, expected, tolerance.loss, task.copies))
    expected = trajectory.first_losses
    error = max(error, _worst_loss(first, expected, tolerance.loss, task.copies))
    checked = {
        "reference": references.name,
        "steps": steps,
        "steps_of": max(steps, 2 if trajectory.batch is not None else task.steps),
        "tolerance": tolerance.loss,
        "relative_error": error,
        "parameter_tolerance": tolerance.parameters,
        "parameter_error": parameter_error,
    }
    if trajectory.batch is not None:
        checked["batch"] = trajectory.batch
    return checked, sum(first) / len(first)


def _errors(
    training: Training, trajectory: Trajectory, tolerance: Tolerance, task: Task
) -> tuple[list[float], float, float]:
    """The losses of a training, the largest error of one, and that of the parameters; Mismatch
    beyond the tolerance."""
    losses = training.run_steps(len(trajectory.losses) // task.copies)
    error = _worst_loss(losses, trajectory.losses, tolerance.loss, task.copies)
    differences = _distances(training.parameters(), trajectory.parameters, task)
    norms = _norms(trajectory.parameters, task)
    ratios = [d / max(n, _LEAST_NORM) for d, n in zip(differences, norms, strict=True)]
    tolerances = tolerance.tensors or (tolerance.parameters,) * len(ratios)
    for place, (ratio, allowed) in enumerate(zip(ratios, tolerances, strict=True)):
        if not ratio <= allowed:
            raise Mismatch(
                f"after {len(losses) // task.copies} steps the parameters"
                f"{_of_copy(place * task.copies // len(ratios), task.copies)} differ from float64 "
                f"by {ratio:.3g} of their norm, and the tolerance is {allowed:.3g}"
            )
    return losses, error, max(ratios)


def _of_copy(copy: int, copies: int) -> str:
    return f" of copy {copy + 1}" if copies > 1 else ""


def _relative_loss(here: float, there: float) -> float:
    return abs(here - there) / max(abs(there), _SMALL_LOSS)


def _distances(here: list[np.ndarray], there: list[np.ndarray], task: Task) -> list[float]:
    return _norms([a - b for a, b in zip(here, there, strict=True)], task)


def _norms(values: list[np.ndarray], task: Task) -> list[float]:
    """Euclidean norms: of each tensor or, where those of a copy are compared together, of each
    copy."""
    norms = [math.sqrt(float((tensor**2).sum())) for tensor in values]
    if not is_compared_together(task):
        return norms
    of_copy = len(norms) // task.copies
    return [math.hypot(*norms[first : first + of_copy]) for first in range(0, len(norms), of_copy)]


def _worst_loss(got: list[float], expected: list[float], tolerance: float, copies: int) -> float:
    """The largest error of as many losses as are expected; Mismatch beyond the tolerance."""
    worst = 0.0
    for place, (here, there) in enumerate(zip(got[: len(expected)], expected, strict=True)):
        error = _relative_loss(here, there)
        if not error <= tolerance:
            raise Mismatch(
                f"the loss of step {place // copies + 1}{_of_copy(place % copies, copies)} is "
                f"{here:.9g}, and {there:.9g} in float64: they differ "
                f"by {error:.3g} of it, and the tolerance is {tolerance:g}"
            )
        worst = max(worst, error)
    return worst
