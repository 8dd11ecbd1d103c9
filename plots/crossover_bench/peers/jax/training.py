# SPDX-License-Identifier: Apache-2.0
"""Training as a user of JAX would write it: one jitted function trains a whole epoch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from crossover_bench.peers.jax.networks import Array, Network, network_of, start_of
from crossover_bench.peers.protocol import Configuration, alive
from crossover_bench.peers.tasks import Optimizer, Task, Unsupported, data_of

State = dict[str, Any]
Update = Callable[[list[Array], list[Array], State], tuple[list[Array], State]]
_MOST_UNROLLED = 64  # steps: the compiler's time grows with them


def _cross_entropy(z: Array, labels: Array) -> Array:
    chosen = jnp.take_along_axis(z, labels[:, None], axis=1)[:, 0]
    return (jax.nn.logsumexp(z, axis=1) - chosen).mean()


def _bce(z: Array, y: Array) -> Array:
    return -(y * jax.nn.log_sigmoid(z) + (1 - y) * jax.nn.log_sigmoid(-z)).mean()


_LOSSES: dict[str, Callable[[Array, Array], Array]] = {
    "cross_entropy": _cross_entropy,
    "mse": lambda z, y: ((z - y) ** 2).mean(),
    "bce": _bce,
}


class Training:
    """A network, its optimizer's state and its batches on a device, in `dtype`.

    What is timed is one call: lax.scan over the batches, rolled or unrolled, and behind it the
    short batch, if there is one. It gets parameters and state to overwrite, and nothing comes back
    to the host. Of several copies parameters and state have one more dimension, the first, over
    which jax.vmap takes the step.
    """

    def __init__(self, task: Task, configuration: Configuration, dtype: type = np.float32) -> None:
        self.task = task
        self._is_exact = dtype is np.float64
        self._dtype = dtype
        self._device = jax.devices("gpu" if configuration["device"] == "cuda" else "cpu")[0]
        if task.network["loss"] not in _LOSSES:
            raise Unsupported(f"JAX's side has no loss {task.network['loss']!r}")
        loss = _LOSSES[task.network["loss"]]
        network = self._network = network_of(task.network)
        update = _update(task.optimizer)
        full, self._rest = divmod(task.rows, task.batch)
        unroll = configuration.get("loop") == "unrolled"
        if unroll and full > _MOST_UNROLLED:
            raise Unsupported(
                f"an epoch of {full} steps is not unrolled, but one of {_MOST_UNROLLED} at most"
            )

        def loss_of(parameters: list[Array], x: Array, y: Array) -> Array:
            return loss(network.outputs(parameters, x), y)

        def step(carry: tuple[list[Array], State], batch: tuple[Array, Array]) -> Any:
            parameters, state = carry

            def loss_of_trained(trained: list[Array]) -> Array:
                return loss_of(_merged(network.trained, trained, parameters), *batch)

            trained = _trained(network, parameters)
            value, gradients = jax.value_and_grad(loss_of_trained)(trained)
            trained, state = update(trained, gradients, state)
            return (_merged(network.trained, trained, parameters), state), value

        if task.copies > 1:
            step = jax.vmap(step, in_axes=(0, None))

        def epoch(parameters: list[Array], state: State, data: list[Any]) -> Any:
            carry, losses = (parameters, state), []
            for x, y, count in zip(*data, (full, 1), strict=False):
                if count > 1:
                    carry, of_part = lax.scan(step, carry, (x, y), unroll=full if unroll else 1)
                else:
                    carry, loss_of_step = step(carry, (x[0], y[0]))
                    of_part = loss_of_step[None]
                losses.append(of_part)
            return *carry, jnp.concatenate(losses)

        with jax.enable_x64(self._is_exact):
            self._step = jax.jit(step, donate_argnums=0)
            self._epoch = jax.jit(epoch, donate_argnums=(0, 1))
            self._loss = jax.jit(loss_of)
            self._begin_as(range(task.copies))
            self._data = self._batches(full)
            self.losses: Array | None = None
            self.restart()
            if self._is_exact:
                self.run_steps(1)  # compiles, before the reference's steps are timed

    def begin_as(self, copy: int) -> None:
        """From now on it starts as that copy, counted from 0, and is no copies itself."""
        with jax.enable_x64(self._is_exact):
            self._begin_as(range(copy, copy + 1))

    def _begin_as(self, copies: range) -> None:
        starts = [start_of(self._network, copy) for copy in copies]
        together = starts[0] if len(starts) == 1 else map(np.stack, zip(*starts, strict=True))
        self._start = [self._put(values.astype(self._dtype)) for values in together]

    def _put(self, values: np.ndarray) -> Array:
        return jax.device_put(values, self._device)

    def _batches(self, full: int) -> list[list[Array]]:
        """Inputs and labels: of each the full batches [steps, ...], and the short one [1, ...]."""
        end = full * self.task.batch

        def parted(values: np.ndarray, is_by_place: bool, is_flat: bool) -> list[Array]:
            axis = int(is_by_place)  # tokens and labels of places are [places, rows]
            values = values.astype(np.int32 if values.dtype == np.int64 else self._dtype)
            whole = np.split(np.take(values, range(end), axis), full, axis) if full else []
            short = [np.take(values, range(end, self.task.rows), axis)] * bool(self._rest)
            parts = ([batch.ravel() if is_flat else batch for batch in p] for p in (whole, short))
            return [self._put(np.stack(part)) for part in parts if part]

        inputs, labels = data_of(self.task)
        return [
            parted(inputs, is_by_place=inputs.dtype == np.int64, is_flat=False),
            parted(labels, "labels" in self.task.network, is_flat=labels.dtype == np.int64),
        ]

    def restart(self) -> None:
        """Parameters at their start, the optimizer's state at zero."""
        with jax.enable_x64(self._is_exact):
            self._parameters = [jnp.copy(values) for values in self._start]
            state = partial(_state, self.task.optimizer)
            trained = _trained(self._network, self._parameters)
            self._state = (jax.vmap(state) if self.task.copies > 1 else state)(trained)
            jax.block_until_ready((self._parameters, self._state))

    def start_off(self, by: float, seed: int) -> None:
        """From now on each parameter starts off by up to so much of itself, at random."""
        random = np.random.default_rng(seed)
        with jax.enable_x64(self._is_exact):
            self._start = [
                self._put(np.asarray(start) * (1 + by * random.uniform(-1, 1, start.shape)))
                for start in self._start
            ]

    def run(self) -> None:
        """One iteration, whose losses are kept on the device: returns when it is done, as all
        results of a call are there together."""
        self._parameters, self._state, self.losses = self._epoch(
            self._parameters, self._state, self._data
        )
        self.losses.block_until_ready()

    def run_steps(self, count: int) -> list[float]:
        """So many steps from the start; whole epochs as they are timed. Returns their losses, in
        each step those of all copies."""
        self.restart()
        losses: list[float] = []
        epochs = 0 if self._is_exact else count // self.task.steps
        for _ in range(epochs):
            self.run()
            losses += np.asarray(self.losses).ravel().tolist()
        with jax.enable_x64(self._is_exact):
            for step in range(epochs * self.task.steps, count):
                carry = self._parameters, self._state
                (self._parameters, self._state), loss = self._step(carry, self._batch(step))
                losses += np.asarray(loss).ravel().tolist()
                alive("verifying it")
        return losses

    def loss(self) -> float:
        """Of the first batch at the start, without its gradients."""
        self.restart()
        with jax.enable_x64(self._is_exact):
            return float(self._loss(self._parameters, *self._batch(0)))

    def _batch(self, step: int) -> tuple[Array, Array]:
        place = step % self.task.steps
        x, y = self._data
        is_short = len(x) > 1 and place == self.task.steps - 1
        return (x[1][0], y[1][0]) if is_short else (x[0][place], y[0][place])

    def parameters(self) -> list[np.ndarray]:
        tensors = [np.asarray(values).astype(np.float64) for values in self._parameters]
        if self.task.copies == 1:
            return tensors
        return [tensor for copy in zip(*tensors, strict=True) for tensor in copy]

    def count_parameters(self) -> int:
        return sum(values.size for values in self._start)

    def losses_are_finite(self) -> bool:
        return bool(np.isfinite(np.asarray(self.losses)).all())

    def parameters_are_finite(self) -> bool:
        return all(bool(np.isfinite(np.asarray(values)).all()) for values in self._parameters)


