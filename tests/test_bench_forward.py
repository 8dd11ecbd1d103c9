# SPDX-License-Identifier: Apache-2.0
"""Rows of the family Forward: a network in use."""

import pytest
from bench_runs import EMULATED, SHORT, Document, listed, measure, samples

PASSES = ("--family=Forward", "--cuda=off", "--threads=1")
OFTEN = ("--benchmark_min_time=0.02", "--benchmark_repetitions=2")
QUANTILES = ("p50", "p90", "p99", "p999", "max")


@pytest.fixture(scope="module")
def passes(tmp_path_factory: pytest.TempPathFactory) -> Document:
    folder = tmp_path_factory.mktemp("passes")
    return measure(folder, *PASSES, "--model=disc-3,lenet-5", "--batch=1,40", *OFTEN)


def test_a_row_is_one_pass_of_one_batch_with_all_outputs_verified(passes):
    start = "Forward/model:disc-3/batch:1/precision:f32/device:cpu"
    assert passes["rows"][0]["name"] == f"{start}/execution:auto/cpu_threads:1"
    disc = passes["rows"][0]
    assert (disc["params"], disc["batch"]) == (70, 1)
    assert disc["flops"] < 3 * 70  # and not that of a step
    assert disc["chosen"]["cpu_threads"] == "1"
    for row in passes["rows"]:
        assert "loss_first_step" not in row and "rows" not in row and "label" not in row
        checked = row["verification"]
        classes = 2 if "disc" in row["name"] else 10
        assert checked["entries"] == checked["entries_of"] == classes * row["batch"]
        assert 0 < checked["relative_error"] <= checked["tolerance"] < 1e-4


def test_passes_are_timed_one_by_one(passes):
    for entry in samples(passes):
        found = [entry[key] for q in QUANTILES if (key := f"latency_{q}_seconds") in entry]
        assert found == sorted(found) and found[0] > 0
        assert 20 <= entry["latency_passes"] <= 10_000
        assert ("latency_p999_seconds" in entry) == (entry["latency_passes"] >= 1000)
        assert 0 < entry["clock_seconds"] < found[0] or "disc" in entry["name"]


@pytest.mark.slow
def test_a_large_batch_is_verified_by_its_first_rows(tmp_path):
    large = ("--mlp=2000,6000,2000,10", "--batch=4096", "--execution=eager")
    once = ("--benchmark_repetitions=1", "--benchmark_min_time=0.001")
    document = measure(tmp_path, *PASSES, *large, *once)
    (row,) = document["rows"]
    assert 10 <= row["verification"]["entries"] < row["verification"]["entries_of"] == 40_960
    assert "latency_passes" not in document["benchmarks"][0]  # each takes longer than 5 ms


def test_sweeps_use_some_networks_or_all_or_none():
    def used(*arguments: str) -> set[tuple[str, str]]:
        names = [
            name.split("/")
            for name in listed("--cuda=off", *arguments)
            if name.startswith("Forward")
        ]
        return {(name[1].removeprefix("model:"), name[2].removeprefix("batch:")) for name in names}

    assert not used("--sweep=quick") and not used("--model=disc-2")
    assert ("policy", "1") in used() and len(used()) == 14
    full = used("--sweep=full")
    assert {("resnet-50", "1"), ("gpt-512", "32"), ("disc-2", "1024")} < full
    assert ("resnet-50", "1024") not in full  # it takes minutes
    assert used("--sweep=quick", "--family=Forward") > {("disc-2", "1"), ("gpt-64", "32")}


def test_a_gpu_gets_the_batch_and_gives_the_outputs(tmp_path):
    flags = ("--family=Forward", "--cuda=on", "--threads=1", "--model=disc-3", "--batch=1,4")
    document = measure(tmp_path, *flags, *SHORT, program=EMULATED)
    rows = [row for row in document["rows"] if row["configuration"]["device"] == "cuda"]
    of_four = [row["configuration"] for row in rows if row["batch"] == 4]
    ways = [(row["execution"], row["data"]) for row in of_four]
    assert ways == [(way, place) for way in ("eager", "graph") for place in ("resident", "pinned")]
    for row in rows:
        pinned = row["configuration"]["data"] == "pinned"
        least = row["minimum_work"]
        assert least.get("bytes_to_device", 0) == (8 * row["batch"] if pinned else 0)
        assert least.get("bytes_from_device", 0) == (8 * row["batch"] if pinned else 0)
