# SPDX-License-Identifier: Apache-2.0
"""Rows on a GPU as bench's user meets them: on the emulated GPU, whose times mean nothing."""

import re
from pathlib import Path
from typing import Any

import pytest
from bench_runs import (
    DISC,
    EMULATED,
    SHORT,
    Document,
    assert_refused,
    bench,
    but_of_load,
    listed,
    measure,
    run,
    samples,
)

from crossover_bench.counts.bounds import bounds
from crossover_bench.files import loading

WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # wherever this runs
EPOCH = ("--family=Epoch", "--model=disc-2", "--rows=200", "--threads=1", *SHORT)
PROFILE = {
    "seconds_product",
    "seconds_loss",
    "seconds_update",
    "seconds_launch",
    "seconds_synchronization",
}

pytestmark = pytest.mark.emulated


GPU = {"name": "Emulated GPU", "multiprocessors": 4, "memory_bytes": 2**30, "cache_bytes": 2**20}


def emulated(folder: Path, *arguments: str, **how: Any) -> Document:
    return measure(folder, *arguments, program=EMULATED, **how)


@pytest.fixture(scope="module")
def epochs(tmp_path_factory: pytest.TempPathFactory) -> Document:
    """An epoch on the CPU and in every way on the GPU."""
    return emulated(tmp_path_factory.mktemp("epochs"), *EPOCH)


def gpu_of(document: Document) -> Document:
    gpu = dict(document["context"]["crossover"]["machine"]["gpu"])
    assert gpu.pop("start_seconds") > 0
    return gpu


def on(device: str, document: Document) -> list[Document]:
    return [row for row in samples(document) if row["configuration"]["device"] == device]


def test_every_way_to_run_an_epoch_has_its_row(epochs):
    rows = [row["configuration"] for row in on("cuda", epochs)]
    ways = {(row["execution"], row["data"]) for row in rows}
    placements = {"resident", "pageable", "pinned", "pinned-async"}
    launched = {("eager", placement) for placement in placements}
    launched |= {("graph", "resident"), ("graph", "pinned-async")}
    assert ways == launched | {(e, "resident") for e in ("graph-epoch", "persistent", "auto")}
    for row in on("cuda", epochs):
        is_auto, chosen = row["configuration"]["execution"] == "auto", row.get("chosen", {})
        assert is_auto == bool(chosen)
        assert chosen.get("execution") != "auto" and "cpu_threads" not in chosen
    assert gpu_of(epochs) == GPU
    assert len({row["workload"] for row in samples(epochs)}) == 1, "devices train the same"
    for row in on("cuda", epochs):
        assert row["verification"]["relative_error"] <= row["verification"]["tolerance"]
        assert "cpu_threads" not in row
        if row["configuration"]["execution"] == "eager":
            assert row.keys() >= PROFILE | {"launches", "bytes"}
            is_copied = row["configuration"]["data"] != "resident"
            assert ("seconds_copy_to_device" in row) == is_copied
    assert all(not row["warnings"] for row in on("cuda", epochs))
    assert not any("sm_clock_mhz_before" in row for row in samples(epochs))


def test_the_driver_tells_of_the_gpu_and_of_what_held_it_back(tmp_path):
    driver = str(EMULATED.parent / "fake_nvml")
    document = emulated(tmp_path, *EPOCH, "--execution=graph", LD_LIBRARY_PATH=driver)
    assert gpu_of(document) == GPU | {
        "driver": "580.65.06",
        "sm_clock_max_mhz": 1980,
        "memory_clock_max_mhz": 3201,
        "sm_clock_mhz": 1410,
        "memory_clock_mhz": 3201,
        "power_limit_watts": 700,
        "persistence_mode": True,
        "ecc": True,
    }
    for row in on("cuda", document):
        assert row["sm_clock_mhz_before"] == row["sm_clock_mhz_after"] == 1410
        assert row["temperature_celsius_before"] == row["temperature_celsius_after"] == 42
        assert "joules_gpu" not in row  # without --energy
        assert row["warnings"] == [
            "the GPU is a slice of a card, whose clocks and power are those of all its slices",
            "the GPU's clocks were held back: power cap, temperature",
        ]
    for row in on("cpu", document):
        assert "sm_clock_mhz_before" not in row
        assert row["warnings"] == []


def test_energy_is_that_of_the_meters(tmp_path):
    """Takes long, as meters need five seconds: of a row, and of rest before and after it."""
    meter = tmp_path / "meter"
    meter.write_text(f"#!/bin/sh\necho x >> '{tmp_path}/count'\nwc -l < '{tmp_path}/count'\n")
    meter.chmod(0o755)
    flags = ("--model=heart", "--family=Minibatch", "--execution=graph", "--placement=resident")
    flags += ("--benchmark_filter=device:cuda", "--benchmark_repetitions=1", f"--meter={meter}")
    driver = str(EMULATED.parent / "fake_nvml")
    document = emulated(tmp_path, *flags, LD_LIBRARY_PATH=driver)
    energy = document["context"]["crossover"]["energy"]
    machine, gpu = energy["meters"]
    assert (machine["name"], machine["counts"]) == (str(meter), "machine")
    assert (gpu["name"], gpu["counts"]) == ("nvml", "gpu")
    assert (machine["resolution_joules"], gpu["resolution_joules"]) == (None, 0.001)
    assert 0 < gpu["update_seconds"] < 1 and 0 < machine["update_seconds"] < 1
    for when in ("before", "after"):  # a joule of the meter and 100 of the GPU in five seconds
        assert energy[f"idle_watts_{when}"] == pytest.approx(1 / 5, rel=0.2)
        assert energy[f"gpu_idle_watts_{when}"] == pytest.approx(100 / 5, rel=0.2)
    (row,) = samples(document)  # what one on the CPU takes, tests/energy_test.cpp says
    assert row["joules"] == row["joules_machine"] > 0
    assert "joules_cpu" not in row
    assert row["joules_gpu"] > row["joules"]
    milliseconds = row["real_time"] * row["iterations"]
    assert milliseconds > 5000  # which a meter needs
    slowest = max(machine["update_seconds"], gpu["update_seconds"])
    # Counters have six digits in the file.
    assert row["joules_error"] == pytest.approx(2 * slowest / (milliseconds * 1e-3), rel=1e-5)


