# SPDX-License-Identifier: Apache-2.0
"""Rows on a GPU as bench's user meets them: on the emulated GPU, whose times mean nothing."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from bench_runs import (
    DISC,
    EMULATED,
    SHORT,
    Document,
    assert_refused,
    bench,
    samples,
    strict,
    validate,
)

from plots.core.bounds import bounds
from plots.file import loading

WITHOUT_GPU = {"CUDA_VISIBLE_DEVICES": ""}  # wherever this runs
EPOCH = ("--family=Epoch", "--model=disc-2", "--threads=1", *SHORT)
PROFILE = {
    "seconds_product",
    "seconds_loss",
    "seconds_update",
    "seconds_launch",
    "seconds_synchronization",
}

pytestmark = pytest.mark.slow  # and of a build that ./test --quick does not bring up to date


def emulated(
    folder: Path, *arguments: str, code: int = 0, failing_call: int | None = None, **variables: str
) -> tuple[Document, subprocess.CompletedProcess[str]]:
    path = folder / "gpu.json"
    if failing_call is not None:
        variables["EMULATED_FAILING_CALL"] = str(failing_call)
    done = bench(*arguments, f"--out={path}", program=EMULATED, variables=variables)
    assert done.returncode == code, done.stderr
    validate(path)
    return strict(path), done


@pytest.fixture(scope="module")
def epochs_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An epoch on the CPU and in every way on the GPU."""
    folder = tmp_path_factory.mktemp("epochs")
    emulated(folder, *EPOCH)
    return folder / "gpu.json"


@pytest.fixture
def epochs(epochs_path: Path) -> Document:
    return strict(epochs_path)


def on(device: str, document: Document) -> list[Document]:
    return [row for row in samples(document) if row["configuration"]["device"] == device]


def test_every_way_to_run_an_epoch_has_its_row(epochs: Document) -> None:
    ways = {
        (r["configuration"]["execution"], r["configuration"]["data"]) for r in on("cuda", epochs)
    }
    placements = {"resident", "pageable", "pinned", "pinned-async"}
    launched = {("eager", placement) for placement in placements}
    launched |= {("graph", "resident"), ("graph", "pinned-async")}
    assert ways == launched | {(e, "resident") for e in ("graph-epoch", "persistent", "auto")}
    chosen = [row["chosen"] for row in on("cuda", epochs) if "chosen" in row]
    assert {row["configuration"]["execution"] for row in on("cuda", epochs) if "chosen" in row} == {
        "auto"
    }
    assert all(one["execution"] != "auto" and "cpu_threads" not in one for one in chosen)
    gpu = epochs["context"]["crossover"]["machine"]["gpu"]
    assert gpu.pop("start_seconds") > 0
    assert gpu == {
        "name": "Emulated GPU",
        "multiprocessors": 4,
        "memory_bytes": 2**30,
        "cache_bytes": 2**20,
    }
    assert all(not row["warnings"] for row in on("cuda", epochs))
    assert not any("sm_clock_mhz_before" in row for row in samples(epochs))


def test_a_gpu_row_is_verified_and_profiled(tmp_path: Path) -> None:
    document, _ = emulated(tmp_path, *EPOCH, "--placement=pinned", "--execution=eager")
    (row, *_) = on("cuda", document)
    assert row["verification"]["relative_error"] <= row["verification"]["tolerance"]
    assert row.keys() >= PROFILE | {"seconds_copy_to_device", "launches", "bytes"}
    assert "cpu_threads" not in row


def test_the_cost_is_that_of_the_measured_rows(epochs: Document) -> None:
    whole = strict(bench("--cost", "--model=disc-2").stdout)
    cost = whole["epoch"]
    for row in on("cuda", epochs):
        data = row["configuration"]["data"]
        execution = row.get("chosen", row["configuration"])["execution"]
        # An unrolled graph of an epoch finds its rows in place; which is faster is measured.
        gathers = 0 if row.get("graph_loops", 1) else whole["steps"]
        expected = cost["device_launches"]["cuda"][execution][data]
        assert row["launches"] == expected - gathers
        copied = None if data == "resident" else cost["bytes_to_device"]
        assert row.get("bytes_to_device") == copied
        assert row["products"] == cost["products"]


def test_losses_of_each_step_are_in_the_name(tmp_path: Path) -> None:
    document, _ = emulated(tmp_path, *EPOCH, "--loss=step", "--execution=eager,graph")
    rows = on("cuda", document)
    assert {row["configuration"]["loss"] for row in rows} == {"step"}
    assert all("seconds_copy_from_device" in row for row in rows)


