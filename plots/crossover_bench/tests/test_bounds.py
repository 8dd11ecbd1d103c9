# SPDX-License-Identifier: Apache-2.0
"""Ceilings and bounds: which rows are ceilings, what bounds a row, and that order is nothing."""

import random

import pytest

from crossover_bench.answers.why.chart import draw_why
from crossover_bench.answers.why.section import split_table
from crossover_bench.counts.bounds import Ceilings, bounds
from crossover_bench.curves.network import epoch_rows
from crossover_bench.files import loading
from crossover_bench.files.rows import Bound, MinimumWork
from crossover_bench.study.study import Study
from crossover_bench.tests import synthetic
from crossover_bench.tests.synthetic_machine import CPU_BYTES, CPU_FLOPS, machine
from crossover_bench.tests.synthetic_probes import operation

GPU = {"device": "cuda"}
FIELDS = tuple(MinimumWork.__dataclass_fields__)


CPU = {"device": "cpu", "cpu_threads": "2"}


def measured() -> Ceilings:
    """Of a GPU; and a CPU of which the memory was not measured."""
    ceilings = Ceilings()
    ceilings.raise_to(100, "flops", CPU)
    figures = {"flops": 100, "memory_bytes": 10, "bytes_to_device": 2, "bytes_from_device": 5}
    for resource, per_second in {**figures, "launches": 4, "graph_nodes": 8}.items():
        ceilings.raise_to(per_second, resource, GPU)
        ceilings.raise_to(per_second / 2, resource, GPU)  # the highest is kept
    return ceilings


@pytest.mark.parametrize(
    ("resource", "where", "per_second"),
    [
        *(("flops", GPU, 100), ("flops", {**GPU, "precision": "f32"}, 100)),
        ("flops", {**GPU, "precision": "bf16"}, None),
        ("memory_bytes", {**GPU, "precision": "bf16"}, 10),  # which knows no precision
        ("memory_bytes", {**CPU, "cpu_threads": "1"}, None),
        *(("flops", {**CPU, "cpu_threads": "1"}, None), ("flops", CPU, 100)),
    ],
)
def test_ceilings_are_kept_by_device_precision_and_threads(resource, where, per_second):
    assert measured().find(resource, where) == per_second


@pytest.mark.parametrize(
    ("work", "bound"),
    [
        ({"flops": 300, "memory_bytes": 10}, ("compute", 3)),
        ({"flops": 300, "memory_bytes": 40}, ("memory", 4)),
        ({"flops": 300, "bytes_to_device": 10}, ("copy", 5)),
        ({"bytes_to_device": 4, "bytes_from_device": 5}, ("copy", 3)),  # one after the other
        ({"bytes_to_device": 10, "launches": 24}, ("launch", 6)),
        # Nodes of a graph are launched faster.
        ({"bytes_to_device": 10, "launches": 24, "graph": True}, ("copy", 5)),
        ({}, None),
    ],
)
def test_the_longest_part_bounds(work, bound):
    assert measured().bound(MinimumWork(**work), GPU) == bound


def test_what_was_not_measured_gives_no_bound():
    work = MinimumWork(flops=100, memory_bytes=10)
    assert measured().bound(work, {**GPU, "precision": "bf16"}) is None
    assert Ceilings().bound(work, GPU) is None
    assert measured().bound(work, CPU) is None
    # Without memory traffic only compute needs a ceiling.
    assert measured().bound(MinimumWork(flops=50), CPU) == ("compute", 0.5)


@pytest.mark.parametrize(
    ("quantity", "more", "device", "counters", "resource", "per_second"),
    [
        ("fma", {"precision": "f32"}, "cpu", {"flops": 8.0}, "flops", 4.0),
        ("fma", {"precision": "f32"}, "cuda", {"flops": 8.0}, "flops", 4.0),
        ("matrix", {"precision": "bf16", "size": "512"}, "cpu", {"flops": 8.0}, "flops", 4.0),
        ("matrix", {"precision": "tf32"}, "cuda", {"flops": 8.0}, "flops", 4.0),
        ("triad", {}, "cpu", {"bytes": 8.0}, "memory_bytes", 4.0),
        ("triad", {}, "cuda", {"bytes": 8.0}, "memory_bytes", 4.0),
        ("copy", {"direction": "h2h"}, "cpu", {"bytes": 8.0}, "memory_bytes", 8.0),
        ("copy", {"direction": "h2d"}, "cuda", {"bytes": 8.0}, "bytes_to_device", 4.0),
        ("copy", {"direction": "d2h"}, "cuda", {"bytes": 8.0}, "bytes_from_device", 4.0),
        ("launches", {}, "cuda", {}, "launches", 0.5),
        ("graph-node", {}, "cuda", {}, "graph_nodes", 0.5),
        ("launch", {}, "cuda", {}, "launches", None),
        ("synchronization", {}, "cuda", {}, "launches", None),
        ("fork-join", {}, "cpu", {}, "launches", None),
    ],
)
def test_each_probe_raises_its_ceiling(
    *, write, quantity, more, device, counters, resource, per_second
):
    where = {"device": device, **({"cpu_threads": "1"} if device == "cpu" else {})}
    configuration = {"family": "Peak", "quantity": quantity, **more, **where}
    entries = operation(configuration, 2.0, **counters)
    fastest = min(entry["real_time"] for entry in entries)
    for entry in entries:  # the fastest of the repetitions takes 2 s, and it counts
        entry["real_time"] *= 2e3 / fastest
    file = loading.load_file(write(synthetic.document(entries, gpu="synthetic GPU")))
    ceiling = Ceilings(file.rows).find(resource, {**where, **more})
    assert ceiling == (pytest.approx(per_second) if per_second else None)


