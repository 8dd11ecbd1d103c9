# SPDX-License-Identifier: Apache-2.0
"""JAX's side itself, where jax is installed: the networks, their start, verification."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

jax = pytest.importorskip("jax", reason="jax is not installed here")

import numpy as np  # noqa: E402

from crossover_bench.peers.jax.__main__ import OWN_THREADS, Rows, counterparts  # noqa: E402
from crossover_bench.peers.jax.forward import exact_outputs  # noqa: E402
from crossover_bench.peers.jax.networks import network_of  # noqa: E402
from crossover_bench.peers.jax.training import Training  # noqa: E402
from crossover_bench.peers.rows import repetition, training_row  # noqa: E402
from crossover_bench.peers.tasks import Optimizer, Task, Unsupported  # noqa: E402
from crossover_bench.peers.tests import (  # noqa: E402
    CPU,
    DISC,
    GOLDEN,
    HEART,
    NETWORKS,
    OUTPUTS,
    copies_are_verified,
    deep,
    is_golden,
    is_verified_and_timed,
    of_images,
    ours,
    trained,
)
from crossover_bench.peers.verification import (  # noqa: E402
    Mismatch,
    References,
    Tolerance,
    verified,
)
from crossover_bench.place import ALONE  # noqa: E402

THREADS = str(OWN_THREADS)
# A layer that is not there; minutes of convolutions in float64; AdamW makes 2.6e-9 of rounding.
_LEFT_OUT = ("lstm", "resnet-56", "vit-ti", "asking", "gated")


def references() -> References:
    return References("JAX in float64", lambda task: Training(task, CPU, np.float64))


@pytest.mark.parametrize(
    ("case", "task"),
    [
        pytest.param(case, task, id=case["name"])
        for case, task in GOLDEN
        if task.network["name"] not in _LEFT_OUT
    ],
)
def test_float64_is_the_golden_run(case, task):
    training = Training(task, CPU, np.float64)
    losses = training.run_steps(case["steps"])
    is_golden(case, task, losses, training.parameters())


@pytest.mark.parametrize("loop", ["scan", "unrolled"])
def test_an_epoch_in_one_call_is_verified(loop):
    configuration = {**CPU, "loop": loop}
    short = replace(DISC, rows=950)  # the last batch has 50
    checked, loss = verified(Training(short, configuration), configuration, references())
    assert checked["steps"] == checked["steps_of"] == 10
    assert 0 < checked["relative_error"] <= checked["tolerance"]
    assert 0 < checked["parameter_error"] <= checked["parameter_tolerance"]
    exact = sum(Training(short, CPU, np.float64).run_steps(10)) / 10
    assert loss == pytest.approx(exact, rel=checked["tolerance"])


@pytest.mark.parametrize("norm", ["batch_norm", "group_norm"])
def test_where_rounding_decides_the_tolerance_is_what_roundings_do(norm):
    usual = Tolerance(1e-3, 1e-4)
    assert references().within_roundings(deep(1, norm), usual)[1].parameters == 1e-4
    _, wide = references().within_roundings(deep(12, norm), usual)
    assert wide.loss >= usual.loss and wide.parameters >= usual.parameters
    moved, plain = Training(deep(1), CPU, np.float64), Training(deep(1), CPU, np.float64)
    moved.start_off(0.5, 1)
    assert moved.run_steps(1) != plain.run_steps(1)


@pytest.mark.parametrize(
    ("optimizer", "loop"), [(DISC.optimizer, "unrolled"), (Optimizer("adamw", 1e-3, 0.1), "scan")]
)
def test_copies_are_what_each_is_alone(optimizer, loop):
    configuration = {**CPU, "loop": loop}

    def spoil(training):
        training._start[1] = training._start[1].at[2].multiply(1.01)

    small = {**trained("disc-2"), "params": 22}
    task = replace(DISC, **small, rows=250, optimizer=optimizer)  # the last batch has 50
    copies_are_verified(
        lambda copies: Training(copies, configuration), configuration, references(), task, spoil
    )


def test_copies_have_a_row():
    row = {**counterparts(ours("heart", copies="4"))[0], "cpu_threads": THREADS}
    facts = Rows().prepare("one", row, HEART)["facts"]
    assert (facts["params"], facts["flops"], facts["steps"]) == (1522, 4e5, 5)


def _other_rate(training: Training) -> None:
    other = Training(replace(training.task, optimizer=Optimizer("sgd", 0.101)), CPU)
    training._epoch, training._step = other._epoch, other._step


def _other_start(training: Training) -> None:
    training._start[0] = training._start[0] * 1.001


def _batches_in_another_order(training: Training) -> None:
    training._data = [[part[::-1] for part in parts] for parts in training._data]


@pytest.mark.parametrize("wrong", [_other_rate, _other_start, _batches_in_another_order])
def test_a_training_that_differs_is_refused(wrong):
    training = Training(DISC, CPU)
    wrong(training)
    with pytest.raises(Mismatch):
        verified(training, CPU, references())


def test_an_epoch_that_differs_from_its_steps_is_refused(monkeypatch):
    """Where the reference takes the first steps alone, the whole epoch is compared as well."""
    monkeypatch.setattr("crossover_bench.peers.verification._MORE_STEPS_SECONDS", 0)
    training = Training(DISC, CPU)
    checked, _ = verified(training, CPU, references())
    assert (checked["steps"], checked["steps_of"]) == (2, 10)
    training._epoch = Training(replace(DISC, optimizer=Optimizer("sgd", 0.2)), CPU)._epoch
    with pytest.raises(Mismatch):
        verified(training, CPU, references())


def test_large_batches_are_verified_in_part_and_their_first_loss_whole():
    large = replace(DISC, rows=100, flops=1e11)
    checked, loss = verified(Training(large, CPU), CPU, references())
    assert checked["batch"] == 64 and checked["steps"] == checked["steps_of"] == 2
    assert loss == pytest.approx(Training(large, CPU, np.float64).loss(), rel=1e-5)


def test_repetitions_begin_at_the_start_and_keep_their_iterations():
    configuration = counterparts(ours("heart", batch="10"))[0]
    made = training_row(Training, configuration, HEART, references())
    first = repetition(made, 0.001)
    losses = np.asarray(made.work.losses).tolist()
    second = repetition(made, 0.001)
    assert first["iterations"] == second["iterations"] and first["time_unit"] == "ms"
    assert losses == np.asarray(made.work.losses).tolist() and len(losses) == 5
    assert made.facts["steps"] == 5 and made.once["first_call_seconds"] > 0


def test_a_row_that_ends_says_how():
    rows = Rows()
    row = {**counterparts(ours("heart"))[0], "cpu_threads": THREADS}
    answer = rows.prepare("one", row, {**HEART, "params": 7})
    assert answer["error_message"] == "it has 1522 parameters, and bench's has 7"
    answer = rows.prepare("one", {**row, "cpu_threads": str(OWN_THREADS + 1)}, HEART)
    assert answer["outcome"] == "failed" and "threads, and the row asks for" in str(answer)
    answer = rows.prepare("one", row, {**HEART, "network": NETWORKS["lstm"]})
    assert answer["outcome"] == "skipped"
    assert "(lstm): peers/jax/networks.py has no such layer" in answer["error_message"]
    unrolled = {**row, "loop": "unrolled"}
    answer = rows.prepare("one", unrolled, {**HEART, "rows": 1000})
    assert answer["outcome"] == "skipped" and "100 steps" in answer["error_message"]
    assert rows.describe()["version"] == jax.__version__
    assert rows.prepare("one", row, HEART)["facts"]["cpu_threads"] == OWN_THREADS
    assert rows.repeat("one", 0.001)["times"]["real_time"] > 0 and rows.release("one") == {}


def test_each_row_has_one_counterpart_for_each_loop():
    assert counterparts(ours("disc-2", execution="fused")) == [
        {**ours("disc-2"), "program": "jax", "compiler": "xla", "loop": loop}
        for loop in ("scan", "unrolled")
    ]
    assert len(counterparts(ours("disc-2", family="Minibatch"))) == 1
    for other in (
        {"precision": "bf16"},
        {"accumulate": "2"},
        {"family": "Layer"},
        {"zero": "keep"},
    ):
        assert counterparts(ours("disc-2", **other)) == []
    assert counterparts(ours("disc-2"), ("cuda",)) == []


@pytest.mark.parametrize("ceil_mode", [False, True])
def test_means_count_padding_but_not_what_rounding_up_adds(ceil_mode):
    pool = {"name": "p", "type": "avg_pool2d", "kernel_size": 3, "stride": 2, "padding": 1}
    network = {"input": {"shape": [1, 6, 6], "type": "f32"}}
    network["layers"] = [{**pool, "ceil_mode": ceil_mode}]
    got = network_of(network).outputs([], np.ones((1, 1, 6, 6), np.float32))
    assert got.shape == ((1, 1, 4, 4) if ceil_mode else (1, 1, 3, 3))
    corner, inside = float(got[0, 0, 0, 0]), float(got[0, 0, 1, 1])
    assert (corner, inside) == (pytest.approx(4 / 9), 1)
    if ceil_mode:  # its last window has 2 x 2 places of input and padding, of which 1 is input
        assert float(got[0, 0, 3, 3]) == pytest.approx(1 / 4)


def test_layers_that_do_not_fit_are_refused():
    layers = [{"name": "layer 0", "type": "linear", "out_features": 2, "rank": 1}]
    with pytest.raises(Unsupported, match=r"layer 0 \(linear\).*'rank'"):
        network_of({**NETWORKS["disc-2"], "layers": layers})


_COUNT = """
import os, time
from crossover_bench.peers.jax import threads
threads.limited()
import jax, jax.numpy as jnp
def ran():
    ticks = {}
    for thread in os.listdir("/proc/self/task"):
        words = open(f"/proc/self/task/{thread}/stat").read().rpartition(")")[2].split()
        ticks[thread] = int(words[11]) + int(words[12])
    return ticks
