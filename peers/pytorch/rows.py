# SPDX-License-Identifier: Apache-2.0
"""Rows of PyTorch, made and verified: trainings, products and copies."""

from __future__ import annotations

from typing import Any

import torch

from peers.forward import forward_row
from peers.protocol import Configuration
from peers.pytorch.copies import Copies
from peers.pytorch.counterparts import TRAINING
from peers.pytorch.forward import Forward, exact_outputs
from peers.pytorch.operations import Copy, Product
from peers.pytorch.ranks import SharedTraining
from peers.pytorch.training import Training
from peers.rows import Prepared, training_row
from peers.verification import References


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
    torch.set_num_threads(threads)
    family = configuration["family"]
    if family == "Forward":
        prepared = forward_row(Forward, exact_outputs, "PyTorch", configuration, counted)
    elif family in TRAINING:
        kind: type[Training | SharedTraining] = Training
        if "ranks" in configuration:
            kind = SharedTraining
        elif "copies" in configuration:
            kind = Copies
        prepared = training_row(kind, configuration, counted, references)
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
    prepared.begin = lambda: torch.set_num_threads(threads)
    if "cpu_threads" in configuration:
        prepared.facts["cpu_threads"] = threads
    if "ranks" in configuration:
        prepared.facts["ranks"] = int(configuration["ranks"])
    return prepared


def _copied_bytes(configuration: Configuration, counted: dict[str, Any] | None) -> int:
    if "bytes" in configuration:
        return int(configuration["bytes"])
    if counted is None:
        raise ValueError("nothing is known of its network")
    return int(counted["step"]["bytes_to_device"])
