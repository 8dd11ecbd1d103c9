# SPDX-License-Identifier: Apache-2.0
"""Comparisons, what chooses by them, and PReLU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed here")

from torch import nn  # noqa: E402

from crossover_bench.networks.tests import zoo  # noqa: E402
from crossover_bench.networks.tests.proved import kinds, told  # noqa: E402
from crossover_bench.networks.user_module import Input  # noqa: E402
from crossover_bench.networks.values import Refused  # noqa: E402

ROW = Input((12,))


def stays(m, x):
    """Whole samples are left out, as stochastic depth does."""
    y = m.fc(x)
    return m.out(x + y * (torch.rand(len(x), 1) >= 0.2) / 0.8)


def stays_by_floor(m, x):
    drawn = 0.8 + torch.rand((len(x), 1), dtype=x.dtype)
    drawn.floor_()
    return m.out(x + m.fc(x).div(0.8) * drawn)


def stays_by_chance(m, x):
    """As timm has it."""
    drawn = x.new_empty((len(x), 1)).bernoulli_(0.8)
    return m.out(x + m.fc(x) * drawn.div_(0.8))


@pytest.mark.parametrize(
    ("do", "members", "layers"),
    [
        (stays, {}, ["slice", "linear", "slice", "affine", "affine", "hardtanh"]),
        (stays_by_floor, {}, ["slice", "affine", "affine", "affine", "hardtanh"]),
        (stays_by_chance, {}, ["slice", "linear", "slice", "as_strided", "multiply"]),
        (lambda m, x: m.out(torch.where(m.fc(x) > 0.1, x, 0.5)), {}, ["linear", "affine"]),
        (lambda m, x: m.out(x.masked_fill(~(x < m.fc(x)), -1.0)), {}, ["linear"]),
        (lambda m, x: m.out(m.fc(x) * (x <= 0).to(x.dtype)), {}, ["linear"]),
        (lambda m, x: m.out(m.fc(x) * (x.relu() == 0)), {}, ["linear", "relu", "affine"]),
        (lambda m, x: m.out(m.fc(x) * x.relu().ne(0).double()), {}, ["linear", "relu", "affine"]),
        (lambda m, x: m.out(m.act(m.fc(x))), {"act": nn.PReLU()}, ["linear", "relu"]),
        (lambda m, x: m.out(m.act(m.fc(x))), {"act": nn.PReLU(12)}, ["linear", "relu"]),
    ],
)
def test_comparisons_choose(do, members, layers):
    described, _ = told(zoo.By(do, fc=nn.Linear(12, 12), out=nn.Linear(12, 3), **members), ROW)
    assert kinds(described)[: len(layers)] == layers


@pytest.mark.parametrize(
    ("act", "layers"),
    [
        (nn.Softplus(2), ["affine", "softplus", "affine"]),
        (nn.CELU(0.5), ["affine", "elu", "affine"]),
        (nn.Softshrink(0.2), ["hardtanh", "affine", "add"]),
        (nn.Hardshrink(0.2), ["abs", "affine", "affine", "hardtanh", "multiply"]),
        (nn.Threshold(0.1, 2.0), ["affine", "affine", "hardtanh"]),
        (nn.GLU(), ["slice", "sigmoid"]),
        (
            nn.Sequential(nn.Unflatten(1, (3, 4)), nn.LayerNorm((3, 4)), nn.Flatten()),
            ["layer_norm"],
        ),
    ],
)
def test_functions_are_several_layers(act, layers):
    do = lambda m, x: m.out(m.act(m.fc(x)))  # noqa: E731
    out = nn.Linear(6 if isinstance(act, nn.GLU) else 12, 3)
    described, _ = told(zoo.By(do, fc=nn.Linear(12, 12), act=act, out=out), ROW)
    assert kinds(described)[1:][: len(layers)] == layers


def test_channels_have_a_slope_of_their_own():
    do = lambda m, x: m.out(m.act(m.conv(x)).mean((2, 3)))  # noqa: E731
    more = {"conv": nn.Conv2d(3, 4, 3), "act": nn.PReLU(4), "out": nn.Linear(4, 3)}
    described, _ = told(zoo.By(do, **more), Input((3, 8, 8)))
    assert kinds(described).count("relu") == 2


def test_whole_numbers_of_what_has_no_bounds_are_refused():
    with pytest.raises(Refused, match="it is known of numbers between 0 and 1 that it draws"):
        told(zoo.By(lambda m, x: m.fc(x.floor()), fc=nn.Linear(12, 3)), ROW)


def test_what_is_not_finite_is_not_chosen():
    do = lambda m, x: m.fc(torch.where(x > 0, x, -torch.inf))  # noqa: E731
    with pytest.raises(Refused, match="it chooses -inf, and a product with 0 is not 0 then"):
        told(zoo.By(do, fc=nn.Linear(12, 3)), ROW)
