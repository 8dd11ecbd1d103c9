# SPDX-License-Identifier: Apache-2.0
"""Copies of a user's module, loss and optimizer on a device, which know each other and nothing of
the originals."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.parameter import is_lazy

from crossover_bench.in_hand.kept import AskError
from crossover_bench.peers.pytorch.devices import empty_cache
from crossover_bench.peers.pytorch.user_file import failure
from crossover_bench.words.text import printable

_WRAPPERS = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel")


@dataclass(frozen=True)
class Given:
    """What the user hands over; `loss` is None where the module gives its own."""

    model: nn.Module
    loss: Callable[..., Any] | None
    optimizer: Any

    def __post_init__(self) -> None:
        model, optimizer = self.model, self.optimizer
        if not isinstance(model, nn.Module):
            raise AskError(f"the model is of type {_kind(model)}, and no torch.nn.Module")
        if _kind(model) in _WRAPPERS:
            raise AskError(f"the model is a {_kind(model)}; give model.module, which it holds")
        if self.loss is not None and not callable(self.loss):
            raise AskError(f"loss= is of type {_kind(self.loss)}, and nothing to call")
        if not all(hasattr(optimizer, name) for name in ("step", "zero_grad", "param_groups")):
            raise AskError(f"optimizer= is of type {_kind(optimizer)}, and no optimizer of torch")
        parameters = list(model.parameters())
        if any(map(is_lazy, parameters)):
            raise AskError("the module has parameters without a shape; call it once on a batch")
        places = sorted({parameter.device.type for parameter in parameters})
        if len(places) > 1 or "meta" in places:
            where = " and ".join(places)
            raise AskError(f"the module's parameters lie on {where}, and not on one device")
        trained = {id(parameter) for parameter in parameters if parameter.requires_grad}
        if not trained.intersection(map(id, _optimized(optimizer))):
            raise AskError(
                "the optimizer has none of the module's parameters; make it of model.parameters()"
            )

    @property
    def modules(self) -> list[nn.Module]:
        """Those of it that hold parameters."""
        return [self.model, *([self.loss] if isinstance(self.loss, nn.Module) else [])]

    @property
    def name(self) -> str:
        return printable(_kind(self.model), 60)

    @property
    def words(self) -> str:
        """ "Net (1,199,882 parameters, in evaluation mode)"."""
        count = sum(parameter.numel() for parameter in self.model.parameters())
        mode = "" if self.model.training else ", in evaluation mode"
        return f"{self.name} ({count:,} parameters{mode})"

    def copied(self, device: torch.device) -> Given:
        """On that device. AskError where that can't be."""
        memo: dict[int, Any] = {}
        try:
            model, loss = deepcopy(self.model, memo), deepcopy(self.loss, memo)
            optimizer = _copied_optimizer(self.optimizer, memo)
        except Exception as error:
            raise AskError(
                f"the module can't be copied: {failure(error)}; what it keeps of an earlier "
                "forward pass, and files and locks that it holds, are to be taken off it"
            ) from error
        made = Given.__new__(Given)  # which was checked
        vars(made).update(model=model, loss=loss, optimizer=optimizer)
        made._move(device)
        return made

    def _move(self, device: torch.device) -> None:
        is_moved = any(p.device.type != device.type for p in self.model.parameters())
        before = [p for module in self.modules for p in module.parameters()]
        for module in self.modules:
            module.to(device)
        after = [p for module in self.modules for p in module.parameters()]
        _replace(self.optimizer, {a: b for a, b in zip(before, after, strict=True) if a is not b})
        moved = [p for p in _optimized(self.optimizer) if p.device != device]
        for parameter in moved:  # of nothing that was copied as a module
            parameter.data = parameter.data.to(device)
        is_known = isinstance(self.optimizer, torch.optim.Optimizer)
        if is_moved and is_known and self.optimizer.state:
            # Puts each state where its parameter is, but for what belongs on the host.
            self.optimizer.load_state_dict(self.optimizer.state_dict())


def _kind(value: object) -> str:
    return type(value).__name__


def _optimized(optimizer: Any) -> Iterator[torch.Tensor]:
    return (p for group in optimizer.param_groups for p in group["params"])


def _replace(optimizer: Any, others: dict[torch.Tensor, torch.Tensor]) -> None:
    """Some of its parameters by others: to devices of extensions a module moves as new ones."""
    for group in optimizer.param_groups if others else ():
        group["params"] = [others.get(p, p) for p in group["params"]]
    state = getattr(optimizer, "state", {})
    for p in others.keys() & state.keys():
        state[others[p]] = state.pop(p)


def _copied_optimizer(optimizer: Any, memo: dict[int, Any]) -> Any:
    """With the copied parameters. PyTorch's own copy leaves out what a class of optimizers adds;
    hooks, and the `step` that a scheduler replaced, hold the original, so that they stay behind."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        return deepcopy(optimizer, memo)
    kept = {
        name: value
        for name, value in vars(optimizer).items()
        if name != "step" and not name.endswith("_hooks")
    }
    made: Any = object.__new__(type(optimizer))
    memo[id(optimizer)] = made
    vars(made).update(deepcopy(kept, memo))
    made.__setstate__({})
    return made


def needs_closure(optimizer: Any) -> bool:
    """Whether its step calls the loss itself, as that of LBFGS does."""
    closure = inspect.signature(type(optimizer).step).parameters.get("closure")
    return closure is not None and closure.default is closure.empty


def released(devices: Iterable[torch.device]) -> None:
    """Memory of copies that are gone is the user's again."""
    for kind in {device.type for device in devices} - {"cpu"}:
        with suppress(RuntimeError):  # of a GPU that fails
            empty_cache(kind)
