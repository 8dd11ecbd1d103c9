# SPDX-License-Identifier: Apache-2.0
"""The built bench beside a second program, a fake of a few lines that no part of bench knows."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from bench_runs import BENCH, ROOT, bench, measure, run, strict

from crossover_bench.files import loading
from crossover_bench.place import ALONE, PACKAGE

REPETITIONS = 3
PLACE = str(PACKAGE / "peers" / "tests" / "fake.py")
FAKE = f"--peer={shlex.join([sys.executable, PLACE, '--mode=whatever'])}"
SHORT = ("--benchmark_min_time=0.001", f"--benchmark_repetitions={REPETITIONS}")
OWN = ("--family=Epoch", "--threads=1", "--cuda=off", *SHORT)
TWO = ("--model=disc-2,disc-3", *OWN)
ONE = ("--model=disc-2", *OWN)


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Of the first epoch of disc-2, as bench has it."""
    rows = measure(tmp_path_factory.mktemp("ours"), *ONE)["rows"]
    return str(rows[0]["loss_first_epoch"])


def told(*arguments: str, **variables: str) -> str:
    done = bench(*arguments, variables=variables, code=2)
    return done.stdout + done.stderr


def programs(document: dict[str, Any]) -> list[str]:
    return [row["configuration"].get("program", "bench") for row in document["rows"]]


def test_rows_of_peers_take_turns_with_those_that_do_the_same_work(tmp_path, loss, monkeypatch):
    """A fake, and another build of bench."""
    monkeypatch.setenv("PYTHONPATH", str(ALONE))
    words = [sys.executable, "-m", "crossover_bench.peers.bench", "abc1234", str(BENCH), *ONE[:4]]
    relay = f"--peer={shlex.join(words)}"
    document = measure(tmp_path, *ONE, FAKE, relay, FAKE_LOSS=loss)
    ours, good, bad, theirs = document["rows"]
    assert programs(document) == ["bench", "fake", "fake", "bench-abc1234"]
    assert good["name"] == (
        "Epoch/model:disc-2/batch:100/precision:f32/program:fake/device:cpu/execution:eager/"
        "cpu_threads:1"
    )
    assert bad["name"] == good["name"].replace("/cpu_threads", "/mood:bad/cpu_threads")
    assert {row["workload"] for row in document["rows"]} == {ours["workload"]}
    assert len(document["benchmarks"]) == 4 * REPETITIONS
    times = [entry["real_time"] for entry in document["benchmarks"] if entry["name"] == bad["name"]]
    assert times == [2.0] * REPETITIONS
    # It is told the network and its data.
    assert [row["label"] for row in (good, bad)] == ["disc-2 of disc points"] * 2
    assert theirs["name"].replace("/program:bench-abc1234", "") == ours["name"]
    for fact in ("loss_first_epoch", "verification"):
        assert theirs[fact] == ours[fact]
    crossover = document["context"]["crossover"]
    assert crossover["complete"]
    assert list(crossover["peers"]) == ["fake", "bench-abc1234"]
    assert crossover["peers"]["fake"] == {"version": "0.1"}
    assert crossover["software"]["libraries"]["Fake"] == "0.1"
    words = crossover["configuration"]["command"]
    assert words[words.index("--with-peers") + 1] == "--mode=whatever"
    assert "--with-peers=bench" in words
    roles = {axis["key"]: axis["role"] for axis in crossover["axes"]}
    assert roles["mood"] == "alike"
    assert str(ROOT) not in json.dumps(document)
    assert [part["rows"] for part in crossover["parts"]] == [4]


def test_it_is_told_of_a_pass_what_it_is_told_of_training(tmp_path):
    passes = ("--model=disc-2", "--family=Forward", "--batch=1", "--threads=1", "--cuda=off")
    ours, *theirs = measure(tmp_path, *passes, *SHORT, FAKE)["rows"]
    label = f"disc-2 of disc points, {ours['flops']} flops, sgd lr=0.1"
    assert [row.get("label") for row in theirs] == [label] * 2


def test_a_peer_brings_rows_of_its_own(tmp_path):
    alone = ("--family=Peak", "--program=fake", *OWN[1:], FAKE)
    document = measure(tmp_path, *alone, FAKE_PEER="brings")
    (row,) = document["rows"]
    assert row["name"] == (
        "Epoch/model:its-own/batch:4/precision:f32/program:fake/device:cpu/execution:eager/"
        "mood:bad/cpu_threads:1"
    )
    assert (row["label"], row["params"], row["repetitions"]) == ("its own of its own", 3, 3)
    assert row["loss_first_epoch"] == 7  # by a process with the variables that it asked for
    file = loading.load_file(tmp_path / "result.json")
    assert [row.model for row in file.peers] == ["its-own"] and not file.rows
    assert file.peers[0].ladder and file.peers[0].ladder.name == "its"
    beside = measure(tmp_path, *TWO, FAKE, FAKE_PEER="brings")
    assert programs(beside) == ["bench", "bench", "fake"]


