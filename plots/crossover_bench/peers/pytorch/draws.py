# SPDX-License-Identifier: Apache-2.0
"""What makes two trainings comparable, one of them in float64: the same random numbers, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map


class CastToF64(TorchFunctionMode):
    """What the user's code casts to float32, or makes in it, is float64."""

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> torch.Tensor:
        if func is torch.Tensor.float:
            func = torch.Tensor.double
        args, kwargs = tree_map(
            lambda value: torch.float64 if value is torch.float32 else value, (args, kwargs or {})
        )
        return func(*args, **kwargs)


class DrawnInF32(TorchDispatchMode):
    """Random numbers in float64 are those that float32 would draw; `drew`: any were."""

    drew = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch._C.DisableTorchFunction():  # of CastToF64
            return self._given(func, args, kwargs or {})

    def _given(self, func: Any, args: Any, kwargs: Any) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags or not _drops(func, args, kwargs):
            return func(*args, **kwargs)
        self.drew = True
        name = func.overloadpacket.__name__
        is_tensor = bool(args) and isinstance(args[0], torch.Tensor)
        if name in _OF_TENSORS and is_tensor:
            is_double = any(isinstance(a, torch.Tensor) and a.dtype == torch.float64 for a in args)
            given = func(*tree_map(_in_f32, args), **kwargs)
            return tree_map(_in_f64, given) if is_double else given
        if name in _OF_SIZES:
            dtype = kwargs.get("dtype") or (
                args[0].dtype if is_tensor else torch.get_default_dtype()
            )
            if dtype == torch.float64:
                kwargs = {**kwargs, "dtype": torch.float32}
            return func(*args, **kwargs).to(dtype)
        if name.endswith("_") and is_tensor and args[0].dtype == torch.float64:
            drawn = torch.empty_like(args[0], dtype=torch.float32)
            func(drawn, *tree_map(_in_f32, args[1:]), **kwargs)
            return args[0].copy_(drawn)
        return func(*args, **kwargs)


_OF_TENSORS = ("bernoulli", "normal", "multinomial", "poisson", "binomial")
_OF_SIZES = ("rand", "randn", "rand_like", "randn_like", "normal")


def _drops(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether a function that may draw does: not where it drops out nothing."""
    for place, argument in enumerate(func._schema.arguments):
        if argument.name == "dropout_p":
            return bool(args[place] if place < len(args) else kwargs.get("dropout_p", 0.0))
    return True


def _in_f32(value: Any) -> Any:
    is_double = isinstance(value, torch.Tensor) and value.dtype == torch.float64
    return value.float() if is_double else value


def _in_f64(value: Any) -> Any:
    is_single = isinstance(value, torch.Tensor) and value.dtype == torch.float32
    return value.double() if is_single else value


_DROPOUTS = (
    *("dropout", "dropout1d", "dropout2d", "dropout3d"),
    *("alpha_dropout", "feature_alpha_dropout"),
)


@contextmanager
def nothing_drawn() -> Iterator[None]:
    """Nothing is dropped, and what is drawn is its own mean: where two programs can't draw the same
    numbers."""
    attention = functional.scaled_dot_product_attention
    full, full_like = torch.full, torch.full_like

    def attended(*args: Any, **named: Any) -> torch.Tensor:
        named.pop("dropout_p", None)
        return attention(*args[:4], **named)

    def of_mean(mean: float) -> Callable[..., torch.Tensor]:
        def drawn(*size: Any, generator: Any = None, **named: Any) -> torch.Tensor:
            del generator
            is_whole = len(size) == 1 and not isinstance(size[0], int)
            return full(tuple(size[0] if is_whole else size), mean, **named)

        return drawn

    of_torch: dict[str, Any] = {
        "rand": of_mean(0.5),
        "randn": of_mean(0.0),
        "rand_like": lambda x, **named: full_like(x, 0.5, **named),
        "randn_like": lambda x, **named: full_like(x, 0.0, **named),
        "bernoulli": lambda p, *_, **__: (p >= 0.5).to(p.dtype),
    }
    kept: dict[str, Any] = dict.fromkeys(_DROPOUTS, lambda x, *_, **__: x)
    with (
        patch.multiple(torch, **of_torch),
        patch.multiple(functional, **kept, scaled_dot_product_attention=attended),
    ):
        yield
