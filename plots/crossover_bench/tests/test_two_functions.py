# SPDX-License-Identifier: Apache-2.0
"""A user's functions: from which size which side wins, of files that crossover::two has written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from crossover_bench.answers.two import functions
from crossover_bench.show.page.section import Context
from crossover_bench.tests import synthetic

SIZES = (1_000, 4_000, 16_000, 64_000, 256_000)
AXES = (
    {"key": "problem", "role": "what", "description": "what the functions compute"},
    {"key": "side", "role": "how", "description": "which of them"},
    {
        "key": "transfers",
        "role": "how",
        "values": ["none", "each"],
        "description": "whether each call copies its data",
    },
)
# Start, and per size, in seconds.
SORT = {"std::sort": (0.0, 1e-8), "CUB": (1e-4, 1e-9), "CUB with its copies": (2e-4, 3e-9)}


def rows(
    sides: dict[str, tuple[float, float]], problem: str = "sort", **counters: float
) -> list[dict[str, Any]]:
    """`counters` are those of the GPU's."""
    entries = []
    for size in SIZES:
        for side, (start, of_size) in sides.items():
            name, copies, _ = side.partition(" with")
            configuration = {
                "family": "Function",
                "size": str(size),
                "device": "gpu" if name == "CUB" else "cpu",
                "problem": problem,
                "side": name,
                **({"transfers": "each"} if copies else {}),
            }
            noise = np.random.default_rng([size, len(side)]).exponential(0.01, 9)
            seconds = ((start + size * of_size) * (1 + noise)).tolist()
            of_device = counters if name == "CUB" else {}
            entries += synthetic.operation(configuration, seconds, bytes=4.0 * size, **of_device)
    return entries


def test_the_sides_of_a_cpu_stand_against_those_of_a_gpu(read):
    file = read(synthetic.document(rows(SORT), gpu="synthetic GPU", axes=AXES))
    assert not file.rows and len(file.functions) == 15
    first, kept, *_ = functions.answers(file)
    assert first.startswith("sort: with the data there the GPU wins from n = 11,")
    assert "copied each time the GPU wins from n = 31," in first
    # A copy takes 0.1 ms + 2 ns n, and 16,000 numbers 0.16 ms on the CPU, 0.116 on the GPU.
    assert kept.startswith("For the GPU to win, a copy has to serve 4 runs or more (")
    assert kept.endswith(" at n = 16,000; each run may copy from n = 64,000.")
    section = functions.build([file], Context(detailed=1, draws=False))
    records = section.blocks[0].tables[0].records()
    assert [record["side"] for record in records[:3]] == [*SORT]
    assert [record["side"] for record in records[-3:]] == [*SORT][1:] + [*SORT][:1]
    rates = [record["bytes_per_second"] * record["seconds"] for record in records]
    assert rates == pytest.approx([4.0 * record["size"] for record in records])


def test_on_one_device_the_first_side_stands_against_the_others(read):
    sides = {"one thread": (0.0, 1e-8), "all threads": (2e-4, 5e-9)}
    lead, *_ = functions.answers(read(synthetic.document(rows(sides), axes=AXES)))
    assert lead.startswith("sort: all threads wins from n = 4")


def test_each_problem_has_its_own_pairs(read):
    document = synthetic.document([*rows(SORT), *rows(SORT, "fft")], gpu="GPU", axes=AXES)
    sides = {
        "first": {"device": "cpu", "side": "std::sort"},
        "second": {"device": "gpu", "side": "CUB"},
    }
    document["context"]["crossover"]["refinements"] = [
        {
            "kind": "function",
            "common": {"family": "Function", "problem": problem},
            **sides,
            "complete": True,
            "error": 0.05,
            "most_sizes": 32,
            "most_pairs": 100,
            "ladder": [],
            "sizes": [
                {"model": "10746", "params": 10_746, "pairs": 14, "won_by_first": 14, "ties": 0}
                | {"winner": "first"}
            ],
            "intervals": [{"below": "first", "low": low, "high": low + 1000}],
        }
        for problem, low in (("sort", 10_000), ("fft", 11_000))
    ]
    told = "\n".join(functions.answers(read(document)))
    assert "CUB won reliably from between n = 10,000 and 11,000" in told
    assert "CUB won reliably from between n = 11,000 and 12,000" in told


