# SPDX-License-Identifier: Apache-2.0
"""The child that measures bench's rows: what it answers, and what is lost when it ends."""

import itertools
import json
import os
import random
import re
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from bench_runs import (
    EMULATED,
    EPOCHS,
    LIMIT_SECONDS,
    SHORT,
    Document,
    bench,
    children_of,
    configuration_of,
    is_running,
    listed,
    measure,
    run,
    running,
    samples,
    strict,
    until,
    validate,
)

MODELS = "--model=disc-2,disc-3,disc-4,disc-5"
FLAGS = (MODELS, "--threads=1", *EPOCHS)
NAME = "Epoch/model:disc-2/batch:100/precision:f32/device:cpu/execution:eager/cpu_threads:1"


def prepare(name: str, **configuration: str) -> dict[str, object]:
    return {"do": "prepare", "row": name, "configuration": configuration or configuration_of(name)}


def answers(*requests: dict[str, object], flags: Sequence[str], **variables: str) -> list[Document]:
    given = "".join(json.dumps(request) + "\n" for request in requests)
    done = bench("--worker", "--cuda=off", *flags, given=given, variables=variables, code=0)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ignoring_children() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)


@pytest.mark.parametrize("prepare_", [None, ignoring_children])
def test_a_child_that_crashes_costs_one_row(tmp_path, prepare_):
    out = tmp_path / "result.json"
    effort = ("--benchmark_repetitions=1", "--benchmark_min_time=0.25")
    with running(out, *FLAGS, *effort, prepare=prepare_) as process:
        os.kill(until(lambda: children_of(process.pid), process)[0], signal.SIGSEGV)
        _, messages = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 1, messages
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
    lines = answers(*requests, flags=flags)
    doing = {line["doing"] for line in lines if "doing" in line}
    verifying = {"verifying it", "verifying its operations"}
    assert doing == {"making it", *verifying, "running it", "checking its results"}
    described, prepared, first, second, released = (line for line in lines if "doing" not in line)
    assert described == {"devices": {}, "missing": {"cuda": "none (--cuda=off)"}}
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
    ("configuration", "reason"),
    [
        ({"family": "Copy", "direction": "d2d", "bytes": "8", "device": "cpu"}, "no such copy"),
        ({"family": "Epoch", "model": "disc-2", "device": "tpu"}, "no device 'tpu'"),
        ({"family": "Command", "size": "10", "device": "cpu"}, "no rows of the family 'Command'"),
        ({"family": "Gemm", "m": "8", "device": "cpu"}, "lacks 'transpose'"),
        ({"family": "Layer", "width": "many", "device": "cpu"}, "'width' is no number but 'many'"),
    ],
)
def test_the_worker_refuses_what_it_does_not_know(configuration, reason):
    *_, answer = answers(prepare("it", **configuration), flags=())
    assert answer["outcome"] == "failed" and reason in answer["error_message"]


@pytest.mark.slow
def test_long_work_says_that_it_goes_on():
    """Billions of operations in float64 on one thread: seconds, wherever this runs."""
    name = "Minibatch/model:mlp-1024-4096-4096-10/batch:128/precision:f32/device:cpu"
    name += "/execution:eager/cpu_threads:1"
    flags = ("--mlp=1024,4096,4096,10", "--batch=128", "--execution=eager", "--threads=1")
    flags += ("--family=Minibatch",)
    *lines, answer = answers(prepare(name), flags=flags, OMP_NUM_THREADS="1")
    assert "facts" in answer
    assert [line["doing"] for line in lines].count("verifying it") > 1


@pytest.mark.parametrize("request_", ['{"do": "sing"}', "no JSON", '{"row": "x"}'])
def test_a_request_that_is_none_ends_the_worker(request_):
    done = bench("--worker", "--cuda=off", given=request_ + "\n", code=1)
    assert done.stderr.startswith("bench: ")


# --- chosen rows of the emulated GPU do what cuda_host/bench_failures.cpp is told


SWEEP = (
    "--family=Epoch",
    "--model=disc-2,disc-3,disc-4",
    "--execution=eager,graph,graph-epoch",
    "--placement=resident,pageable,pinned,pinned-async",
    "--threads=1,2",
    "--rows=200",
    *SHORT,
)
# No row of these is silent for half a second, in a sanitizer's build on a busy machine either.
PATIENCE = "--patience=4s"
# What the sanitizer would make of a signal is not what a user's program does.
SIGNALS = {
    "ASAN_OPTIONS": "exitcode=99:handle_segv=0:handle_abort=0:handle_sigill=0",
    "GOMP_SPINCOUNT": "1000",
}
SEEN = {
    "illegal": "an illegal memory access was encountered",
    "endless kernel": " s while running it",
    "endless loop": " s while making it",
    "silence": "did not answer within ",
    "abort": "was ended by a signal (Aborted)",
    "segmentation": "was ended by a signal (Segmentation fault)",
    "instruction": "was ended by a signal (Illegal instruction)",
}
FATAL_SIGNALS = ("abort", "segmentation", "instruction")