product = jax.jit(lambda x: x @ x @ x)
x = jnp.ones((700, 700))
product(x).block_until_ready()
before, end = ran(), time.process_time() + 1.0
while time.process_time() < end:
    product(x).block_until_ready()
spent = sorted(ticks - before.get(thread, 0) for thread, ticks in ran().items())
print(spent[-1] / sum(spent))
"""


def test_one_thread_is_one_thread():
    variables = {**os.environ, "NPROC": "1", "PYTHONPATH": str(ALONE)}
    done = subprocess.run(
        [sys.executable, "-c", _COUNT], env=variables, capture_output=True, text=True, check=True
    )
    assert float(done.stdout) > 0.85  # of all processor time; the rest is who waits for it


def test_a_network_in_use_comes_to_what_bench_comes_to():
    assert exact_outputs(Task.of("Forward", of_images()), 3).tolist() == OUTPUTS


def test_a_network_in_use_is_verified_and_timed_pass_by_pass():
    rows = Rows()
    configuration = {**CPU, "family": "Forward", "execution": "auto", "cpu_threads": THREADS}
    (row,) = (told["configuration"] for told in rows.rows(configuration)["rows"])
    assert row == {**configuration, **{"program": "jax", "execution": "eager", "compiler": "xla"}}
    prepared = rows.made(row, of_images())

    def spoil(work):
        work._parameters[-1] += 0.1

    is_verified_and_timed(prepared, "JAX", spoil)
    assert not counterparts({**configuration, "device": "cuda", "data": "pinned"})
