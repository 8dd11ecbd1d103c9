# SPDX-License-Identifier: Apache-2.0
"""Families beside Epoch on the CPU: their rows, counters and verification."""

import re
from pathlib import Path

import pytest
from bench_runs import SHORT, Document, bench, measure, samples, strict

from crossover_bench.counts.bounds import bounds
from crossover_bench.files import loading

pytestmark = pytest.mark.slow


PROBES = (
    *("--sweep=quick", "--cuda=off", "--threads=1,2"),
    "--benchmark_filter=Peak|bytes:1024/|model:heart|model:disc-2/",
    *SHORT,
)


@pytest.fixture(scope="module")
def probes_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ceilings and copies, and an epoch that they bound."""
    folder = tmp_path_factory.mktemp("probes")
    measure(folder, *PROBES)
    return folder / "result.json"


@pytest.fixture(scope="module")
def probes(probes_path: Path) -> Document:
    return strict(probes_path)


def by_name(document: Document) -> dict[str, Document]:
    return {row["name"]: row for row in samples(document)}


def test_probes_have_their_rows(probes):
    copy = "device:cpu/memory:pageable/mode:sync/cpu_threads:1"
    # Only some CPUs have instructions for products in bf16.
    sizes = (512, 2048) if any("precision:bf16" in name for name in by_name(probes)) else ()
    matrix = [f"quantity:matrix/precision:bf16/size:{size}" for size in sizes]
    per_threads = ["quantity:fma/precision:f32", "quantity:triad", *matrix, "quantity:fork-join"]
    expected = [f"Peak/{q}/device:cpu/cpu_threads:{t}" for t in (1, 2) for q in per_threads] + [
        "Peak/quantity:copy/direction:h2h/device:cpu/cpu_threads:1",
        f"Copy/direction:h2h/bytes:1024/{copy}",
        f"Copy/direction:h2h/model:disc-2/batch:100/{copy}",
        f"Copy/direction:h2h/model:heart/batch:10/{copy}",
    ]
    names = [name for name in by_name(probes) if not name.startswith("Epoch")]
    assert names == expected  # ceilings before everything that they bound


def test_counters_of_probes(probes):
    rows = by_name(probes)
    for name, row in rows.items():
        if name.startswith("Epoch"):
            assert row["minimum_work"] == {"flops": row["flops"]}
            continue
        assert row["count"] == 1
        assert ("verification" in row) == ("fork-join" not in name)
        assert "device_seconds" not in row  # a CPU has no clock but the wall's
        assert "minimum_work" not in row  # a copy stays within the cache
    (heart,) = (row for name, row in rows.items() if "Copy" in name and "heart" in name)
    assert heart["bytes"] == 10 * (29 * 4 + 4)  # samples and labels


def assert_epochs_are_bound(path: Path) -> None:
    file = loading.load_file(path)
    bound_of = bounds(file)
    epochs = [row for row in file.rows if row.family == "Epoch"]
    assert epochs
    for row in epochs:
        bound = bound_of[row.index]
        assert bound.name in ("compute", "memory"), bound.reason
        assert bound.percent is not None and bound.percent > 0


def test_epochs_are_bound_by_measured_ceilings_in_whatever_order(probes_path, tmp_path):
    """Takes long where caches are large: the probe of memory fills several times as much."""
    assert_epochs_are_bound(probes_path)
    few = ("--sweep=quick", "--cuda=off", "--threads=1", *SHORT)
    only = "--benchmark_filter=quantity:(fma|triad)|Epoch/model:(disc-2|heart)/"
    measure(tmp_path, *few, only, "--benchmark_enable_random_interleaving=true")
    assert_epochs_are_bound(tmp_path / "result.json")


def test_products_of_the_networks_and_squares_have_rows(tmp_path):
    flags = ("--family=Gemm", "--sweep=quick", "--cuda=off", "--model=disc-2,disc-3", "--batch=10")
    only = "--benchmark_filter=m:(10|4|8|2|127|128|512)/.*(warm|m:128.*cold)"
    rows = measure(tmp_path, *flags, only, *SHORT)["rows"]
    at = "precision:f32/cache:warm/device:cpu/execution:eager/cpu_threads:1"
    shapes = ["m:10/n:4/k:2/transpose:nt", "m:10/n:2/k:4/transpose:nt"]  # disc-2: 2 -> 4 -> 2
    shapes += ["m:10/n:4/k:2/transpose:nn", "m:2/n:4/k:10/transpose:tn"]
    shapes += ["m:4/n:2/k:10/transpose:tn"]
    names = [row["name"] for row in rows]
    for shape in shapes:
        assert f"Gemm/{shape}/{at}" in names
    labels = {row["name"]: row["label"] for row in rows}
    assert labels[f"Gemm/{shapes[0]}/{at}"] == "forward: disc-2 disc-3"
    assert labels[f"Gemm/{shapes[3]}/{at}"] == "dw: disc-2"
    assert {row["label"] for row in rows if "m:128/" in row["name"]} == {"square"}
    transposes = [n for n in names if "m:512/n:512/k:512/" in n and n.endswith("cpu_threads:1")]
    assert [re.sub(".*transpose:(..).*", r"\1", n) for n in transposes] == ["nn", "nt", "tn"]
    for row in rows:
        m, n, k = (int(row["configuration"][extent]) for extent in "mnk")
        assert (row["flops"], row["launches"]) == (2 * m * n * k, 1)
        assert row["bytes"] == 4 * (m * k + k * n + m * n)
        # How many of them product_test.cpp asks.
        assert 0 < row["verified_entries"] == row["verification"]["entries"]
        assert (row["operand_sets"] > 1) == (row["configuration"]["cache"] == "cold")


def test_layers_have_both_passes_in_both_forms(tmp_path):
    flags = ("--family=Layer", "--sweep=quick", "--cuda=off", "--batch=7", "--threads=1")
    document = measure(tmp_path, *flags, "--benchmark_filter=width:(16|256)/", *SHORT)
    rows = {row["name"]: row for row in samples(document)}
    assert list(rows) == [
        f"Layer/width:{width}/batch:7/activation:relu/pass:{way}/form:{form}/precision:f32"
        "/device:cpu/execution:eager/cpu_threads:1"
        for width in (16, 256)
        for way in ("forward", "backward")
        for form in ("fused", "separate")
    ]
    for row in rows.values():
        width = int(row["configuration"]["width"])
        products = 1 if row["configuration"]["pass"] == "forward" else 2
        assert row["flops"] == products * 2 * 7 * width**2 + 2 * 7 * width  # bias and ReLU
        assert 0 < row["verified_entries"] == row["verification"]["entries_of"]


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        ("--memory-limit=1000", "not enough memory"),
        ("--precision=tf32", "tf32"),
        ("--precision=f16", "f16"),
    ],
)
def test_operations_that_can_not_be_had_are_skipped(tmp_path, flag, reason):
    flags = ("--family=Gemm,Layer", "--cuda=off", "--threads=1", "--sweep=quick", flag)
    only = "--benchmark_filter=(m:33/|width:16/.*forward/form:fused)"
    rows = measure(tmp_path, *flags, only, *SHORT, code=1)["rows"]
    assert {row["configuration"]["family"] for row in rows} == {"Gemm", "Layer"}
    for row in rows:
        assert row["outcome"] == "skipped"
        assert reason in row["error_message"]


def test_layers_in_bf16_are_measured_where_the_cpu_has_it(tmp_path):
    layer = ("--family=Layer", "--cuda=off", "--threads=1", "--sweep=quick", "--precision=bf16")
    only = "--benchmark_filter=width:16/.*forward/form:fused"
    done = bench(*layer, only, *SHORT, f"--out={tmp_path / 'layers.json'}")
    row, *_ = strict(tmp_path / "layers.json")["rows"]
    assert done.returncode == ("outcome" in row)
    if "outcome" in row:
        assert row["outcome"] == "skipped"
        assert row["error_message"].startswith("the CPU has no bf16 instructions")
    else:
        assert row["verification"]["tolerance"] == 1e-5 + 2**-7
