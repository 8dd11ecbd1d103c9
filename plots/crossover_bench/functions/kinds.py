# SPDX-License-Identifier: Apache-2.0
"""Arrays of libraries that compute on devices: where they lie, what waits for them, and how they
come to a device and back.

A line of LIBRARIES is all that is known of a library. None is imported before a function, a value
or a caller names it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from crossover_bench.peers.pytorch import devices
from crossover_bench.words.text import printable

CPU = "cpu"
Wait = Callable[[Any], object]  # of a result: returns when the work behind it is done
PLAIN = (bool, int, float, complex, str, bytes, np.generic, type(None))
_FLAT = {bool, int, float, complex, str, bytes, type(None)}
_DEEPEST = 16  # of nested tuples, lists and dicts; below, a value is taken as it is
_DLPACK_CPU = 1  # a device type of DLPack, in __dlpack_device__()


class RefusedError(ValueError):
    """Why something can't be measured, in a sentence."""


@dataclass(frozen=True, slots=True)
class Library:
    """What is known of the arrays of one library.

    `place` is where an array lies: CPU, or a device such as "cuda:0". `wait` makes of an array what
    waits for the work on it, None where a call returns when its work is done. `host` is the array
    as NumPy or pandas has it. `bring` makes an array of one on the CPU, on the `device` that it is
    given: "cpu", "gpu" (the library's first), or a name of the library's own; it raises
    RefusedError where there is none.
    """

    title: str
    place: Callable[[Any], str]
    wait: Callable[[Any], Wait | None]
    host: Callable[[Any], Any]
    bring: Callable[[Any, str], Any]


def _after(function: Callable[..., object], *arguments: object) -> Wait:
    """Waits for all work on a device, whatever the result."""
    return lambda _: function(*arguments)


# ---- PyTorch


def _torch_place(tensor: Any) -> str:
    return CPU if tensor.device.type == CPU else str(tensor.device)


def _torch_wait(tensor: Any) -> Wait | None:
    return None if tensor.device.type == CPU else _after(devices.waits_for(tensor.device))


def _torch_host(tensor: Any) -> Any:
    dense = tensor.detach().cpu()
    if dense.is_sparse:
        dense = dense.to_dense()
    if str(dense.dtype) == "torch.bfloat16":  # which NumPy lacks
        dense = dense.float()
    return dense.resolve_conj().resolve_neg().numpy()


def _torch_bring(array: Any, device: str) -> Any:
    torch = import_module("torch")
    if device == "gpu":
        device = devices.first()
        if not device:
            raise RefusedError(
                'PyTorch sees no GPU here; on the CPU it can be a side, too: device="cpu"'
            )
    if not isinstance(array, (np.ndarray, torch.Tensor)):
        return array
    brought = torch.as_tensor(array)
    return brought.clone() if device == CPU else brought.to(device)


# ---- CuPy, numba, RAPIDS: NVIDIA's devices


def _cuda_place(array: Any) -> str:
    return f"cuda:{getattr(getattr(array, 'device', None), 'id', 0)}"


def _numba_wait(_: Any) -> Wait:
    return _after(import_module("numba.cuda").synchronize)


def _numba_bring(array: Any, device: str) -> Any:
    """On the CPU its functions take NumPy's arrays."""
    return array if device == CPU else import_module("numba.cuda").to_device(array)


def _rapids_wait(_: Any) -> Wait:
    return _after(import_module("cupy").cuda.runtime.deviceSynchronize)


def _only_gpu(bring: Callable[[Any], Any], title: str, array: Any, device: str) -> Any:
    if device == CPU:
        raise RefusedError(f'{title} has no arrays on the CPU; say device="gpu" of its side')
    return bring(array)


def _cudf_bring(array: Any) -> Any:
    module = "cupy" if isinstance(array, np.ndarray) else "cudf"
    return getattr(import_module(module), "asarray" if module == "cupy" else "from_pandas")(array)


# ---- JAX and MLX


def _jax_place(array: Any) -> str:
    device = next(iter(array.devices()))
    return CPU if device.platform == CPU else f"{device.platform}:{device.id}"


def _jax_bring(array: Any, device: str) -> Any:
    jax = import_module("jax")
    first = jax.devices(CPU)[0] if device == CPU else jax.devices()[0]
    if device != CPU and first.platform == CPU:
        raise RefusedError('JAX sees no GPU here; on the CPU it can be a side, too: device="cpu"')
    return jax.device_put(array, first)


def _mlx_place(_: Any) -> str:
    return CPU if "cpu" in str(import_module("mlx.core").default_device()) else "gpu"


LIBRARIES = {
    "torch": Library("PyTorch", _torch_place, _torch_wait, _torch_host, _torch_bring),
    "cupy": Library(
        "CuPy",
        _cuda_place,
        lambda array: _after(array.device.synchronize),
        lambda array: array.get(),
        partial(_only_gpu, lambda array: import_module("cupy").asarray(array), "CuPy"),
    ),
    "jax": Library(
        "JAX",
        _jax_place,
        lambda _: import_module("jax").block_until_ready,
        np.asarray,
        _jax_bring,
    ),
    "numba": Library(
        "numba",
        _cuda_place,
        _numba_wait,
        lambda array: array.copy_to_host(),
        _numba_bring,
    ),
    "cudf": Library(
        "cuDF",
        _cuda_place,
        _rapids_wait,
        lambda frame: frame.to_pandas(),
        partial(_only_gpu, _cudf_bring, "cuDF"),
    ),
    "mlx": Library(
        "MLX",
        _mlx_place,
        lambda _: import_module("mlx.core").eval,
        np.array,
        lambda array, _: import_module("mlx.core").array(array),
    ),
}
# Other packages whose functions take the arrays of a library, and where its classes lie.
_SAME = {"cupyx": "cupy", "jaxlib": "jax", "cuml": "cupy", "numba_cuda": "numba", "cugraph": "cudf"}
_HOST_PACKAGES = {"numpy", "pandas", "scipy", "polars", "pyarrow", "builtins"}