def test_a_driver_that_knows_less_tells_less(tmp_path):
    old = str(EMULATED.parent / "fake_nvml_old")
    document = emulated(tmp_path, *EPOCH, "--execution=graph", LD_LIBRARY_PATH=old)
    gpu = gpu_of(document)
    assert (gpu["driver"], gpu["sm_clock_mhz"], gpu["memory_bytes"]) == ("580.65.06", 1980, 2**30)
    assert not gpu.keys() & {"power_limit_watts", "ecc", "persistence_mode"}
    assert all(row["warnings"] == [] for row in on("cuda", document))


@pytest.mark.parametrize("name", ["NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"])
def test_variables_that_change_what_f32_is_are_refused(name):
    done = bench(*EPOCH, program=EMULATED, variables={name: "1"})
    assert_refused(done, f"{name} is set, and changes what f32 is on a GPU", "--cuda=off")
    bench(*EPOCH, "--plan", "--cuda=off", variables={name: "1"}, code=0)


def test_the_first_call_waits_for_the_device_to_start_and_losses_of_each_step_are_copied(tmp_path):
    flags = ("--loss=step", "--execution=eager,graph")
    document = emulated(tmp_path, *EPOCH, *flags, EMULATED_START_SECONDS="2")
    assert {row["configuration"]["loss"] for row in on("cuda", document)} == {"step"}
    assert all("seconds_copy_from_device" in row for row in on("cuda", document))
    assert document["context"]["crossover"]["machine"]["gpu"]["start_seconds"] >= 2
    assert all(row["first_call_seconds"] >= 2 for row in on("cuda", document))
    assert all(row["first_call_seconds"] < 2 for row in on("cpu", document))


def test_without_a_gpu_there_are_no_rows_of_one_but_the_reason(tmp_path):
    document = emulated(tmp_path, *EPOCH, "--cuda=off")
    assert on("cuda", document) == []
    machine = document["context"]["crossover"]["machine"]
    assert (machine["gpu"], machine["gpu_reason"]) == (None, "none (--cuda=off)")
    refused = bench(*DISC, "--cuda=on", variables=WITHOUT_GPU)
    assert_refused(refused, "--cuda=on, but there is no GPU: none (")
    _, done = run(tmp_path, *EPOCH, **WITHOUT_GPU)
    assert but_of_load(done.stderr).startswith("bench: no GPU rows: none (")


def test_products_and_layers_are_verified_and_say_what_becomes_of_the_factors_of_tf32(tmp_path):
    arguments = ("--family=Epoch,Gemm,Layer", *EPOCH[1:], "--precision=tf32,f16")
    only = "--benchmark_filter=(m:32/.*nn.*|width:16/.*forward.*)device:cuda|Epoch.*graph/"
    rows = on("cuda", emulated(tmp_path, *arguments, only, EMULATED_TRUNCATION="1"))
    assert {row["configuration"]["family"] for row in rows} == {"Epoch", "Gemm", "Layer"}
    for row in rows:
        is_tf32 = row["configuration"]["precision"] == "tf32"
        assert row["verification"].get("tf32_factors") == ("truncated" if is_tf32 else None)
        if "cache" in row["configuration"]:
            assert (row["operand_sets"] > 1) == (row["configuration"]["cache"] == "cold")


def test_copies_and_ceilings_of_a_gpu(tmp_path):
    small = "bytes:1024/|model:heart|quantity:(copy|launch|graph-node|synchronization)"
    flags = ("--family=Peak,Copy", "--sweep=quick", f"--benchmark_filter=({small}).*device:cuda")
    document = emulated(tmp_path, *flags, *SHORT)
    rows = {row["name"]: row for row in on("cuda", document)}
    for name, row in rows.items():
        untimed = "quantity:synchronization" in name
        assert ("device_seconds" in row) == (not untimed), name
        assert row["count"] == {"async": 8}.get(row["configuration"].get("mode"), row["count"])
    directions = {row["configuration"].get("direction") for row in rows.values()}
    assert directions == {"h2d", "d2h", "d2d", "both", None}
    assert rows["Peak/quantity:launches/device:cuda"]["count"] == 1000
    copied = rows["Copy/direction:h2d/bytes:1024/device:cuda/memory:pinned/mode:sync"]
    assert copied["minimum_work"]["bytes_to_device"] == copied["bytes"]
    file = loading.load_file(tmp_path / "result.json")
    (bound,) = (bounds(file)[row.index] for row in file.rows if row.name == copied["name"])
    assert bound.name == "copy"


def test_every_precision_of_the_gpu_has_its_ceiling():
    names = " ".join(listed("--family=Peak", program=EMULATED))
    matrix = re.findall(r"quantity:matrix/precision:(\w+)/device:cuda", names)
    assert matrix == ["tf32", "bf16", "f16"]
