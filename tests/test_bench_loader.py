# SPDX-License-Identifier: Apache-2.0
"""What a training loop does beside its steps: loaded batches, shuffled rows, kept gradients."""

import re
from pathlib import Path

import pytest
from bench_runs import EMULATED, EPOCHS, SHORT, Document, bench, measure, plan, samples

pytestmark = pytest.mark.slow

NETWORK = ("--mlp=6,16,3", "--rows=40", "--batch=7", "--threads=1")


def rows_of(tmp_path: Path, *flags: str) -> list[Document]:
    """Each was measured and verified."""
    document = measure(tmp_path, *NETWORK, *EPOCHS, *SHORT, *flags)
    assert len(samples(document)) == 2 * len(document["rows"])
    return document["rows"]


def planned(*flags: str) -> list[str]:
    rows = plan(*NETWORK, "--cuda=off", *flags)
    return [row.name for row in rows if "/model:" in row.name]


def test_batches_are_loaded_and_verified(tmp_path):
    flags = ("--execution=eager", "--shuffle=none,epoch", "--loader=0,1,3")
    rows = rows_of(tmp_path, *flags)
    assert len(rows) == 6
    shuffled = [row for row in rows if row["configuration"].get("shuffle") == "epoch"]
    ordered = [row for row in rows if "shuffle" not in row["configuration"]]
    for group in (shuffled, ordered):
        assert {row["configuration"].get("loader") for row in group} == {None, "1", "3"}
        assert len({row["workload"] for row in group}) == 1
    assert shuffled[0]["workload"] != ordered[0]["workload"]
    # All 6 steps of an epoch, and of a shuffled one the first step of the next.
    assert {row["verification"]["steps"] for row in ordered} == {6}
    assert {row["verification"]["steps"] for row in shuffled} == {7}


def test_fused_steps_are_loaded_too(tmp_path):
    rows = rows_of(tmp_path, "--execution=fused,auto", "--shuffle=epoch", "--loader=0,2")
    assert len(rows) == 4


def test_gradients_are_kept(tmp_path):
    rows = rows_of(tmp_path, "--execution=eager", "--zero=overwrite,keep", "--accumulate=1,2")
    assert len(rows) == 4
    assert len({row["workload"] for row in rows}) == 4
    zeros = [row["configuration"].get("zero") for row in rows]
    assert sorted(map(str, zeros)) == ["None", "None", "keep", "keep"]


def test_a_large_step_is_verified_with_a_smaller_batch(tmp_path):
    large = ("--mlp=2000,2000,2000,10", "--rows=2000", "--batch=1000", "--threads=1")
    flags = ("--execution=eager", "--shuffle=epoch", "--loader=1", "--zero=keep")
    (row,) = measure(tmp_path, *large, *EPOCHS, *SHORT, *flags)["rows"]
    assert row["verification"]["batch"] < 1000


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


def test_workers_beyond_the_cores_are_flagged(tmp_path):
    rows = rows_of(tmp_path, "--execution=eager", "--loader=40")
    (row,) = rows
    assert any("1 threads and 40 that load batches" in said for said in row["warnings"])


def test_a_gpu_keeps_gradients_and_takes_rows_as_they_lie(tmp_path):
    flags = ("--zero=overwrite,keep", "--shuffle=none,epoch", "--loader=0,2", "--threads=1")
    ways = ("--execution=eager", "--placement=resident")
    own = ("--mlp=2,2", "--rows=8", "--batch=4", "--family=Epoch", *SHORT)
    document = measure(tmp_path, *own, *ways, *flags, program=EMULATED, code=1)
    rows = [row for row in document["rows"] if row["configuration"]["device"] == "cuda"]
    assert len(rows) == 4 and all("loader" not in row["configuration"] for row in rows)
    for row in rows:
        if "shuffle" in row["configuration"]:
            assert row["outcome"] == "skipped"
            assert "a GPU takes the rows of an epoch as they lie" in row["error_message"]
        else:
            assert row["verification"]["steps"] == 2


def test_what_cannot_keep_gradients_says_so():
    done = bench(*NETWORK, *EPOCHS, *SHORT, "--execution=fused", "--zero=keep")
    assert done.returncode == 1
    assert "layers add to gradients instead of overwriting them" in done.stdout + done.stderr
