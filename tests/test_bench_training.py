# SPDX-License-Identifier: Apache-2.0
"""Rows that train: executions, steps, what a loop does beside them, and networks in use."""

import functools
import json
import re
from pathlib import Path

import pytest
from bench_runs import (
    EMULATED,
    EPOCHS,
    HEART,
    SHORT,
    Document,
    bench,
    epoch_name,
    listed,
    measure,
    plan,
    repetitions,
    samples,
    strict,
)

# --- executions of the CPU: which rows there are, and what auto chose


HAS_BLOCKS = "avx2" in Path("/proc/cpuinfo").read_text("utf-8")
EXECUTIONS = ("eager", "fused", "auto")
BY_THREE = ("--model=resnet-56", "--family=Minibatch", "--cuda=off", "--threads=1")
CONVOLVES = ("--model=alexnet-r", "--family=Minibatch", "--cuda=off", "--threads=1")


def executions(*arguments: str) -> list[str]:
    parts = (part for name in listed(*arguments) for part in name.split("/"))
    return [part.split(":")[1] for part in parts if part.startswith("execution:")]


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


def test_a_network_that_magnifies_rounding_says_so(tmp_path):
    sines = [
        {"type": "linear", "out_features": 64},
        {"type": "affine", "scale": 30.0},
        {"type": "sin"},
    ]
    network = {"name": "sines", "input": {"shape": [2], "type": "f32"}, "outputs": 3, "loss": "mse"}
    network["layers"] = [*sines * 5, {"type": "linear", "out_features": 3}]
    path = tmp_path / "sines.json"
    path.write_text(json.dumps(network), "utf-8")
    flags = ("--family=Minibatch", "--batch=64", "--threads=1", "--cuda=off", *SHORT)
    done = bench(f"--network={path}", *flags, code=1)
    assert "tolerance 1e-05); the network magnifies rounding: " in done.stderr


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


# --- rows of the family Minibatch: one training step


STEPS = ("--family=Minibatch", "--cuda=off", "--threads=1")
SEVEN = ("fcn-r", "alexnet-r", "resnet-56", "lstm", "fcn-s", "alexnet-s", "resnet-50")
CONVOLVE_BY_THREE = ("resnet-56", "resnet-50")  # alexnet-s has too many channels for Winograd's


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
@pytest.mark.parametrize(
    ("flags", "most"),
    [
        # The first is hardly too large.
        (("--family=Minibatch", "--mlp=1000,1500,10", "--batch=6500"), 6500),
        (("--family=Epoch", "--mlp=2000,2000,2000,10", "--rows=2000", "--batch=1000"), 1000),
    ],
)
def test_a_large_step_is_verified_at_a_smaller_batch(tmp_path, flags, most):
    """Takes long, as the reference may take up to 6 s."""
    loop = ("--shuffle=epoch", "--loader=1", "--zero=keep") if most == 1000 else ()
    once = ("--benchmark_repetitions=1", "--benchmark_min_time=0.001", "--execution=eager")
    (row,) = measure(tmp_path, *flags, *loop, "--cuda=off", "--threads=1", *once)["rows"]
    batch = row["verification"]["batch"]
    assert 2 <= batch < most and batch & (batch - 1) == 0
    assert row["verification"]["steps"] == 2


def test_sweeps_measure_the_networks_of_shi():
    of_steps = functools.partial(listed, "--cuda=off", "--family=Minibatch")
    cores = strict(bench("--machine").stdout)["cpu"]["cores"]
    sizes = {"fcn-r": 1024, "alexnet-r": 1024, "resnet-56": 128, "lstm": 128, "fcn-s": 64}
    sizes |= {"alexnet-s": 16, "resnet-50": 16, "vit-ti": 32, "mobilenet-v2": 16}
    assert of_steps("--sweep=quick") == [step_name(m, sizes[m], cores) for m in SEVEN[:2]]
    assert of_steps() == [step_name(m, sizes[m], cores) for m in ("alexnet-r", "lstm")]
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


# --- loaded batches, shuffled rows, kept gradients


NETWORK = ("--mlp=6,16,3", "--rows=40", "--batch=7", "--threads=1")


def rows_of(tmp_path: Path, *flags: str) -> list[Document]:
    """Each was measured and verified."""
    document = measure(tmp_path, *NETWORK, *EPOCHS, *SHORT, *flags)
    assert len(samples(document)) == 2 * len(document["rows"])
    return document["rows"]


def planned(*flags: str) -> list[str]:
    rows = plan(*NETWORK, "--cuda=off", *flags)
    return [row.name for row in rows if "/model:" in row.name]


