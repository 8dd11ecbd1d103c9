# SPDX-License-Identifier: Apache-2.0
"""Which rows of other frameworks do the work of a row of bench's, and in which processes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from crossover_bench.peers.jax.threads import environment
from crossover_bench.peers.pytorch.counterparts import Wanted, counterparts, on_the_gpu
from crossover_bench.peers.tests import configuration_of, ours

EVERY = Wanted(modes=("eager", "compile", "graph"), pages=("default", "huge"))
GPU = {"device": "cuda", "execution": "graph-epoch", "data": "pinned"}
PLAIN = {"execution": "eager", "layout": "default", "compiler": "none", "pages": "default"}
GEMM = (
    "Gemm/m:10/n:20/k:30/transpose:nt/precision:f32/cache:{}/device:cpu/execution:eager/"
    "cpu_threads:2"
)


def ways(
    configuration: dict[str, str],
    wanted: Wanted = Wanted(),  # noqa: B008
    shape: tuple[int, ...] = (),
) -> list[dict[str, str]]:
    """How each of its counterparts differs from the plain one."""
    return [
        {key: value for key, value in row.items() if PLAIN.get(key) not in (None, value)}
        for row in counterparts(configuration, wanted, shape)
    ]


def on_gpu(**changes: str) -> dict[str, str]:
    row = ours("disc-2", **GPU)
    del row["cpu_threads"]
    return {**row, **changes}


def test_an_epoch_has_one_counterpart_however_bench_computes():
    expected = [{**ours("disc-2"), **PLAIN, "program": "pytorch"}]
    assert counterparts(ours("disc-2"), Wanted()) == expected
    assert counterparts(ours("disc-2", execution="fused"), Wanted()) == expected


def test_ranks_have_one_counterpart_of_as_many() -> None:
    row = counterparts(ours("disc-2", execution="overlapped", ranks="2"), EVERY)[0]
    assert row["ranks"] == "2" and row["compiler"] == "none"
    rows = counterparts(ours("disc-2", ranks="2"), EVERY)
    assert {row["compiler"] for row in rows} == {"none"}
    gpus = on_gpu(ranks="2", bucket="1000")
    assert counterparts(gpus, EVERY) == [
        {**gpus, **PLAIN, "program": "pytorch", "data": "resident"}
    ]


def test_copies_have_one_counterpart_of_as_many_in_each_mode() -> None:
    assert ways(ours("disc-2", copies="16"), EVERY) == ways(ours("disc-2"), EVERY)
    assert {row["copies"] for row in counterparts(on_gpu(copies="16"), EVERY)} == {"16"}
    assert len(ways(on_gpu(copies="16"), EVERY)) == 3


def test_a_gpu_row_has_its_data_resident():
    assert counterparts(on_gpu(), Wanted()) == [
        {**on_gpu(), **PLAIN, "program": "pytorch", "data": "resident"}
    ]
    assert ways(on_gpu(products="autotuned"), EVERY) == [
        {},
        {"compiler": "inductor"},
        {"execution": "graph"},
    ]
    assert "products" not in counterparts(on_gpu(products="autotuned"), Wanted())[0]


def test_a_pass_has_counterparts_where_its_batch_lies_there():
    rows = counterparts(ours("disc-2", family="Forward", execution="auto"), EVERY)
    assert [row["compiler"] for row in rows] == ["none", "inductor"]
    assert {row["execution"] for row in rows} == {"eager"}
    assert len(counterparts(on_gpu(family="Forward", data="resident"), EVERY)) == 2
    assert not counterparts(on_gpu(family="Forward"), EVERY)


def test_gradients_that_are_kept_have_counterparts_but_in_a_graph():
    rows = counterparts(on_gpu(zero="keep"), EVERY)
    assert {(row["zero"], row["compiler"]) for row in rows} == {
        ("keep", "none"),
        ("keep", "inductor"),
    }
    assert all(row["execution"] == "eager" for row in rows)


def test_images_come_in_both_layouts_and_other_rows_in_one():
    last, image = {"layout": "channels-last"}, (3, 32, 32)
    for model in ("alexnet-r", "lenet-5", "mobilenet-v2", "imported"):
        assert ways(ours(model, family="Minibatch"), shape=image) == [{}, last]
        assert len(ways(ours(model), Wanted(layouts=("channels-last",)), image)) == 1
    assert len(ways(ours("lstm", family="Minibatch"), shape=(32,))) == 1
    assert ways(ours("alexnet-r", copies="4"), shape=image) == [{}]


def test_a_process_of_jax_begins_with_its_threads_and_takes_no_memory_beforehand() -> None:
    assert environment(ours("disc-2", cpu_threads="3")) == {"NPROC": "3"}
    assert environment(on_gpu()) == {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}


def test_a_loop_as_people_write_it_trains_one_network_eagerly_in_f32():
    both = Wanted(modes=("eager", "compile"), scripts=("lean", "usual"))
    for row in (ours("disc-2"), ours("disc-2", family="Minibatch"), on_gpu()):
        *lean, usual = counterparts(row, both)
        assert len(lean) == 2 and not any("script" in each for each in lean)
        assert usual["script"] == "usual" and "layout" not in usual
        assert counterparts(row, Wanted(scripts=("usual",))) == [usual]
    image = (3, 32, 32)
    assert len(counterparts(ours("alexnet-r"), Wanted(scripts=("usual",)), image)) == 1
    for changes in ({"precision": "bf16"}, {"copies": "4"}, {"ranks": "2"}, {"zero": "keep"}):
        assert not counterparts(ours("disc-2", **changes), Wanted(scripts=("usual",)))
    assert not counterparts(ours("disc-2"), Wanted(modes=("compile",), scripts=("usual",)))
    assert counterparts(ours("disc-2", family="Forward"), both)[0].keys().isdisjoint({"script"})


def test_what_is_wanted_is_combined_and_a_graph_is_a_gpus():
    assert ways(ours("disc-2"), EVERY) == [
        {},
        {"pages": "huge"},
        {"compiler": "inductor"},
        {"compiler": "inductor", "pages": "huge"},
    ]


@pytest.mark.parametrize(
    ("model", "changes", "has_one"),
    [
        *((model, {}, True) for model in ("disc-2", "disc-12", "heart", "policy", "lenet-5")),
        ("gpt-64", {}, True),
        ("alexnet-r", {"family": "Minibatch"}, True),
        ("gpt-16", {}, False),
        ("surrogate", {}, False),
        ("disc-2x1.5", {}, False),
        ("alexnet-r", {}, False),
        ("lstm", {"family": "Minibatch"}, False),
        ("disc-2", {"family": "Forward"}, False),
        ("disc-2", {"precision": "bf16"}, False),
        ("disc-2", {"copies": "4"}, False),
    ],
)
def test_a_default_run_has_some_networks_beside_it(model, changes, has_one):
    row = ours(model, **changes)
    assert len(counterparts(row, Wanted(beside="default"))) == has_one
    assert counterparts(row, Wanted())
    assert not counterparts(configuration_of(GEMM.format("warm")), Wanted(beside="default"))


@pytest.mark.parametrize(
    "changes",
    [
        {"family": "Layer"},
        {"family": "Peak"},
        {"precision": "f16"},
        {"accumulate": "2"},
        {"loss": "step"},
        {"shuffle": "epoch"},
        {"loader": "2"},
    ],
)
def test_some_work_has_none(changes):
    assert ways(ours("disc-2", **changes)) == []
    assert ways(ours("disc-2"), Wanted(devices=("cuda",))) == []


def test_a_gpu_of_pytorchs_own_trains_what_bench_has_on_the_cpu():
    wanted = Wanted(scripts=("usual", "lean"), modes=("eager", "graph"), torch_device="mps")
    lean, usual = on_the_gpu(ours("disc-2"), wanted)
    there = {"device": "cuda", "data": "resident", "torch_device": "mps", "execution": "eager"}
    assert there.items() <= lean.items() and there.items() <= usual.items()
    assert "cpu_threads" not in lean and usual["script"] == "usual"
    every = on_the_gpu(ours("disc-2", cpu_threads="2"), wanted)
    assert every == [lean, usual]  # one row for all threads of the CPU
    assert len(on_the_gpu(ours("disc-2"), replace(wanted, torch_device="cuda"))) == 3  # a graph
    nothing = [on_the_gpu(ours("disc-2", **GPU), wanted), on_the_gpu(ours("disc-2"), Wanted())]
    nothing.append(on_the_gpu(configuration_of(GEMM.format("warm")), wanted))
    assert nothing == [[], [], []]


def test_products_are_warm_and_copies_stay_as_they_are():
    (warm,) = counterparts(configuration_of(GEMM.format("warm")), Wanted())
    assert warm == {**configuration_of(GEMM.format("warm")), **PLAIN, "program": "pytorch"}
    assert ways(configuration_of(GEMM.format("cold"))) == []
    copy = configuration_of("Copy/direction:h2d/bytes:1024/device:cuda/memory:pinned/mode:async")
    assert counterparts(copy, Wanted()) == [{**copy, "program": "pytorch"}]