def test_autotuned_products_have_rows_of_their_own(tmp_path: Path) -> None:
    document, _ = emulated(
        tmp_path,
        "--family=Epoch,Gemm",
        "--model=disc-2",
        "--threads=1",
        "--execution=eager",
        "--products=heuristic,autotuned",
        "--benchmark_filter=Epoch|m:32/",
        *SHORT,
    )
    assert not any("products" in row["configuration"] for row in on("cpu", document))
    names = {row["name"] for row in on("cuda", document)}
    tuned = {name for name in names if name.endswith("/products:autotuned")}
    assert {name.removesuffix("/products:autotuned") for name in tuned} == names - tuned
    assert {name.split("/")[0] for name in tuned} == {"Epoch", "Gemm"}


def test_the_driver_tells_of_the_gpu_and_of_what_held_it_back(tmp_path: Path) -> None:
    arguments = (*EPOCH, "--execution=graph")
    drivers = EMULATED.parent
    document, _ = emulated(tmp_path, *arguments, LD_LIBRARY_PATH=str(drivers / "fake_nvml"))
    gpu = document["context"]["crossover"]["machine"]["gpu"]
    assert gpu.pop("start_seconds") > 0
    assert gpu == {
        "name": "Emulated GPU",
        "multiprocessors": 4,
        "memory_bytes": 2**30,
        "cache_bytes": 2**20,
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


@pytest.mark.slow
def test_energy_is_that_of_the_meters(tmp_path: Path) -> None:
    meter = tmp_path / "meter"
    meter.write_text(f"#!/bin/sh\necho x >> {tmp_path}/count\nwc -l < {tmp_path}/count\n")
    meter.chmod(0o755)
    document, _ = emulated(
        *(tmp_path, "--model=heart", "--family=Minibatch", "--execution=fused,graph"),
        *("--placement=resident", "--threads=1", "--benchmark_repetitions=1", f"--meter={meter}"),
        LD_LIBRARY_PATH=str(EMULATED.parent / "fake_nvml"),
    )
    energy = document["context"]["crossover"]["energy"]
    assert energy["meters"] == [str(meter)]
    for when in ("before", "after"):
        assert energy[f"idle_watts_{when}"] == pytest.approx(
            1 / 5, rel=0.2
        )  # a joule in five seconds
    for device in ("cpu", "cuda"):
        (row,) = on(device, document)
        assert row["joules"] == row["joules_machine"] > 0
        assert "joules_cpu" not in row
    assert row["joules_gpu"] > row["joules"]
    assert row["real_time"] * row["iterations"] > 5000  # ms, which a meter needs


def test_a_driver_that_knows_less_tells_less(tmp_path: Path) -> None:
    old = EMULATED.parent / "fake_nvml_old"
    document, _ = emulated(tmp_path, *EPOCH, "--execution=graph", LD_LIBRARY_PATH=str(old))
    gpu = document["context"]["crossover"]["machine"]["gpu"]
    assert (gpu["driver"], gpu["sm_clock_mhz"], gpu["memory_bytes"]) == ("580.65.06", 1980, 2**30)
    assert not gpu.keys() & {"power_limit_watts", "ecc", "persistence_mode"}
    assert all(row["warnings"] == [] for row in on("cuda", document))


@pytest.mark.parametrize("name", ["NVIDIA_TF32_OVERRIDE", "CUBLAS_EMULATE_SINGLE_PRECISION"])
def test_variables_that_change_what_f32_is_are_refused(name: str) -> None:
    done = bench(*EPOCH, program=EMULATED, variables={name: "1"})
    assert_refused(done, f"{name} is set, and changes what f32 is on a GPU", "--cuda=off")
    assert bench(*EPOCH, "--plan", "--cuda=off", variables={name: "1"}).returncode == 0


def test_the_first_call_waits_for_the_device_to_start(tmp_path: Path) -> None:
    document, _ = emulated(tmp_path, *EPOCH, "--execution=graph", EMULATED_START_SECONDS="2")
    assert document["context"]["crossover"]["machine"]["gpu"]["start_seconds"] >= 2
    assert all(row["first_call_seconds"] >= 2 for row in on("cuda", document))
    assert all(row["first_call_seconds"] < 2 for row in on("cpu", document))


def test_without_cuda_there_are_no_gpu_rows(tmp_path: Path) -> None:
    document, done = emulated(tmp_path, *EPOCH, "--cuda=off")
    assert on("cuda", document) == []
    machine = document["context"]["crossover"]["machine"]
    assert (machine["gpu"], machine["gpu_reason"]) == (None, "none (--cuda=off)")
    assert done.stderr.count("\n") == 2  # how the time was spent, and where the results are


def test_a_gpu_that_is_demanded_and_missing_is_refused() -> None:
    assert_refused(
        bench(*DISC, "--cuda=on", variables=WITHOUT_GPU), "--cuda=on, but there is no GPU: none ("
    )


def test_a_run_without_gpu_says_why(tmp_path: Path) -> None:
    done = bench(*EPOCH, f"--out={tmp_path / 'cpu.json'}", variables=WITHOUT_GPU)
    assert done.returncode == 0
    assert done.stderr.startswith("bench: no GPU rows: none (")
    reason = strict(tmp_path / "cpu.json")["context"]["crossover"]["machine"]["gpu_reason"]
    assert reason.startswith("none (")


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        (
            "--execution=eagr",
            "'eagr' is not one of eager, winograd, fused, overlapped, auto, graph",
        ),
        ("--placement=disk", "'disk' is not one of resident, pageable, pinned, pinned-async"),
        ("--precision=f64", "'f64' is not one of f32, tf32, bf16, f16"),
        ("--products=best", "'best' is not one of heuristic, autotuned"),
        ("--loss=never", "'never' is not one of epoch, step"),
        ("--cuda=maybe", "'maybe' is not one of auto, on, off"),
        ("--family=Epochs", "'Epochs' is not one of"),
    ],
)
def test_mistyped_axes_are_refused(flag: str, words: str) -> None:
    assert_refused(bench(*DISC, flag), words)


