# SPDX-License-Identifier: Apache-2.0
"""Whatever a peer answers: a file of bench that plots reads, and a sentence for each wrong row.

Each field of files/schema.json that an answer can reach is asked for with each wrong value, a
row of its own for each, in one run. Fields take turns with the values: a third of them each, or
outside continuous integration a sixth.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from bench_runs import bench, run

from crossover_bench.files import loading
from crossover_bench.place import PACKAGE
from crossover_bench.words.text import printable
from tools.stages import thorough

SCHEMA = json.loads(loading.SCHEMA_PATH.read_text("utf-8"))["definitions"]
WRONG = (0, -1, 1e-300, 1e300, 1.5, "NaN", "", True, None, [], {}, "x" * 66_000, {"x": [{"y": 1}]})
TURNS = 3 if thorough() else 6
COMMAND = shlex.join([sys.executable, str(PACKAGE / "peers" / "tests" / "fake.py")])
PEER = f"--peer={COMMAND}"
SHORT = ("--cuda=off", "--benchmark_repetitions=1", "--benchmark_min_time=0.001")
ALONE = ("--family=Peak", "--program=fake", *SHORT, PEER)
BESIDE = ("--model=disc-2", "--family=Epoch", "--threads=1", *SHORT)

Case = tuple[str, list[str], Any]  # the request, the place in its answer, what stands there


def places(rules: dict[str, Any], depth: int = 0) -> Iterator[list[str]]:
    """Of all fields that these rules of the schema name."""
    if depth > 8:
        return
    if "$ref" in rules:
        yield from places(SCHEMA[rules["$ref"].removeprefix("#/definitions/")], depth + 1)
    for name, of_field in rules.get("properties", {}).items():
        yield [name]
        yield from ([name, *rest] for rest in places(of_field, depth + 1))
    for part in ("if", "then", "else"):
        yield from places(rules.get(part, {}), depth + 1)
    for each in rules.get("allOf", []):
        yield from places(each, depth + 1)


def fields(definition: str, *without: str) -> list[list[str]]:
    members = {
        tuple(place): None for place in places(SCHEMA[definition]) if place[0] not in without
    }
    return [list(place) for place in members]


def cases() -> list[Case]:
    of_rows = fields("row", "configuration")
    of_entries = fields("entry")
    asked = [("prepare", ["facts", *place]) for place in of_rows]
    asked += [("repeat", ["times", *place]) for place in of_entries]
    asked += [("prepare", ["once", *place]) for place in of_entries]
    asked += [("fail", place) for place in fields("failed_row")]
    made: list[Case] = []
    for number, (request, place) in enumerate(asked):
        made += [(request, place, value) for value in WRONG[number % TURNS :: TURNS]]
    for key in (
        "params",
        "seconds",
        "seconds_per_epoch",
        "samples_per_second",
        "unknown",
        "joules",
    ):
        made += [("prepare", ["facts", key], 7), ("repeat", ["times", key], 7)]
    made += [("prepare", ["facts", "chosen", "x"], 1), ("repeat", ["spent"], {"timed": 1e300})]
    return made


@pytest.mark.slow
def test_nothing_that_a_peer_answers_makes_a_file_that_plots_refuses(tmp_path):
    """Takes long, as the peer is started again after each answer that is none."""
    asked = cases()
    (tmp_path / "cases.json").write_text(json.dumps(asked), encoding="utf-8")
    told_of = {"FAKE_CASES": str(tmp_path / "cases.json")}
    document, done = run(tmp_path, *ALONE, code=1, **told_of)
    assert document["context"]["crossover"]["complete"], done.stderr[-2000:]
    file = loading.load_file(tmp_path / "result.json")
    assert len(file.peers) == len(asked) + 1
    assert not file.peers[0].failure, "the one without a fault"
    refused = [row.failure.message for row in file.peers if row.failure]
    assert sum("answered 'prepare' with nonsense" in reason for reason in refused) > 100
    assert sum("answered 'repeat' with nonsense" in reason for reason in refused) > 10


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"model": "no-such"}, "its model is 'no-such' and not 'disc-2'"),
        ({"batch": "many"}, "its batch is 'many' and not '100'"),
        ({"colour": "red"}, "'colour' is no axis of bench's, nor one that it describes"),
        ({"execution": "slow"}, "the axis 'execution' has no value 'slow'"),
        ({"cpu_threads": "many"}, "a configuration's 'cpu_threads' is no number but 'many'"),
    ],
)
def test_a_row_that_does_other_work_is_refused_where_it_is_added(tmp_path, rows, reason):
    """Before anything is measured, with the peer's name and the row's."""
    done = bench(*BESIDE, PEER, variables={"FAKE_ROWS": json.dumps(rows)}, code=2)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"bench: --peer: '{COMMAND}' has a row 'Epoch/")
    assert line.endswith(f"cpu_threads:1 that can't be measured: {reason}"), line


def test_a_row_that_does_other_work_during_a_refinement_costs_its_own_alone(tmp_path):
    """By then the rows of two networks, their own and the peer's, are measured."""
    flags = (*BESIDE[1:], "--model=disc-2,disc-3", "--execution=eager", "--refine=program", PEER)
    document, done = run(tmp_path, *flags, FAKE_PEER="wavers")
    assert document["context"]["crossover"]["complete"]
    assert [row["configuration"].get("program") for row in document["rows"]] == [
        *(None, "fake", "fake"),
        *(None, "fake", "fake"),
    ]
    (line,) = [line for line in done.stderr.splitlines() if "--peer: '" in line]
    assert f"{COMMAND}' has a row 'Epoch/model:no-such/" in line
    assert " beside Epoch/model:" in line
    reason = "its model is 'no-such' and not 'disc-"
    assert reason in line and line.endswith("; the refinement has no further rows of it"), line


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"version": None}, "'fake.version' is not a text"),
        ({"libraries": {"Fake": 1}}, "'libraries.Fake' is not a text"),
        ({"ladder_batches": {"its": 0}}, "'ladder_batches.its' is below 1"),
        ({"axes": [{"key": "Mood", "description": "d"}]}, "'axes.key' does not match"),
    ],
)
def test_what_no_file_can_hold_of_a_peer_is_refused(told, reason):
    done = bench(*BESIDE, PEER, variables={"FAKE_TOLD": json.dumps(told)}, code=2)
    (line,) = done.stderr.splitlines()
    assert line.startswith("bench: --peer: '") and reason in line, line


def test_words_of_a_peer_reach_the_terminal_as_plots_shows_them(tmp_path):
    """Without control characters, and without what turns the direction of writing."""
    unseen = (
        "\x1b]0;pwned\x07\u009b31mred\nline\ttwo\r\x7f\u061c\u200b\u200f\u2028\u202e\u2066\ufeff"
    )
    words = f"{unseen} é → 😀 \\"
    (tmp_path / "cases.json").write_text(json.dumps([["fail", ["error_message"], words]]), "utf-8")
    _, done = run(tmp_path, *ALONE, code=1, FAKE_CASES=str(tmp_path / "cases.json"))
    for shown in (done.stdout, done.stderr):
        assert printable(words) in shown
        assert not set(unseen) & set(shown) - set(printable(unseen) + "\n")