@pytest.mark.slow
def test_batches_are_loaded_and_verified(tmp_path):
    flags = ("--execution=eager", "--shuffle=none,epoch", "--loader=0,1,40")
    rows = rows_of(tmp_path, *flags)
    assert len(rows) == 6
    shuffled = [row for row in rows if row["configuration"].get("shuffle") == "epoch"]
    ordered = [row for row in rows if "shuffle" not in row["configuration"]]
    for group in (shuffled, ordered):
        assert {row["configuration"].get("loader") for row in group} == {None, "1", "40"}
        assert len({row["workload"] for row in group}) == 1
    assert shuffled[0]["workload"] != ordered[0]["workload"]
    # All 6 steps of an epoch, and of a shuffled one the first step of the next.
    assert {row["verification"]["steps"] for row in ordered} == {6}
    assert {row["verification"]["steps"] for row in shuffled} == {7}
    for row in rows:
        too_many = "1 threads and 40 that load" in " ".join(row.get("warnings", []))
        assert too_many == (row["configuration"].get("loader") == "40")


@pytest.mark.slow
def test_gradients_are_kept(tmp_path):
    rows = rows_of(tmp_path, "--execution=eager", "--zero=overwrite,keep", "--accumulate=1,2")
    assert len(rows) == 4
    assert len({row["workload"] for row in rows}) == 4
    zeros = [row["configuration"].get("zero") for row in rows]
    assert sorted(map(str, zeros)) == ["None", "None", "keep", "keep"]
    done = bench(*NETWORK, *EPOCHS, *SHORT, "--execution=fused", "--zero=keep", code=1)
    assert "layers add to gradients instead of overwriting them" in done.stdout + done.stderr


@pytest.mark.slow
def test_the_sweep_has_what_the_ways_to_train_can_have():
    names = planned("--family=Epoch", "--zero=overwrite,keep")
    assert [name for name in names if "zero:keep" in name and "execution:eager" in name]
    assert not [name for name in names if "zero:keep" in name and "execution:eager" not in name]
    assert [name for name in names if "zero" not in name and "execution:auto" in name]
    # A step alone has its batch, and ranks take rows as they lie.
    names = planned("--family=Minibatch", "--shuffle=epoch", "--loader=2", "--accumulate=4")
    assert names and not re.search("shuffle|loader|accumulate", " ".join(names))
    names = planned("--family=Epoch", "--ranks=2", "--loader=2", "--zero=keep")
    assert names and all("zero:keep" in name and "loader" not in name for name in names)


@pytest.mark.emulated
def test_a_gpu_keeps_gradients_and_takes_rows_as_they_lie(tmp_path):
    flags = ("--zero=overwrite,keep", "--shuffle=none,epoch", "--loader=0,2", "--threads=1")
    ways = ("--execution=eager", "--placement=resident")
    small = ("--mlp=2,2", "--rows=8", "--batch=4", "--family=Epoch", *SHORT)
    document = measure(tmp_path, *small, *ways, *flags, program=EMULATED, code=1)
    rows = [row for row in document["rows"] if row["configuration"]["device"] == "cuda"]
    assert len(rows) == 4 and all("loader" not in row["configuration"] for row in rows)
    for row in rows:
        if "shuffle" in row["configuration"]:
            assert row["outcome"] == "skipped"
            assert "a GPU takes the rows of an epoch as they lie" in row["error_message"]
        else:
            assert row["verification"]["steps"] == 2


# --- rows of the family Forward: a network in use


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
    timed = [entry for entry in samples(passes) if "latency_passes" in entry]
    untimed = {row["name"] for row in passes["rows"]} - {entry["name"] for entry in timed}
    assert all("lenet-5/batch:40/" in name for name in untimed)  # which may take more than 5 ms
    for entry in timed:
        seconds = [entry[key] for q in QUANTILES if (key := f"latency_{q}_seconds") in entry]
        assert seconds == sorted(seconds) and seconds[0] > 0
        assert 20 <= entry["latency_passes"] <= 10_000
        counts = [one["latency_passes"] for one in timed if one["name"] == entry["name"]]
        # What the first repetition has and another lacks stands in none.
        enough = entry["latency_passes"] >= 1000 and (counts[0] < 1000 or min(counts) >= 1000)
        assert ("latency_p999_seconds" in entry) == enough
        assert 0 < entry["clock_seconds"] < seconds[0] or "disc" in entry["name"]


@pytest.mark.slow
def test_a_large_batch_is_verified_by_its_first_rows(tmp_path):
    """Takes long, as less work would be verified whole."""
    large = ("--mlp=2000,6000,2000,10", "--batch=4096", "--execution=eager")
    once = ("--benchmark_repetitions=1", "--benchmark_min_time=0.001")
    document = measure(tmp_path, *PASSES, *large, *once)
    (row,) = document["rows"]
    assert 10 <= row["verification"]["entries"] < row["verification"]["entries_of"] == 40_960
    assert "latency_passes" not in document["benchmarks"][0]  # each takes longer than 5 ms


def test_sweeps_use_some_networks_or_all_or_none():
    def used(*arguments: str) -> set[tuple[str, str]]:
        names = " ".join(listed("--cuda=off", *arguments))
        return set(re.findall(r"\bForward/model:([^/]+)/batch:(\d+)/", names))

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
