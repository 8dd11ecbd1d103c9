# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's side itself, where it and PyTorch are installed."""

from __future__ import annotations

import pytest

for module in ("torch", "onnxruntime"):
    pytest.importorskip(module, reason=f"{module} is not installed here")

import crossover_bench.peers.onnxruntime.__main__ as worker  # noqa: E402
from crossover_bench.peers.onnxruntime.__main__ import Rows, counterparts  # noqa: E402
from crossover_bench.peers.tests import is_verified_and_timed, of_images, ours  # noqa: E402

PASS = ours("n", family="Forward", batch="3", execution="auto")


ON_GPU = {key: value for key, value in PASS.items() if key != "cpu_threads"}
ON_GPU |= {"device": "cuda", "data": "resident"}


def test_of_the_rows_of_bench_it_has_forward_passes():
    for row in (PASS, ON_GPU):
        assert counterparts(row) == [{**row, "program": "onnxruntime", "execution": "eager"}]
    for other in ({"family": "Epoch"}, {"precision": "bf16"}, {"device": "cuda"}):
        assert not counterparts({**PASS, **other}, ("cpu",))
    assert not counterparts({**ON_GPU, "data": "pinned"})


def test_a_network_in_use_is_verified_and_timed_pass_by_pass():
    rows = Rows()
    assert rows.describe()["program"] == "onnxruntime"
    (row,) = (told["configuration"] for told in rows.rows(PASS)["rows"])
    prepared = rows.made(row, of_images())

    is_verified_and_timed(prepared, "PyTorch", spoil)


def spoil(work):
    work.x.update_inplace(work.x.numpy() + 1)  # which the session reads where it lies


def test_on_a_gpu_it_computes_where_its_values_lie(monkeypatch):
    """By the processor in its place: what is bound, not what computes."""
    answer = Rows().prepare("row", counterparts(ON_GPU)[0], of_images())
    assert answer["outcome"] == "skipped" and "onnxruntime-gpu" in answer["error_message"]

    value = worker.onnxruntime.OrtValue
    monkeypatch.setattr(worker, "_CUDA", "CPUExecutionProvider")
    monkeypatch.setitem(worker._PROVIDERS, "cuda", worker._PROVIDERS["cpu"])
    for made in ("ortvalue_from_numpy", "ortvalue_from_shape_and_type"):
        there = getattr(value, made)

        def here(*given, there=there):
            assert given[-2:] == ("cuda", 0)
            return there(*given[:-2], "cpu", 0)

        monkeypatch.setattr(value, made, here)
    prepared = Rows().made(counterparts(ON_GPU)[0], of_images())
    assert "cpu_threads" not in prepared.facts
    is_verified_and_timed(prepared, "PyTorch", spoil)


def test_what_cant_be_exported_is_skipped_with_its_reason():
    counted = of_images()
    counted["network"]["layers"][2] |= {"type": "swish"}
    answer = Rows().prepare("row", counterparts(PASS)[0], counted)
    assert answer["outcome"] == "skipped" and "swish" in answer["error_message"]
