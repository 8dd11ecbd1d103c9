# SPDX-License-Identifier: Apache-2.0
"""Random numbers of two trainings that are compared: the same, or none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map


class DrawnInF32(TorchDispatchMode):
    """Random numbers in float64 are those that float32 would draw; `drew`: any were."""

    drew = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        self.drew = True
        is_tensor = bool(args) and isinstance(args[0], torch.Tensor)
        name = func.overloadpacket.__name__
        if name.endswith("_") and is_tensor:
            if args[0].dtype != torch.float64:
                return func(*args, **kwargs)
            drawn = torch.empty_like(args[0], dtype=torch.float32)
            func(drawn, *tree_map(_in_f32, args[1:]), **kwargs)
            return args[0].copy_(drawn)
        if name in ("rand", "randn", "rand_like", "randn_like", "normal") and not (
            name == "normal" and is_tensor
        ):
            own = args[0].dtype if is_tensor else torch.get_default_dtype()
            dtype = kwargs.get("dtype") or own
            if dtype == torch.float64:
                kwargs = {**kwargs, "dtype": torch.float32}
            return func(*args, **kwargs).to(dtype)
        is_double = any(isinstance(a, torch.Tensor) and a.dtype == torch.float64 for a in args)
        given = func(*tree_map(_in_f32, args), **kwargs)
        return tree_map(_in_f64, given) if is_double else given


def _in_f32(value: Any) -> Any:
    is_double = isinstance(value, torch.Tensor) and value.dtype == torch.float64
    return value.float() if is_double else value


def _in_f64(value: Any) -> Any:
    is_single = isinstance(value, torch.Tensor) and value.dtype == torch.float32
    return value.double() if is_single else value


_DROPOUTS = (
    "dropout",
    "alpha_dropout",
    "feature_alpha_dropout",
    *map("dropout{}d".format, (1, 2, 3)),
)


@contextmanager
def nothing_drawn() -> Iterator[None]:
    """Nothing is dropped, and what is drawn is its own mean: where two programs can't draw the same
    numbers."""
    attention, full, full_like = (
        functional.scaled_dot_product_attention,
        torch.full,
        torch.full_like,
    )

    def attended(*args: Any, **named: Any) -> torch.Tensor:
        named.pop("dropout_p", None)
        return attention(*args[:4], **named)

    def of_mean(mean: float) -> Callable[..., torch.Tensor]:
        def drawn(*size: Any, generator: Any = None, **named: Any) -> torch.Tensor:
            del generator
            is_whole = len(size) == 1 and not isinstance(size[0], int)
            return full(tuple(size[0] if is_whole else size), mean, **named)

        return drawn

    of_torch = {
        "rand": of_mean(0.5),
        "randn": of_mean(0.0),
        "rand_like": lambda x, **named: full_like(x, 0.5, **named),
        "randn_like": lambda x, **named: full_like(x, 0.0, **named),
        "bernoulli": lambda p, *_, **__: (p >= 0.5).to(p.dtype),
    }
    kept = dict.fromkeys(_DROPOUTS, lambda x, *_, **__: x)
    with (
        patch.multiple(torch, **of_torch),
        patch.multiple(functional, **kept, scaled_dot_product_attention=attended),
    ):
        yield
