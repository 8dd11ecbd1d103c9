# SPDX-License-Identifier: Apache-2.0
"""A made-up CuPy and a made-up PyTorch for tests of two(): calls of the first return at once, and
its arrays are done later, as on a device."""

import time
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

WORK = 2e-4  # seconds that a call takes on the device


class Device:
    """One queue: what it is given is done after all that it was given before."""

    id = 0
    done_at = 0.0

    def start(self, seconds: float) -> None:
        self.done_at = max(self.done_at, time.perf_counter()) + seconds

    def synchronize(self) -> None:
        while time.perf_counter() < self.done_at:
            pass


class Array:
    """One of the device's."""

    def __init__(self, values: np.ndarray, device: Device) -> None:
        self.values, self.device, self.dtype = values, device, values.dtype

    def get(self) -> np.ndarray:
        self.device.synchronize()
        return self.values


class Lazy:
    """Of a library that nobody knows, on a device of its own."""

    def __init__(self, values: np.ndarray, device: Device) -> None:
        self.values, self.device, self.dtype = values, device, values.dtype

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        self.device.synchronize()
        return self.values


Array.__module__, Lazy.__module__ = "cupy", "elsewhere"


def cupy() -> Any:
    """The module; its functions take WORK seconds on the device unless they say otherwise."""
    module: Any = ModuleType("cupy")
    device = Device()

    def result(
        kind: Callable[..., Any], values: np.ndarray, seconds: float = WORK, on: Device = device
    ) -> Any:
        on.start(seconds)
        return kind(values, on)

    module.device = device
    module.asarray = lambda array: Array(np.array(array), device)
    module.sort = lambda array: result(Array, np.sort(array.values))
    module.lazy = lambda array: result(Lazy, np.sort(array.values), on=Device())
    module.single = lambda array: result(Array, np.sort(array.values).astype(np.float32))
    module.wrong = lambda array: result(Array, np.sort(array.values)[::-1])
    module.fetched = lambda array: module.sort(array).get()
    module.slow = lambda array: result(Array, np.sort(array.values), 5 * WORK)
    for name, value in vars(module).items():
        if callable(value):
            value.__module__, value.__name__ = "cupy", name
    return module


class Tensor(np.ndarray):
    """On the CPU, where NumPy's own functions sort it."""

    def clone(self) -> np.ndarray:
        return self.copy()


def torch() -> Any:
    """What the notebook of docs/howto calls."""
    module: Any = ModuleType("torch")
    module.Tensor, module.cuda = Tensor, SimpleNamespace(is_available=lambda: False)
    module.as_tensor = lambda array: np.asarray(array).view(Tensor)
    module.sort = lambda array: SimpleNamespace(values=np.sort(np.asarray(array)))
    return module
