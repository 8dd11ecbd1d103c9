# SPDX-License-Identifier: Apache-2.0
"""bench --refine: sizes between those of a sweep, measured in pairs."""

import math
import os
import re

import pytest
from bench_runs import EPOCHS, SHORT, bench, epoch_name, repetitions, run

from crossover_bench.answers.paired import pairs_of
from crossover_bench.answers.threads.section import more_threads
from crossover_bench.files import loading

LADDER = ("--model=disc-2,disc-4,disc-6", "--threads=1,2", *EPOCHS, *SHORT)


def test_no_time_is_promised_where_nothing_can_be_refined():
    """Behind the last row only disturbed ones may follow, for half of the run's time at most."""
    trains = ("--family=Epoch,Minibatch", "--cuda=off")
    done = bench("--mlp=4,4,2", "--batch=16,32", *trains, *SHORT, code=0)
    last = [line for line in done.stdout.splitlines() if line.startswith("[")][-1]
    (seconds,) = re.findall(r"^bench: (\S+) s: ", done.stderr, re.MULTILINE)
    left = re.search(r"\[(\d+) (s|min) left\]", last)
    longest = math.ceil(float(seconds))  # as the line is rounded
    assert not left or int(left[1]) * {"s": 1, "min": 60}[left[2]] <= longest, last


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="this process may use one core")
def test_rows_in_between_hold_the_pairs_that_were_counted(tmp_path):
    document, done = run(tmp_path, *LADDER, "--refine=threads")
    (refinement,) = document["context"]["crossover"]["refinements"]
    assert refinement["kind"] == "threads"
    assert (refinement["first"]["cpu_threads"], refinement["second"]["cpu_threads"]) == ("1", "2")
    assert [rung["model"] for rung in refinement["ladder"]] == ["disc-2", "disc-4", "disc-6"]
    rows = {row["name"]: row for row in document["rows"]}
    for size in refinement["sizes"]:
        names = [epoch_name(size["model"], 100, threads) for threads in (1, 2)]
        times = [[entry["real_time"] for entry in repetitions(document, name)] for name in names]
        counts = [rows[name]["repetitions"] for name in names]
        # Where time ended a pair, its first half is kept as well.
        assert max(counts) - min(counts) <= 1 and min(counts) == size["pairs"] + size["ties"]
        pairs = list(zip(*times, strict=False))
        assert size["won_by_first"] == sum(first < second for first, second in pairs)
        assert size["ties"] == sum(first == second for first, second in pairs)
        for name in names:
            assert rows[name]["params"] == size["params"]
            assert rows[name]["verification"]["relative_error"] >= 0
            assert rows[name]["workload"] == rows[names[0]]["workload"]
    assert len(rows) == 6 + 2 * len(refinement["sizes"])
    sure = {size["params"]: size["winner"] for size in refinement["sizes"]}
    for interval in refinement["intervals"]:
        other = {"first": "second", "second": "first"}[interval["below"]]
        assert interval["low"] is None or sure[interval["low"]] == interval["below"]
        assert interval["high"] is None or sure[interval["high"]] == other
    # Each size has a line, and the report reads it.
    printed = done.stdout.splitlines()
    lines = [line for line in printed if line.startswith("[refine] ")]
    assert [line.split()[1] for line in lines] == [size["model"] for size in refinement["sizes"]]
    measured = [line for line in printed if re.match(r"\[\d/6\] ", line)]
    assert len(measured) == 6
    assert all(printed.index(measured[-1]) < printed.index(line) for line in lines)
    file = loading.load_file(tmp_path / "result.json")
    (threads_pay,) = more_threads(file)
    assert pairs_of(file, threads_pay)
    assert len(threads_pay.cpu.sizes) == len(document["rows"]) / 2


def test_named_networks_are_refined_where_that_is_asked_and_can_be_done(tmp_path):
    document, done = run(tmp_path, *LADDER)
    assert "[refine]" not in done.stdout
    assert "refinements" not in document["context"]["crossover"]
    _, done = run(tmp_path, *LADDER, "--refine=device")
    assert "--refine=device: nothing to refine" in done.stderr
    small = ("--model=disc-2,disc-3", "--threads=1,2", "--execution=auto", *EPOCHS, *SHORT)
    document, done = run(tmp_path, *small, "--refine=threads")
    (refinement,) = document["context"]["crossover"]["refinements"]
    assert ("no size to try" in done.stderr) == (not refinement["sizes"])
    done = bench("--model=heart", *EPOCHS, *SHORT, "--refine=threads", code=0)
    assert "nothing to refine" in done.stderr
