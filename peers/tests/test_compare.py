# SPDX-License-Identifier: Apache-2.0
"""A whole run with a bench and a peer that compute nothing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from peers.counts import BenchError, ask
from peers.processes import Processes
from peers.tests.comparing import compare
from peers.tests.fakes import MODELS, REPETITIONS
from plots.file import loading


def test_both_take_turns_into_one_file(fakes, tmp_path):
    out = tmp_path / "out" / "both.json"
    out.parent.mkdir()
    done = compare(*fakes, out)
    assert done.returncode == 0, done.stderr
    file = loading.load_file(out)
    assert file.complete and len(file.rows) == len(file.peers) == len(MODELS)
    for row in file.peers:
        assert len(row.samples) == REPETITIONS and row.workload == file.rows[0].workload
    assert "2.00 times ours" in done.stdout and "PyTorch / ours" in done.stdout
    assert [path.name for path in out.parent.iterdir()] == ["both.json"]


def test_an_interrupted_run_keeps_its_rows_and_goes_on(fakes, tmp_path):
    out = tmp_path / "both.json"
    done = compare(*fakes, out, FAKE_BENCH="stops")
    assert done.returncode == 130
    file = loading.load_file(out)
    assert not file.complete and len(file.rows) == len(file.peers) == 1
    assert compare(*fakes, out, "--resume").returncode == 0
    file = loading.load_file(out)
    assert file.complete and len(file.rows) == len(file.peers) == len(MODELS)
    done = compare(*fakes, out, "--resume")
    assert done.returncode == 2 and "there is nothing to go on with" in done.stderr


def test_an_older_file_stays_until_all_rows_are_there(fakes, tmp_path):
    out = tmp_path / "both.json"
    out.write_text("measured last year", encoding="utf-8")
    assert compare(*fakes, out, FAKE_BENCH="stops").returncode == 130
    assert out.read_text("utf-8") == "measured last year"
    assert len(loading.load_file(Path(f"{out}.partial")).rows) == 1
    assert compare(*fakes, out, "--resume").returncode == 0
    assert loading.load_file(out).complete and not Path(f"{out}.partial").exists()


@pytest.mark.parametrize(
    ("trouble", "words"),
    [("diverges", "they differ by"), ("fails", "it is a fake"), ("ends", "ended with exit code 7")],
)
def test_a_row_that_fails_says_why_and_ours_stays(fakes, tmp_path, trouble, words):
    out = tmp_path / "both.json"
    done = compare(*fakes, out, FAKE_PEER=trouble)
    assert done.returncode == 1
    file = loading.load_file(out)
    assert file.complete and all(row.failure is None for row in file.rows)
    for row in file.peers:
        assert row.failure is not None and words in row.failure.message


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--data=x.csv",), "trains on generated data"),
        (("--budget=5m",), "plans the time of bench alone"),
        (("--mode=eager,quick",), "--mode=eager,quick: choose from eager, compile, graph"),
        (("--resume",), "has no rows of a run with PyTorch"),
        (("--bad",), "bench: unknown argument"),
    ],
)
def test_wrong_usage_is_a_sentence_and_leaves_no_file(fakes, tmp_path, more, words):
    out = tmp_path / "out" / "both.json"
    out.parent.mkdir()
    done = compare(*fakes, out, *more)
    assert done.returncode == 2 and words in done.stderr
    assert list(out.parent.iterdir()) == []


def test_threads_that_never_sleep_are_refused(fakes, tmp_path):
    done = compare(*fakes, tmp_path / "both.json", OMP_WAIT_POLICY="ACTIVE")
    assert done.returncode == 2 and "OMP_WAIT_POLICY=ACTIVE keeps the threads" in done.stderr


def test_a_missing_interpreter_is_said_so(fakes, tmp_path):
    done = compare(fakes[0], tmp_path / "nothing", tmp_path / "both.json")
    assert done.returncode == 2 and "PyTorch does not run with" in done.stderr


def test_processes_know_their_pages(tmp_path):
    tell = (
        "import json,os,sys\nfor line in sys.stdin: print(json.dumps(dict(os.environ)),flush=True)"
    )
    processes = Processes([sys.executable, "-c", tell])
    try:
        assert "THP_MEM_ALLOC_ENABLE" not in processes.of("default").describe()
        assert processes.of("huge").describe()["THP_MEM_ALLOC_ENABLE"] == "1"
        assert processes.of("huge") is processes.of("huge")
    finally:
        processes.close()


def test_a_bench_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(BenchError, match=r"\./run --setup-only builds it"):
        ask(tmp_path / "bench", "--plan")
