# SPDX-License-Identifier: Apache-2.0
"""JAX as a worker: `bench --peer="PYTHON -m peers.jax"` (docs/method/peers.md)."""

from __future__ import annotations

import argparse
import gc
import platform
import sys
from typing import Any

from crossover_bench.peers.jax import threads  # before jax, which makes its threads at once

OWN_THREADS = threads.limited()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import jaxlib  # noqa: E402
import numpy as np  # noqa: E402

from crossover_bench.peers.axes import (  # noqa: E402
    COMPILER,
    DEVICES,
    LOOP,
    LOOPS,
    same_work,
    values_among,
)
from crossover_bench.peers.forward import copies, forward_row  # noqa: E402
from crossover_bench.peers.jax.forward import Forward, exact_outputs  # noqa: E402
from crossover_bench.peers.jax.training import Training  # noqa: E402
from crossover_bench.peers.protocol import Answer, Configuration, serve  # noqa: E402
from crossover_bench.peers.rows import Prepared, Served, training_row  # noqa: E402
from crossover_bench.peers.tasks import Unsupported  # noqa: E402
from crossover_bench.peers.verification import References  # noqa: E402

_FAMILIES = ("Epoch", "Minibatch", "Forward")


def counterparts(
    ours: Configuration, devices: tuple[str, ...] = DEVICES, loops: tuple[str, ...] = LOOPS
) -> list[Configuration]:
    """The rows of JAX that do the work of a row of bench's; none where it has no such thing: other
    families and precisions, summed or kept gradients, losses waited for step by step, batches that
    are loaded, passes that copy."""
    if (
        ours["family"] not in _FAMILIES
        or ours["device"] not in devices
        or ours["precision"] != "f32"
        or {"accumulate", "loss", "ranks", "shuffle", "loader", "zero"} & ours.keys()
        or copies(ours)
    ):
        return []
    # The compiler as of torch.compile.
    shared = {**same_work(ours, "jax"), "execution": "eager", "compiler": "xla"}
    if ours["family"] == "Forward":
        return [shared]
    if ours["family"] == "Minibatch":  # a step alone is not repeated
        loops = LOOPS[:1]
    return [{**shared, "loop": loop} for loop in loops]


class Rows(Served):
    """The rows of one process. What a request asks for is a method; its answer is one object."""

    out_of_memory_words = ("RESOURCE_EXHAUSTED",)

    def __init__(self, devices: tuple[str, ...] = DEVICES, loops: tuple[str, ...] = LOOPS) -> None:
        super().__init__()
        self._wanted = devices, loops
        jax.config.update("jax_default_matmul_precision", "highest")
        plain = {"device": "cpu"}
        self._references = References(
            "JAX in float64", lambda task: Training(task, plain, np.float64)
        )

    def describe(self) -> Answer:
        """What a result file records of JAX, and what rows it has."""
        gpus = _gpus()
        return {
            "program": "jax",
            "libraries": {"JAX": jax.__version__},
            "axes": [COMPILER, LOOP],
            "version": jax.__version__,
            "jaxlib": jaxlib.__version__,
            "python": platform.python_version(),
            "gpu": gpus[0].device_kind if gpus else None,
            "flush_to_zero": _flushed(),
        }

    def rows(self, configuration: Configuration, **_: Any) -> Answer:
        """Those that do the work of a row of bench's, and the variables that each needs."""
        return {
            "rows": [
                {"configuration": row, "environment": threads.environment(row)}
                for row in counterparts(configuration, *self._wanted)
            ]
        }

    def made(self, configuration: Configuration, counted: dict[str, Any] | None) -> Prepared:
        is_on_gpu = configuration["device"] == "cuda"
        if is_on_gpu and not _gpus():
            raise Unsupported("this JAX sees no GPU")
        count = int(configuration.get("cpu_threads", OWN_THREADS))
        if not is_on_gpu and count != OWN_THREADS:
            raise ValueError(
                f"this process has {OWN_THREADS} threads, and the row asks for {count}"
            )
        if configuration["family"] == "Forward":
            prepared = forward_row(Forward, exact_outputs, "JAX", configuration, counted)
        else:
            prepared = training_row(Training, configuration, counted, self._references)
        if not is_on_gpu:
            prepared.facts["cpu_threads"] = count
        return prepared

    def freed(self, is_last: bool) -> None:
        if is_last:
            jax.clear_caches()
        gc.collect()


def _gpus() -> list[Any]:
    try:
        return jax.devices("gpu")
    except RuntimeError:  # this JAX, or this machine, has none
        return []


def _flushed() -> bool:
    """Whether every thread takes denormal numbers as zero."""
    denormal = jax.device_put(np.full(1 << 20, 1e-39, np.float32), jax.devices("cpu")[0])
    return not bool(jnp.any(jax.jit(lambda x: x * 0.5)(denormal).view(jnp.int32)))


def _rows(arguments: list[str]) -> Rows:
    parser = argparse.ArgumentParser(
        prog="python -m peers.jax",
        description="Answers bench's requests for rows of JAX's on standard input.",
        allow_abbrev=False,
    )

    def add(flag: str, known: tuple[str, ...], what: str) -> None:
        text = f"{what}: {', '.join(known)} (default: all)"
        parser.add_argument(f"--{flag}", type=values_among(known), default=known, help=text)

    add("devices", DEVICES, "of bench's rows those on")
    add("loop", LOOPS, "lax.scan over an epoch's steps, as it is or unrolled")
    options = parser.parse_args(arguments)
    return Rows(options.devices, options.loop)


if __name__ == "__main__":
    serve(_rows(sys.argv[1:]))