def test_it_is_told_the_shape_of_a_sample():
    images = ("--model=disc-2,lenet-5", *OWN, FAKE, "--benchmark_list_tests")
    names = bench(*images, variables={"FAKE_PEER": "images"}).stdout.splitlines()
    assert {name.split("/")[1] for name in names if "/program:fake/" in name} == {"model:lenet-5"}


def test_a_peer_is_told_of_one_copy_and_its_doubts_are_shown(tmp_path):
    copies = (*ONE, "--copies=4")
    of_four = str(measure(tmp_path, *copies)["rows"][0]["loss_first_epoch"])
    document, done = run(tmp_path, *copies, FAKE, FAKE_PEER="doubts", FAKE_LOSS=of_four)
    ours, *theirs = document["rows"]
    told_of = [(row["configuration"]["copies"], row["params"]) for row in theirs]
    assert told_of == [("4", ours["params"])] * 2
    shown = [line for line in done.stdout.splitlines() if "/program:fake/" in line]
    assert shown and all("! it is a fake" in line for line in shown)


def test_networks_that_tests_of_peers_read_are_those_of_bench():
    networks = json.loads((ROOT / "tests" / "fixtures" / "networks.json").read_text("utf-8"))
    for name, network in networks.items():
        flags = [f"--model={name}"]
        if name.startswith("mlp-"):
            widths = [word for word in name.split("-") if word.isdigit()]
            activation, loss, *_ = [*name.split("-")[1 + len(widths) :], "cross-entropy"]
            flags = [f"--mlp={','.join(widths)}", f"--activation={activation}"]
            flags.append(f"--loss-function={loss}")
        described = strict(bench("--describe", *flags).stdout)
        del described["training"]
        assert described == network


@pytest.mark.parametrize(
    ("peer", "reason"),
    [
        ("diverges", "loss_first_epoch is 12, and 0."),
        ("fails", "it is a fake"),
        ("prepare", "the worker's process answered 'prepare' with nonsense ('facts'"),
        ("repeat", "the worker's process answered 'repeat' with nonsense ('times."),
    ],
)
def test_rows_that_fail_leave_those_of_bench_alone(tmp_path, peer, reason):
    document = measure(tmp_path, *TWO, FAKE, code=1, FAKE_PEER=peer)
    assert programs(document) == ["bench", "fake", "fake"] * 2
    for row in document["rows"][::3]:
        assert "outcome" not in row
    for row in (*document["rows"][1::3], *document["rows"][2::3]):
        assert row["error_message"].startswith(reason) and "repetitions" not in row


def test_a_process_that_ends_costs_one_row_and_is_replaced(tmp_path):
    document = measure(tmp_path, *TWO, FAKE, code=1, FAKE_PEER="ends", FAKE_LOSS="0.6")
    ends = [row.get("error_message", "") for row in document["rows"]]
    assert "the worker's process ended with exit code 7; its last words: it has had enough" in ends
    assert not any("outcome" in row for row in document["rows"][::3])


@pytest.mark.slow
def test_one_that_says_that_it_goes_on_is_waited_for(tmp_path):
    """A peer may be silent for ten times the patience, here 4 s; this one takes 5 s for a row."""
    alone = ("--program=fake", "--benchmark_repetitions=1", "--patience=0.4s")
    (row,) = measure(tmp_path, *ONE, FAKE, *alone, FAKE_PEER="slow")["rows"]
    assert "outcome" not in row


def test_one_that_says_nothing_is_refused():
    assert "does not describe itself" in told(*TWO, FAKE, FAKE_PEER="mute")
    # The shell's: not found.
    assert "ended with exit code 12" in told(*TWO, "--peer=/no/such/program")
    assert "--data" in told(*TWO, FAKE, "--data=rows.csv")


@pytest.mark.parametrize(
    ("peer", "reason"), [("rows", "nonsense"), ("describe:silent", "did not answer within 2 s")]
)
def test_nonsense_and_silence_about_itself_name_the_peer(peer, reason):
    (line,) = told(*TWO, FAKE, "--patience=0.2s", FAKE_PEER=peer).splitlines()
    assert line.startswith("bench: --peer: '") and "fake.py" in line and reason in line


def planned(*flags: str) -> list[tuple[str, str]]:
    """The network and the program of each row of a plan, in its order."""
    lines = bench("--plan", *OWN, *flags, code=0).stdout.splitlines()
    names = [line.split()[-1] for line in lines if "/model:" in line]
    return [(name.split("/")[1], "fake" if "program:fake" in name else "bench") for name in names]


LADDER = "--model=" + ",".join(f"disc-{depth}" for depth in range(2, 8))


