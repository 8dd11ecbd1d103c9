# SPDX-License-Identifier: Apache-2.0
"""The executions of the CPU: which rows there are, what auto chose, and what a network lacks."""

from pathlib import Path

import pytest
from bench_runs import DISC, EPOCHS, SHORT, epoch_name, listed, measure, repetitions

HAS_BLOCKS = "avx2" in Path("/proc/cpuinfo").read_text("utf-8")
EXECUTIONS = ("eager", "fused", "auto")
BY_THREE = ("--model=resnet-56", "--family=Minibatch", "--cuda=off", "--threads=1")
CONVOLVES = ("--model=alexnet-r", "--family=Minibatch", "--cuda=off", "--threads=1")


def executions(*arguments: str) -> list[str]:
    found = (part for name in listed(*arguments) for part in name.split("/"))
    return [part.split(":")[1] for part in found if part.startswith("execution:")]


def test_a_row_of_auto_says_what_it_chose(tmp_path):
    document = measure(tmp_path, "--model=disc-2,heart", "--threads=1,2", *EPOCHS, *SHORT)
    assert len(document["rows"]) == 4
    for row in document["rows"]:
        assert row["configuration"]["execution"] == "auto"
        assert row["chosen"]["execution"] in ("eager", "fused")
        assert 1 <= int(row["chosen"]["cpu_threads"]) <= int(row["configuration"]["cpu_threads"])
        assert row["cpu_threads"] == int(row["configuration"]["cpu_threads"])


def test_each_execution_has_its_row_and_the_same_verification(tmp_path):
    document = measure(tmp_path, *DISC, f"--execution={','.join(EXECUTIONS)}")
    names = [row["name"] for row in document["rows"]]
    assert names == [epoch_name("disc-2", 100, 1, execution) for execution in EXECUTIONS]
    eager, fused, auto = document["rows"]
    for row in (eager, fused, auto):
        checked = row["verification"]
        assert checked["steps"] == checked["steps_of"]
        assert checked["operation_error"] <= checked["operation_tolerance"]
        assert repetitions(document, row["name"])[0]["verification_seconds"] > 0
        assert row["flops"] == eager["flops"] and row["workload"] == eager["workload"]
    assert "chosen" not in eager and "chosen" not in fused and "chosen" in auto


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


def test_convolutions_of_three_by_three_have_winograd():
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


@pytest.mark.slow
def test_what_a_network_lacks_is_a_row_with_the_reason(tmp_path):
    document = measure(tmp_path, *CONVOLVES, "--batch=2", "--execution=fused", *SHORT, code=1)
    (row,) = document["rows"]
    assert row["outcome"] == "skipped"
    assert "Linear layers alone" in row["error_message"]


def test_a_row_that_is_made_again_stays_what_it_was_chosen_to_be(tmp_path):
    document = measure(tmp_path, *DISC, "--budget=1h")
    (row,) = document["rows"]
    assert row["repetitions"] == 6 == len(repetitions(document, row["name"]))
    assert row["chosen"]["cpu_threads"] == "1"


def test_a_precision_that_the_cpu_lacks_has_a_ceiling_only_if_asked(tmp_path):
    name = "Peak/quantity:matrix/precision:bf16/size:512/device:cpu"
    arguments = ("--family=Peak", "--cuda=off", "--threads=1")
    if any(row.startswith(name) for row in listed(*arguments)):
        pytest.skip("this CPU multiplies bf16")
    asked = ("--precision=bf16", f"--benchmark_filter={name}")
    (row,) = measure(tmp_path, *arguments, *asked, *SHORT, code=1)["rows"]
    assert row["outcome"] == "skipped"
    assert row["error_message"].startswith("the CPU has no bf16 instructions")
