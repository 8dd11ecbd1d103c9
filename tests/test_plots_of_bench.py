# SPDX-License-Identifier: Apache-2.0
"""What plots takes from the built bench, and takes for granted of it."""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

import pytest
from bench_runs import MLP, ROOT, bench, built, listed, measure

from crossover_bench.answers.share.analysis import without_private
from crossover_bench.counts.cost import BENCH_PATH
from crossover_bench.files import loading, rows
from crossover_bench.files.again import command, template
from crossover_bench.files.axes import BUILT_IN
from crossover_bench.files.ladders import DISC
from crossover_bench.peers.axes import AXES
from crossover_bench.shell.cli import main
from tools.sources import tracked_results


@pytest.fixture(scope="module")
def document(tmp_path_factory) -> dict[str, Any]:
    """What bench writes of a small run."""
    return measure(tmp_path_factory.mktemp("bench"), *MLP)


def test_what_bench_writes_is_not_private(document):
    shared = without_private(document)
    assert (shared.removed, shared.changed) == ([], [])


def test_the_built_in_table_is_that_of_bench(document):
    written = document["context"]["crossover"]["axes"]
    of_bench = {axis["key"]: (axis["role"], tuple(axis.get("values", ()))) for axis in written}
    # Whose names are not bench's to know.
    of_bench["program"] = ("how", ("bench", "pytorch", "jax", "onnxruntime"))
    of_peers = {axis["key"]: (axis["role"], tuple(axis["values"])) for axis in AXES}
    assert of_bench | of_peers == {axis.key: (axis.role, axis.values) for axis in BUILT_IN}


def test_the_table_of_counters_is_the_documents():
    done = bench("--context", "--cuda=off")
    known = json.loads(done.stdout)["crossover"]["counters"]
    text = (ROOT / "results" / "README.md").read_text("utf-8").partition("\n## Counters\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.*?) \| (fact|once|repetition) \| (.*?) \|$", text, re.M)
    assert known == {
        key: {"unit": unit, "kind": kind, "description": description.replace("`", "")}
        for key, unit, kind, description in rows
    }


def test_the_batch_that_answers_is_that_of_the_disc_networks():
    source = (ROOT / "src/models/disc.cpp").read_text(encoding="utf-8")
    assert re.findall(r"\.batch = (\d+)", source) == [DISC.batch]


def rows_of(command: str) -> list[str]:
    """Those that this machine's bench would measure with `command`."""
    program, *words = shlex.split(command)
    assert ROOT / program == built(BENCH_PATH)
    return listed(*words, "--execution=eager")  # older than auto


def test_bench_knows_the_rows_of_a_committed_file():
    file = loading.load_file(tracked_results()[0])
    # Another processor may have fewer cores, or lack the instructions for some of the rows.
    planned = set(rows_of(command(file.run)))
    first: dict[str, rows.Row] = {}
    for row in file.rows:
        if row.name in planned:
            first.setdefault(row.family, row)
    assert first.keys() >= {"Peak", "Copy", "Gemm", "Layer", "Epoch"}
    for row in first.values():
        pattern = re.escape(row.name).replace("\\-", "-")
        again = template(file.run).replace("ROW", pattern)
        assert rows_of(again) == [row.name]


@pytest.mark.slow
def test_advise_asks_it_for_the_cost_of_other_networks(capsys):
    path = str(ROOT / "results" / "amd-epyc-25-17-2c" / "2026-11-23-bfe530f.json")
    assert main(["advise", "--model", "alexnet-r", "--batch", "64", path]) == 0
    assert "alexnet-r, batch 64, f32" in capsys.readouterr().out
    for flags in (["--model", "foo"], ["--model", "alexnet-r", "--batch", "x"]):
        assert main(["advise", *flags, path]) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err.startswith(("bench: --", "--batch=x: ")) and printed.err.count("\n") == 1