def test_why_splits_a_call_into_launch_wait_and_copies(shell, write):
    parts = {"call_seconds": 1e-5, "wait_seconds": 9e-5, "back_to_back_seconds": 8e-5}
    copies = {"copy_in_seconds": 1e-4, "copy_out_seconds": 5e-5}
    known = rows(SORT, **parts, **copies, device_seconds=4e-5)
    told = shell("why", write(synthetic.document(known, gpu="GPU", axes=AXES))).out
    words = " ".join(told.split())
    assert "the launch takes the host 10.0 µs, the wait behind it 90.0 µs" in words
    assert "by its own clock the device works for 40.0 µs; most of it is launch and wait." in words
    assert "Its copies take 100 µs in and 50.0 µs out, 1.5 times the call: keep data" in words
    assert "Back to back a call takes 80.0 µs, 20 % less than one that is waited for." in words
    alone = write(synthetic.document(rows({"std::sort": SORT["std::sort"]}), axes=AXES))
    assert "sort: all sides compute on the CPU" in shell("why", alone).out


def test_compare_says_what_has_moved(shell, write, tmp_path):
    """Of a machine's two files; and since a threshold was written."""
    slower = {**SORT, "std::sort": (0.0, 4e-8)}
    paths = [
        write(synthetic.document(rows(sides), gpu="synthetic GPU", axes=AXES), f"{name}.json")
        for name, sides in (("before", SORT), ("after", slower))
    ]
    told = shell("compare", *paths).out
    assert "- sort, moved down: from n = 11," in told and "sort, data copied, moved down" in told
    assert "15 rows compared: 0 faster, 5 slower, 10 same" in told
    err = shell("compare", *paths, "--fail-on-slower=5%", code=1).err
    assert "5 rows are slower by more than 5 %, most of all Function/" in err
    sizes = tmp_path / "sizes.h"
    shell("two", paths[0], f"--threshold={sizes}")
    told = shell("compare", paths[1], f"--threshold={sizes}").out
    assert "- sort on synthetic GPU, moved down: from n = 11," in told
    assert "needs two files or more" in shell("compare", paths[0], code=2).err
    err = shell("compare", paths[0], f"--threshold={paths[1]}", code=2).err
    assert "compare: " in err and "has no thresholds" in err
    err = shell("compare", *paths, "--cpu=x", code=2).err
    assert "--cpu is of files that Google Benchmark" in err


def test_thresholds_and_charts_are_of_functions_too(shell, write, tmp_path):
    path = write(synthetic.document(rows(SORT), gpu="synthetic GPU", axes=AXES))
    header = tmp_path / "threshold.h"
    shell("two", path, f"--threshold={header}", f"--charts={tmp_path}")
    assert '{"sort", "synthetic GPU", 11' in header.read_text("utf-8")
    assert (tmp_path / "crossover-sort.svg").is_file()


def test_what_failed_says_why(shell, write):
    entries = rows({"std::sort": SORT["std::sort"]})
    broken = {
        "family": "Function",
        "size": "1000",
        "device": "cpu",
        "problem": "sort",
        "side": "broken",
    }
    entries += [synthetic.failure(broken, "its result is wrong: entry 5 is 7, not 6")]
    path = write(synthetic.document(entries, axes=AXES))
    told = shell("two", path).out
    assert "std::sort has nothing beside it" in told
    assert "broken has no times; at n = 1,000: its result is wrong: entry 5 is 7, not 6." in told


@pytest.mark.parametrize(
    ("key", "value"),
    [("size", "1e3"), ("device", "cuda"), ("problem", ""), ("transfers", "some")],
)
def test_a_configuration_that_no_program_writes_is_refused(key, value, write, shell):
    entries = rows({"std::sort": (0.0, 1e-8)})
    entries[0]["configuration"][key] = value
    told = shell("validate", write(synthetic.document(entries, axes=AXES)), code=2).err
    assert f"configuration.{key}" in told
