# SPDX-License-Identifier: Apache-2.0
"""FILE.py:CALLABLE: a module as its user makes it, and the graph that torch.export finds in it."""

from __future__ import annotations

import io
import logging
import random
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn
from torch.nn.parameter import is_lazy
from torch.nn.utils.parametrize import is_parametrized
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from crossover_bench.networks.steps import MOST_PARAMETERS
from crossover_bench.networks.values import BATCH, Refused
from crossover_bench.peers.pytorch.draws import CastToF64
from crossover_bench.peers.pytorch.user_file import failure, module_of, place

# nn.TransformerEncoder compares a mask's numbers with the causal one's. No graph can do that; the
# walk does it.
_MASK_AS_GIVEN = ("_detect_is_causal_mask", lambda mask, is_causal=None, size=None: bool(is_causal))
# Code that keeps its own numbers out of autocast is a part by itself in a graph, and no other
# arithmetic.
_ENTER, _EXIT = torch.autocast.__enter__, torch.autocast.__exit__
_ENTERS_IF_ENABLED = ("__enter__", lambda self: _ENTER(self) if self._enabled else self)
_LEAVES_IF_ENABLED = ("__exit__", lambda self, *e: _EXIT(self, *e) if self._enabled else None)
# What torch.export says in its own words.
_PLAIN = {
    "data-dependent": "it decides by the numbers of a tensor, as `if x.sum() > 0:` does",
    "We found a fake tensor": "it keeps a tensor that it makes while it runs, or sets weight.data",
}


@dataclass(frozen=True)
class Input:
    """An argument of the network: the shape of a sample, () of a single token or number, and where
    the batch lies."""

    shape: tuple[int, ...]
    tokens: int = 0  # how many there are; 0: numbers, not tokens
    batch_axis: int = 0
    is_uniform: bool = False  # from 0 to 1

    def random(self, but: Sequence[int] = (), batch: int = BATCH) -> torch.Tensor:
        """A random batch without these tokens."""
        shape = [*self.shape]
        shape.insert(self.batch_axis, batch)
        if self.tokens:
            drawn = torch.tensor([token for token in range(self.tokens) if token not in but])
            return drawn[torch.randint(len(drawn), shape)]
        return (torch.rand if self.is_uniform else torch.randn)(shape, dtype=torch.float64)


@contextmanager
def in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with CastToF64():
            yield
    finally:
        torch.set_default_dtype(before)


def made(source: str, *wanted: Input) -> nn.Module:
    """The module of FILE.py:CALLABLE, in float64 and in training."""
    torch.manual_seed(0)
    return readied(module_of(source), source, *wanted)


def readied(network: nn.Module, source: str, *wanted: Input) -> nn.Module:
    """A module itself, which came from `source`, in float64 and in training."""
    network = getattr(network, "_orig_mod", network)  # of torch.compile, which takes minutes
    _check(network, source)
    network = network.double()
    for module in network.modules():  # what is no buffer, such as a number on a device
        for name, value in vars(module).items():
            if isinstance(value, torch.Tensor) and value.dtype is torch.float32:
                setattr(module, name, value.double())
    if not network.training:  # parts that were put in evaluation by themselves stay so
        network.train()
    if any(map(is_lazy, [*network.parameters(), *network.buffers()])):
        _run(network, [argument.random() for argument in wanted])  # a batch says how large they are
        _check(network, source)
    return network


def _check(network: nn.Module, source: str) -> None:
    count = sum(weights.numel() for weights in network.parameters() if not is_lazy(weights))
    if count > MOST_PARAMETERS:
        raise Refused(f"{source} has {count:,} parameters; 10^9 are the most")
    for path_of, module in network.named_modules():
        if is_parametrized(module):
            (first, *_) = module.parametrizations
            raise Refused(
                f"{path_of}.{first} is calculated in each step from others (parametrizations, as "
                "weight_norm and spectral_norm are); a factory that ends with "
                f"torch.nn.utils.parametrize.remove_parametrizations(..., {first!r}) gives the "
                "network without them"
            )


