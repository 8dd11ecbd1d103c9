# SPDX-License-Identifier: Apache-2.0
"""A row that crashes, hangs or loses the GPU costs no other row: on the emulated GPU, whose worker
does in chosen rows what cuda_host/bench_failures.cpp is told."""

import itertools
import json
import random
import subprocess
from pathlib import Path

import pytest
from bench_runs import EMULATED, SHORT, Document, bench, listed, run, samples, strict, validate

pytestmark = pytest.mark.slow

SWEEP = (
    "--family=Epoch",
    "--model=disc-2,disc-3,disc-4",
    "--execution=eager,graph,graph-epoch",
    "--placement=resident,pageable,pinned,pinned-async",
    "--threads=1,2",
    *SHORT,
)
# No row of these takes a second; a sanitizer's build on a busy machine may take a while.
PATIENCE = "--patience=15s"
# What the sanitizer would make of a signal is not what a user's program does.
SIGNALS = {
    "ASAN_OPTIONS": "exitcode=99:handle_segv=0:handle_abort=0:handle_sigill=0",
    "GOMP_SPINCOUNT": "1000",
}
SEEN = {
    "illegal": "an illegal memory access was encountered",
    "endless kernel": "did not answer within 15 s while running it",
    "endless loop": "did not answer within 15 s while making it",
    "silence": "did not answer within 15 s",
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
    found = [(row["name"], row.get("error_message", "")) for row in document["rows"]]
    assert len(dict(found)) == len(found)
    return dict(found)


def on_gpu(name: str) -> bool:
    return "device:cuda" in name


def test_twenty_rows_cost_no_other_row(tmp_path, rows):
    chance = random.Random(28)
    loops = next(name for name in rows if "graph-epoch" in name)
    hanging = [loops, *chance.sample([name for name in rows if on_gpu(name) and name != loops], 2)]
    # Their second try will do.
    faults = {
        n: [f] for n, f in zip(hanging, ("endless loop", "endless kernel", "silence"), strict=True)
    }
    of_cpu, of_gpu = itertools.cycle(FATAL_SIGNALS), itertools.cycle((*FATAL_SIGNALS, "illegal"))
    for name in chance.sample([name for name in rows if name not in hanging], 17):
        fault = next(of_gpu if on_gpu(name) else of_cpu)
        faults[name] = [fault] * (2 if on_gpu(name) else 1)
    assert {faults[name][0] for name in faults if not on_gpu(name)} == set(FATAL_SIGNALS)
    document, done = faulty(tmp_path, faults)
    assert sorted(ends(document)) == sorted(rows)
    warnings = {row["name"]: " ".join(row.get("warnings", [])) for row in samples(document)}
    hung = {name for name in faults if "did not answer" in warnings[name]}
    assert len(hung) == 3, done.stderr
    for name, end in ends(document).items():
        if name in faults:
            assert SEEN[faults[name][0]] in (warnings[name] if name in hung else end), done.stderr
        else:
            assert not end and not warnings[name], done.stderr
    # And the same run goes on with what failed alone.
    resumed, done = faulty(tmp_path, {}, *SWEEP, "--resume")
    assert f"{len(rows) - 17} rows are kept, 17 are to be measured" in done.stderr
    assert ends(resumed) == dict.fromkeys(ends(resumed), "")
    assert sorted(ends(resumed)) == sorted(rows)


def test_a_row_that_took_the_gpu_along_is_tried_again(tmp_path):
    words = ("--family=Epoch", "--model=disc-2", "--execution=eager,graph", "--threads=1", *SHORT)
    name = listed(*words, program=EMULATED)[-1]
    assert on_gpu(name)
    document, done = faulty(tmp_path, {name: ["illegal"]}, *words)
    assert not any(ends(document).values()), done.stderr
    (row, *_) = (row for row in samples(document) if row["name"] == name)
    (warning,) = row["warnings"]
    assert warning.startswith("measured in a second try; in the first one: CUDA: an illegal memory")


def test_a_gpu_that_stays_lost_is_named_once(tmp_path, rows):
    first = next(name for name in rows if on_gpu(name))
    document, done = faulty(tmp_path, {first: ["gone"]})
    found = ends(document)
    assert sorted(found) == sorted(rows)
    assert all(bool(end) == on_gpu(name) for name, end in found.items())
    left_out = [end for end in found.values() if end.startswith("the GPU failed in an earlier row")]
    assert len(left_out) == sum(map(on_gpu, rows)) - 1
    assert done.stderr.count("the GPU is lost, and its other rows are left out") == 1
    assert done.stderr.count("the GPU failed in an earlier row") == 0


def test_a_driver_that_never_answers_leaves_the_cpu(tmp_path):
    words = ("--family=Epoch", "--model=disc-2", "--threads=1", *SHORT, "--patience=1s")
    document, done = run(tmp_path, *words, program=EMULATED, EMULATED_START_SECONDS="1000")
    said = "no GPU rows: looking for one failed: the worker's process did not answer within 4 s"
    assert said in done.stderr
    assert [row["configuration"]["device"] for row in document["rows"]] == ["cpu"]
