# SPDX-License-Identifier: Apache-2.0
"""Parameters that a network takes as operands, or in parts: products with them are layers."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import kinds, told  # noqa: E402
from crossover_bench.networks.user_module import Input  # noqa: E402
from crossover_bench.networks.values import Refused  # noqa: E402

ROW, WORDS = Input((20,)), Input((8,), 31)
W, BIAS = nn.Parameter(torch.randn(20, 4)), nn.Parameter(torch.randn(4))


@pytest.mark.parametrize(
    "do",
    [
        lambda m, x: m.out(x @ m.w + m.b),
        lambda m, x: m.out(torch.einsum("bi,ij->bj", x, m.w) + m.b),
        lambda m, x: m.out(nn.functional.linear(x, m.w.t(), m.b)),
    ],
)
def test_a_product_with_a_parameter_is_a_layer(do):
    described, _ = told(zoo.By(do, w=W, b=BIAS, out=nn.Linear(4, 3)), ROW)
    assert kinds(described) == ["linear", "linear"]
    assert "bias" not in described["layers"][0]


def test_parts_of_a_parameter_are_parameters_of_layers():
    members = {"table": nn.Embedding(31, 8), "ask": nn.Linear(8, 8), "out": nn.Linear(8, 31)}
    cross = nn.MultiheadAttention(8, 2, batch_first=True)

    def attended(m, x):
        y = m.table(x)
        return m.out(m.cross(m.ask(y), y, y, need_weights=False)[0])

    described, notes = told(zoo.By(attended, **members, cross=cross), WORDS)
    assert kinds(described).count("linear") == 5 and notes == ""
    decoder = nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True)
    decoded = zoo.By(lambda m, x: m.out(m.d(y := m.table(x), m.ask(y))), **members, d=decoder)
    assert kinds(told(decoded, WORDS)[0]).count("layer_norm") == 3


@pytest.mark.parametrize(
    ("do", "sentence"),
    [
        (
            lambda m, x: x @ m.w + nn.functional.linear(x, m.w[:, :1].t()),
            "w is used twice, first by",
        ),
        (lambda m, x: x @ m.b.expand(20, 4), "its weight repeats numbers of b"),
    ],
)
def test_numbers_of_a_parameter_are_those_of_one_layer(do, sentence):
    with pytest.raises(Refused, match=sentence):
        told(zoo.By(lambda m, x: m.out(do(m, x)), w=W, b=BIAS, out=nn.Linear(4, 3)), ROW)
