# SPDX-License-Identifier: Apache-2.0
"""A side: a function, where it computes, how its input comes there, and what waits for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from crossover_bench.functions.kinds import (
    CPU,
    LIBRARIES,
    PLAIN,
    RefusedError,
    Wait,
    arrays,
    copied,
    kind_words,
    library_of,
    mapped,
    place,
    used_by,
    wait_for,
)
from crossover_bench.peers.pytorch import devices
from crossover_bench.words.text import listed, printable

Device = Literal["cpu", "gpu"]
_LATER = ("__array__", "__await__", "compute", "result")
DEVICES: tuple[Device, Device] = ("cpu", "gpu")


@dataclass(frozen=True, slots=True)
class Side:
    """A function for crossover_bench.two().

    `function` takes what make(n) gives; a tuple is several arguments. `device` is where it
    computes: "cpu" or "gpu"; empty is what two() says. `to` brings each array of the input there:
    a function, or a name: "cupy", "jax", "torch", "numba", "cudf", "mlx", or a device of PyTorch
    such as "cuda:1"; None is the library that the function belongs to. `wait`, called with the
    result, returns when its work is done; None is what is known of the kind of the result.
    """

    function: Callable[..., Any]
    device: Device | Literal[""] = ""
    to: Callable[[Any], Any] | str | None = None
    wait: Wait | None = None


@dataclass(frozen=True, slots=True)
class Ready:
    """A side that can be called: its name, its device, the Side that was `given`, with all that
    two() says of it, and the function that brings an array."""

    name: str
    device: Device
    given: Side
    bring: Callable[[Any], Any]

    @property
    def function(self) -> Callable[..., Any]:
        """What is timed."""
        return self.given.function

    @property
    def words(self) -> str:
        """What it is called in sentences: "numpy.sort", or its name where that says more."""
        module = getattr(self.function, "__module__", None) or ""
        name = getattr(self.function, "__name__", "")
        if self.name not in DEVICES or not name.isidentifier():
            return self.name
        return printable(name if module == "__main__" else f"{module}.{name}", 60)

    @property
    def on_device(self) -> bool:
        """Whether its data lie on a device."""
        return self.device != CPU

    def arguments(self, original: Any) -> tuple[Any, ...]:
        """A fresh copy of what make(n) gave, where the side computes, when it has arrived."""

        def bring(leaf: Any) -> Any:
            return leaf if isinstance(leaf, PLAIN) else self.bring(leaf)

        brought = mapped(original, bring)
        wait = wait_for(brought)
        if wait is not None:
            wait(brought)
        return brought if type(brought) is tuple else (brought,)

    def waiter(self, result: Any, arguments: tuple[Any, ...]) -> Wait | None:
        """What waits for the work that gave `result`."""
        return self.given.wait or wait_for(result, arguments)


def ready(name: str, side: Side, device: Device) -> Ready:
    """`side` as it is called; raises RefusedError where it is not known how its input gets
    there."""
    return Ready(name, device, side, _bringer(name, side, device))


def _bringer(name: str, side: Side, device: Device) -> Callable[[Any], Any]:
    to = side.to
    if callable(to) and type(to).__name__ != "device":  # PyTorch's can be called, too
        bring = to
        return bring if device != CPU else lambda leaf: bring(copied(leaf))
    key, target = str(to or ""), str(device)
    if not key:
        key = used_by(side.function)
    elif key not in LIBRARIES:  # a device of PyTorch: "cuda:1", torch.device("mps")
        key, target = "torch", key
        if target.partition(":")[0] not in (CPU, *devices.kinds()):
            names = listed([f'"{known}"' for known in LIBRARIES])
            raise RefusedError(
                f"to={printable(repr(to), 60)} of {name} is not known; a function, {names} and a "
                'device of PyTorch such as "cuda" are'
            )
    if key:
        library = LIBRARIES[key]
        return lambda leaf: library.bring(_unshared(leaf, target), target)
    if device == CPU:
        return copied
    raise RefusedError(
        f"How its input gets to the GPU is not known of {name}: its function belongs to no library "
        'or to several; say to="cupy", to="torch", to="jax" or a function such as to=cp.asarray'
    )


def _unshared(leaf: Any, target: str) -> Any:
    """What is brought to a device is a copy by that; on the CPU a library may share the memory."""
    return copied(leaf) if target == CPU else leaf


def given_on_device(original: Any) -> str:
    """A sentence where make(n) gave what lies on a device already; empty where it did not."""
    for array in arrays(original):
        where = place(array)
        if library_of(array) and where != CPU:
            return (
                f"make gives {kind_words(array)} on {where}: give input on the CPU, from where "
                "each side gets a copy"
            )
    return ""


def misplaced(side: Ready, result: Any, arguments: tuple[Any, ...]) -> str:
    """Why `side` did not compute where it should, a sentence; empty where it did."""
    given = arrays(result)
    if side.on_device:
        for array in given:
            if place(array) == CPU:
                return (
                    f"{side.name} should compute on the GPU, and its result, {kind_words(array)}, "
                    "is on the CPU: give the result as it lies on the GPU"
                )
        if not any(place(array) != CPU for array in (*given, *arrays(arguments))):
            return f"{side.name} should compute on the GPU, and nothing it gets or gives is there"
        return ""
    for array in given:
        if library_of(array) and place(array) != CPU:
            return (
                f"{side.name} should compute on the CPU, and its result, {kind_words(array)}, is "
                f"on {place(array)}"
            )
    return ""


def unknown(side: Ready, result: Any) -> str:
    """What of a result is of no library that is known, so that its work may go on, in words; empty
    for nothing. On the CPU that is what names itself as something to be waited for or converted."""
    for array in arrays(result) if side.given.wait is None else ():
        if library_of(array) or place(array) == CPU or hasattr(array, "block_until_ready"):
            continue
        if side.on_device or any(hasattr(array, name) for name in _LATER):
            return kind_words(array)
    return ""


def sides_of(
    given: Mapping[str, Any], to: Any, devices: Mapping[str, Any] | None
) -> tuple[Ready, ...]:
    """The sides that a caller named; those of the CPU first. Raises RefusedError."""
    sides = []
    for name, value in given.items():
        side = value if isinstance(value, Side) else Side(value)
        shown = printable(name, 40)
        if not callable(side.function):
            raise RefusedError(f"{shown} is no function and no Side, but {kind_words(value)}")
        device = side.device or (devices or {}).get(name) or (name if name in DEVICES else "")
        if device not in DEVICES:
            raise RefusedError(
                f"Where {shown} computes is {f'{device!r}' if device else 'not said'}; say "
                f'devices={{"{shown}": "gpu"}} or "cpu"'
            )
        brings = to.get(name) if isinstance(to, Mapping) else to if device != CPU else None
        if side.to is None and brings is not None:
            side = Side(side.function, side.device, brings, side.wait)
        sides.append(ready(shown, side, device))
    if len(sides) < 2:
        raise RefusedError("Two sides are needed, such as cpu=np.sort and gpu=cp.sort")
    for name in {*(devices or {})} - given.keys():
        raise RefusedError(f"devices names {printable(str(name), 40)}, which is no side")
    return tuple(sorted(sides, key=lambda side: side.on_device))
