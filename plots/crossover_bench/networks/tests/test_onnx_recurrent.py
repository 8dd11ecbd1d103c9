# SPDX-License-Identifier: Apache-2.0
"""Recurrences of ONNX: their directions, first states and biases."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")
onnx = pytest.importorskip("onnx", reason="onnx is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks.__main__ import main  # noqa: E402
from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import imported, kinds, refused  # noqa: E402
from crossover_bench.networks.tests.test_onnx import (  # noqa: E402
    MSE,
    exported,
    made,
    numbers,
    old,
)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_recurrence_goes_both_ways(capsys, tmp_path, kind):
    rnn = getattr(nn, kind)(5, 6, batch_first=True, bidirectional=True)
    network = zoo.By(lambda m, x: m.out(m.rnn(x)[0]), rnn=rnn, out=nn.Linear(12, 2))
    path = old(tmp_path / "net.onnx", lambda: network, torch.randn(1, 7, 5))
    assert kinds(imported(capsys, path, MSE)).count(kind.lower()) == 2


@pytest.mark.parametrize(("kind", "gates"), [("GRU", 3), ("LSTM", 4)])
def test_a_recurrence_goes_backwards(capsys, tmp_path, kind, gates):
    node = onnx.helper.make_node
    before = {"linear_before_reset": 1} if kind == "GRU" else {}
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node(kind, ["t", "w", "r", "b"], ["h"], hidden_size=6, direction="reverse", **before),
        node("Squeeze", ["h", "axis"], ["s"]),
        node("Transpose", ["s"], ["y"], perm=[1, 0, 2]),
    ]
    constants = {"w": numbers(1, gates * 6, 5), "r": numbers(1, gates * 6, 6)}
    constants |= {"b": numbers(1, gates * 12), "axis": np.array([1])}
    path = made(tmp_path / "net.onnx", nodes, constants, x=["n", 7, 5])
    wanted = ["to_sequence", "as_strided", kind.lower(), "as_strided"]
    assert kinds(imported(capsys, path, MSE))[:4] == wanted


class _Streamed(nn.Module):
    """Reads its first states beside the sequence, and gives its last ones."""

    def __init__(self, kind: str, **settings: bool) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(5, 6, num_layers=2, batch_first=True, **settings)
        self.out = nn.Linear(6, 2)

    def forward(self, x: torch.Tensor, *first: torch.Tensor) -> Any:
        steps, last = self.rnn(x, (first if len(first) > 1 else first[0]) if first else None)
        return self.out(steps), *((last,) if isinstance(last, torch.Tensor) else last)


@pytest.mark.parametrize(("kind", "count"), [("GRU", 1), ("LSTM", 2)])
def test_first_states_that_are_inputs_are_zero(capsys, tmp_path, kind, count):
    states = [torch.randn(2, 1, 6) for _ in range(count)]
    read, names = (torch.randn(1, 7, 5), *states), ["x", "h0", "c0"][: 1 + count]
    path = exported(tmp_path / "net.onnx", _Streamed(kind), read, False, input_names=names)
    assert main(["import", str(path), "--output=0", MSE]) == 0
    given = capsys.readouterr()
    assert kinds(json.loads(given.out)).count(kind.lower()) == 2
    assert f"({' and '.join(names[1:])}), are zero here, as at the beginning" in given.err


def test_both_first_states_may_be_parts_of_an_input(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [node("Transpose", ["x"], ["t"], perm=[1, 0, 2])]
    for at in "01":
        nodes += [node("Gather", ["states", at], [f"part {at}"], axis=0)]
    read = ["t", "w", "r", "b", "", "part 0", "part 1"]
    nodes += [node("LSTM", read, ["", "h"], hidden_size=6), node("Squeeze", ["h", "0"], ["y"])]
    constants = {"w": numbers(1, 24, 5), "r": numbers(1, 24, 6), "b": numbers(1, 48)}
    constants |= {"0": np.array([0]), "1": np.array([1])}
    path = made(tmp_path / "net.onnx", nodes, constants, x=["n", 7, 5], states=[2, "n", 6])
    assert "lstm" in kinds(imported(capsys, path, MSE))


def test_a_first_state_that_more_reads_stays_an_input(capsys, tmp_path):
    node = onnx.helper.make_node
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[1, 0, 2]),
        node("GRU", ["t", "w", "r", "b", "", "h0"], ["h"], hidden_size=6, linear_before_reset=1),
        node("Squeeze", ["h", "axis"], ["s"]),
        node("Add", ["s", "h0"], ["y"]),
    ]
    constants = {"w": numbers(1, 18, 5), "r": numbers(1, 18, 6), "b": numbers(1, 36)}
    path = made(
        tmp_path / "net.onnx",
        nodes,
        constants | {"axis": np.array([1])},
        x=["n", 7, 5],
        h0=[1, "n", 6],
    )
    assert "h0" in refused(capsys, path, MSE)


@pytest.mark.parametrize("kind", ["GRU", "LSTM"])
def test_a_recurrence_without_biases_is_refused(capsys, tmp_path, kind):
    network = zoo.By(lambda m, x: m.out(m.rnn(x)[0]), rnn=_Streamed(kind, bias=False).rnn)
    network.out = nn.Linear(6, 2)
    path = old(tmp_path / "net.onnx", lambda: network, torch.randn(2, 7, 5))
    assert "it has no biases (B), and bench's has" in refused(capsys, path, MSE)
