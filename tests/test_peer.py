# SPDX-License-Identifier: Apache-2.0
"""The built bench beside a second program, a fake of a few lines that no part of bench knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_runs import BENCH, bench

from plots.file import loading

ROOT = Path(__file__).resolve().parents[1]
REPETITIONS = 3
FAKE = f"--peer={sys.executable} {ROOT / 'peers' / 'tests' / 'fake.py'} --mode=whatever"
SMALL = ("--family=Epoch", "--model=disc-2,disc-3", "--threads=1", "--cuda=off", FAKE)
SHORT = ("--benchmark_min_time=0.001", f"--benchmark_repetitions={REPETITIONS}")


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return bench(*arguments, variables=variables)


def first_loss(tmp_path: Path, model: str, *more: str) -> str:
    """As bench has it."""
    out = tmp_path / "ours.json"
    flags = ("--family=Epoch", f"--model={model}", "--threads=1", "--cuda=off", *SHORT, *more)
    run(*flags, f"--out={out}")
    loss = json.loads(out.read_text("utf-8"))["rows"][0]["loss_first_epoch"]
    out.unlink()
    return str(loss)


def measured(tmp_path: Path, *arguments: str, code: int = 0, **variables: str) -> dict[str, Any]:
    out = tmp_path / "both.json"
    done = run(*arguments, f"--out={out}", **variables)
    assert done.returncode == code, done.stdout + done.stderr
    document: dict[str, Any] = json.loads(out.read_text("utf-8"))
    return document


def programs(document: dict[str, Any]) -> list[str]:
    return [row["configuration"].get("program", "bench") for row in document["rows"]]


def test_its_rows_take_turns_with_those_that_do_the_same_work(tmp_path):
    loss = first_loss(tmp_path, "disc-2")
    flags = [*SMALL[:1], "--model=disc-2", *SMALL[2:]]
    document = measured(tmp_path, *flags, *SHORT, FAKE_LOSS=loss)
    ours, good, bad = document["rows"]
    assert programs(document) == ["bench", "fake", "fake"]
    assert good["name"] == (
        "Epoch/model:disc-2/batch:100/precision:f32/program:fake/device:cpu/execution:eager/"
        "cpu_threads:1"
    )
    assert bad["name"] == good["name"].replace("/cpu_threads", "/mood:bad/cpu_threads")
    assert {row["workload"] for row in (ours, good, bad)} == {ours["workload"]}
    times = [entry["real_time"] for entry in document["benchmarks"] if entry["name"] == bad["name"]]
    assert times == [2.0] * REPETITIONS
    crossover = document["context"]["crossover"]
    assert crossover["complete"]
    assert crossover["peers"] == {"fake": {"version": "0.1"}}
    assert crossover["software"]["libraries"]["Fake"] == "0.1"
    words = crossover["configuration"]["command"]
    place = words.index("--with-peers")
    assert words[place + 1] == "--mode=whatever"
    assert "mood" in [axis["key"] for axis in crossover["axes"]]
    assert str(ROOT) not in json.dumps(document)
    assert [part["rows"] for part in crossover["parts"]] == [3]


def test_a_peer_brings_rows_of_its_own(tmp_path):
    own = ("--family=Peak", "--program=fake", *SMALL[2:])
    document = measured(tmp_path, *own, *SHORT, FAKE_PEER="brings")
    (row,) = document["rows"]
    assert row["name"] == (
        "Epoch/model:its-own/batch:4/precision:f32/program:fake/device:cpu/execution:eager/"
        "mood:bad/cpu_threads:1"
    )
    assert (row["label"], row["params"], row["repetitions"]) == ("its own of its own", 3, 3)
    assert row["loss_first_epoch"] == 7  # by a process with the variables that it asked for
    file = loading.load_file(tmp_path / "both.json")
    assert [one.model for one in file.peers] == ["its-own"] and not file.rows
    assert file.peers[0].ladder and file.peers[0].ladder.name == "its"
    beside = measured(tmp_path, *SMALL, *SHORT, FAKE_PEER="brings")
    assert programs(beside) == ["bench", "bench", "fake"]


def test_a_peer_is_told_the_network_and_its_data(tmp_path):
    flags = [*SMALL[:1], "--model=disc-2", *SMALL[2:]]
    document = measured(tmp_path, *flags, *SHORT, FAKE_LOSS=first_loss(tmp_path, "disc-2"))
    assert [row["label"] for row in document["rows"][1:]] == ["disc-2 of disc points"] * 2


def test_a_peer_is_told_of_one_copy(tmp_path):
    flags = [*SMALL[:1], "--model=disc-2", "--copies=4", *SMALL[2:]]
    loss = first_loss(tmp_path, "disc-2", "--copies=4")
    ours, *theirs = measured(tmp_path, *flags, *SHORT, FAKE_LOSS=loss)["rows"]
    told = [(row["configuration"]["copies"], row["params"]) for row in theirs]
    assert told == [("4", ours["params"])] * 2


def test_networks_that_tests_of_peers_read_are_those_of_bench():
    networks = json.loads((ROOT / "tests" / "fixtures" / "networks.json").read_text("utf-8"))
    for name, network in networks.items():
        flags = [f"--model={name}"]
        if name.startswith("mlp-"):
            widths = [word for word in name.split("-") if word.isdigit()]
            activation, loss, *_ = [*name.split("-")[1 + len(widths) :], "cross-entropy"]
            flags = [f"--mlp={','.join(widths)}", f"--activation={activation}"]
            flags.append(f"--loss-function={loss}")
        described = json.loads(run("--describe", *flags).stdout)
        del described["training"]
        assert described == network


def test_another_loss_is_a_failure(tmp_path):
    document = measured(tmp_path, *SMALL, *SHORT, code=1, FAKE_PEER="diverges")
    for row in document["rows"]:
        assert ("outcome" in row) == (row["configuration"].get("program") == "fake")
        if "outcome" in row:
            assert row["error_message"].startswith("loss_first_epoch is 12, and 0.")
            assert "repetitions" not in row


def test_rows_that_fail_leave_those_of_bench_alone(tmp_path):
    document = measured(tmp_path, *SMALL, *SHORT, code=1, FAKE_PEER="fails")
    outcomes = [row.get("error_message") for row in document["rows"]]
    assert outcomes == [None, "it is a fake", "it is a fake"] * 2


def test_a_process_that_ends_costs_one_row_and_is_replaced(tmp_path):
    document = measured(tmp_path, *SMALL, *SHORT, code=1, FAKE_PEER="ends", FAKE_LOSS="0.6")
    ends = [row.get("error_message", "") for row in document["rows"]]
    assert "the worker's process ended with exit code 7; its last words: it has had enough" in ends
    assert programs(document) == ["bench", "fake", "fake"] * 2
    assert not any("outcome" in row for row in document["rows"][::3])


@pytest.mark.slow
def test_one_that_says_that_it_goes_on_is_waited_for(tmp_path):
    # A peer may be silent for ten times the patience, here 10 s; this one takes 12 s for a row.
    alone = ("--program=fake", "--model=disc-2", "--benchmark_repetitions=1", "--patience=1s")
    flags = ("--family=Epoch", "--threads=1", "--cuda=off", FAKE, *alone)
    (row,) = measured(tmp_path, *flags, FAKE_PEER="slow")["rows"]
    assert "outcome" not in row


def test_one_that_says_nothing_is_refused():
    done = run(*SMALL, *SHORT, FAKE_PEER="mute")
    assert done.returncode == 2
    assert "does not describe itself" in done.stderr
    done = run(*SMALL[:-1], "--peer=/no/such/program", *SHORT)
    assert done.returncode == 2
    assert "ended with exit code 12" in done.stderr  # the shell's: not found


@pytest.mark.parametrize(("request_", "said"), [("prepare", "'facts'"), ("repeat", "'times.")])
def test_nonsense_costs_its_rows_alone(tmp_path, request_, said):
    document = measured(tmp_path, *SMALL, *SHORT, code=1, FAKE_PEER=request_)
    for row in document["rows"]:
        assert ("outcome" in row) == (row["configuration"].get("program") == "fake")
    told = document["rows"][1]["error_message"]
    assert told.startswith(f"the worker's process answered '{request_}' with nonsense ({said}")


@pytest.mark.parametrize("request_", ["describe", "rows"])
@pytest.mark.parametrize(
    ("how", "said"), [("", "nonsense"), (":silent", "did not answer within 2 s")]
)
def test_nonsense_and_silence_about_itself_name_the_peer(request_, how, said):
    done = run(*SMALL, *SHORT, "--patience=0.2s", FAKE_PEER=request_ + how)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("bench: --peer: '") and "fake.py" in line and said in line


def test_doubts_are_shown(tmp_path):
    done = run(*SMALL, *SHORT, FAKE_PEER="doubts", FAKE_LOSS=first_loss(tmp_path, "disc-2"))
    shown = [line for line in done.stdout.splitlines() if "/program:fake/" in line]
    assert shown and all("! it is a fake" in line for line in shown if "failed" not in line)


def test_its_rows_can_be_measured_alone(tmp_path):
    document = measured(tmp_path, *SMALL, *SHORT, "--program=fake")
    assert programs(document) == ["fake"] * 4
    done = run(*SMALL, *SHORT, "--program=jax")
    assert done.returncode == 2
    assert "--program=jax: none of them has a row" in done.stderr


def test_a_run_goes_on_with_whole_groups(tmp_path):
    loss = first_loss(tmp_path, "disc-2")
    out = tmp_path / "both.json"
    document = measured(tmp_path, *SMALL, *SHORT, code=1, FAKE_LOSS=loss)
    # As a run that ended while the second network's rows were being written.
    kept = [row["name"] for row in document["rows"][:4]]
    document["rows"] = document["rows"][:4]
    document["benchmarks"] = [one for one in document["benchmarks"] if one["name"] in kept]
    crossover = document["context"]["crossover"]
    crossover["complete"] = False
    crossover["parts"][0]["rows"] = 4
    out.write_text(json.dumps(document), encoding="utf-8")
    done = run(*SMALL, *SHORT, f"--out={out}", "--resume", FAKE_LOSS=loss)
    assert "3 rows are kept, 3 are to be measured" in done.stderr, done.stderr
    after = json.loads(out.read_text("utf-8"))
    assert programs(after) == ["bench", "fake", "fake"] * 2


def test_another_build_of_bench_is_a_peer(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    relay = f"--peer={sys.executable} -m peers.bench abc1234 {BENCH} {' '.join(SMALL[:4])}"
    document = measured(tmp_path, *SMALL[:4], relay, *SHORT)
    assert programs(document) == ["bench", "bench-abc1234"] * 2
    for ours, theirs in zip(document["rows"][::2], document["rows"][1::2], strict=True):
        assert theirs["name"].replace("/program:bench-abc1234", "") == ours["name"]
        for fact in ("workload", "loss_first_epoch", "verification"):
            assert theirs[fact] == ours[fact]
    names = [entry["name"] for entry in document["benchmarks"]]
    assert len(names) == 4 * REPETITIONS


def test_several_peers_stand_beside_each_row(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    flags = [*SMALL[:1], "--model=disc-2", *SMALL[2:4]]
    relay = f"--peer={sys.executable} -m peers.bench abc1234 {BENCH} {' '.join(flags)}"
    loss = first_loss(tmp_path, "disc-2")
    document = measured(tmp_path, *flags, FAKE, relay, *SHORT, FAKE_LOSS=loss)
    assert programs(document) == ["bench", "fake", "fake", "bench-abc1234"]
    crossover = document["context"]["crossover"]
    assert list(crossover["peers"]) == ["fake", "bench-abc1234"]
    words = crossover["configuration"]["command"]
    assert "--with-peers" in words and "--with-peers=bench" in words


@pytest.mark.skipif(os.cpu_count() == 1, reason="one thread against two needs two cores")
def test_a_refinement_is_of_benchs_own_rows(tmp_path):
    flags = ("--family=Epoch", "--model=disc-2,disc-4", "--threads=1,2", "--execution=eager")
    own = ("--cuda=off", FAKE, "--refine=threads")
    document = measured(tmp_path, *flags, *own, *SHORT, code=1)  # disc-4 has another loss
    (refinement,) = document["context"]["crossover"]["refinements"]
    for side in ("first", "second"):
        assert "program" not in refinement[side]


def test_what_can_not_be_combined_is_said():
    for flag in ("--budget=1m", "--data=rows.csv"):
        done = run(*SMALL[:-1], FAKE, flag)
        assert done.returncode == 2
        assert flag.partition("=")[0] in done.stderr
