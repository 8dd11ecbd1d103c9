# SPDX-License-Identifier: Apache-2.0
"""Rows of PyTorch, made and verified: trainings, products and copies."""

from __future__ import annotations

from typing import Any

import torch

from crossover_bench.peers.forward import forward_row
from crossover_bench.peers.protocol import Configuration
from crossover_bench.peers.pytorch.copies import Copies
from crossover_bench.peers.pytorch.counterparts import TRAINING
from crossover_bench.peers.pytorch.devices import of_row
from crossover_bench.peers.pytorch.forward import Forward, exact_outputs
from crossover_bench.peers.pytorch.layers import RECURRENT
from crossover_bench.peers.pytorch.operations import Copy, Product
from crossover_bench.peers.pytorch.ranks import SharedTraining
from crossover_bench.peers.pytorch.training import Training, allow_tf32, cached_graphs, where_tf32
from crossover_bench.peers.pytorch.usual import Usual
from crossover_bench.peers.rows import Prepared, training_row
from crossover_bench.peers.verification import References

_BY_CUDNN = {"conv2d", "conv_transpose2d", *RECURRENT}
_TF32_SINCE = 8  # compute capability


def prepare(
    configuration: Configuration,
    counted: dict[str, Any] | None,
    references: References,
    device_start_seconds: float,
) -> Prepared:
    """Makes and verifies a row; `counted` is what bench tells of its network. Mismatch
    where it computes something else, ValueError where it can't be had."""
    is_on_gpu = configuration["device"] == "cuda"
    threads = int(configuration.get("cpu_threads", torch.get_num_threads()))
    is_usual = configuration.get("script") == "usual"

    def begin() -> None:
        torch.set_num_threads(threads)
        allow_tf32(as_torch=is_usual and is_on_gpu)

    begin()
    family = configuration["family"]
    if family == "Forward":
        prepared = forward_row(Forward, exact_outputs, "PyTorch", configuration, counted)
    elif family in TRAINING:
        prepared = _training(configuration, counted, references)
    else:
        work: Product | Copy
        if family == "Gemm":
            work = Product(configuration)
        else:
            work = Copy(configuration, _copied_bytes(configuration, counted))
        checked = work.verify()
        facts = {"verification": checked, **work.facts}
        prepared = Prepared(work, is_on_gpu, work.check, facts)
    if is_on_gpu and "first_call_seconds" in prepared.once:
        prepared.once["first_call_seconds"] += device_start_seconds
    prepared.begin = begin
    if "cpu_threads" in configuration:
        prepared.facts["cpu_threads"] = threads
    if "ranks" in configuration:
        prepared.facts["ranks"] = int(configuration["ranks"])
    return prepared


def _training(
    configuration: Configuration, counted: dict[str, Any] | None, references: References
) -> Prepared:
    kind: type[Training | SharedTraining] = Training
    if configuration.get("script") == "usual":
        kind = Usual
    elif "ranks" in configuration:
        kind = SharedTraining
    elif "copies" in configuration:
        kind = Copies
    if _rounds_to_tf32(configuration, counted):
        configuration = {**configuration, "precision": "tf32"}  # whose tolerances it has
    before = cached_graphs()
    prepared = training_row(kind, configuration, counted, references)
    if configuration.get("compiler") == "inductor":
        prepared.once["cached_graphs"] = cached_graphs() - before
    if isinstance(prepared.work, Usual):
        prepared.work.check_loader()
    if of_row(configuration).type == "cuda":
        prepared.facts["tf32_in"] = ", ".join(where_tf32()) or "none"
    return prepared


def _rounds_to_tf32(configuration: Configuration, counted: dict[str, Any] | None) -> bool:
    """Whether something of a network is computed in TF32 now."""
    allowed = where_tf32() if of_row(configuration).type == "cuda" else []
    if not allowed or torch.cuda.get_device_capability()[0] < _TF32_SINCE:
        return False
    types = {layer["type"] for layer in counted["network"]["layers"]} if counted else set()
    return "matmul" in allowed or not types.isdisjoint(_BY_CUDNN)


def _copied_bytes(configuration: Configuration, counted: dict[str, Any] | None) -> int:
    if "bytes" in configuration:
        return int(configuration["bytes"])
    if counted is None:
        raise ValueError("nothing is known of its network")
    return int(counted["step"]["bytes_to_device"])
