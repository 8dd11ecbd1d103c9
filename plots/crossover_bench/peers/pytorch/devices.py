# SPDX-License-Identifier: Apache-2.0
"""The GPU that a PyTorch sees, whoever made it: by PyTorch's name for its kind (cuda, which ROCm
has too, mps, xpu, or that of an extension), what waits for it, and what it is called.

PyTorch is imported by the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any

from crossover_bench.peers.axes import TORCH_DEVICES
from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.tasks import Unsupported


def module_of(kind: str) -> Any:
    """torch.cuda and the like; None where this PyTorch has none of that name."""
    return getattr(import_module("torch"), kind, None)


def is_there(kind: str) -> bool:
    """Whether this PyTorch computes on a device of that kind here."""
    # torch.backends.mps could be asked before torch.mps could.
    backends = getattr(import_module("torch"), "backends", None)
    for module in (module_of(kind), getattr(backends, kind, None)):
        asked = getattr(module, "is_available", None)
        if asked is not None:
            return bool(asked())
    return False


def kinds() -> tuple[str, ...]:
    """PyTorch's own, in the order in which one is looked for, and what an extension brought."""
    current = None
    with suppress(ModuleNotFoundError):  # without PyTorch there is no extension of it
        accelerator = module_of("accelerator")  # of PyTorch 2.6 and later
        current = accelerator.current_accelerator() if accelerator else None
    return tuple(dict.fromkeys([*TORCH_DEVICES, *([current.type] if current else [])]))


def first() -> str:
    """The kind of the GPU that is here; empty where there is none."""
    return next(filter(is_there, kinds()), "")


def of_row(configuration: Configuration) -> Any:
    """The torch.device that computes a row."""
    is_on_gpu = configuration["device"] != "cpu"
    return of_kind(configuration.get("torch_device", TORCH_DEVICES[0]) if is_on_gpu else "cpu")


def of_kind(kind: str) -> Any:
    """The first torch.device of that kind."""
    return import_module("torch").device(kind)


def require(configuration: Configuration) -> None:
    """Unsupported where this PyTorch does not see the GPU that computes a row."""
    kind = of_row(configuration).type
    if kind != "cpu" and not is_there(kind):
        raise Unsupported(f"this PyTorch sees no {'GPU' if kind == TORCH_DEVICES[0] else kind}")


def waits_for(device: Any) -> Callable[[], object]:
    """What returns when all work on the device is done. RuntimeError where this PyTorch has no such
    thing: its times would be too short."""
    if device.type == "cpu":
        return lambda: None
    wait = getattr(module_of(device.type), "synchronize", None)
    if wait is None:
        raise RuntimeError(f"this PyTorch can't wait for {device.type}")
    return wait if device.type == "mps" else partial(wait, device)


def name_of(device: Any) -> str:
    """What its maker calls it: "AMD Radeon RX 7900 XTX", "Apple M2"; where nobody says, PyTorch's
    name for its kind: "MPS"."""
    with suppress(AttributeError, RuntimeError, AssertionError):
        if device.type == "mps":
            return str(import_module("torch").backends.mps.get_name())
        return str(module_of(device.type).get_device_name(device))
    return str(device).upper()


def empty_cache(kind: str) -> None:
    """Memory that PyTorch keeps for later is the system's again."""
    clear = getattr(module_of(kind), "empty_cache", None)
    if clear is not None:
        clear()