def test_a_share_of_the_time_goes_to_networks_in_the_order_of_the_plan():
    """Each takes as long as ours, in both moods."""
    whole = planned(LADDER, FAKE)
    assert [program for _, program in whole] == ["bench", "fake", "fake"] * 6
    ours = [row for row in whole if row[1] == "bench"]
    assert planned(LADDER, FAKE, "--peers-share=0.9") == whole
    assert planned(LADDER, FAKE, "--peers-share=0.01") == ours
    part = planned(LADDER, FAKE, "--peers-share=0.45")  # as long as 4.9 of ours
    assert [row for row in part if row[1] == "bench"] == ours
    others = [model for model, program in part if program == "fake"]
    assert others == [model for model, _ in ours[:2] for _ in range(2)]


def test_a_share_is_of_the_budget_where_there_is_one():
    long, short = planned(LADDER, FAKE, "--budget=10h"), ("--budget=1m", "--peers-share=0.01")
    assert planned(LADDER, FAKE, "--budget=10h", "--peers-share=0.01") == long
    assert planned(LADDER, FAKE, *short) == [row for row in long if row[1] == "bench"]


@pytest.mark.skipif(os.cpu_count() == 1, reason="between one thread and three are two")
def test_a_share_is_of_the_fewest_and_the_most_threads():
    flags = ("--plan", "--model=disc-2", *OWN[:1], "--cuda=off", "--threads=1,2,3", FAKE)
    lines = bench(*flags, "--peers-share=0.9", code=0).stdout.splitlines()
    threads = [line.rpartition(":")[2] for line in lines if "program:fake" in line]
    assert threads == ["1", "1", "3", "3"]


@pytest.mark.parametrize("share", [(), ("--peers-share=0.5",)])
def test_a_run_beside_another_within_a_budget_is_complete(share, tmp_path, loss):
    document = measure(tmp_path, *ONE, FAKE, "--budget=1h", *share, FAKE_LOSS=loss)
    assert programs(document) == ["bench", "fake", "fake"]
    assert [row["repetitions"] for row in document["rows"]][1:] == [REPETITIONS] * 2
    crossover = document["context"]["crossover"]
    assert crossover["complete"] and crossover["budget"]["left_open"] == []
    assert {*share} <= {*crossover["configuration"]["command"]}


def test_its_rows_can_be_measured_alone(tmp_path):
    assert programs(measure(tmp_path, *TWO, FAKE, "--program=fake")) == ["fake"] * 4
    assert "--program=jax: none of them has a row" in told(*TWO, FAKE, "--program=jax")


def end_early(path: Path, document: dict[str, Any], rows: int) -> None:
    """As a run of which so many rows were written."""
    kept = [row["name"] for row in document["rows"][:rows]]
    document["rows"] = document["rows"][:rows]
    entries = document["benchmarks"]
    document["benchmarks"] = [entry for entry in entries if entry["name"] in kept]
    crossover = document["context"]["crossover"]
    crossover["complete"] = False
    crossover["parts"] = [{**crossover["parts"][0], "rows": rows}]
    path.write_text(json.dumps(document), encoding="utf-8")


def test_a_run_goes_on_with_whole_groups(tmp_path, loss):
    document = measure(tmp_path, *TWO, FAKE, code=1, FAKE_LOSS=loss)
    end_early(tmp_path / "result.json", document, 4)
    after, done = run(tmp_path, *TWO, FAKE, "--resume", code=1, FAKE_LOSS=loss)
    assert "3 rows are kept, 3 are to be measured" in done.stderr, done.stderr
    assert programs(after) == ["bench", "fake", "fake"] * 2


def test_rows_of_ours_are_kept_where_others_have_a_share_and_theirs_say_so(tmp_path, loss):
    share = "--peers-share=0.9"
    document = measure(tmp_path, *ONE, FAKE, share, FAKE_LOSS=loss)
    assert not any(row.get("warnings") for row in document["rows"])
    end_early(tmp_path / "result.json", document, 1)
    after, done = run(tmp_path, *ONE, FAKE, share, "--resume", FAKE_LOSS=loss)
    assert "1 rows are kept, 2 are to be measured" in done.stderr, done.stderr
    ours, *theirs = after["rows"]
    assert ours == document["rows"][0]
    apart = ["not measured in turn with bench's row, which an earlier run has"]
    assert [row["warnings"] for row in theirs] == [apart] * 2
    assert [row["workload"] for row in theirs] == [ours["workload"]] * 2
    end_early(tmp_path / "result.json", after, 1)
    wrong = measure(tmp_path, *ONE, FAKE, share, "--resume", code=1, FAKE_PEER="diverges")
    assert "loss_first_epoch" in wrong["rows"][1]["error_message"]


@pytest.mark.skipif(os.cpu_count() == 1, reason="one thread against two needs two cores")
def test_a_refinement_is_of_benchs_own_rows(tmp_path):
    flags = (*OWN, "--model=disc-2,disc-4", "--threads=1,2", "--execution=eager")
    # disc-4 has another loss
    document = measure(tmp_path, *flags, FAKE, "--refine=threads", code=1)
    (refinement,) = document["context"]["crossover"]["refinements"]
    for side in ("first", "second"):
        assert "program" not in refinement[side]