def counted(**work: float | bool) -> dict[str, float | bool]:
    """`minimum_work` as a file has it."""
    return {**dict.fromkeys(FIELDS, 0), "graph": False, **work}


def document(**changes: float) -> dict:
    """A CPU with ceilings, and its epochs with what they take at least."""
    content = machine(threads=(1, 2), modes=())
    for entry in content["benchmarks"]:
        if "minimum_work" in entry:
            work = changes or {"flops": entry["flops"], "memory_bytes": 1e3}
            entry["minimum_work"] = counted(**work)
    return content


def test_bounds_do_not_depend_on_the_order_of_rows(read):
    content = document()
    file = read(content)
    expected = {row.name: bounds(file)[row.index] for row in epoch_rows(file)}
    for row in epoch_rows(file):
        bound = expected[row.name]
        rate = CPU_FLOPS * int(row.configuration["cpu_threads"])
        assert bound.name == "compute"
        assert bound.seconds == pytest.approx(row.counters["flops"] / rate)
        assert bound.percent == pytest.approx(100 * bound.seconds / row.median)
    for seed in range(3):
        random.Random(seed).shuffle(content["benchmarks"])
        file = read(content)
        again = bounds(file)
        assert {row.name: again[row.index] for row in epoch_rows(file)} == expected
    assert len(expected) == 28


def test_a_row_whose_ceiling_is_not_in_the_file_says_so(read):
    content = document()
    content["benchmarks"] = [
        entry for entry in content["benchmarks"] if entry["configuration"]["family"] != "Peak"
    ]
    file = read(content)
    reason = "no ceiling for it was measured in this file (family Peak)"
    assert set(bounds(file).values()) == {Bound(None, None, None, reason)}
    assert f"No bound: {reason}." in split_table(file, epoch_rows(file)).notes


@pytest.mark.slow
def test_memory_traffic_bounds_and_is_drawn(read):
    file = read(document(memory_bytes=1e3))
    line = split_table(file, epoch_rows(file)).records()[0]
    assert line["bound"] == "memory"
    assert line["bound_seconds"] == pytest.approx(1e3 / CPU_BYTES)
    assert b">bound<" in draw_why(Study(file)).pictures.svg


def test_rows_of_older_files_keep_their_bound(small, read):
    known = {"name": "memory", "seconds": 0.006, "percent": 30.0}
    for bound in (known, {"reason": "no ceilings in this file"}):
        for entry in small["benchmarks"]:
            entry["bound"] = bound
        file = read(small)
        fields = (*(bound.get(key) for key in known), bound.get("reason", ""))
        assert bounds(file) == {0: Bound(*fields)}
        assert file.rows[0].bound == Bound(*fields)
    assert "No bound: no ceilings in this file." in split_table(file, epoch_rows(file)).notes


def test_the_minimum_work_is_not_negative(small, read):
    small["benchmarks"][0]["minimum_work"] = counted(flops=-1)
    with pytest.raises(loading.BadFileError, match="must be at least 0"):
        read(small)


def test_no_row_is_above_its_bound(read):
    """A row that is faster than the probes say is possible raises their ceiling for all."""
    content = document()
    fast = next(entry for entry in content["benchmarks"] if "minimum_work" in entry)
    for entry in content["benchmarks"]:
        if entry["name"] == fast["name"]:
            entry["minimum_work"] = counted(flops=CPU_FLOPS, memory_bytes=CPU_BYTES / 2)
            entry["real_time"] *= 1e-3
    file = read(content)
    of_rows = bounds(file)
    assert max(bound.percent for bound in of_rows.values()) <= 100
    row = next(row for row in epoch_rows(file) if row.name == fast["name"])
    assert of_rows[row.index].seconds == pytest.approx(row.minimum)
    assert {bound.name for bound in of_rows.values()} == {"compute"}


def test_more_threads_reach_what_fewer_do():
    ceilings = Ceilings()
    for threads, per_second in (("1", 100), ("2", 20), ("8", 300)):
        ceilings.raise_to(per_second, "flops", {"device": "cpu", "cpu_threads": threads})
    reached = [
        ceilings.find("flops", {"device": "cpu", "cpu_threads": threads})
        for threads in ("1", "2", "8", "4")
    ]
    assert reached == [100, 100, 300, None]