def test_one_graph_of_an_epoch_with_copies_in_it_is_refused() -> None:
    done = bench(*DISC, "--execution=graph-epoch", "--placement=pinned")
    assert_refused(done, "--execution=graph-epoch needs --placement=resident and --loss=epoch")


@pytest.mark.parametrize("failing_call", [200, 1000, 3000])
def test_a_lost_gpu_costs_its_own_rows_only(tmp_path: Path, failing_call: int) -> None:
    """What was measured stays, the CPU goes on, and later GPU rows say why they are missing.

    Where there is no child to replace: test_bench_faults.py has the others."""
    # The GPU fails in the middle; the second network's CPU row comes after that.
    arguments = ("--family=Epoch", "--model=disc-2,disc-3", "--threads=1", "--in-process", *SHORT)
    document, done = emulated(tmp_path, *arguments, code=1, failing_call=failing_call)
    assert len(on("cpu", document)) == 2 * 2
    assert not any("error_message" in row for row in on("cpu", document))
    rows = [row for row in document["rows"] if row["configuration"]["device"] == "cuda"]
    lost = [row for row in rows if row.get("outcome") == "failed"]
    skipped = [row for row in rows if row.get("outcome") == "skipped"]
    assert len(lost) == 1
    assert "uncorrectable ECC error" in lost[0]["error_message"]
    assert len(skipped) >= 9
    assert {row["error_message"] for row in skipped} == {
        "the GPU failed in an earlier row: " + lost[0]["error_message"]
    }
    # Rows of the same work take turns, so that others of it may have had theirs in part.
    before = rows[: rows.index(lost[0])]
    model = lost[0]["configuration"]["model"]
    others = [row for row in before if row["configuration"]["model"] != model]
    assert all("error_message" not in row for row in others)
    assert not re.search("emulated GPU:", done.stderr), "something leaked"


def test_a_product_that_the_library_lacks_is_skipped_by_name(tmp_path: Path) -> None:
    document, _ = emulated(
        tmp_path,
        "--family=Gemm",
        "--model=disc-2",
        "--threads=1",
        "--precision=f16",
        "--benchmark_filter=m:3[23]/n:3[23]/.*transpose:nn/.*device:cuda",
        *SHORT,
        code=1,
        EMULATED_NO_ODD_16_BITS="1",
    )
    by_size = {row["configuration"]["m"]: row for row in on("cuda", document)}
    assert by_size.keys() == {"32", "33"}
    assert by_size["32"]["verification"]["relative_error"] > 0
    assert by_size["33"]["outcome"] == "skipped"
    assert by_size["33"]["error_message"] == (
        "cuBLASLt has no algorithm for a product of m=33 n=33 k=33, f16 to f16, epilogue: none"
    )


@pytest.mark.parametrize(("truncated", "said"), [("", "rounded"), ("1", "truncated")])
def test_a_row_says_what_becomes_of_the_factors_of_tf32(
    tmp_path: Path, truncated: str, said: str
) -> None:
    arguments = ("--family=Epoch,Gemm,Layer", "--model=disc-2", "--threads=1", "--precision=tf32")
    only = "--benchmark_filter=(m:32/.*nn.*|width:16/.*forward.*)device:cuda|Epoch.*graph/"
    document, _ = emulated(tmp_path, *arguments, only, *SHORT, EMULATED_TRUNCATION=truncated)
    rows = on("cuda", document)
    assert {row["configuration"]["family"] for row in rows} == {"Epoch", "Gemm", "Layer"}
    assert {row["verification"]["tf32_factors"] for row in rows} == {said}


