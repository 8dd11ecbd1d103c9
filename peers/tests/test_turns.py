# SPDX-License-Identifier: Apache-2.0
"""Whose turn it is, and what becomes of rows that fail on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from peers.counts import BenchError, Counts
from peers.document import PeerRow
from peers.names import Wanted, name_of
from peers.protocol import PeerEnded
from peers.tests.fakes import FakePeer, ours
from peers.turns import Turns

FIRST, SECOND = name_of(ours("disc-2")), name_of(ours("disc-2", execution="fused"))
THEIRS = FIRST.replace("device:cpu", "device:torch-cpu")


class Counted(Counts):
    """Without a bench to ask."""

    def __init__(self, fault: str = "") -> None:
        super().__init__(Path("none"), ())
        self.fault = fault

    def of(self, configuration: dict[str, str]) -> dict[str, Any] | None:
        if self.fault:
            raise BenchError(self.fault)
        return {}


def turns(peer: FakePeer, fault: str = "", **options: Any) -> Turns:
    wanted = options.pop("wanted", Wanted())
    return Turns(wanted, Counted(fault), lambda pages: peer, **{"has_gpu": False, **options})


def test_a_row_takes_turns_with_the_first_that_does_its_work():
    peer = FakePeer()
    own = turns(peer)
    for _ in range(3):
        own.take(FIRST, 0.1)
        own.take(SECOND, 0.1)
    assert own.finish(SECOND) == []
    (row,) = own.finish(FIRST)
    assert (row.name, row.lead, len(row.times)) == (THEIRS, FIRST, 3)
    assert peer.asked == [f"prepare {THEIRS}", *[f"repeat {THEIRS}"] * 3, f"release {THEIRS}"]


def test_a_finished_row_has_no_further_turn():
    peer = FakePeer()
    own = turns(peer)
    own.take(FIRST, 0.1)
    own.finish(FIRST)
    own.take(FIRST, 0.1)
    assert own.finish(FIRST) == [] and len(own.rows[0].times) == 1
    again = turns(FakePeer(), earlier=own.rows)
    again.take(FIRST, 0.1)
    assert len(again.rows[0].times) == 1


def test_a_row_that_fails_is_not_asked_again():
    peer = FakePeer("fails")
    own = turns(peer)
    own.take(FIRST, 0.1)
    own.take(FIRST, 0.1)
    (row,) = own.finish(FIRST)
    assert (row.outcome, row.error_message, row.times) == ("failed", "it is a fake", [])
    assert peer.asked == [f"prepare {THEIRS}"]


def test_what_bench_does_not_count_fails():
    own = turns(FakePeer(), fault="no such network")
    own.take(FIRST, 0.1)
    assert own.rows[0].error_message == "no such network"


def test_without_a_gpu_its_rows_are_skipped():
    peer = FakePeer()
    own = turns(peer)
    own.take(FIRST.replace("device:cpu", "device:cuda").replace("cpu_threads:1", "data:x"), 0.1)
    assert own.rows[0].outcome == "skipped" and peer.asked == []


def test_a_process_that_ends_takes_its_rows_with_it():
    class Ended(FakePeer):
        def repeat(self, row: str, min_time_seconds: float) -> dict[str, Any]:
            if len(self.asked) > 1:
                raise PeerEnded("gone")
            return super().repeat(row, min_time_seconds)

    own = turns(Ended())
    own.take(FIRST, 0.1)
    own.take(FIRST, 0.1)
    own.take(FIRST, 0.1)
    (row,) = own.finish(FIRST)
    assert (row.outcome, row.error_message, len(row.times)) == ("failed", "gone", 1)


def test_rows_know_their_seconds():
    row = PeerRow({}, times=[{"real_time": 2.0, "time_unit": "us"}])
    assert row.seconds == [2e-6]
