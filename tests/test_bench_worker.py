# SPDX-License-Identifier: Apache-2.0
"""The child that measures bench's rows: what it answers, and what is lost when it ends."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from bench_runs import BENCH, EPOCHS, SHORT, bench, environment, measure, samples, strict

LIMIT_SECONDS = 60.0
MODELS = "--model=disc-2,disc-3,disc-4,disc-5"
SLOW = ("--threads=1", *EPOCHS, "--benchmark_repetitions=5", "--benchmark_min_time=0.05")


def child_of(process: subprocess.Popen[str]) -> int:
    """Once it is there."""
    path = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (children := path.read_text().split()):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    return int(children[0])


def started(out: Path, *flags: str) -> subprocess.Popen[str]:
    """A run that has its first row."""
    process = subprocess.Popen(
        [BENCH, MODELS, *(flags or SLOW[-2:]), *SLOW[:-2], f"--out={out}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    deadline = time.monotonic() + LIMIT_SECONDS
    while not (out.exists() and strict(out)["rows"]):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    return process


def test_a_child_that_crashes_costs_one_row(tmp_path: Path) -> None:
    out = tmp_path / "result.json"
    with started(out, "--benchmark_repetitions=1", "--benchmark_min_time=0.25") as process:
        os.kill(child_of(process), signal.SIGSEGV)
        _, said = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 1, said
    rows = strict(out)["rows"]
    models = [row["configuration"]["model"] for row in rows]
    assert models == ["disc-2", "disc-3", "disc-4", "disc-5"]
    (failed,) = [row for row in rows if "outcome" in row]
    assert failed["outcome"] == "failed"
    assert failed["error_message"].startswith(
        "the worker's process was ended by a signal (Segmentation fault)"
    )


def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    with started(tmp_path / "result.json") as process:
        child = child_of(process)
        process.kill()
        process.wait()
    deadline = time.monotonic() + LIMIT_SECONDS
    while Path(f"/proc/{child}").exists():
        state = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "Z":
            break
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_rows_can_be_measured_without_a_child(tmp_path: Path) -> None:
    asked = ("--model=disc-2", "--threads=1", *EPOCHS, *SHORT)
    row = samples(measure(tmp_path, *asked, "--in-process"))[0]
    other = samples(measure(tmp_path, *asked))[0]
    assert set(row) == set(other)
    for key in ("name", "workload", "flops", "loss_first_epoch", "verification"):
        assert row[key] == other[key]


def test_the_protocol_is_as_its_document_says() -> None:
    name = "Epoch/model:disc-2/batch:100/precision:f32/device:cpu/execution:eager/cpu_threads:1"
    family, *pairs = name.split("/")
    configuration = {"family": family, **dict(pair.split(":") for pair in pairs)}
    requests = [
        {"do": "describe"},
        {"do": "prepare", "row": name, "configuration": configuration},
        *[{"do": "repeat", "row": name, "min_time_seconds": 0.001, "after_another": False}] * 2,
        {"do": "release", "row": name},
    ]
    flags = ("--model=disc-2", "--threads=1", "--execution=eager", "--cuda=off")
    done = bench("--worker", *flags, given="".join(json.dumps(one) + "\n" for one in requests))
    assert done.returncode == 0, done.stderr
    said = [json.loads(line) for line in done.stdout.splitlines()]
    doing = [line["doing"] for line in said if "doing" in line]
    assert set(doing) == {
        "making it",
        "verifying it",
        "verifying its operations",
        "running it",
        "checking its results",
    }
    described, prepared, first, second, released = (line for line in said if "doing" not in line)
    assert described == {"gpu": None, "gpu_reason": "none (--cuda=off)"}
    assert prepared["facts"]["params"] == 22
    assert set(prepared["once"]) == {"first_call_seconds", "verification_seconds"}
    for answer in (first, second):
        assert answer["times"]["time_unit"] == "ms"
        assert answer["times"]["real_time"] > 0
    assert first["times"]["iterations"] == second["times"]["iterations"]
    assert set(released) == {"spent"}


def test_the_worker_makes_what_was_planned_with_more_memory_than_it_has() -> None:
    name = "Copy/direction:h2h/bytes:1073741824/device:cpu/memory:pageable/mode:sync/cpu_threads:1"
    family, *pairs = name.split("/")
    configuration = {"family": family, **dict(pair.split(":") for pair in pairs)}
    request = json.dumps({"do": "prepare", "row": name, "configuration": configuration})
    told = {}
    for planned in ("34359738368", "1048576"):
        flags = (
            "--worker",
            "--cuda=off",
            "--family=Copy",
            "--sweep=full",
            "--memory-limit=1000000",
        )
        done = bench(*flags, f"--planned-memory={planned}", given=request + "\n")
        assert done.returncode == 0, done.stderr
        told[planned] = json.loads(done.stdout.splitlines()[-1])
    for answer in told.values():  # the configuration says what the row is, whatever was planned
        assert answer["error_message"].startswith("not enough memory: 2048 MiB needed")


def test_the_worker_refuses_what_it_does_not_know() -> None:
    for given, said in (
        ({"family": "Copy", "direction": "d2d", "bytes": "8", "device": "cpu"}, "no such copy"),
        ({"family": "Epoch", "model": "disc-2", "device": "tpu"}, "no device 'tpu'"),
        ({"family": "Command", "size": "10", "device": "cpu"}, "no rows of the family 'Command'"),
        ({"family": "Gemm", "m": "many", "device": "cpu"}, "lacks 'transpose'"),
        ({"family": "Layer", "width": "many", "device": "cpu"}, "'width' is no number but 'many'"),
    ):
        request = json.dumps({"do": "prepare", "row": "it", "configuration": given})
        done = bench("--worker", "--cuda=off", given=request + "\n")
        assert done.returncode == 0, done.stderr
        answer = json.loads(done.stdout.splitlines()[-1])
        assert answer["outcome"] == "failed" and said in answer["error_message"]


@pytest.mark.slow
def test_long_work_says_that_it_goes_on() -> None:
    # Billions of operations in float64 on one thread: seconds, wherever this runs.
    name = "Minibatch/model:mlp-1024-4096-4096-10/batch:256/precision:f32/device:cpu"
    name += "/execution:eager/cpu_threads:1"
    family, *pairs = name.split("/")
    configuration = {"family": family, **dict(pair.split(":") for pair in pairs)}
    request = {"do": "prepare", "row": name, "configuration": configuration}
    flags = ("--mlp=1024,4096,4096,10", "--batch=256", "--execution=eager", "--threads=1")
    done = bench(
        *("--worker", "--family=Minibatch", "--cuda=off", *flags),
        given=json.dumps(request) + "\n",
        variables={"OMP_NUM_THREADS": "1"},
    )
    *said, answer = map(json.loads, done.stdout.splitlines())
    assert "facts" in answer, done.stderr
    assert [line["doing"] for line in said].count("verifying it") > 1


@pytest.mark.parametrize("request_", ['{"do": "sing"}', "no JSON", '{"row": "x"}'])
def test_a_request_that_is_none_ends_the_worker(request_: str) -> None:
    done = bench("--worker", "--cuda=off", given=request_ + "\n")
    assert done.returncode == 1
    assert done.stderr.startswith("bench: ")
