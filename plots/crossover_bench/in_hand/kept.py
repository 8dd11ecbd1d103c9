# SPDX-License-Identifier: Apache-2.0
"""What a measurement in the user's process may change, put back as it was: the process's random
numbers and flags, and the user's module and optimizer."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from torch import nn

from crossover_bench.peers.pytorch.devices import kinds, module_of

Setting = tuple[Callable[[], Any], Callable[[Any], Any]]  # how it is read, and how it is set

_PRECISE = (
    torch.backends.cuda.matmul,
    *(getattr(torch.backends.cudnn, name, None) for name in ("conv", "rnn")),
)
_FLAGS = (
    (torch.backends.cudnn, ("enabled", "benchmark", "deterministic", "allow_tf32")),
    (torch.backends.cuda.matmul, ("allow_tf32", "allow_fp16_reduced_precision_reduction")),
    (torch.backends.cuda.matmul, ("allow_bf16_reduced_precision_reduction",)),
    (torch.backends.mkldnn, ("enabled", "deterministic")),
    # PyTorch's newer name for TF32 comes last: put back first, it would contradict the older one.
    *((flags, ("fp32_precision",)) for flags in _PRECISE if flags is not None),
)


class AskError(ValueError):
    """Why nothing can be measured, in a sentence."""


def settings() -> list[Setting]:
    """Flags of the process that a loop may set, each of which is put back where it changed."""
    made: list[Setting] = [
        (torch.get_num_threads, torch.set_num_threads),
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_default_device, _set_default_device),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        (_deterministic, _set_deterministic),
        (torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled),
    ]
    for flags, names in _FLAGS:
        made += [_attribute(flags, name) for name in names if _has(flags, name)]
    for kind in ("cpu", *kinds()):  # which have an autocast each
        made += [_autocast(kind), _autocast_dtype(kind)]
    return made


def _has(of: Any, name: str) -> bool:
    with suppress(RuntimeError):  # of two names for TF32 that contradict each other
        return hasattr(of, name)
    return True


def _attribute(of: Any, name: str) -> Setting:
    return lambda: getattr(of, name), lambda value: setattr(of, name, value)


def _autocast(kind: str) -> Setting:
    return (
        lambda: torch.is_autocast_enabled(kind),
        lambda value: torch.set_autocast_enabled(kind, value),
    )


def _autocast_dtype(kind: str) -> Setting:
    return (
        lambda: torch.get_autocast_dtype(kind),
        lambda value: torch.set_autocast_dtype(kind, value),
    )


def _deterministic() -> tuple[bool, bool]:
    return (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )


def _set_deterministic(kept: tuple[bool, bool]) -> None:
    torch.use_deterministic_algorithms(kept[0], warn_only=kept[1])


def _set_default_device(device: torch.device) -> None:
    # Set to the CPU it is a mode that all calls pass, which there was not before.
    torch.set_default_device(None if device == torch.device("cpu") else device)


def chances(devices: Iterable[torch.device], given: Iterable[Any]) -> list[Setting]:
    """The states of random numbers: of Python, NumPy, each of `devices`, and the generators that
    the user's loader and its parts hold."""
    made: list[Setting] = [
        (random.getstate, random.setstate),
        (np.random.get_state, np.random.set_state),
        (torch.get_rng_state, torch.set_rng_state),
    ]
    initialized = {"cuda"} if torch.cuda.is_initialized() else set()
    for kind in {device.type for device in devices} - {"cpu"} | initialized:
        backend = module_of(kind)
        of = "_all" if hasattr(backend, "get_rng_state_all") else ""
        if hasattr(backend, f"get_rng_state{of}"):  # extensions may lack it
            read, put = (getattr(backend, f"{verb}_rng_state{of}") for verb in ("get", "set"))
            made.append((read, put))
    for held in {id(value): value for value in _generators(given)}.values():
        made.append(_state_of(held))
    return made


