# SPDX-License-Identifier: Apache-2.0
"""Several ranks on GPUs as bench's user meets them: emulated GPUs, and a made-up NCCL."""

import subprocess
from pathlib import Path

import pytest
from bench_ranks import ROOT_MAY, SIZES, SPIN, SUMS, missing
from bench_runs import EMULATED, SHORT, Document, bench, needs_emulation, strict

pytestmark = [pytest.mark.slow, needs_emulation]

MLP = ("--mlp=12,32,7", "--batch=30", "--rows=100", "--threads=1")
# Open MPI does not free all that it takes.
MPI_LEAKS = {"ASAN_OPTIONS": "exitcode=99:malloc_context_size=2:detect_leaks=0"}
TWO = ("--ranks=2", *MLP, "--family=Epoch", *SHORT)


def emulated(
    folder: Path, *flags: str, gpus: int, code: int = 0, **variables: str
) -> tuple[Document, subprocess.CompletedProcess[str]]:
    if reason := missing():
        pytest.skip(reason)
    out = folder / "result.json"
    own = {**SPIN, **ROOT_MAY, **MPI_LEAKS, "EMULATED_GPUS": str(gpus), **variables}
    done = bench(*flags, f"--out={out}", program=EMULATED, variables=own)
    assert done.returncode == code, done.stderr
    return strict(out), done


def on_gpus(document: Document) -> list[Document]:
    return [
        row
        for row in document["rows"]
        if row["configuration"]["device"] == "cuda" and "ranks" in row["configuration"]
    ]


def test_ranks_train_what_one_gpu_trains(tmp_path: Path) -> None:
    flags = ("--ranks=1,2", *MLP, "--family=Epoch", "--bucket=1000", *SHORT)
    document, _ = emulated(tmp_path, *flags, gpus=2)
    shared = on_gpus(document)
    ways = ["eager", "graph", "graph-epoch", "overlapped"]
    assert sorted(row["configuration"]["execution"] for row in shared) == ways
    assert len({row["workload"] for row in document["rows"]}) == 1
    for row in shared:
        verification = row["verification"]
        assert verification["steps"] == verification["steps_of"] == 4
        assert 0 < verification["parameter_error"] < verification["parameter_tolerance"]
        assert "warnings" not in row or not any("GPU" in one for one in row["warnings"])
    alone = [row for row in document["rows"] if "ranks" not in row["configuration"]]
    assert all(row["configuration"]["execution"] != "overlapped" for row in alone)


def test_sums_on_gpus_are_rows_of_their_own(tmp_path: Path) -> None:
    document, _ = emulated(tmp_path, "--ranks=2", *SUMS, *SHORT, gpus=2)
    rows = on_gpus(document)
    assert len(rows) == SIZES
    assert all("bit for bit" in row["verification"]["reference"] for row in rows)


def test_more_ranks_than_gpus_cost_their_rows_alone(tmp_path: Path) -> None:
    document, _ = emulated(tmp_path, *TWO, "--execution=eager", gpus=1, code=1)
    (row,) = on_gpus(document)
    assert "there are more ranks than GPUs" in row["error_message"]
    assert "start as many ranks as there are GPUs" in row["error_message"]
    measured = [row for row in document["rows"] if "error_message" not in row]
    assert [row["configuration"]["device"] for row in measured] == ["cpu"]


def test_ranks_that_share_a_gpu_say_so(tmp_path: Path) -> None:
    document, _ = emulated(
        tmp_path, *TWO, "--execution=overlapped", gpus=1, NCCL_MULTI_RANK_GPU_ENABLE="1"
    )
    (row,) = on_gpus(document)
    assert "error_message" not in row
    assert any("NCCL_MULTI_RANK_GPU_ENABLE=1" in one for one in row["warnings"])
