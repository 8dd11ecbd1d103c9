# SPDX-License-Identifier: Apache-2.0
"""A run of the built bench and of a peer that computes nothing."""

from __future__ import annotations

import json

from bench_runs import BENCH, needs_bench

from peers.counts import planned
from peers.tests.comparing import compare
from peers.tests.fakes import REPETITIONS
from plots.file import loading


@needs_bench
def test_the_real_bench_takes_turns(fakes, tmp_path):
    out = tmp_path / "both.json"
    flags = ("--family=Epoch", "--model=disc-2", "--threads=1", "--cuda=off")
    short = ("--benchmark_min_time=0.001", f"--benchmark_repetitions={REPETITIONS}")
    assert len(planned(BENCH, flags)) == len(
        {name for name in planned(BENCH, flags) if "disc-2" in name}
    )
    done = compare(BENCH, fakes[1], out, *flags, *short)
    assert done.returncode == 0, done.stdout + done.stderr
    file = loading.load_file(out)
    assert file.complete and len(file.peers) == 1 and len(file.rows) >= 1
    for row in file.rows:
        assert len(row.samples) == REPETITIONS
    assert len(file.peers[0].samples) == REPETITIONS
    written = json.loads(out.read_text("utf-8"))
    assert sum(part["rows"] for part in written["context"]["crossover"]["parts"]) == len(
        written["rows"]
    )
    refused = compare(BENCH, fakes[1], tmp_path / "no.json", *flags, *short, FAKE_PEER="diverges")
    assert refused.returncode == 1
