# SPDX-License-Identifier: Apache-2.0
"""Which rows of PyTorch's do the work of a row of bench's, and what they are called."""

from __future__ import annotations

import pytest

from peers.names import Wanted, configuration_of, counterparts, name_of
from peers.tests.fakes import ours

EVERY = Wanted(modes=("eager", "compile", "graph"), pages=("default", "huge"))
GPU = {"device": "cuda", "execution": "graph-epoch", "data": "pinned"}
GEMM = (
    "Gemm/m:10/n:20/k:30/transpose:nt/precision:f32/cache:{}/device:cpu/execution:eager/"
    "cpu_threads:2"
)


def names(configuration: dict[str, str], wanted: Wanted = Wanted()) -> list[str]:  # noqa: B008
    return [name_of(found) for found in counterparts(configuration, wanted)]


def on_gpu(**changes: str) -> dict[str, str]:
    own = ours("disc-2", **GPU)
    del own["cpu_threads"]
    return {**own, **changes}


def test_a_name_says_its_configuration_and_back():
    configuration = ours("disc-2")
    assert configuration_of(name_of(configuration)) == configuration
    with pytest.raises(ValueError, match="is no key:value"):
        configuration_of("Epoch/model")


def test_an_epoch_has_one_counterpart_however_bench_computes():
    expected = [
        "Epoch/model:disc-2/batch:100/precision:f32/device:torch-cpu/execution:eager/cpu_threads:1"
    ]
    assert names(ours("disc-2")) == expected
    assert names(ours("disc-2", execution="fused")) == expected


def test_a_gpu_row_has_its_data_resident():
    expected = (
        "Epoch/model:disc-2/batch:100/precision:f32/device:torch-cuda/execution:{}/data:resident{}"
    )
    assert names(on_gpu()) == [expected.format("eager", "")]
    assert names(on_gpu(products="autotuned"), EVERY) == [
        expected.format("eager", ""),
        expected.format("eager", "/compiler:inductor"),
        expected.format("graph", ""),
    ]


def test_images_come_in_both_layouts_and_other_rows_in_one():
    found = names(ours("alexnet-r", family="Minibatch"))
    assert [name.partition("eager/")[2] for name in found] == [
        "cpu_threads:1",
        "layout:channels-last/cpu_threads:1",
    ]
    assert len(names(ours("lstm", family="Minibatch"))) == 1
    assert len(names(ours("alexnet-r"), Wanted(layouts=("channels-last",)))) == 1


def test_what_is_wanted_is_combined_and_a_graph_is_a_gpus():
    found = names(ours("disc-2"), EVERY)
    assert [name.partition("execution:")[2] for name in found] == [
        "eager/cpu_threads:1",
        "eager/pages:huge/cpu_threads:1",
        "eager/compiler:inductor/cpu_threads:1",
        "eager/compiler:inductor/pages:huge/cpu_threads:1",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"family": "Layer"},
        {"family": "Peak"},
        {"precision": "f16"},
        {"accumulate": "2"},
        {"loss": "step"},
    ],
)
def test_some_work_has_none(changes):
    assert names(ours("disc-2", **changes)) == []
    assert names(ours("disc-2"), Wanted(devices=("cuda",))) == []


def test_products_are_warm_and_copies_stay_as_they_are():
    (warm,) = names(configuration_of(GEMM.format("warm")))
    assert warm == GEMM.format("warm").replace("device:cpu", "device:torch-cpu")
    assert names(configuration_of(GEMM.format("cold"))) == []
    copy = "Copy/direction:h2d/bytes:1024/device:cuda/memory:pinned/mode:async"
    assert names(configuration_of(copy)) == [copy.replace("cuda", "torch-cuda")]
