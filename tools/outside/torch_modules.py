# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples of its modules: each is imported and proved as a network of a user's is, in
outputs and gradients. A loss function is the first that takes what comes out."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.testing._internal.common_modules import module_db

from crossover_bench.networks import ending, proof
from crossover_bench.networks.from_torch import Graph
from crossover_bench.networks.user_module import Input, exported, with_draws_as_inputs
from crossover_bench.networks.values import BATCH, Refused
from tools.outside.results import Suite, Verdict, of_refusal

_LOSSES = ("mse", "cross-entropy", "bce")


class _Called(nn.Module):
    """The module, called as its sample says."""

    def __init__(self, module: nn.Module, rest: list[Any], named: dict[str, Any]) -> None:
        super().__init__()
        self.module, self._rest, self._named = module, rest, named

    def forward(self, *read: torch.Tensor) -> Any:
        return self.module(*read, *self._rest, **self._named)


def suite(tell: Callable[[str], None]) -> tuple[Suite, dict[str, dict[str, Any]]]:
    """And the networks that came in, by their case."""
    verdicts: list[Verdict] = []
    networks: dict[str, dict[str, Any]] = {}
    for entry in module_db:
        name = entry.name.replace("nn.", "", 1)
        if name.endswith("Loss"):  # bench's losses are no layers
            continue
        tell(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            samples = entry.module_inputs_func(
                entry, device="cpu", dtype=torch.float64, requires_grad=False, training=True
            )
            for number, sample in enumerate(samples):
                case = f"{name}-{number}"
                verdicts.append(_of_sample(case, entry.module_cls, sample, networks))
    how = (
        "the network built again beside the module itself in float64, outputs (of several the "
        "first) and all gradients, on drawn batches of the sample's shapes; to "
        f"{proof.TOLERANCE:g} of the largest"
    )
    suite = Suite("torch, module_db", torch.__version__, how, verdicts, "samples of modules")
    return suite, networks


def _of_sample(case: str, kind: Any, sample: Any, networks: dict[str, dict[str, Any]]) -> Verdict:
    made, called = sample.constructor_input, sample.forward_input
    given = list(called.args)
    count = next((at for at, x in enumerate(given) if not isinstance(x, torch.Tensor)), len(given))
    read, rest = given[:count], given[count:]
    if not read or any(not x.ndim or x.is_complex() for x in read):
        return Verdict(case, "other", "no batch in its inputs")
    try:
        module = kind(*made.args, **made.kwargs).double().train()
        wanted = [_input(module, x) for x in read]
        network = _Called(module, rest, dict(called.kwargs))
        with torch.no_grad():  # the first run also says how large lazy parameters are
            for samples in (BATCH, proof.MORE):
                network(*(each.random(batch=samples) for each in wanted))
    except Exception as error:  # of a sample without a batch, or with one of its own size
        return Verdict(case, "other", f"takes no batch of {BATCH}: {type(error).__name__}")
    first = ""
    for loss in _LOSSES:
        try:
            tried = copy.deepcopy(network)
            inputs = with_draws_as_inputs(tried, *wanted)
            graph = Graph(exported(tried, *inputs), *inputs, output=0)
            described = ending.described(graph, case[:100], loss)
            apart, _ = proof.prove(tried, graph, described, *inputs)
        except Refused as refused:
            first = first or str(refused)
            continue
        except Exception as error:
            return Verdict(case, "fault", f"{type(error).__name__}: {error}")
        networks.setdefault(case, described)
        return Verdict(case, "equal", apart=apart)
    return of_refusal(case, first)


def _input(module: nn.Module, x: torch.Tensor) -> Input:
    """The first dimension is the batch, but of what has a part that says that it is the second."""
    is_table = isinstance(module, (nn.Embedding, nn.EmbeddingBag))
    batch_first = [part.batch_first for part in module.modules() if hasattr(part, "batch_first")]
    second = x.ndim > 2 and batch_first[:1] == [False]
    shape = list(x.shape)
    shape.pop(int(second))
    return Input(tuple(shape), module.num_embeddings if is_table else 0, int(second))
