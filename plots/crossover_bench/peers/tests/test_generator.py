# SPDX-License-Identifier: Apache-2.0
"""The deterministic start, beside docs/golden.md computed number by number."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from crossover_bench.peers.generator import INPUTS, LABELS, PARAMETERS, kept_by_dropout, uniform
from crossover_bench.peers.tasks import Optimizer, Task, Unsupported, data_of, vocabularies
from crossover_bench.peers.tests import trained
from crossover_bench.peers.verification import is_compared_together

_LIMIT = 2**64


def _finalized(z: int) -> int:
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % _LIMIT
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % _LIMIT
    return z ^ (z >> 31)


def number_at(stream: int, k: int) -> float:
    place = ((stream << 32) + k + 1) * 0x9E3779B97F4A7C15 % _LIMIT
    return (_finalized(place) >> 40) / 2**24


@pytest.mark.parametrize("stream", [PARAMETERS, INPUTS, LABELS])
def test_numbers_are_those_of_the_definition(stream):
    got = uniform(stream, 7, 50)
    assert got.tolist() == [number_at(stream, 7 + k) for k in range(50)]
    assert (got.astype(np.float32) == got).all()


def test_dropout_starts_from_a_hash_of_layer_and_step():
    seed, step, kept = 16, 3, kept_by_dropout(16, 3, 200, 0.5)
    start = _finalized((0xD1B54A32D192ED03 * (seed + 1) + step) % _LIMIT)
    expected = [
        (_finalized((start + k + 1) * 0x9E3779B97F4A7C15 % _LIMIT) >> 40) / 2**24 >= 0.5
        for k in range(200)
    ]
    assert kept.tolist() == expected
    assert 60 < kept.sum() < 140


def task_of(model: str, rows: int, **changes: str) -> Task:
    told = {**trained(model), **changes}
    return Task(
        **told, batch=1, rows=rows, optimizer=Optimizer("sgd", 1), label="", params=0, flops=0
    )


def test_disc_points_are_standardized_over_all_numbers():
    inputs, labels = data_of(task_of("disc-8", 1000))
    assert inputs.shape == (1000, 2) and abs(inputs.mean()) < 1e-12
    assert math.isclose(inputs.std(ddof=1), 1)
    raw = uniform(INPUTS, 0, 4)
    assert labels[0] == (raw[0] ** 2 + raw[1] ** 2 < 1 / (2 * math.pi))


def test_tokens_stand_by_time():
    inputs, labels = data_of(task_of("lstm", 4))
    assert inputs.shape == labels.shape == (32, 4)
    assert inputs[3, 2] == math.floor(number_at(INPUTS, 3 * 4 + 2) * 10000)
    assert labels[3, 2] == math.floor(number_at(LABELS, 3 * 4 + 2) * 10000)


def test_sentences_are_drawn_row_by_row():
    inputs, labels = data_of(task_of("gpt-16", 4))
    assert inputs.shape == labels.shape == (64, 4)
    assert inputs[3, 2] == math.floor(number_at(INPUTS, 2 * 64 + 3) * 65)
    assert labels[3, 2] == math.floor(number_at(LABELS, 2 * 64 + 3) * 65)


def test_tokens_are_below_what_the_embedding_of_each_place_has():
    layers = [
        {"type": "slice", "from": 1, "to": 4},
        {"name": "part", "type": "slice", "to": 2},
        {"type": "embedding", "num_embeddings": 40, "embedding_dim": 2},
        {"type": "embedding", "num_embeddings": 7, "embedding_dim": 2, "inputs": ["part"]},
        {"type": "embedding", "num_embeddings": 50, "embedding_dim": 2, "inputs": ["layer 0"]},
    ]
    network = {"input": {"shape": [5], "type": "i32"}, "outputs": 3, "layers": layers}
    assert vocabularies(network).tolist() == [3, 7, 7, 50, 3]
    network |= {"loss": "bce"}
    inputs, targets = data_of(replace(task_of("matrix-4", 4), network=network))
    assert inputs.shape == (5, 4) and targets.shape == (4, 3)
    assert inputs[3, 2] == math.floor(number_at(INPUTS, 3 * 4 + 2) * 50)


def test_data_of_another_source_are_refused():
    with pytest.raises(Unsupported, match="no data called 'moons'"):
        data_of(task_of("disc-2", 1, data="moons"))


def test_a_task_is_what_bench_counts():
    counted = {
        **trained("heart"),
        "params": 1522,
        "batch": 10,
        "rows": 709,
        "optimizer": "adamw lr=0.001 weight_decay=0.0001",
        "epoch": {"flops": 7.0},
        "step": {"flops": 1.0},
    }
    task = Task.of("Epoch", counted)
    assert (task.rows, task.steps, task.flops) == (709, 71, 7.0)
    assert task.optimizer == Optimizer("adamw", 1e-3, 1e-4)
    step = Task.of("Minibatch", counted)
    assert (step.rows, step.steps, step.flops) == (10, 1, 1.0)
    assert Optimizer.of("momentum lr=1") == Optimizer("momentum", 1.0)
    with pytest.raises(ValueError, match="no optimizer is called 'rprop'"):
        Optimizer.of("rprop lr=1")


def test_targets_stand_in_place_of_labels():
    inputs, targets = data_of(task_of("matrix-4", 3))
    assert inputs.shape == targets.shape == (3, 4)
    assert targets[2, 1] == 2 * number_at(LABELS, 2 * 4 + 1) - 1
    binary = {**trained("matrix-4")["network"], "loss": "bce"}
    _, wanted = data_of(replace(task_of("matrix-4", 3), network=binary))
    assert wanted[2, 1] == math.floor(2 * number_at(LABELS, 2 * 4 + 1))


def test_sequences_that_are_normalized_are_compared_all_together():
    task = task_of("heart", 1)
    for normalizes in ("batch_norm", "layer_norm", "rms_norm", "attention"):
        layers = [*task.network["layers"], {"type": normalizes}]
        normalized = replace(task, network={**task.network, "layers": layers})
        assert is_compared_together(normalized) and not is_compared_together(task)
