# SPDX-License-Identifier: Apache-2.0
"""The child that measures bench's rows: what it answers, and what is lost when it ends."""

import json
import os
import signal
from collections.abc import Sequence

import pytest
from bench_runs import (
    EPOCHS,
    LIMIT_SECONDS,
    SHORT,
    Document,
    bench,
    children_of,
    configuration_of,
    is_running,
    measure,
    running,
    samples,
    strict,
    until,
)

MODELS = "--model=disc-2,disc-3,disc-4,disc-5"
FLAGS = (MODELS, "--threads=1", *EPOCHS)
NAME = "Epoch/model:disc-2/batch:100/precision:f32/device:cpu/execution:eager/cpu_threads:1"


def prepare(name: str, **configuration: str) -> dict[str, object]:
    return {"do": "prepare", "row": name, "configuration": configuration or configuration_of(name)}


def answers(*requests: dict[str, object], flags: Sequence[str], **variables: str) -> list[Document]:
    given = "".join(json.dumps(request) + "\n" for request in requests)
    done = bench("--worker", "--cuda=off", *flags, given=given, variables=variables)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_child_that_crashes_costs_one_row(tmp_path):
    out = tmp_path / "result.json"
    effort = ("--benchmark_repetitions=1", "--benchmark_min_time=0.25")
    with running(out, *FLAGS, *effort) as process:
        os.kill(until(lambda: children_of(process.pid), process)[0], signal.SIGSEGV)
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


def test_a_child_ends_with_its_parent(tmp_path):
    with running(tmp_path / "result.json", *FLAGS, "--benchmark_min_time=0.05") as process:
        child = until(lambda: children_of(process.pid), process)[0]
        process.kill()
        process.wait()
    until(lambda: not is_running(child))


def test_rows_can_be_measured_without_a_child(tmp_path):
    asked = ("--model=disc-2", "--threads=1", *EPOCHS, *SHORT)
    row = samples(measure(tmp_path, *asked, "--in-process"))[0]
    other = samples(measure(tmp_path, *asked))[0]
    assert set(row) == set(other)
    for key in ("name", "workload", "flops", "loss_first_epoch", "verification"):
        assert row[key] == other[key]


def test_the_protocol_is_as_its_document_says():
    repeat = {"do": "repeat", "row": NAME, "min_time_seconds": 0.001, "after_another": False}
    requests = [{"do": "describe"}, prepare(NAME), repeat, repeat, {"do": "release", "row": NAME}]
    flags = ("--model=disc-2", "--threads=1", "--execution=eager")
    said = answers(*requests, flags=flags)
    doing = {line["doing"] for line in said if "doing" in line}
    verifying = {"verifying it", "verifying its operations"}
    assert doing == {"making it", *verifying, "running it", "checking its results"}
    described, prepared, first, second, released = (line for line in said if "doing" not in line)
    assert described == {"gpu": None, "gpu_reason": "none (--cuda=off)"}
    assert prepared["facts"]["params"] == 22
    assert set(prepared["once"]) == {"first_call_seconds", "verification_seconds"}
    for answer in (first, second):
        assert answer["times"]["time_unit"] == "ms"
        assert answer["times"]["real_time"] > 0
    assert first["times"]["iterations"] == second["times"]["iterations"]
    assert set(released) == {"spent"}


@pytest.mark.parametrize("planned", ["34359738368", "1048576"])
def test_the_worker_makes_what_was_planned_with_more_memory_than_it_has(planned):
    name = "Copy/direction:h2h/bytes:1073741824/device:cpu/memory:pageable/mode:sync/cpu_threads:1"
    flags = ["--family=Copy", "--sweep=full", "--memory-limit=1000000"]
    *_, answer = answers(prepare(name), flags=[*flags, f"--planned-memory={planned}"])
    # The configuration says what the row is, whatever was planned.
    assert answer["error_message"].startswith("not enough memory: 2048 MiB needed")


@pytest.mark.parametrize(
    ("configuration", "said"),
    [
        ({"family": "Copy", "direction": "d2d", "bytes": "8", "device": "cpu"}, "no such copy"),
        ({"family": "Epoch", "model": "disc-2", "device": "tpu"}, "no device 'tpu'"),
        ({"family": "Command", "size": "10", "device": "cpu"}, "no rows of the family 'Command'"),
        ({"family": "Gemm", "m": "many", "device": "cpu"}, "lacks 'transpose'"),
        ({"family": "Layer", "width": "many", "device": "cpu"}, "'width' is no number but 'many'"),
    ],
)
def test_the_worker_refuses_what_it_does_not_know(configuration, said):
    *_, answer = answers(prepare("it", **configuration), flags=())
    assert answer["outcome"] == "failed" and said in answer["error_message"]


@pytest.mark.slow
def test_long_work_says_that_it_goes_on():
    # Billions of operations in float64 on one thread: seconds, wherever this runs.
    name = "Minibatch/model:mlp-1024-4096-4096-10/batch:256/precision:f32/device:cpu"
    name += "/execution:eager/cpu_threads:1"
    flags = ("--mlp=1024,4096,4096,10", "--batch=256", "--execution=eager", "--threads=1")
    flags += ("--family=Minibatch",)
    *said, answer = answers(prepare(name), flags=flags, OMP_NUM_THREADS="1")
    assert "facts" in answer
    assert [line["doing"] for line in said].count("verifying it") > 1


@pytest.mark.parametrize("request_", ['{"do": "sing"}', "no JSON", '{"row": "x"}'])
def test_a_request_that_is_none_ends_the_worker(request_):
    done = bench("--worker", "--cuda=off", given=request_ + "\n")
    assert done.returncode == 1
    assert done.stderr.startswith("bench: ")
