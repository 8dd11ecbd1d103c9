# SPDX-License-Identifier: Apache-2.0
"""The executions of the CPU: which rows there are, and what auto chose."""

from pathlib import Path

import pytest
from bench_runs import EPOCHS, SHORT, epoch_name, listed, measure, repetitions

HAS_BLOCKS = "avx2" in Path("/proc/cpuinfo").read_text("utf-8")
EXECUTIONS = ("eager", "fused", "auto")
BY_THREE = ("--model=resnet-56", "--family=Minibatch", "--cuda=off", "--threads=1")
CONVOLVES = ("--model=alexnet-r", "--family=Minibatch", "--cuda=off", "--threads=1")


def executions(*arguments: str) -> list[str]:
    found = (part for name in listed(*arguments) for part in name.split("/"))
    return [part.split(":")[1] for part in found if part.startswith("execution:")]


def test_each_execution_has_its_row_and_auto_says_what_it_chose(tmp_path):
    flags = ("--model=disc-2", "--threads=2", *EPOCHS, *SHORT)
    document = measure(tmp_path, *flags, f"--execution={','.join(EXECUTIONS)}")
    names = [row["name"] for row in document["rows"]]
    assert names == [epoch_name("disc-2", 100, 2, execution) for execution in EXECUTIONS]
    eager, fused, auto = document["rows"]
    for row in (eager, fused, auto):
        checked = row["verification"]
        assert checked["steps"] == checked["steps_of"]
        assert checked["operation_error"] <= checked["operation_tolerance"]
        assert repetitions(document, row["name"])[0]["verification_seconds"] > 0
        assert row["flops"] == eager["flops"] and row["workload"] == eager["workload"]
        assert row["cpu_threads"] == 2
    assert "chosen" not in eager and "chosen" not in fused
    assert auto["chosen"]["execution"] in ("eager", "fused")
    assert 1 <= int(auto["chosen"]["cpu_threads"]) <= 2


def test_sweeps_have_the_executions_that_a_network_can_have():
    disc = ("--model=disc-2", "--threads=1", *EPOCHS)
    for sweep in ("quick", "default", "gpu"):
        assert executions(f"--sweep={sweep}", *disc, "--precision=f32") == ["auto"]
    assert executions("--sweep=full", *disc) == list(EXECUTIONS)
    for flags in (("--precision=bf16",), ("--accumulate=2",)):
        assert executions("--sweep=full", *disc, *flags) == ["eager"]
    for sweep in ("quick", "default", "full"):
        assert executions(f"--sweep={sweep}", *CONVOLVES) == ["eager"]
    assert executions(*CONVOLVES, "--execution=auto,graph") == ["auto"]
    assert executions(*disc, "--execution=graph") == ["auto"]
    # Convolutions of three by three have Winograd's.
    assert executions("--sweep=full", *BY_THREE) == ["eager", "winograd", "auto"]
    assert executions(*BY_THREE) == ["auto"]
    assert executions("--sweep=full", *BY_THREE, "--precision=bf16") == ["eager"]


@pytest.mark.slow
@pytest.mark.skipif(not HAS_BLOCKS, reason="this processor's vectors are too short")
def test_winograd_computes_the_same_with_less(tmp_path):
    ways = "--execution=eager,winograd,auto"
    document = measure(tmp_path, *BY_THREE, "--batch=2", ways, *SHORT)
    eager, winograd, auto = document["rows"]
    assert auto["chosen"]["execution"] in ("eager", "winograd")
    for row in (eager, winograd, auto):
        checked = row["verification"]
        assert checked["operation_error"] <= checked["operation_tolerance"]
        assert row["minimum_work"] == eager["minimum_work"]
        assert row["minimum_work"]["flops"] < 0.5 * row["flops"]
