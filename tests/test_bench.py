# SPDX-License-Identifier: Apache-2.0
"""Command lines of the built `bench`, what it prints, and rows that it refuses or remarks on."""

import json
import resource
from pathlib import Path
from typing import Any

import pytest
from bench_runs import (
    DISC,
    MLP,
    SHORT,
    bench,
    but_of_load,
    epoch_name,
    listed,
    measure,
    run,
    samples,
    strict,
)

from crossover_bench import __version__
from crossover_bench.curves.network import ODD


def test_information():
    assert bench("--version").stdout == f"bench {__version__}\n"
    assert strict(bench("--machine").stdout)["id"]
    assert {name for name in bench("--models").stdout.split() if name.startswith("mlp-")} == ODD
    assert bench("--commit").stdout.strip()
    done = bench("--help", code=0)
    assert "\n  --model" in done.stdout and "--benchmark_filter" in done.stdout


def test_listing_prints_names_and_writes_nothing(tmp_path):
    path = tmp_path / "result.json"
    # The last of a repeated flag counts.
    names = listed("--model=nope", *DISC, "--threads=1,2", f"--out={path}")
    assert names == [epoch_name("disc-2", 100, threads) for threads in (1, 2)]
    assert not path.exists()


def test_describe_prints_what_the_docs_show():
    page = (Path(__file__).parent.parent / "docs" / "networks.md").read_text(encoding="utf-8")
    shown = page.split("```json\n")[1].split("```")[0]
    done = bench("--describe", "--mlp=784,512,10")
    assert (done.returncode, done.stderr) == (0, "")
    assert strict(done.stdout) == strict(shown)


# --- the user's rows, of whose reader data_test.cpp asks more


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """Three rows of two features, below a byte-order mark and a header."""
    path = tmp_path / "three.csv"
    path.write_bytes(b"\xef\xbb\xbfa,b,label\r\n1,2,0\r\n3,4,1\r\n5,6,1\r\n")
    return path


@pytest.mark.slow
def test_widths_and_batches_are_those_of_the_data(tmp_path, three):
    flags = ("--mlp=auto,8,auto", *MLP[1:], f"--data={three}", "--batch=1,2,3,1000")
    document = measure(tmp_path, *flags)
    # The last batch may be short, and none is larger than the data.
    sizes = [(row["rows"], row["batch"], row["steps"]) for row in document["rows"]]
    assert sizes == [(3, 1, 3), (3, 2, 2), (3, 3, 1)]
    assert [row["configuration"]["batch"] for row in document["rows"]] == ["1", "2", "3"]
    assert {row["configuration"]["model"] for row in document["rows"]} == {"mlp-2-8-2"}
    assert document["context"]["crossover"]["configuration"]["data"] == three.name


def workload(folder: Path, *arguments: str) -> str:
    rows = measure(folder, *MLP, "--batch=3", *arguments)["rows"]
    (fingerprint,) = {row["workload"] for row in rows}
    return fingerprint


@pytest.mark.slow
def test_flags_and_data_change_the_fingerprint(tmp_path, three):
    """fingerprint_test.cpp asks what else does."""
    variants = ((), ("--lr=0.2",), ("--optimizer=adamw",), ("--rows=3",), (f"--data={three}",))
    fingerprints = [workload(tmp_path, *variant) for variant in variants]
    assert len({*fingerprints}) == len(variants)
    # Data is known by its rows, not by its file.
    again = tmp_path / "again.csv"
    again.write_text("1.0,2,0\n3,4,1\n5,6,1\n", "utf-8")
    assert workload(tmp_path, f"--data={again}") == fingerprints[-1]


# --- rows that can't be measured, or only with a remark


@pytest.mark.slow
def test_too_many_threads_are_flagged(tmp_path):
    cores = strict(bench("--machine").stdout)["cpu"]["cores"]
    flags = ("--model=disc-2", f"--threads={cores + 1}", "--family=Epoch", *SHORT)
    document, done = run(tmp_path, *flags)
    warning = f"oversubscribed: {cores + 1} threads on {cores} cores"
    assert f"! {warning}" in done.stdout
    for row in samples(document):
        assert (row["cpu_threads"], row["warnings"]) == (cores + 1, [warning])


@pytest.mark.slow
def test_a_relu_near_zero_is_no_fault(tmp_path):
    # Two steps of this training have a ReLU's input within rounding of zero. Which side float32
    # sees depends on the processor: with AVX-512, the other one than float64.
    network = ("--mlp=100,300,200,50,5", "--batch=32", "--threads=1", "--family=Epoch")
    for row in samples(measure(tmp_path, *network, *SHORT)):
        assert row["verification"]["steps"] == 32
        assert row["verification"].get("undetermined_updates", 2) == 2