def _trained(network: Network, parameters: list[Array]) -> list[Array]:
    return [p for p, is_trained in zip(parameters, network.trained, strict=True) if is_trained]


def _merged(
    is_trained: tuple[bool, ...], trained: list[Array], parameters: list[Array]
) -> list[Array]:
    """All `parameters`, with these in place of the trained ones."""
    rest = iter(trained)
    return [next(rest) if moves else p for p, moves in zip(parameters, is_trained, strict=True)]


def _state(optimizer: Optimizer, parameters: list[Array]) -> State:
    """At zero."""
    kept = {"sgd": (), "momentum": ("v",)}.get(optimizer.kind, ("m", "v"))
    state: State = {key: [jnp.zeros_like(values) for values in parameters] for key in kept}
    if len(kept) > 1:
        state["t"] = jnp.zeros_like(parameters[0], shape=())
    return state


def _update(optimizer: Optimizer) -> Update:
    rate = optimizer.learning_rate

    def sgd(parameters: list[Array], gradients: list[Array], state: State) -> Any:
        moved = zip(parameters, gradients, strict=True)
        return [p - rate * g for p, g in moved], state

    def momentum(parameters: list[Array], gradients: list[Array], state: State) -> Any:
        v = [0.9 * v + g for v, g in zip(state["v"], gradients, strict=True)]
        return sgd(parameters, v, {"v": v})

    def adamw(parameters: list[Array], gradients: list[Array], state: State) -> Any:
        t = state["t"] + 1
        m = [0.9 * m + 0.1 * g for m, g in zip(state["m"], gradients, strict=True)]
        v = [0.999 * v + 0.001 * g * g for v, g in zip(state["v"], gradients, strict=True)]
        step, root = rate / (1 - 0.9**t), jnp.sqrt(1 - 0.999**t)
        moved = []
        for p, own_m, own_v in zip(parameters, m, v, strict=True):
            kept = 1 - rate * optimizer.weight_decay if p.ndim > 1 else 1.0
            moved.append(kept * p - step * own_m / (jnp.sqrt(own_v) / root + 1e-8))
        return moved, {"m": m, "v": v, "t": t}

    return {"sgd": sgd, "momentum": momentum}.get(optimizer.kind, adamw)
