# SPDX-License-Identifier: Apache-2.0
"""Which rows of PyTorch do the work of a row of bench's."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from crossover_bench.peers.axes import (
    COMPILER,
    DEVICES,
    LAYOUT,
    LAYOUTS,
    PAGES_AXIS,
    SCRIPT,
    TORCH_DEVICES,
    same_work,
)
from crossover_bench.peers.forward import copies
from crossover_bench.peers.protocol import Configuration

FAMILIES = ("Epoch", "Minibatch", "Forward", "Gemm", "Copy")
TRAINING = ("Epoch", "Minibatch")
PRECISIONS = ("f32", "bf16")
MODES = ("eager", "compile", "graph")
BESIDE = ("all", "default")
# What a default run has beside bench's rows: by family the networks, in f32.
_DEFAULT = {
    "Epoch": re.compile(r"disc-\d+|heart|policy|lenet-5|gpt-64"),
    "Minibatch": re.compile("alexnet-r"),
}

# What rows of PyTorch have beside bench's axes.
AXES = [LAYOUT, COMPILER, PAGES_AXIS, SCRIPT]
# Variables that a process for rows of these pages begins with.
ENVIRONMENTS: dict[str, dict[str, str]] = {"default": {}, "huge": {"THP_MEM_ALLOC_ENABLE": "1"}}


@dataclass(frozen=True)
class Wanted:
    """Which of a peer's rows are to be measured; the first layout is that of other networks."""

    devices: tuple[str, ...] = DEVICES
    layouts: tuple[str, ...] = LAYOUTS
    modes: tuple[str, ...] = ("eager",)
    pages: tuple[str, ...] = ("default",)
    scripts: tuple[str, ...] = ("lean",)
    beside: str = "all"
    torch_device: str = ""  # a GPU of PyTorch's; of bench's rows on the CPU it trains the same, too


def counterparts(
    ours: Configuration, wanted: Wanted, shape: Sequence[int] = ()
) -> list[Configuration]:
    """The rows of PyTorch that do the work of a row of bench's, plainest first; a sample of its
    network is an image where its shape is [channels, height, width]. None where it has no such
    thing: other families, precisions without a setting of their own, cold products, summed
    gradients, losses waited for step by step, batches that are loaded, passes that copy."""
    device = ours.get("device", "")
    family = ours["family"]
    if (
        family not in FAMILIES
        or device not in wanted.devices
        or ours.get("precision", "f32") not in PRECISIONS
        or ours.get("cache", "warm") != "warm"
        or {"accumulate", "loss", "shuffle", "loader"} & ours.keys()
        or copies(ours)
        or (wanted.beside == "default" and not _is_of_the_default_run(ours))
    ):
        return []
    is_image = len(shape) == 3
    shared = same_work(ours, "pytorch")
    return [{**shared, **way} for way in _ways(ours, device, wanted, is_image)]


def on_the_gpu(
    ours: Configuration, wanted: Wanted, shape: Sequence[int] = ()
) -> list[Configuration]:
    """The same of a training of bench's on the CPU, on the GPU that `wanted` names, for which bench
    has no rows."""
    if (
        not wanted.torch_device
        or ours["family"] not in TRAINING
        or ours.get("device") != "cpu"
        or "ranks" in ours
    ):
        return []
    there = {key: value for key, value in ours.items() if key not in ("cpu_threads", "execution")}
    there |= {"device": "cuda", "data": "resident"}
    of_cuda = wanted.torch_device == TORCH_DEVICES[0]
    modes = tuple(mode for mode in wanted.modes if mode != "graph" or of_cuda)
    rows = counterparts(there, replace(wanted, modes=modes), shape)
    return [{**row, "torch_device": wanted.torch_device} for row in rows]


def _is_of_the_default_run(ours: Configuration) -> bool:
    networks = _DEFAULT.get(ours["family"])
    is_plain = ours.get("precision") == "f32" and not {"copies", "ranks", "zero"} & ours.keys()
    return networks is not None and is_plain and bool(networks.fullmatch(ours["model"]))


def _ways(
    ours: Configuration, device: str, wanted: Wanted, reads_images: bool
) -> Iterator[Configuration]:
    if ours["family"] == "Copy":
        yield {}
        return
    if ours["family"] == "Forward":
        for mode in wanted.modes:
            if mode != "graph":
                compiler = "inductor" if mode == "compile" else "none"
                yield {"execution": "eager", "compiler": compiler}
        return
    trains = ours["family"] in TRAINING
    of_images = trains and reads_images and "copies" not in ours
    layouts = wanted.layouts if of_images else ("default",)
    alone = trains and "ranks" not in ours  # DistributedDataParallel runs eagerly here
    modes = wanted.modes if alone else ("eager",)
    pages = wanted.pages if device == "cpu" else ("default",)
    for mode in modes if not trains or "lean" in wanted.scripts else ():
        # A captured step writes its gradients to one place anyway.
        if mode == "graph" and (device != "cuda" or "zero" in ours):
            continue
        for layout in layouts:
            for page in pages:
                yield {
                    "execution": "graph" if mode == "graph" else "eager",
                    "layout": layout,
                    "compiler": "inductor" if mode == "compile" else "none",
                    "pages": page,
                }
    # What people write trains one network alone, and lets gradients be None.
    is_plain = (
        ours.get("precision", "f32") == "f32" and not {"copies", "ranks", "zero"} & ours.keys()
    )
    if trains and is_plain and "usual" in wanted.scripts and "eager" in wanted.modes:
        yield {"execution": "eager", "script": "usual"}
