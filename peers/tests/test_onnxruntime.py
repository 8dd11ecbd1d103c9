# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's side itself, where it and PyTorch are installed."""

from __future__ import annotations

import pytest

for module in ("torch", "onnxruntime"):
    pytest.importorskip(module, reason=f"{module} is not installed here")

from peers.onnxruntime.__main__ import Rows, counterparts  # noqa: E402
from peers.tests import is_verified_and_timed, of_images, ours  # noqa: E402

PASS = ours("n", family="Forward", batch="3", execution="auto")


def test_of_the_rows_of_bench_it_has_forward_passes_on_the_cpu():
    (own,) = counterparts(PASS)
    assert own == {**PASS, "program": "onnxruntime", "execution": "eager"}
    for other in ({"family": "Epoch"}, {"precision": "bf16"}, {"device": "cuda"}):
        assert not counterparts({**PASS, **other})


def test_a_network_in_use_is_verified_and_timed_pass_by_pass():
    rows = Rows()
    assert rows.describe()["program"] == "onnxruntime"
    (own,) = (told["configuration"] for told in rows.rows(PASS)["rows"])
    prepared = rows.made(own, of_images())

    def spoil(work):
        work._x += 1  # which the session reads where it lies

    is_verified_and_timed(prepared, "PyTorch", spoil)


def test_what_cant_be_exported_is_skipped_with_its_reason():
    counted = of_images()
    counted["network"]["layers"][2] |= {"type": "swish"}
    answer = Rows().prepare("row", counterparts(PASS)[0], counted)
    assert answer["outcome"] == "skipped" and "swish" in answer["error_message"]