def _epoch_of(folder: Path, network: dict[str, object], *flags: str) -> list[dict[str, Any]]:
    path = folder / "own.json"
    form = {"name": "own", "input": {"shape": [20], "type": "f32"}, **network}
    path.write_text(json.dumps(form), encoding="utf-8")
    words = (f"--network={path}", "--family=Epoch", "--cuda=off", "--threads=1", *SHORT, *flags)
    return samples(measure(folder, *words))


@pytest.mark.parametrize("groups", [8, 16])
@pytest.mark.slow
def test_what_rounding_decides_is_no_fault(groups, tmp_path):
    # Roundings grow so fast that they decide the last of ten losses, in float64, too.
    block = [
        {"type": "conv2d", "out_channels": 16, "kernel_size": 3, "padding": 1},
        {"type": "group_norm", "num_groups": groups},
        {"type": "relu"},
    ]
    network = {
        "input": {"shape": [3, 12, 12], "type": "f32"},
        "classes": 10,
        "loss": "cross_entropy",
        "layers": [*(6 * block), {"type": "flatten"}, {"type": "linear", "out_features": 10}],
        "training": {"rows": 320, "batch": 32, "optimizer": "sgd", "learning_rate": 0.1},
    }
    for row in _epoch_of(tmp_path, network, "--execution=eager"):
        checked = row["verification"]
        assert 3 <= checked["steps"] <= checked["steps_of"] == 10
        assert checked["parameter_error"] <= checked["parameter_tolerance"]


@pytest.mark.parametrize(
    "outputs", [{"outputs": 1, "loss": "bce"}, {"classes": 2, "loss": "cross_entropy"}]
)
@pytest.mark.parametrize("rate", [3, 30])
def test_a_loss_that_saturates_is_no_fault(rate, outputs, tmp_path):
    # Four rows, learned by heart: gradients come to next to nothing.
    network = {
        **outputs,
        "layers": [
            {"type": "linear", "out_features": 256},
            {"type": "relu"},
            {"type": "linear", "out_features": outputs.get("classes", 1)},
        ],
        "training": {"rows": 4, "batch": 4, "optimizer": "sgd", "learning_rate": rate},
    }
    for row in _epoch_of(tmp_path, network, "--execution=eager,fused"):
        assert row["verification"]["operation_error"] <= row["verification"]["operation_tolerance"]


def test_too_little_memory_skips_a_row_and_the_others_run(tmp_path):
    # disc-10 alone holds 703,142 parameters of 4 bytes.
    arguments = ("--model=disc-10,disc-2", *DISC[1:], "--memory-limit=2000000")
    skipped, *measured = samples(measure(tmp_path, *arguments, code=1))
    assert skipped["configuration"]["model"] == "disc-10"
    assert skipped["outcome"] == "skipped"
    assert skipped["error_message"].startswith("not enough memory: ")
    assert "needed to train and verify disc-10, 1.91 MiB available" in skipped["error_message"]
    assert "real_time" not in skipped
    assert [row["configuration"]["model"] for row in measured] == ["disc-2"] * 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["--mlp=1099511627776,2"],
        ["--mlp=1000000000,1000000000,2"],
        ["--mlp=2,2", "--rows=1099511627776", "--batch=1099511627776"],
        ["--mlp=2,2", "--rows=1099511627776"],
    ],
)
def test_a_model_beyond_any_memory_is_skipped(arguments):
    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))

    done = bench(*arguments, "--threads=1", "--family=Epoch", *SHORT, prepare=bounded, code=1)
    assert "not enough memory" in done.stderr
    assert "1 of 1 rows were not measured" in done.stderr


@pytest.mark.slow
def test_diverging_training_fails_and_the_others_run(tmp_path):
    # Beyond single precision, too.
    beyond = bench("--mlp=2,4,2", "--rows=200", "--batch=10", "--lr=1e20", *MLP[1:], code=1)
    assert "diverges" in beyond.stderr
    # Without a hidden layer the gradients are bounded: the same rate diverges in disc-2 only.
    document, done = run(tmp_path, "--model=disc-2", *MLP, "--lr=1e20", code=1)
    assert but_of_load(done.stderr).startswith(
        f"bench: {epoch_name('disc-2', 100, 1)}: the training diverges"
    )
    assert "--lr" in done.stderr
    assert "1 of 2 rows were not measured" in done.stderr
    outcomes = [(row["configuration"]["model"], row.get("outcome")) for row in document["rows"]]
    assert outcomes == [("mlp-2-2", None), ("disc-2", "failed")]


def test_an_order_of_steps_needs_sixteen_bytes_a_step():
    # A million steps in three arrangements are 48 MB, in every preset alike.
    asked = ("--cost", "--model=disc-2", "--rows=1000000", "--batch=1")
    bench(*asked, "--memory-limit=49000000", code=0)
    refused = bench(*asked, "--memory-limit=47000000", code=2)
    assert "not enough memory" in refused.stderr