def _generators(given: Iterable[Any]) -> Iterator[Any]:
    """Those in what is `given` and, one step further, in its attributes."""
    for outer in given:
        for value in (outer, *getattr(outer, "__dict__", {}).values()):
            inner = getattr(value, "__dict__", {}) if value is not outer else {}
            kinds = (torch.Generator, np.random.Generator, np.random.RandomState, random.Random)
            yield from (each for each in (value, *inner.values()) if isinstance(each, kinds))


def _state_of(held: Any) -> Setting:
    if isinstance(held, random.Random):
        return held.getstate, held.setstate
    if isinstance(held, np.random.Generator):
        bits = held.bit_generator
        return lambda: bits.state, lambda state: setattr(bits, "state", state)
    return held.get_state, held.set_state


@contextmanager
def process_kept(devices: Iterable[torch.device], given: Iterable[Any]) -> Iterator[None]:
    """The body finds gradients switched on, and leaves the process as it was; `given` is what else
    may hold random numbers."""
    flags: list[tuple[Setting, Any]] = []
    for setting in settings():
        # What this PyTorch has not, it can't change either.
        with suppress(AttributeError, RuntimeError, TypeError):
            flags.append((setting, setting[0]()))
    drawn = [(setting, setting[0]()) for setting in chances(devices, given)]
    try:
        with warnings.catch_warnings(), torch.inference_mode(False), torch.enable_grad():
            yield
    finally:
        for (read, put), before in flags:
            try:
                is_as_before = read() == before
            except RuntimeError:
                is_as_before = False
            if not is_as_before:
                with suppress(RuntimeError):
                    put(before)
        for (_, put), before in drawn:
            with suppress(RuntimeError):  # of a GPU that fails nothing can be set any more
                put(before)


# ---- the user's module and optimizer


def _tensors(modules: Iterable[nn.Module], optimizer: Any) -> list[torch.Tensor]:
    """Parameters, buffers, gradients and the optimizer's state, each once."""
    listed: list[Any] = []
    for module in modules:
        parameters = list(module.parameters())
        listed += [*parameters, *module.buffers(), *(p.grad for p in parameters)]
    for state in getattr(optimizer, "state", {}).values():
        listed += state.values() if isinstance(state, dict) else []
    return list({id(t): t for t in listed if isinstance(t, torch.Tensor)}.values())


@contextmanager
def untouched(modules: list[nn.Module], optimizer: Any) -> Iterator[None]:
    """The body works on copies of these. Where one reaches its original, as a forward that holds
    the module may, the original is put back, and AskError says so."""
    tensors = _tensors(modules, optimizer)
    values = [tensor.detach().to("cpu", copy=True) for tensor in tensors]  # there is most room
    gradients = [(p, p.grad) for module in modules for p in module.parameters()]
    modes = [(part, part.training) for module in modules for part in module.modules()]
    state = dict(getattr(optimizer, "state", {}))
    try:
        yield
    finally:
        reached = False
        for tensor, value in zip(tensors, values, strict=True):
            if not _is_same(tensor, value):
                reached = True
                with torch.no_grad():
                    tensor.data.copy_(value)
        for parameter, gradient in gradients:
            if parameter.grad is not gradient:
                reached, parameter.grad = True, gradient
        for part, training in modes:
            if part.training != training:
                reached, part.training = True, training
        if getattr(optimizer, "state", {}).keys() != state.keys():
            reached = True
            optimizer.state.clear()
            optimizer.state.update(state)
    if reached:
        raise AskError(
            "the module was not measured: a copy of it works on the module itself, as one whose "
            "forward was replaced by a function that holds it does (it is as it was); give a "
            "module whose forward is its class's"
        )


def _is_same(tensor: torch.Tensor, value: torch.Tensor) -> bool:
    """Bit by bit; a version would not tell, as batch normalization leaves that of its means."""
    if tensor.layout != torch.strided:
        return True
    first, second = (each.detach().cpu().reshape(-1) for each in (tensor, value))
    return torch.equal(first.view(torch.uint8), second.view(torch.uint8))