def faulty(
    folder: Path, faults: dict[str, list[str]], *arguments: str
) -> tuple[Document, subprocess.CompletedProcess[str]]:
    """Ends in any case with a file that is valid; its exit code says whether all rows are in it."""
    told, path = folder / "faults.json", folder / "result.json"
    told.write_text(json.dumps(faults), encoding="utf-8")
    variables = {"EMULATED_FAULTS": str(told), **SIGNALS}
    words = (*(arguments or SWEEP), PATIENCE, f"--out={path}")
    done = bench(*words, program=EMULATED, variables=variables)
    document = strict(path)
    assert done.returncode == (1 if any(ends(document).values()) else 0), done.stderr
    validate(path)
    return document, done


@pytest.fixture(scope="module")
def rows() -> list[str]:
    return listed(*SWEEP, program=EMULATED)


def ends(document: Document) -> dict[str, str]:
    """What each row ended with; "" of those that are measured."""
    messages = {row["name"]: row.get("error_message", "") for row in document["rows"]}
    assert len(messages) == len(document["rows"])
    return messages


def on_gpu(name: str) -> bool:
    return "device:cuda" in name


@pytest.mark.emulated
def test_twenty_rows_cost_no_other_row(tmp_path, rows):
    """Takes long, as what hangs is waited for three times."""
    chance = random.Random(28)
    loops = next(name for name in rows if "graph-epoch" in name)
    # The second try of these will do; the last one's first took the GPU along.
    once = [loops, *chance.sample([name for name in rows if on_gpu(name) and name != loops], 3)]
    kinds = ("endless loop", "endless kernel", "silence", "illegal")
    faults = {name: [kind] for name, kind in zip(once, kinds, strict=True)}
    of_cpu, of_gpu = itertools.cycle(FATAL_SIGNALS), itertools.cycle((*FATAL_SIGNALS, "illegal"))
    for name in chance.sample([name for name in rows if name not in once], 16):
        fault = next(of_gpu if on_gpu(name) else of_cpu)
        faults[name] = [fault] * (2 if on_gpu(name) else 1)
    assert {faults[name][0] for name in faults if not on_gpu(name)} == set(FATAL_SIGNALS)
    document, done = faulty(tmp_path, faults)
    assert sorted(ends(document)) == sorted(rows)
    # A hypervisor takes processors when it likes.
    stolen = re.compile(r"a hypervisor took up to \d+ % of a processor in \d+ of \d+ repetitions")
    warnings = {
        row["name"]: " ".join(w for w in row.get("warnings", []) if not stolen.fullmatch(w))
        for row in samples(document)
    }
    for name, end in ends(document).items():
        if name in once:
            again = "measured in a second try; in the first one: "
            assert warnings[name].startswith(again), done.stderr
            assert SEEN[faults[name][0]] in warnings[name] and not end
        elif name in faults:
            assert SEEN[faults[name][0]] in end, done.stderr
        else:
            assert not end and not warnings[name], done.stderr
    # And the same run goes on with what failed alone.
    resumed, done = faulty(tmp_path, {}, *SWEEP, "--resume")
    assert f"{len(rows) - 16} rows are kept, 16 are to be measured" in done.stderr
    assert ends(resumed) == dict.fromkeys(ends(resumed), "")
    assert sorted(ends(resumed)) == sorted(rows)


@pytest.mark.emulated
def test_a_gpu_that_stays_lost_is_named_once(tmp_path, rows):
    first = next(name for name in rows if on_gpu(name))
    document, done = faulty(tmp_path, {first: ["gone"]})
    messages = ends(document)
    assert sorted(messages) == sorted(rows)
    assert all(bool(message) == on_gpu(name) for name, message in messages.items())
    left_out = "the GPU failed in an earlier row"
    count = sum(message.startswith(left_out) for message in messages.values())
    assert count == sum(map(on_gpu, rows)) - 1
    assert done.stderr.count("the GPU is lost, and its other rows are left out") == 1
    assert left_out not in done.stderr


@pytest.mark.emulated
def test_a_driver_that_never_answers_leaves_the_cpu(tmp_path):
    words = ("--family=Epoch", "--model=disc-2", "--threads=1", *SHORT, "--patience=1s")
    document, done = run(tmp_path, *words, program=EMULATED, EMULATED_START_SECONDS="1000")
    why = "no GPU rows: looking for one failed: the worker's process did not answer within 4 s"
    assert why in done.stderr
    assert [row["configuration"]["device"] for row in document["rows"]] == ["cpu"]
