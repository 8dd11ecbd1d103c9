# SPDX-License-Identifier: Apache-2.0
"""What rows of other frameworks share with bench's, and what they have beside its axes; of these
the first value goes unsaid.

A key that two frameworks have stands here once, with the values of both: the first that describes
itself tells bench of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from crossover_bench.peers.protocol import Configuration

DEVICES = ("cpu", "cuda")
LAYOUTS = ("default", "channels-last")
COMPILERS = ("none", "inductor", "xla")
LOOPS = ("scan", "unrolled")
PAGES = ("default", "huge")
SCRIPTS = ("lean", "usual")
TORCH_DEVICES = ("cuda", "mps", "xpu")


def _axis(key: str, description: str, values: tuple[str, ...], role: str = "how") -> dict[str, Any]:
    values_there = {"values": list(values), "unsaid": values[0]}
    return {"key": key, "description": description, "role": role, **values_there}


LAYOUT = _axis("layout", "memory format of PyTorch's images", LAYOUTS)
COMPILER = _axis(
    "compiler", "what compiles the network: for torch.compile inductor, for jax.jit xla", COMPILERS
)
LOOP = _axis("loop", "how a jitted epoch repeats its step", LOOPS)
PAGES_AXIS = _axis("pages", "pages of PyTorch's memory on the CPU", PAGES)


def torch_device(known: tuple[str, ...] = TORCH_DEVICES) -> dict[str, Any]:
    """The axis of PyTorch's names of GPUs; an extension brings one more."""
    return _axis("torch_device", "which of PyTorch's devices a GPU is", known)


# Of two devices like is compared with like.
SCRIPT = _axis(
    *("script", "PyTorch's training loop: batches that lie ready, or a loader as people write it"),
    *(SCRIPTS, "alike"),
)
AXES = [LAYOUT, COMPILER, LOOP, PAGES_AXIS, SCRIPT, torch_device()]


# How bench computes: a row of another program that does the same work is one for all of its ways.
_WAYS = ("execution", "data", "products", "cudnn")


def same_work(ours: Configuration, program: str) -> Configuration:
    """What a row of that program has in common with the row of bench's that does the same work; its
    data lies where it computes."""
    shared = {key: value for key, value in ours.items() if key not in _WAYS}
    return {**shared, **({"data": "resident"} if "data" in ours else {}), "program": program}


def values_among(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Of a flag: some of these, with commas between."""

    def values(text: str) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(text.split(",")))
        if not set(given) <= set(known):
            raise argparse.ArgumentTypeError(f"choose from {', '.join(known)}")
        return given

    return values
