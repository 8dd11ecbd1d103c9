# SPDX-License-Identifier: Apache-2.0
"""A peer's rows in a result file: beside those of bench, and out of it again."""

from __future__ import annotations

import json
from typing import Any

import pytest

from peers.document import Framework, PeerRow, check_against, merged, separated, write
from peers.names import Wanted, counterparts, name_of
from peers.tests.fakes import DESCRIBED, LOSS, REPETITIONS, FakePeer, context, ours, row_of
from plots.file import loading

FRAMEWORK = Framework(DESCRIBED, ("--mode=eager",))


def document(*models: str) -> dict[str, Any]:
    made: dict[str, Any] = {"context": context(), "rows": [], "benchmarks": []}
    for model in models:
        row, entries = row_of(ours(model))
        made["rows"].append(row)
        made["benchmarks"] += entries
    crossover = made["context"]["crossover"]
    crossover["configuration"]["command"] = ["bench", "--sweep=quick", "--take-turns=3,4"]
    part = {"start": "a", "end": "b", "load_average": [], "load_average_end": [], "seconds": 1.0}
    crossover["parts"] = [{**part, "rows": 1}, {**part, "rows": len(models) - 1}]
    return made


def their(model: str, **changes: Any) -> PeerRow:
    (configuration,) = counterparts(ours(model), Wanted())
    row = PeerRow(configuration, name_of(ours(model)), finished=True)
    made = FakePeer().prepare(row.name, configuration, None)
    row.facts, row.once = made["facts"], made["once"]
    row.times = [{**FakePeer().repeat("", 0.1)["times"]} for _ in range(REPETITIONS)]
    for key, value in changes.items():
        setattr(row, key, value)
    return row


def test_both_are_a_valid_file(tmp_path):
    theirs = [their("disc-2"), their("disc-3", times=[], outcome="failed", error_message="no")]
    path = tmp_path / "both.json"
    write(path, merged(document("disc-2", "disc-3"), theirs, FRAMEWORK, complete=True))
    file = loading.load_file(path)
    assert [row.configuration["device"] for row in file.rows] == ["cpu", "cpu"]
    first, second = file.peers
    assert first.median == pytest.approx(2e-3) and len(first.samples) == REPETITIONS
    assert first.counters["first_call_seconds"] == 0.5
    assert second.failure is not None and second.failure.message == "no"
    assert file.complete and file.software.libraries["PyTorch"] == DESCRIBED["version"]
    assert file.run.command[1:] == ("--sweep=quick", "--with-peers", "--mode=eager")


def test_each_row_stands_behind_the_one_it_took_turns_with():
    theirs = [their("disc-3"), their("disc-2")]
    made = merged(document("disc-2", "disc-3", "heart"), theirs, FRAMEWORK, complete=False)
    devices = [row["configuration"]["device"] for row in made["rows"]]
    assert devices == ["cpu", "torch-cpu", "cpu", "torch-cpu", "cpu"]
    assert [part["rows"] for part in made["context"]["crossover"]["parts"]] == [2, 3]


def test_what_was_put_together_comes_apart():
    before, theirs = document("disc-2", "disc-3"), [their("disc-2"), their("disc-3")]
    made = merged(before, theirs, FRAMEWORK, complete=False)
    ours_again, theirs_again = separated(made)
    for key in ("rows", "benchmarks"):
        assert ours_again[key] == before[key]
    libraries = ours_again["context"]["crossover"]["software"]["libraries"]
    assert "PyTorch" not in libraries
    words = ours_again["context"]["crossover"]["configuration"]["command"]
    assert words == ["bench", "--sweep=quick", "--take-turns=0,0"]
    assert [part["rows"] for part in ours_again["context"]["crossover"]["parts"]] == [1, 1]
    assert merged(ours_again, theirs_again, FRAMEWORK, complete=False) == made


def test_a_row_that_bench_tries_again_leaves_its_followers_behind():
    before = document("disc-2", "disc-3")
    before["rows"][0] |= {"outcome": "failed", "error_message": "wrong"}
    made = merged(before, [their("disc-2"), their("disc-3")], FRAMEWORK, complete=False)
    _, theirs = separated(made)
    assert [row.configuration["model"] for row in theirs] == ["disc-3"]


def test_the_first_loss_must_be_that_of_bench():
    row, facts = their("disc-2"), row_of(ours("disc-2"))[0]
    check_against(row, facts)
    assert not row.outcome and row.facts["workload"] == facts["workload"]
    other = their("disc-2")
    other.facts = {**other.facts, "loss_first_epoch": LOSS * (1 + 1e-4)}
    check_against(other, facts)
    assert other.outcome == "failed" and "workload" not in other.facts
    assert "they differ by" in other.error_message
    missing = their("disc-2")
    missing.facts = {**missing.facts, "loss_first_epoch": float("nan")}
    check_against(missing, facts)
    assert missing.outcome == "failed"


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "file.json"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(TypeError):
        write(path, {"context": {}, "rows": [object()], "benchmarks": []})
    assert path.read_text("utf-8") == "old"
    write(path, document("disc-2"))
    assert json.loads(path.read_text("utf-8"))["rows"]
    assert [found.name for found in tmp_path.iterdir()] == ["file.json"]