def test_compare_py_pairs_cpu_and_gpu_rows(epochs_path: Path, compare: Callable[..., str]) -> None:
    printed = compare(
        "filters",
        epochs_path,
        "device:cpu/execution:auto/cpu_threads:1",
        "device:cuda/execution:graph/data:resident",
    )
    assert printed.count("Epoch/model:disc-2") >= 2


def test_copies_and_ceilings_of_a_gpu(tmp_path: Path) -> None:
    small = "bytes:1024/|model:heart|quantity:(copy|launch|graph-node|synchronization)"
    document, _ = emulated(
        tmp_path,
        "--family=Peak,Copy",
        "--sweep=quick",
        f"--benchmark_filter=({small}).*device:cuda",
        *SHORT,
    )
    rows = {row["name"]: row for row in on("cuda", document)}
    for name, row in rows.items():
        untimed = "quantity:synchronization" in name
        assert ("device_seconds" in row) == (not untimed), name
        assert row["count"] == {"async": 8}.get(row["configuration"].get("mode"), row["count"])
    ways = {
        (r["configuration"]["direction"], r["configuration"].get("memory"), m)
        for r in rows.values()
        if (m := r["configuration"].get("mode"))
    }
    held = {("pageable", "sync"), ("pinned", "sync"), ("pinned", "async")}
    assert ways == (
        {(direction, *how) for direction in ("h2d", "d2h") for how in held}
        | {("both", "pinned", "sync"), ("both", "pinned", "async")}
        | {("d2d", None, "sync"), ("d2d", None, "async")}
    )
    assert rows["Peak/quantity:launches/device:cuda"]["count"] == 1000
    copied = rows["Copy/direction:h2d/bytes:1024/device:cuda/memory:pinned/mode:sync"]
    assert copied["minimum_work"]["bytes_to_device"] == copied["bytes"]
    file = loading.load_file(tmp_path / "gpu.json")
    (bound,) = (bounds(file)[row.index] for row in file.rows if row.name == copied["name"])
    assert bound.name == "copy"


def test_products_and_layers_on_a_gpu(tmp_path: Path) -> None:
    document, _ = emulated(
        tmp_path,
        "--family=Gemm,Layer",
        "--sweep=quick",
        "--model=disc-2",
        "--execution=eager,graph",
        "--benchmark_filter=(m:32/|m:4/|width:16/.*fused).*device:cuda",
        *SHORT,
    )
    rows = on("cuda", document)
    assert {row["configuration"]["execution"] for row in rows} == {"eager", "graph"}
    assert {row["configuration"]["family"] for row in rows} == {"Gemm", "Layer"}
    for row in rows:
        assert "cpu_threads" not in row["configuration"]
        checked = row["verification"]
        assert checked["entries"] == row["verified_entries"]
        if row["configuration"].get("cache") == "cold":  # some entries of each set
            assert row["operand_sets"] > 1
            assert checked["entries"] >= 256 * row["operand_sets"]
        else:
            assert checked["entries"] == checked["entries_of"]
    assert any(row["configuration"].get("cache") == "cold" for row in rows)


def test_layers_in_16_bits_are_verified_with_their_own_tolerance(tmp_path: Path) -> None:
    document, _ = emulated(
        tmp_path,
        "--family=Layer",
        "--sweep=quick",
        "--precision=f32,bf16,f16",
        "--benchmark_filter=width:16/.*device:cuda",
        *SHORT,
    )
    tolerances: dict[str, set[float]] = {}
    traffic: dict[str, set[float]] = {}
    for row in on("cuda", document):
        precision = row["configuration"]["precision"]
        checked = row["verification"]
        assert checked["entries"] == checked["entries_of"] == row["verified_entries"]
        assert checked["relative_error"] <= checked["tolerance"]
        tolerances.setdefault(precision, set()).add(checked["tolerance"])
        if row["configuration"]["pass"] == "forward":
            traffic.setdefault(precision, set()).add(row["bytes"])
    written = {"f32": 1e-5, "bf16": 1e-5 + 2**-7, "f16": 1e-5 + 2**-10}  # in six digits
    assert tolerances == {name: {float(f"{value:.6g}")} for name, value in written.items()}
    halves = {total / 2 for total in traffic["f32"]}
    assert traffic["bf16"] == traffic["f16"] == halves


def test_every_precision_of_the_gpu_has_its_ceiling() -> None:
    listed = bench("--family=Peak", "--benchmark_list_tests=true", program=EMULATED).stdout
    matrix = re.findall(r"quantity:matrix/precision:(\w+)/device:cuda", listed)
    assert matrix == ["tf32", "bf16", "f16"]
