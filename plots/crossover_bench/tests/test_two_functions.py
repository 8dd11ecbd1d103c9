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


def rows(sides: dict[str, tuple[float, float]]) -> list[dict[str, Any]]:
    entries = []
    for size in SIZES:
        for side, (start, of_size) in sides.items():
            name, copies, _ = side.partition(" with")
            configuration = {
                "family": "Function",
                "size": str(size),
                "device": "gpu" if name == "CUB" else "cpu",
                "problem": "sort",
                "side": name,
                **({"transfers": "each"} if copies else {}),
            }
            noise = np.random.default_rng([size, len(side)]).exponential(0.01, 9)
            seconds = ((start + size * of_size) * (1 + noise)).tolist()
            entries += synthetic.operation(configuration, seconds)
    return entries


def test_each_side_is_compared_with_the_first(read):
    file = read(synthetic.document(rows(SORT), gpu="synthetic GPU", axes=AXES))
    assert not file.rows and len(file.functions) == 15
    there, copied = functions.answers(file)
    assert there.startswith("sort, CUB against std::sort: CUB wins from size 11,")
    assert "CUB with its copies wins from size 31," in copied
    section = functions.build([file], Context(detailed=1, draws=False))
    records = section.blocks[0].tables[0].records()
    assert [record["side"] for record in records[:3]] == [*SORT]
    assert [record["side"] for record in records[-3:]] == [*SORT][1:] + [*SORT][:1]


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
    assert "Broken at size 1000: its result is wrong: entry 5 is 7, not 6." in told


@pytest.mark.parametrize(
    ("key", "value"),
    [("size", "1e3"), ("device", "cuda"), ("problem", ""), ("transfers", "some")],
)
def test_a_configuration_that_no_program_writes_is_refused(key, value, write, shell):
    entries = rows({"std::sort": (0.0, 1e-8)})
    entries[0]["configuration"][key] = value
    told = shell("validate", write(synthetic.document(entries, axes=AXES)), code=2).err
    assert f"configuration.{key}" in told