def _run(network: nn.Module, read: list[torch.Tensor]) -> Any:
    try:
        with in_float64():
            return network(*read)
    except Refused:
        raise
    except (Exception, SystemExit) as error:
        shapes = " and ".join(str(list(x.shape)) for x in read)
        raise Refused(
            f"the network can't be run on a batch {shapes}: {failure(error)}; --input and "
            "--input-type say what it reads, once for each input, and its numbers are float64 here"
        ) from error


_UNIFORM = (torch.rand_like, torch.rand)  # from 0 to 1
_IN_PLACE = (torch.Tensor.normal_, torch.Tensor.bernoulli_)
_DRAW = (*_UNIFORM, *_IN_PLACE, torch.randn_like, torch.randn, torch.bernoulli)


class _Draws(TorchFunctionMode):
    """Notes the random numbers that a forward pass draws for each sample, or replaces them by the
    `given` ones."""

    def __init__(self, given: Sequence[torch.Tensor] = ()) -> None:
        super().__init__()
        self.given = list(given)
        self._batch = len(self.given[0]) if self.given else BATCH
        self.drawn: list[Input] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        del types
        if function in _IN_PLACE and self.given and self._is_of_samples(args[0]):
            return self.given.pop(0).clone()  # a graph would keep the drawing
        result = function(*args, **(kwargs or {}))
        if function in _DRAW and self._is_of_samples(result):
            self.drawn.append(Input(tuple(result.shape[1:]), is_uniform=function in _UNIFORM))
            return self.given.pop(0).clone() if self.given else result
        return result

    def _is_of_samples(self, drawn: torch.Tensor) -> bool:
        return drawn.ndim > 1 and drawn.shape[0] == self._batch


def with_draws_as_inputs(network: nn.Module, *wanted: Input) -> tuple[Input, ...]:
    """The network's arguments, and behind them the random numbers that it draws itself for each
    sample, as the noise of a variational autoencoder. From now on the network reads these, too."""
    read = [argument.random() for argument in wanted]
    with _Draws() as draws:
        _run(network, read)
    if draws.drawn:
        plain_forward, count = network.forward, len(wanted)

        def forward(*read: torch.Tensor) -> Any:
            with _Draws(read[count:]):
                return plain_forward(*read[:count])

        network.forward = forward
    return (*wanted, *draws.drawn)


def with_one_output(network: nn.Module) -> None:
    """From now on the network gives all of its tensors as one row for each sample."""
    plain_forward = network.forward

    def forward(*read: torch.Tensor) -> torch.Tensor:
        given = [x for x in tree_leaves(plain_forward(*read)) if isinstance(x, torch.Tensor)]
        if any(x.ndim == 0 for x in given):
            raise Refused("--output=all: one of its outputs is a single number for all samples")
        return torch.cat([x.reshape(len(x), -1) for x in given], 1)

    network.forward = forward


def exported(network: nn.Module, *wanted: Input) -> torch.export.ExportedProgram:
    """The network's operations as the user wrote them, before any decomposition."""
    read, before = tuple(argument.random() for argument in wanted), _chance()
    _run(network, list(read))
    if _chance() != before:
        raise Refused(
            "the network draws from Python's or numpy's random numbers while it runs: what they "
            "decide, such as whether a block is left out, would be frozen; dropout is by torch's"
        )
    logging.getLogger("torch").setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), redirect_stderr(io.StringIO()):  # the sentence says it
            warnings.simplefilter("ignore")
            with (
                in_float64(),
                patch.object(nn.modules.transformer, *_MASK_AS_GIVEN),
                patch.object(torch.autocast, *_ENTERS_IF_ENABLED),
                patch.object(torch.autocast, *_LEAVES_IF_ENABLED),
            ):
                return torch.export.export(network, read, strict=False)
    except (Exception, SystemExit) as error:
        plain = next((_PLAIN[known] for known in _PLAIN if known in str(error)), "")
        reason = f"{plain}{place(error)}" if plain else failure(error)
        raise Refused(f"torch.export can't follow the network: {reason}") from error


def _chance() -> tuple[Any, ...]:
    """The state that Python's and numpy's next random numbers depend on."""
    state = np.random.get_state(legacy=False)["state"]
    return random.getstate(), bytes(state["key"]), state["pos"]