def named(module: str) -> str:
    """The key of LIBRARIES that a module belongs to; empty for none."""
    package = module.partition(".")[0]
    package = _SAME.get(package, package)
    return package if package in LIBRARIES else ""


def library_of(value: object) -> Library | None:
    """That of an array; None for what is no array of a library in LIBRARIES."""
    for base in type(value).__mro__:
        name = named(base.__module__)
        if name and (hasattr(value, "dtype") or hasattr(value, "dtypes")):
            return LIBRARIES[name]
    return None


def place(value: object) -> str | None:
    """Where an array lies: CPU or a device; None where that is not known."""
    if library := library_of(value):
        return library.place(value)
    if {base.__module__.partition(".")[0] for base in type(value).__mro__[:-1]} & _HOST_PACKAGES:
        return CPU
    told = getattr(value, "__dlpack_device__", None)
    if told is None:
        return None
    kind, number = told()
    return CPU if int(kind) == _DLPACK_CPU else f"device {int(number)}"


def kind_words(value: object) -> str:
    """What a value is: "numpy.ndarray"."""
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return printable(f"{module}{kind.__qualname__}", 80)


def is_flat(value: object) -> bool:
    """Whether `value` is a list or tuple of numbers and text alone, which may be long."""
    return isinstance(value, (tuple, list)) and set(map(type, value)) <= _FLAT


def leaves(value: object, depth: int = _DEEPEST) -> Iterator[Any]:
    """What nested tuples, lists and dicts hold; one that is_flat() is a leaf."""
    if is_flat(value):
        yield value
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from leaves(item, depth - 1)
    elif depth and isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item, depth - 1)
    else:
        yield value


def mapped(value: Any, change: Callable[[Any], Any], depth: int = _DEEPEST) -> Any:
    """`value` with each leaf changed; of one that is_flat() a copy."""
    if is_flat(value) and type(value) in (tuple, list):
        return value.copy() if isinstance(value, list) else value
    if depth and isinstance(value, dict):
        return {key: mapped(item, change, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, (tuple, list)):
        items = [mapped(item, change, depth - 1) for item in value]
        if hasattr(value, "_fields"):  # a named tuple
            return type(value)(*items)
        return tuple(items) if isinstance(value, tuple) else items
    return change(value)


def arrays(value: object) -> list[Any]:
    """The leaves that may lie on a device: all but numbers, text and None."""
    return [leaf for leaf in leaves(value) if not (isinstance(leaf, PLAIN) or is_flat(leaf))]


def wait_for(*values: object) -> Wait | None:
    """What waits for the work on all arrays in `values`; None where nothing need be waited for."""
    waits: dict[tuple[str, str], Wait] = {}
    for array in arrays(values):
        library = library_of(array)
        wait = library.wait(array) if library else getattr(array, "block_until_ready", None)
        if wait is not None:
            key = library.title if library else kind_words(array), str(place(array))
            waits[key] = wait if library else _block_each
    every = tuple(waits.values())
    if len(every) < 2:
        return every[0] if every else None

    def wait_for_all(result: object) -> None:
        for wait in every:
            wait(result)

    return wait_for_all


def _block_each(result: object) -> None:
    """Waits for arrays that are as JAX's, of a library that is not in LIBRARIES."""
    for array in arrays(result):
        block = getattr(array, "block_until_ready", None)
        if block is not None:
            block()


def on_host(value: Any) -> Any:
    """A leaf as NumPy or pandas has it; as it is where nothing is known of it."""
    if library := library_of(value):
        return library.host(value)
    if isinstance(value, PLAIN) or not hasattr(value, "__array__"):
        return value
    return value if place(value) == CPU else np.asarray(value)


def copied(value: Any) -> Any:
    """A copy of a leaf on the CPU that shares nothing with it."""
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    library = library_of(value)
    return value.clone() if library is LIBRARIES["torch"] else copy.deepcopy(value)


def used_by(function: Any) -> str:
    """The key of LIBRARIES that a function belongs to, by its module or by the modules that its
    code names; empty where that is none or several."""
    while hasattr(function, "func"):  # of functools.partial
        function = function.func
    bound = getattr(function, "__self__", None)
    modules = [getattr(function, "__module__", None)]
    modules += [base.__module__ for base in type(function).__mro__]
    if isinstance(bound, ModuleType):
        modules.append(bound.__name__)
    elif bound is not None:
        modules.append(type(bound).__module__)
    if isinstance(bound, type):
        modules.append(bound.__module__)
    names = {named(module) for module in modules if isinstance(module, str)} - {""}
    names = names or {*_named_in(getattr(function, "__wrapped__", function))}
    return names.pop() if len(names) == 1 else ""


def _named_in(function: Any) -> Iterator[str]:
    """The libraries whose modules and functions the code of a function names."""
    code = getattr(function, "__code__", None)
    if code is None:
        return
    cells = zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False)
    known = {**function.__globals__}
    for name, cell in cells:
        try:
            known[name] = cell.cell_contents
        except ValueError:  # not yet bound
            continue
    for name in (*code.co_names, *code.co_freevars):
        value = known.get(name)
        module = value.__name__ if isinstance(value, ModuleType) else ""
        module = module or getattr(value, "__module__", None) or type(value).__module__
        if isinstance(module, str) and (library := named(module)):
            yield library
