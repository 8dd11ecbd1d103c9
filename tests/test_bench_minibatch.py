# SPDX-License-Identifier: Apache-2.0
"""Rows of the family Minibatch: one training step."""

import functools

import pytest
from bench_runs import HEART, SHORT, bench, listed, measure, samples, strict

STEPS = ("--family=Minibatch", "--cuda=off", "--threads=1")
SEVEN = ("fcn-r", "alexnet-r", "resnet-56", "lstm", "fcn-s", "alexnet-s", "resnet-50")
CONVOLVE_BY_THREE = ("resnet-56", "alexnet-s", "resnet-50")


def step_name(model: str, batch: int, threads: int) -> str:
    """Those with several executions train in the one that is the fastest."""
    has_several = model.startswith(("fcn", "mlp", "disc")) or model in CONVOLVE_BY_THREE
    execution = "auto" if has_several else "eager"
    device = f"device:cpu/execution:{execution}/cpu_threads:{threads}"
    return f"Minibatch/model:{model}/batch:{batch}/precision:f32/{device}"


def test_a_row_is_one_step_of_one_batch_each_operation_verified(tmp_path):
    networks = ("--mlp=20,30,5", "--model=disc-2", "--batch=2,8", "--accumulate=3")
    steps = measure(tmp_path, *STEPS, *networks, *SHORT)
    models = ("mlp-20-30-5", "disc-2")
    names = [row["name"] for row in steps["rows"]]
    assert names == [step_name(model, batch, 1) for model in models for batch in (2, 8)]
    first = {row["name"]: row for row in samples(steps)}[names[0]]
    weights = 20 * 30 + 30 * 5
    assert first["params"] == weights + 30 + 5
    assert first["batch"] == 2
    assert 3 * 2 * 2 * weights > first["flops"] > 2 * 2 * 2 * weights  # no gradient of the input
    assert first["peak_bytes"] >= 4 * first["params"]
    assert first["loss_first_step"] == pytest.approx(1.6, abs=0.5)  # about log 5
    assert "rows" not in first and "steps" not in first
    for row in steps["rows"]:
        checked = row["verification"]
        assert (checked["steps"], checked["steps_of"]) == (2, 2)
        assert checked["parameter_error"] <= checked["parameter_tolerance"]
        assert 0 < checked["operation_error"] <= checked["operation_tolerance"]
        assert "batch" not in checked  # the row's own


@pytest.mark.slow
def test_a_large_step_is_verified_at_a_smaller_batch(tmp_path):
    large = ("--mlp=1000,1500,10", "--batch=6500", "--execution=eager")  # hardly too large
    once = ("--benchmark_repetitions=1", "--benchmark_min_time=0.001")
    document = measure(tmp_path, *STEPS, *large, *once)
    (row,) = document["rows"]
    batch = row["verification"]["batch"]
    assert 2 <= batch < 6500 and batch & (batch - 1) == 0
    assert row["verification"]["steps"] == 2


def test_sweeps_measure_the_networks_of_shi():
    of_steps = functools.partial(listed, "--cuda=off", "--family=Minibatch")
    cores = strict(bench("--machine").stdout)["cpu"]["cores"]
    sizes = {"fcn-r": 1024, "alexnet-r": 1024, "resnet-56": 128, "lstm": 128, "fcn-s": 64}
    sizes |= {"alexnet-s": 16, "resnet-50": 16, "vit-ti": 32, "mobilenet-v2": 16}
    assert of_steps("--sweep=quick") == [step_name(m, sizes[m], cores) for m in SEVEN[:2]]
    assert of_steps() == [step_name(m, sizes[m], cores) for m in SEVEN[:4]]
    full = of_steps("--sweep=full", "--threads=1")
    fcn = step_name("fcn-r", sizes["fcn-r"], 1)
    assert full[:3] == [fcn.replace(":auto/", f":{way}/") for way in ("eager", "fused", "auto")]
    expected = []
    for network in [name for name in sizes if "fcn-" not in name]:
        name = step_name(network, sizes[network], 1)
        ways = ("eager", "winograd", "auto") if network in CONVOLVE_BY_THREE else ("eager",)
        expected += [name.replace(":auto/", f":{way}/") for way in ways]
    assert [name for name in full if "fcn-" not in name] == expected


def test_data_takes_the_first_batch(tmp_path):
    flags = (*STEPS, "--model=heart", f"--data={HEART}", "--batch=7,100000")
    document = measure(tmp_path, *flags, *SHORT)
    batches = [int(row["configuration"]["batch"]) for row in document["rows"]]
    rows = len(HEART.read_text("utf-8").splitlines()) - 1
    assert batches == [7, rows]
